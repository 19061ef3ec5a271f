#!/usr/bin/env python3
"""Shims of jobs and steps, which are root's, taken over while they run: what can they still open? The test
makes them open files by ptrace, which root may do and no job. README.md lists the attempts.

usage: shims_test.py BIN_DIR [-k CASE] [--keep]
"""
import ctypes
import errno
import os
import platform
import re
import struct
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "../e2e"))

import cluster  # noqa: E402
from cluster import equal, wait_for  # noqa: E402

libc = ctypes.CDLL(None, use_errno=True)
libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
ATTACH, DETACH, GETREGS, SETREGS, CONT = 16, 17, 12, 13, 7
RAX, RDX, RSI, RDI, ORIG_RAX, RIP, RSP, R10 = 10, 12, 13, 14, 15, 16, 19, 7
OPENAT, CLOSE, MKDIRAT, UNLINKAT = 257, 3, 258, 263


def ptrace(what, pid, data=None):
    if libc.ptrace(what, pid, None, data) == -1:
        raise OSError(ctypes.get_errno(), f"ptrace {what}")


class TakenOver:
    """A stopped process that makes the system calls that it is told."""

    def __init__(self, pid):
        self.pid = pid
        ptrace(ATTACH, pid)
        os.waitpid(pid, 0x40000000)
        self.kept = ctypes.create_string_buffer(27 * 8)
        ptrace(GETREGS, pid, self.kept)
        self.registers = list(struct.unpack("27Q", self.kept.raw))
        self.memory = os.open(f"/proc/{pid}/mem", os.O_RDWR)
        self.code = os.pread(self.memory, 3, self.registers[RIP])

    def __enter__(self):
        return self

    def call(self, number, *arguments):
        """The result; a negative one is an error's number."""
        os.pwrite(self.memory, b"\x0f\x05\xcc", self.registers[RIP])  # syscall; int3
        at = self.registers[RSP] - 8192
        told = []
        for argument in arguments:
            if isinstance(argument, bytes):
                os.pwrite(self.memory, argument + b"\0", at)
                told.append(at)
                at -= 4096
            else:
                told.append(argument & (1 << 64) - 1)
        now = list(self.registers)
        now[RAX], now[ORIG_RAX] = number, (1 << 64) - 1
        for register, value in zip((RDI, RSI, RDX, R10), told):
            now[register] = value
        ptrace(SETREGS, self.pid, ctypes.create_string_buffer(struct.pack("27Q", *now), 27 * 8))
        ptrace(CONT, self.pid)
        os.waitpid(self.pid, 0x40000000)
        after = ctypes.create_string_buffer(27 * 8)
        ptrace(GETREGS, self.pid, after)
        result = struct.unpack("27Q", after.raw)[RAX]
        return result - (1 << 64) if result >> 63 else result

    def __exit__(self, *_):
        os.pwrite(self.memory, self.code, self.registers[RIP])
        ptrace(SETREGS, self.pid, self.kept)
        os.close(self.memory)
        ptrace(DETACH, self.pid)


def tried(c, pid):
    """Attempt -> the error's name, or "reached"."""
    other = f"{c.state}/ctld"
    attempts = {"read-the-passwords": (OPENAT, -100, b"/etc/shadow", os.O_RDONLY),
                "read-the-keys-of-the-controller": (OPENAT, -100, c.key.encode(), os.O_RDONLY),
                "write-beside-the-controller": (MKDIRAT, -100, f"{other}/taken-over".encode(), 0o700),
                "write-settings-of-the-machine": (MKDIRAT, -100, b"/etc/gantry-taken-over", 0o700),
                "write-the-kernels-files": (OPENAT, -100, b"/proc/sys/kernel/core_pattern", os.O_WRONLY),
                "write-the-job-of-another": (MKDIRAT, -100, f"{c.other_job}/taken-over".encode(), 0o700),
                "make-a-cgroup": (MKDIRAT, -100, f"{c.cgroup}/taken-over".encode(), 0o700)}
    came = {}
    with TakenOver(pid) as shim:
        for name, (number, *arguments) in attempts.items():
            result = shim.call(number, *arguments)
            came[name] = errno.errorcode.get(-result, str(result)) if result < 0 else "reached"
            if result < 0:
                continue
            if number == OPENAT:
                shim.call(CLOSE, result)
            else:
                os.rmdir(arguments[1])
        came["its own record"] = "reached" if (fd := shim.call(OPENAT, -100, f"{c.own_job}/taken-over".encode(),
                                                               os.O_WRONLY | os.O_CREAT)) >= 0 else errno.errorcode[-fd]
        if fd >= 0:
            shim.call(CLOSE, fd)
            os.unlink(f"{c.own_job}/taken-over")
    return came


