"""Lockstep as it would be on Windows: its own modules see no `fcntl`, no `os.fork`, no SIGKILL, no fork server.

With ELSEWHERE=macOS in the environment it is macOS that they see: a fork server, but no memory without a name.

Python imports this file first in every process that has its folder on PYTHONPATH. Libraries keep what they have, since
on Windows they are other builds; what is ours, told by the file that imports, gets the modules of VIEWS in place of
the real ones. `msvcrt` is there and locks, `subprocess` refuses what Windows refuses, and selectors take sockets.
"""

import builtins
import contextlib
import fcntl
import importlib
import os
import selectors
import stat
import subprocess
import types
import warnings
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
OURS = ("kernels", "workloads", "cluster", "algorithms", "theory", "experiments", "lessons", "app")
OURS += ("installation", "knobs", "lockstep", "tracing")
FILES = tuple(str(ROOT / name) for name in (*OURS, "start.py"))
MISSING = {"fcntl", "resource", "pwd", "grp", "termios", "tty", "pty", "syslog", "posix", "multiprocessing.forkserver"}
WITHOUT = {
    "os": "fork forkpty killpg getpgid setsid getuid geteuid getgid getloadavg uname memfd_create pidfd_open waitid "
    "P_PID WEXITED WNOWAIT WNOHANG sched_getaffinity sched_setaffinity setpriority nice O_NOFOLLOW O_ASYNC mkfifo "
    "set_blocking sendfile sysconf statvfs chown getsid pread pwrite posix_spawn",
    "signal": "SIGKILL SIGHUP SIGXCPU SIGIO SIGCHLD SIGALRM SIGUSR1 SIGUSR2 SIGCONT SIGSTOP SIGPIPE SIGQUIT "
    "pthread_sigmask pthread_kill SIG_BLOCK SIG_SETMASK SIG_UNBLOCK alarm setitimer pause sigwait siginterrupt",
    "socket": "AF_UNIX MSG_DONTWAIT MSG_NOSIGNAL SCM_RIGHTS TCP_USER_TIMEOUT send_fds recv_fds",
    "time": "tzset clock_gettime CLOCK_MONOTONIC pthread_getcpuclockid",
    "select": "poll epoll kqueue",
}


class View(types.ModuleType):
    """A module as ours see it: without some names, and with others of its own."""

    def __init__(self, real: types.ModuleType, without: str = "", **own):
        super().__init__(real.__name__, real.__doc__)
        self.__dict__.update(_real=real, _without=frozenset(without.split()), _own=own)

    def __getattr__(self, name: str):
        if name in self._without:
            raise AttributeError(f"module {self._real.__name__!r} has no attribute {name!r} elsewhere")
        return self._own[name] if name in self._own else getattr(self._real, name)

    def __setattr__(self, name: str, value) -> None:
        setattr(self._real, name, value)


class SocketsOnly(selectors.SelectSelector):
    """What selectors of Windows are."""

    def register(self, fileobj, events, data=None):
        number = fileobj if isinstance(fileobj, int) else fileobj.fileno()
        if not stat.S_ISSOCK(os.fstat(number).st_mode):
            raise OSError(10038, "an operation was attempted on something that is not a socket")
        return super().register(fileobj, events, data)


class Popen(subprocess.Popen):
    """A process that is started and ended as on Windows."""

    def __init__(self, *args, pass_fds=(), preexec_fn=None, **options):
        if pass_fds or preexec_fn:
            raise ValueError("pass_fds and preexec_fn are not supported on Windows platforms")
        super().__init__(*args, **{name: value for name, value in options.items() if name != "start_new_session"})


def run(*args, **options):
    """Be subprocess.run with that Popen."""
    if options.get("pass_fds") or options.get("preexec_fn"):
        raise ValueError("pass_fds and preexec_fn are not supported on Windows platforms")
    return subprocess.run(*args, **options)


def locking(descriptor: int, mode: int, nbytes: int) -> None:
    """Be msvcrt.locking: try once, from where the descriptor stands, which is far behind the end."""
    assert os.lseek(descriptor, 0, os.SEEK_CUR) > os.fstat(descriptor).st_size and nbytes == 1
    fcntl.flock(descriptor, fcntl.LOCK_UN if mode == 0 else fcntl.LOCK_EX | fcntl.LOCK_NB)


def unlink(path, **options) -> None:
    """Remove a file unless this process maps it."""
    if os.path.realpath(path) in Path("/proc/self/maps").read_text("utf-8"):
        raise PermissionError(13, "the process cannot access the file because it is being used by another process")
    os.unlink(path, **options)


def CDLL(name=None, *args, **options):
    """Be ctypes.CDLL, which opens no program of its own there."""
    import ctypes

    if name is None:
        raise TypeError("expected str, bytes or os.PathLike object, not NoneType")
    return ctypes.CDLL(name, *args, **options)


def start_methods() -> list[str]:
    """Be multiprocessing.get_all_start_methods."""
    return ["spawn"]


def get_context(method=None):
    """Be multiprocessing.get_context."""
    import multiprocessing

    if method not in (None, "spawn"):
        raise ValueError(f"cannot find context for {method!r}")
    return multiprocessing.get_context("spawn")


OWN = {
    "os": {"name": "nt", "unlink": unlink},
    "sys": {"platform": "win32"},
    "selectors": {"DefaultSelector": SocketsOnly},
    "subprocess": {"Popen": Popen, "run": run},
    "ctypes": {"CDLL": CDLL},
    "multiprocessing": {"get_all_start_methods": start_methods, "get_context": get_context},
    "msvcrt": {"LK_UNLCK": 0, "LK_LOCK": 1, "LK_NBLCK": 2, "locking": locking},
}
if os.environ.get("ELSEWHERE") == "macOS":
    MISSING, OWN = set(), {"sys": {"platform": "darwin"}}
    WITHOUT = {"os": "memfd_create pidfd_open sched_getaffinity sched_setaffinity"}
VIEWS: dict[str, types.ModuleType] = {}


def view(name: str) -> types.ModuleType:
    """Return a module as ours see it."""
    if name not in VIEWS:
        real = types.ModuleType(name) if name == "msvcrt" else importlib.import_module(name)
        VIEWS[name] = View(real, WITHOUT.get(name, ""), **OWN.get(name, {}))
    return VIEWS[name]


def importing(name, globals=None, locals=None, fromlist=(), level=0):
    """Be __import__: real for libraries, as on Windows for ours."""
    if not level and globals and str(globals.get("__file__", "")).startswith(FILES):
        if name in MISSING:
            raise ModuleNotFoundError(f"No module named {name!r} (elsewhere)", name=name)
        top = name if fromlist else name.partition(".")[0]
        if top in WITHOUT or top in OWN:
            with contextlib.suppress(ModuleNotFoundError):
                really(name, globals, locals, fromlist, level)  # a submodule such as os.path
            return view(top)
    return really(name, globals, locals, fromlist, level)


really = builtins.__import__
builtins.__import__ = importing
warnings.filterwarnings("error", category=EncodingWarning, module=rf"({'|'.join(OURS)})\b")
