"""The sandbox of an untrusted program: limits on what it can reach and use, enforced by the operating system.

    limits         CPU time, memory, files of 0 bytes, few open files, no core dump: everywhere
    system calls   (seccomp, Linux) only those that computing and reading files need. None of them creates a process,
                   opens a socket, sends a signal, or opens a file for writing; all others fail as if unknown
    files          (Landlock, Linux) only Python's and NumPy's own files can be read (`reachable.py`), neither ours nor
                   the reader's. Where `bubblewrap.py` works, it does this instead, and hides network and
                   processes, too

A process confines itself, after it has loaded what it needs and before it loads the program; there is no way back.
`confine` returns which of the three hold, and by which mechanism.
"""

import ctypes
import os
import platform
import struct
import sys
from collections.abc import Iterable

LIMITS, CALLS, FILES = "limits", "system calls", "files"
ALL = LIMITS, CALLS, FILES

X86, ARM = ("x86_64", 0xC000003E), ("aarch64", 0xC00000B7)  # machine, its number in a filter
ALLOWED = {  # numbers on X86 and ARM, from the kernel's tables; -1 where there is none
    "read": (0, 63), "write": (1, 64), "readv": (19, 65), "writev": (20, 66), "pread64": (17, 67), "lseek": (8, 62),
    "close": (3, 57), "fstat": (5, 80), "newfstatat": (262, 79), "statx": (332, 291), "stat": (4, -1), "lstat": (6, -1),
    "access": (21, -1), "faccessat": (269, 48), "faccessat2": (439, 439), "readlink": (89, -1), "readlinkat": (267, 78),
    "getdents64": (217, 61), "getcwd": (79, 17), "mmap": (9, 222), "mprotect": (10, 226), "munmap": (11, 215),
    "brk": (12, 214), "mremap": (25, 216), "madvise": (28, 233), "futex": (202, 98), "select": (23, -1),
    "pselect6": (270, 72), "poll": (7, -1), "ppoll": (271, 73), "sched_yield": (24, 124), "nanosleep": (35, 101),
    "clock_nanosleep": (230, 115), "clock_gettime": (228, 113), "clock_getres": (229, 114), "gettimeofday": (96, 169),
    "time": (201, -1), "times": (100, 153), "getrusage": (98, 165), "getpid": (39, 172), "gettid": (186, 178),
    "getppid": (110, 173), "getuid": (102, 174), "geteuid": (107, 175), "getgid": (104, 176), "getegid": (108, 177),
    "uname": (63, 160), "sysinfo": (99, 179), "getrandom": (318, 278), "sched_getaffinity": (204, 123),
    "rt_sigaction": (13, 134), "rt_sigprocmask": (14, 135), "rt_sigreturn": (15, 139), "sigaltstack": (131, 132),
    "restart_syscall": (219, 128), "membarrier": (324, 283), "exit": (60, 93), "exit_group": (231, 94),
}  # fmt: skip
OPENING = {"open": ((2, -1), 1), "openat": ((257, 56), 2)}  # numbers, and which argument holds the flags
WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC


def limit(cpu: int, memory: int) -> None:
    """Limit this process to `cpu` seconds of CPU time and `memory` bytes. Raise ImportError if the system cannot do
    that.
    """
    try:
        import resource
    except ImportError:
        raise ImportError("this system cannot limit a process; grade on Linux or macOS.") from None
    limits = {"CPU": cpu, "FSIZE": 0, "NOFILE": 64, "CORE": 0, "NPROC": 0, "AS": memory}
    for name, value in limits.items():
        _, hard = resource.getrlimit(getattr(resource, f"RLIMIT_{name}"))
        value = value if hard == resource.RLIM_INFINITY else min(value, hard)
        try:
            resource.setrlimit(getattr(resource, f"RLIMIT_{name}"), (value, value))
        except (ValueError, OSError):
            if name != "AS":  # macOS refuses this
                raise
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(1, 9)  # PR_SET_PDEATHSIG: end with the parent


def confine(readable: Iterable[str] | None, listed: Iterable[str] = ()) -> dict[str, str]:
    """Confine this process permanently, and return {item of ALL: the mechanism that protects it}.

    Items that nothing protects are missing. Afterwards only files below `readable` can be read, and only names below
    `listed`. `readable` is None if bubblewrap enforces this.
    """
    holds = {LIMITS: "rlimit"} | ({FILES: "bubblewrap"} if readable is None else {})
    if sys.platform == "linux" and platform.machine() in (X86[0], ARM[0]):
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.prctl(38, 1, 0, 0, 0) == 0:  # PR_SET_NO_NEW_PRIVS, which both require
            holds |= {FILES: "Landlock"} if readable is not None and _landlock(libc, readable, listed) else {}
            holds |= {CALLS: "seccomp"} if _seccomp(libc) else {}
    return holds


def _landlock(libc, readable: Iterable[str], listed: Iterable[str]) -> bool:
    create, add, restrict = 444, 445, 446  # on every machine
    version = libc.syscall(create, None, 0, 1)
    if version < 1:
        return False
    read_file, read_dir = 1 << 2, 1 << 3
    handled = (1 << (13 if version == 1 else 14 if version == 2 else 15)) - 1
    attributes = struct.pack("Q", handled)
    rules = libc.syscall(create, attributes, len(attributes), 0)
    if rules < 0:
        return False
    try:
        for path, allowed in [*((path, read_file) for path in readable), *((path, 0) for path in listed)]:
            if os.path.exists(path):
                handle = os.open(path, getattr(os, "O_PATH", 0) | os.O_CLOEXEC)
                rights = allowed | (read_dir if os.path.isdir(path) else 0)
                libc.syscall(add, rules, 1, struct.pack("=Qi", rights, handle), 0)
                os.close(handle)
        return libc.syscall(restrict, rules, 0) == 0
    finally:
        os.close(rules)


def _seccomp(libc) -> bool:
    """Install a BPF filter that checks the machine, number and flags of every system call.

    Return whether the kernel accepted it.
    """
    LOAD, EQUAL, ANY_BIT, RETURN = 0x20, 0x15, 0x45, 0x06
    allow, unknown, die = 0x7FFF0000, 0x00050000 | 38, 0x80000000  # 38: ENOSYS
    here = 0 if platform.machine() == X86[0] else 1
    program = [(LOAD, 0, 0, 4), (EQUAL, 1, 0, (X86, ARM)[here][1]), (RETURN, 0, 0, die), (LOAD, 0, 0, 0)]
    for numbers, flags in OPENING.values():
        if numbers[here] >= 0:
            program += [
                (EQUAL, 0, 4, numbers[here]),
                (LOAD, 0, 0, 16 + 8 * flags),
                (ANY_BIT, 0, 1, WRITING),
                (RETURN, 0, 0, unknown),
                (RETURN, 0, 0, allow),
            ]
    for numbers in ALLOWED.values():
        if numbers[here] >= 0:
            program += [(EQUAL, 0, 1, numbers[here]), (RETURN, 0, 0, allow)]
    program.append((RETURN, 0, 0, unknown))
    code = b"".join(struct.pack("HBBI", *step) for step in program)
    kept = ctypes.create_string_buffer(code, len(code))
    filter = struct.pack("HxxxxxxQ", len(program), ctypes.addressof(kept))
    return libc.prctl(22, 2, filter, 0, 0) == 0  # PR_SET_SECCOMP, by a filter
