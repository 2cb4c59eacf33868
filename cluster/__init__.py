"""Where an algorithm runs: the Comm contract and the clusters that keep it.

`simulated` is one process with virtual time, `processes` one operating-system process per rank over
torch.distributed, `threads` one thread of this process per rank, `torchrun` joins ranks that somebody else started. All
give an `Outcome` with one trace schema.
"""
