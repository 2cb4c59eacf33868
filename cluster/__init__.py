"""Clusters, on which algorithms run, and Comm, the contract that every cluster implements.

    comm.py            the contract: send, recv, all_reduce, ...; shared_memory.py is its part for shared vectors
    collectives/       all-reduce, broadcast, ... built from send and recv
    event_log.py       what ranks record, and the outcome of a run
    faults.py          slow ranks, jitter, pauses, crashes
    network.py         links, and presets of networks; devices.py has the presets of devices
    waiting/           who and what ranks wait for, from a trace
    simulated/         one process, virtual time
    torch/             programs of torch.distributed on the simulated cluster
    real/              processes, threads, or ranks started by torchrun, SLURM or Open MPI; real time

Every cluster returns an `Outcome` with the same trace schema.
"""
