"""`python -m experiments`: the command line, see `experiments.cli.main`."""

import sys

from experiments.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
