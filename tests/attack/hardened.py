"""What the sandbox `hardened` takes away beside the usual walls of a job. Each attempt succeeds in a
job of the standard sandbox and must fail in a hardened one. It prints a line of JSON for each attempt,
as walls.py does. sandbox_test.py runs it; README.md lists the attempts."""
import ctypes
import errno
import json
import os
import resource
import socket
import struct
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from walls import call, in_child, libc, read_some  # noqa: E402

attempts = []


def attempt(f):
    attempts.append((f.__name__.replace("_", "-"), f))
    return f


# ---- other processes of the job ---------------------------------------------------------------------
@attempt
def trace_a_process(_):
    return in_child(lambda: call(libc.ptrace(0, 0, None, None)))  # PTRACE_TRACEME


def vector(address, length):
    return struct.pack("QQ", address, length)


@attempt
def read_the_memory_of_a_process(_):
    secret = ctypes.create_string_buffer(b"secret")
    here = ctypes.create_string_buffer(6)
    pid = os.fork()
    if pid == 0:
        libc.pause()
    try:
        n = libc.process_vm_readv(pid, vector(ctypes.addressof(here), 6), 1, vector(ctypes.addressof(secret), 6), 1, 0)
        call(-1 if n != 6 else 0)
        return "reached" if here.raw == b"secret" else "another"
    finally:
        os.kill(pid, 9)
        os.waitpid(pid, 0)


@attempt
def take_a_descriptor_from_a_process(_):
    def work():
        own = os.pidfd_open(os.getpid())
        return call(0 if libc.syscall(438, own, 1, 0) >= 0 else -1)  # pidfd_getfd
    return in_child(work)


# ---- system calls with a history --------------------------------------------------------------------
@attempt
def have_the_number_of_a_file(_):
    def work():
        handle = ctypes.create_string_buffer(struct.pack("Ii", 128, 0) + b"\0" * 128)
        mount = ctypes.c_int()
        return call(libc.syscall(303, -100, b"/etc/passwd", handle, ctypes.byref(mount), 0))
    return in_child(work)


@attempt
def change_the_segments_of_a_process(_):
    return in_child(lambda: call(-1 if libc.syscall(154, 0, ctypes.create_string_buffer(8192), 8192) < 0 else 0))  # modify_ldt


# ---- sockets ----------------------------------------------------------------------------------------
@attempt
def hear_of_devices_by_netlink(_):
    socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 15).close()
    return "reached"


@attempt
def ask_for_the_sockets_of_all_by_netlink(_):
    socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 4).close()
    return "reached"


@attempt
def have_a_socket_of_multipath_tcp(_):
    socket.socket(socket.AF_INET, socket.SOCK_STREAM, 262).close()
    return "reached"


# ---- files ------------------------------------------------------------------------------------------
def execute_in(folder):
    path = f"{folder}/gantry-hardened-{os.getpid()}"
    with open(path, "w", encoding="utf-8") as f:
        f.write("#!/bin/sh\nexit 0\n")
    os.chmod(path, 0o700)
    try:
        return in_child(lambda: "reached" if os.spawnv(os.P_WAIT, path, [path]) == 0 else "EACCES")
    finally:
        os.unlink(path)


@attempt
def execute_what_lies_in_tmp(_):
    return execute_in("/tmp")


@attempt
def raise_the_limit_of_core_dumps(_):
    return in_child(lambda: resource.setrlimit(resource.RLIMIT_CORE, (1 << 20, 1 << 20)) or "reached")


def listed(path):
    return "reached" if os.listdir(path) else "empty"


@attempt
def read_which_modules_the_kernel_has(_):
    return read_some("/proc/modules")


@attempt
def read_the_symbols_of_the_kernel(_):
    return read_some("/proc/kallsyms")


@attempt
def read_which_disks_the_node_has(_):
    return read_some("/proc/partitions")


@attempt
def read_what_the_disks_of_all_do(_):
    return read_some("/proc/diskstats")


@attempt
def read_what_the_processors_of_all_do(_):
    return read_some("/proc/schedstat") if os.path.exists("/proc/schedstat") else read_some("/proc/softirqs")


@attempt
def read_how_the_memory_of_the_node_is_used(_):
    return read_some("/proc/vmstat")


@attempt
def list_the_devices_of_the_node(_):
    return listed("/sys/class")


@attempt
def list_the_settings_of_the_kernel(_):
    return listed("/sys/kernel")


# ---- by Landlock ------------------------------------------------------------------------------------
@attempt
def be_without_landlock(_):
    # The kernel nests sixteen domains of Landlock: who is in one already gets only fifteen more.
    def work():
        for _ in range(16):
            ruleset = libc.syscall(444, struct.pack("Q", 1 << 6), 8, 0)  # it may make no devices
            call(-1 if ruleset < 0 else 0)
            call(libc.syscall(446, ruleset, 0))
        return "reached"
    return in_child(work)


def main():
    with open(sys.argv[1], encoding="utf-8") as f:
        told = json.load(f)
    for name, work in attempts:
        try:
            came = work(told)
        except OSError as e:
            came = errno.errorcode.get(e.errno, str(e.errno))
        except (AttributeError, ValueError) as e:
            came = str(e)
        print(json.dumps({"attempt": name, "without": "user", "came": came}), flush=True)


if __name__ == "__main__":
    main()
