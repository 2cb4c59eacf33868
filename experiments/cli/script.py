"""An algorithm as a script: `python -m algorithms.averaging.easgd --workers 8` is `run easgd --workers 8`.

Under torchrun the same line joins the ranks that torchrun has started, on one machine or several:

    torchrun --nnodes 2 --nproc-per-node 4 -m algorithms.averaging.easgd --steps 500
"""

from __future__ import annotations

import sys

from experiments.cli import main as command_line


def main(module: str) -> None:
    """Run the algorithm in `module`, a dotted name, with the options of this process's command line; exits."""
    sys.exit(command_line.main(["run", module.rsplit(".", 1)[-1], *sys.argv[1:]]))
