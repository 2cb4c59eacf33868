"""`python -m algorithms easgd --workers 8` runs one algorithm, with the options of `lockstep run`.

Under torchrun, srun or mpirun the same options run it on the ranks that the launcher starts, on one machine or several:

    torchrun --nnodes 2 --nproc-per-node 4 -m algorithms easgd --steps 500
"""

import sys

from experiments.__main__ import command_line

if __name__ == "__main__":
    sys.exit(command_line(["run", *sys.argv[1:]]))