def directory_of(c, job):
    return next(top for top, _, _ in os.walk(c.state) if re.search(rf"/jobs/{job}\.1$", top))


def case_0_set_up(c):
    c.key = next(f"{top}/{name}" for top, _, names in os.walk(f"{c.state}/ctld") for name in names
                 if name.endswith((".key", "key")))
    c.other = other = c.submit(script="sleep 300\n")
    c.job = c.submit(script="grun --overlap -n1 sleep 300 &\necho ready\nwait\n")
    for job in (other, c.job):
        c.running(job)
    c.said(c.job, "ready")
    wait_for("the step", lambda: len(c.shims(job=c.job)) >= 1 and steps(c, c.job))
    c.other_job, c.own_job = directory_of(c, other), directory_of(c, c.job)
    c.cgroup = next(top for top, dirs, _ in os.walk("/sys/fs/cgroup")
                    if c.cgroup_root() in top and any(re.match("job_", name) for name in dirs))


def steps(c, job):
    return [pid for pid, argv in cluster.processes().items() if cluster.program(argv) == "gantry-shim"
            and argv[1:2] == [b"step"] and c.state.encode() in b"\0".join(argv) and f"{job}.1".encode() in b"\0".join(argv)]


def shim_of(c, job):
    return next(pid for pid in c.shims(job=job) if cluster.processes()[pid][1] == b"job")


def held(c, pid):
    came = tried(c, pid)
    equal(came.pop("its own record"), "reached", "what it needs")
    equal({name for name, what in came.items() if what == "reached"}, set(), f"reached: {came}")


def case_the_shim_of_a_job(c):
    held(c, shim_of(c, c.job))


def case_the_shim_of_a_step(c):
    held(c, steps(c, c.job)[0])


def case_without_landlock_each_is_reached(c):
    """A shim with a scratch directory keeps all rights of root, for what it has to do at the end."""
    c.root(["gcancel", str(c.other)], check=True)
    c.ended(c.other)
    job = c.submit("--tmp=10M", script="sleep 300\n")
    c.running(job)
    c.other_job, c.own_job = c.own_job, directory_of(c, job)
    came = tried(c, shim_of(c, job))
    equal({name: what for name, what in came.items() if what != "reached"}, {}, "attempts that do not bite")


def case_they_go_on(c):
    c.root(["gcancel", "-Q", f"--user={c.user}"])
    entry = c.ended(c.job)
    equal(entry["row"]["outcome"], "cancelled", "the job whose shims were taken over")


def case_the_table_names_every_attempt(_):
    with open(f"{HERE}/README.md", encoding="utf-8") as f:
        named = set(re.findall(r"^\| `shims/([a-z-]+)`", f.read(), re.M))
    with open(__file__, encoding="utf-8") as f:
        there = set(re.findall(r'"([a-z-]+)": \((?:OPENAT|MKDIRAT),', f.read()))
    equal(named, there, "README.md")


if __name__ == "__main__":
    if platform.machine() != "x86_64":
        print("skipped: registers are those of x86_64")
        sys.exit(cluster.SKIPPED)
    sys.exit(cluster.main(__doc__, globals(), "shims", nodes=1))
