"""Real ranks: one process each, real time.

    frames.py    messages as bytes in a stream
    links.py     such a stream between every two ranks, and the boxes that what arrives is sorted into
    comm.py      the Comm contract on top of it
    sums.py      an all-reduce under way: by a thread of the rank's own, or by torch.distributed
    world.py     what a rank has once, whatever communicators are made of it
    threads.py   threads for what goes on beside a rank
    memory.py    a vector in memory that all ranks of one computer see
    notebook.py  what a rank writes down while it runs, and how the notes of all ranks become one record
    failure.py   what a rank tells about its end, and which end is the cause of the others
    rank.py      how a rank enters the run and leaves it
    child.py     a rank that was started by `cluster.real.processes`; preload.py is what all of them have loaded
    signals.py   Ctrl-C: counted while ranks run, and held back from the processes that are started
    supervisor.py   the parent of such ranks: hears from them, and ends the run when something goes wrong

`processes.py` starts such ranks and watches them; `torchrun.py` joins ranks that torchrun started; `threads.py` has
ranks that are threads of one process.
"""
