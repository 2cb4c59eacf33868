"""Real ranks: one process each, real time.

    links.py     an ordered stream of messages between every two ranks, and the mailboxes they are sorted into
    comm.py      the Comm contract on top of it; sums by torch.distributed where that is asked for
    notebook.py  what a rank writes down while it runs, and how the notes of all ranks become one record
    memory.py    a vector in memory that all ranks of one computer see
    rank.py      how a rank enters the run and leaves it

`cluster.processes` starts such ranks and watches them; `cluster.torchrun` joins ranks that somebody else started.
"""
