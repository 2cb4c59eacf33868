"""Real ranks: every rank is a process or thread, and time is real.

processes.py          start ranks as processes of this computer
threads.py            run ranks as threads of one process
torchrun.py           join ranks that torchrun, SLURM or Open MPI started, on one computer or several
launchers.py          the environment variables by which these tell a process its rank
meeting.py            where ranks meet: torch's store, addresses, computers that are disconnected

comm.py               the Comm contract over links
all_reduce.py         all-reduces in progress, by a background thread or by torch.distributed
shared_all_reduce.py  all-reduces of large vectors in memory that the ranks of one computer share
links.py              an ordered stream of messages between every pair of ranks
listener.py           where the ranks connect to each other
frames.py             messages as bytes in a stream
emulated_network.py   when an emulated network delivers a message
emulated_compute.py   how long kernels take on an emulated device, with slowdowns and pauses
memory.py             a vector in memory that all ranks of one computer map
background.py         threads for background work
rank_state.py         per-process state shared by all communicators of a rank
rank.py               how a rank joins a run and leaves it

supervisor.py         the parent of the ranks: collects their reports and ends the run when something fails
signals.py            Ctrl-C: counted while ranks run, deferred while processes are being started
child.py              a rank started by `processes` or `threads`; preload.py is what the fork server imports
orphan.py             how ranks and the fork server end with their parent
event_log_stream.py   event logs sent to the parent while they are written, and merged there
failure.py            why a rank ended, and which of several failures is the cause

restart.py            links that outlive a crash, and how a new process takes the place of a rank
returns.py            the parent's side of restarts
checkpoint.py         the newest reported model, in memory from which a rank restarts
"""
