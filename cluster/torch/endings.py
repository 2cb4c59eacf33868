"""How a rank ends: it returns, exits, fails, or is stopped. Errors name the rank and the line of the script."""

import contextlib
import os
import threading
import traceback
from collections.abc import Callable, Iterator
from typing import Any

import torch.distributed as dist

from cluster.comm import Cancelled, ClusterError, RankFailed
from cluster.strands.strand_exit import StrandExit
from cluster.torch.environment import Exited, finish_lines
from cluster.torch.process import Enough, Process, error_line
from cluster.torch.replaced import replace_names
from cluster.torch.watchdog import Blocked, StillRunning


def live(program: Callable[[], Any], process: Process, is_cancelled: Callable[[], bool]) -> Any:
    """Run the program as the process of this rank, and return its result.

    Return None if it exits or has taken all its steps. Raise ClusterError if it fails or exits with an error.
    """
    number, at = process.rank.number, ""
    try:
        with process.pricer:  # type: ignore[attr-defined]
            return program()
    except Enough:
        process.has_enough = True
        return None
    except SystemExit as end:
        code: Any = end.code
    except Exited as end:
        code, at = end.code, f" ({process.line})"
    except StillRunning as end:
        raise _stop(number, error_line(end) or process.line or "its start", is_cancelled()) from None
    except ClusterError:
        raise
    except Exception as error:
        raise _failure(process, error) from (None if _is_out_of_memory(error) else error)
    finally:
        finish_lines()
        if dist.is_initialized():
            with contextlib.suppress(StrandExit):
                dist.destroy_process_group()
    if code not in (None, 0):
        raise ClusterError(f"rank {number} exits with {code!r}{at}.")
    return None


def _stop(number: int, line: str, is_cancelled: bool) -> ClusterError:
    if is_cancelled:
        return Cancelled(f"cancelled while rank {number} was at {line}")
    return Blocked(
        f"rank {number} has run for too long without a torch operation; it was last seen at {line}. Check it for "
        "an endless loop, or for work done by other libraries."
    )


@contextlib.contextmanager
def failed_threads(notes: set[str]) -> Iterator[None]:
    """During a run, note why a thread that the script started has failed: its rank continues without it."""
    before = threading.excepthook  # which prints the traceback

    def note(failed: Any) -> None:
        error, at = failed.exc_value, error_line(failed.exc_value)
        files = (frame.f_code.co_filename for frame, _ in traceback.walk_tb(failed.exc_traceback))
        is_ours = any(os.path.dirname(dist.__file__) in file for file in files)
        why = "; only the thread in which a rank starts can use torch.distributed here" * is_ours
        notes.add(
            f"a thread failed{f' at {at}' * bool(at)}, and its rank continued: {type(error).__name__}: {error}{why}"
        )
        before(failed)

    with replace_names(threading, excepthook=note):
        yield


def _failure(process: Process, error: Exception) -> RankFailed:
    number, step = process.rank.number, process.comm.event_log.step
    at = f" at step {step}" * (step >= 0)
    line = error_line(error)
    where = f" ({line})" * bool(line)
    if _is_out_of_memory(error):
        what = (
            f"is out of memory{at}{where}: one process holds the tensors of all ranks; use fewer ranks, a smaller "
            "model or smaller batches."
        )
    else:
        what = f"failed{at}{where}: {type(error).__name__}: {error}"
    return RankFailed(f"rank {number} {what}", number, step)


def _is_out_of_memory(error: Exception) -> bool:
    """True if memory could not be allocated. For CPU memory, torch has no exception of its own, only this message."""
    return isinstance(error, MemoryError) or "can't allocate memory" in str(error)
