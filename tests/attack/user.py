#!/usr/bin/env python3
"""The attempts that a job makes on PID 1 of its container, and on a process of its own. Prints a
line for each: {"attempt": NAME, "came": the name of the error, or the result}.

usage: user.py
"""
import ctypes
import errno
import json
import os
import signal

LIBC = ctypes.CDLL(None, use_errno=True)
PTRACE_PEEKDATA, PTRACE_ATTACH, PTRACE_DETACH, PTRACE_SEIZE = 2, 16, 17, 0x4206
PIDFD_OPEN, PIDFD_GETFD = 434, 438  # the numbers are the same on x86_64 and aarch64


class Part(ctypes.Structure):
    _fields_ = [("base", ctypes.c_void_p), ("length", ctypes.c_size_t)]


def call(function, *args):
    """Returns the result of a C function, or the name of the error."""
    ctypes.set_errno(0)
    got = function(*args)
    return errno.errorcode[ctypes.get_errno()] if got < 0 else got


def memory(function, pid, address):
    """Calls process_vm_readv or process_vm_writev for eight bytes of another process."""
    here = ctypes.create_string_buffer(8)
    function.argtypes = [ctypes.c_int, ctypes.c_void_p, ctypes.c_ulong, ctypes.c_void_p, ctypes.c_ulong,
                         ctypes.c_ulong]
    local = Part(ctypes.addressof(here), 8)
    there = Part(address, 8)
    return call(function, pid, ctypes.byref(local), 1, ctypes.byref(there), 1, 0)


def opened(path, flags):
    try:
        os.close(os.open(path, flags))
    except OSError as e:
        return errno.errorcode[e.errno]
    return "opened"


def listed(path):
    try:
        return "listed" if os.listdir(path) else "empty"
    except OSError as e:
        return errno.errorcode[e.errno]


def link(path):
    try:
        return "read" if os.readlink(path) else "empty"
    except OSError as e:
        return errno.errorcode[e.errno]


def get_descriptor(pid, number):
    process = call(LIBC.syscall, PIDFD_OPEN, pid, 0)
    if isinstance(process, str):
        return process
    got = call(LIBC.syscall, PIDFD_GETFD, process, number, 0)
    return got if isinstance(got, str) else "got"


def attempts_on(pid, address):
    attach = call(LIBC.ptrace, PTRACE_ATTACH, pid, None, None)
    if attach == 0:
        os.waitpid(pid, 0x40000000)  # __WALL
        LIBC.ptrace(PTRACE_DETACH, pid, None, None)
    yield "attach", attach
    seize = call(LIBC.ptrace, PTRACE_SEIZE, pid, None, None)
    yield "seize", seize
    yield "read-memory", memory(LIBC.process_vm_readv, pid, address)
    yield "write-memory", memory(LIBC.process_vm_writev, pid, address)
    for name, flags in (("mem", os.O_RDWR), ("environ", os.O_RDONLY), ("maps", os.O_RDONLY),
                        ("auxv", os.O_RDONLY), ("syscall", os.O_RDONLY), ("stack", os.O_RDONLY),
                        ("clear_refs", os.O_WRONLY), ("coredump_filter", os.O_WRONLY)):
        yield f"open-{name}", opened(f"/proc/{pid}/{name}", flags)
    yield "list-descriptors", listed(f"/proc/{pid}/fd")
    yield "open-descriptor-3", opened(f"/proc/{pid}/fd/3", os.O_RDWR)
    for name in ("root", "cwd", "exe"):
        yield f"follow-{name}", link(f"/proc/{pid}/{name}")
    yield "get-descriptor-3", get_descriptor(pid, 3)


def main():
    here = ctypes.create_string_buffer(b"12345678")
    child = os.fork()
    if child == 0:
        signal.pause()
    try:
        for target, pid in (("init", 1), ("own", child)):
            for name, came in attempts_on(pid, ctypes.addressof(here)):
                print(json.dumps({"attempt": f"{target}-{name}", "came": came}), flush=True)
    finally:
        os.kill(child, signal.SIGKILL)


main()
