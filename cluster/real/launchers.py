"""How torchrun, SLURM's srun and Open MPI's mpirun tell a process its rank.

Each launcher has its own environment variables. Here they are translated to those of torchrun, which torch reads too:

    torchrun    RANK                  WORLD_SIZE                                  LOCAL_RANK
    srun        SLURM_PROCID          SLURM_STEP_NUM_TASKS, or SLURM_NTASKS       SLURM_LOCALID
    mpirun      OMPI_COMM_WORLD_RANK  OMPI_COMM_WORLD_SIZE                        OMPI_COMM_WORLD_LOCAL_RANK

MASTER_ADDR and MASTER_PORT are the address of rank 0. If they are not set, it is the first host of SLURM's node list,
or 127.0.0.1 if all ranks are on this computer, with a port derived from the job number.

Source: srun(1), "OUTPUT ENVIRONMENT VARIABLES"; mpirun(1), "Exported Environment Variables".
"""

import os
import re
import zlib
from collections.abc import Mapping

TORCHRUN = ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")
PORTS = range(20000, 32768)  # above the ports of services, below those that Linux uses for outgoing connections
STRIDE = 1009  # between the ports of two steps of a job, which may run at once; later jobs use the ports in between


def variables(given: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Return torchrun's variables for this rank, or {} if no launcher started this process as one of several.

    MASTER_ADDR is "" if Open MPI started ranks on several computers and no variable tells where rank 0 is.
    """
    if all(name in given for name in TORCHRUN):
        return {name: given[name] for name in (*TORCHRUN, "LOCAL_RANK", "LOCAL_WORLD_SIZE") if name in given}
    return _open_mpi(given) or _slurm(given)  # mpirun starts its daemons with srun, so its ranks have both


def _slurm(given: Mapping[str, str]) -> dict[str, str]:
    """Return torchrun's variables for a task of srun, or {} for any other process.

    A batch script has most of srun's variables too, as if it were task 0, but SLURM_STEP_ID tells the two apart. A
    single task, such as an interactive shell, is not a rank either.
    """
    size = int(given.get("SLURM_STEP_NUM_TASKS") or given.get("SLURM_NTASKS") or 1)
    if "SLURM_PROCID" not in given or "SLURM_STEP_ID" not in given or size < 2:
        return {}
    nodes = given.get("SLURM_STEP_NODELIST") or given.get("SLURM_JOB_NODELIST") or ""
    several = int(given.get("SLURM_STEP_NUM_NODES") or given.get("SLURM_NNODES") or 1) > 1
    master = first_host(nodes) if several else "127.0.0.1"
    number = int(given.get("SLURM_JOB_ID") or 0) + STRIDE * int(given["SLURM_STEP_ID"])
    return _rank(given, given["SLURM_PROCID"], size, given.get("SLURM_LOCALID", "0"), master, number)


def _open_mpi(given: Mapping[str, str]) -> dict[str, str]:
    """Return torchrun's variables for a rank of mpirun, or {} for any other process.

    mpirun does not say where rank 0 is, unless all ranks are on this computer.
    """
    rank, size, local, here = (
        given.get(f"OMPI_COMM_WORLD_{name}") for name in ("RANK", "SIZE", "LOCAL_RANK", "LOCAL_SIZE")
    )
    if rank is None or size is None or int(size) < 2:
        return {}
    master = "127.0.0.1" if here == size else first_host(given.get("SLURM_JOB_NODELIST", ""))
    job = given.get("PMIX_NAMESPACE") or given.get("OMPI_MCA_ess_base_jobid") or ""
    return _rank(given, rank, int(size), local or "0", master, zlib.crc32(job.encode()))


def _rank(given: Mapping[str, str], rank: str, size: int, local: str, master: str, number: int) -> dict[str, str]:
    port = PORTS[number % len(PORTS)]
    return {
        "RANK": rank,
        "WORLD_SIZE": str(size),
        "LOCAL_RANK": local,
        "MASTER_ADDR": given.get("MASTER_ADDR") or master,
        "MASTER_PORT": given.get("MASTER_PORT") or str(port),
    }


def first_host(nodes: str) -> str:
    """Return the first host of an abbreviated SLURM node list, e.g. "node01" for "node[01-03,7],other"."""
    first = re.findall(r"^(?:[^,\[]|\[[^\]]*\])*", nodes)[0]
    return re.sub(r"\[([^\],-]*)[^\]]*\]", r"\1", first)
