"""Floods of a job, by name: each asks for more than a job of 40 MiB may have, and for no more than a small
machine has. It says "all of it", or "stopped ERROR". walls_test.py runs each in a job, where it must be
stopped, and without limits, where it gets all of it.

usage: floods.py NAME
"""
import ctypes
import errno
import mmap
import os
import select
import signal
import socket
import sys

libc = ctypes.CDLL(None, use_errno=True)
floods = {}


def flood(f):
    floods[f.__name__.replace("_", "-")] = f
    return f


def call(result):
    if result == -1:
        raise OSError(ctypes.get_errno(), "")
    return result


@flood
def memory():
    room = bytearray(400 << 20)
    for at in range(0, len(room), 4096):
        room[at] = 1


@flood
def processes():
    children = []
    try:
        for _ in range(3000):
            child = os.fork()
            if child == 0:
                signal.pause()
            children.append(child)
    finally:
        for child in children:
            os.kill(child, signal.SIGKILL)
        for child in children:
            os.waitpid(child, 0)


@flood
def disk():
    path = f"/tmp/flood-{os.getpid()}"
    try:
        with open(path, "wb") as f:
            for _ in range(400):
                f.write(bytes(1 << 20))
    finally:
        os.unlink(path)


def many_files(folder, count):
    """Empty files, which take no room that the size of a file system counts."""
    top = f"{folder}/flood-{os.getpid()}"
    os.mkdir(top)
    made = 0
    try:
        for made in range(count):
            os.close(os.open(f"{top}/{made}", os.O_CREAT | os.O_WRONLY, 0o600))
    finally:
        for one in range(made + 1):
            if os.path.exists(f"{top}/{one}"):
                os.unlink(f"{top}/{one}")
        os.rmdir(top)


@flood
def inodes():
    many_files("/tmp", 100_000)


@flood
def inodes_of_shared_memory():
    many_files("/dev/shm", 100_000)


@flood
def files():
    """More open files than one process may have, in several: the kernel keeps an entry for each."""
    read, write = os.pipe()
    children = []
    for _ in range(14):
        child = os.fork()
        children.append(child)
        if child == 0:
            try:
                held = [os.open("/dev/null", os.O_RDONLY) for _ in range(15_000)]
                os.write(write, b"a" if held else b"")
            except OSError:
                os.write(write, b"e")
            signal.pause()
    try:
        said = b""
        while len(said) < len(children):
            said += os.read(read, 100)
        if b"e" in said:
            raise OSError(errno.EMFILE, "")
    finally:
        for child in children:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)


@flood
def pipes():
    """The kernel keeps what is in a pipe: 64 KiB each."""
    held = []
    for _ in range(4000):
        held.append(os.pipe())
        os.set_blocking(held[-1][1], False)
        os.write(held[-1][1], bytes(1 << 16))


@flood
def sockets():
    """What is on its way between two sockets is memory of the kernel."""
    held = []
    for _ in range(1000):
        held.append(socket.socketpair())
        held[-1][0].setblocking(False)
        try:
            while True:
                held[-1][0].send(bytes(1 << 16))
        except BlockingIOError:
            pass


@flood
def timers():
    class Event(ctypes.Structure):
        _fields_ = [("value", ctypes.c_void_p), ("signo", ctypes.c_int), ("notify", ctypes.c_int),
                    ("rest", ctypes.c_char * 48)]
    event, timer = Event(0, 0, 1, b""), ctypes.c_int()  # SIGEV_NONE
    for _ in range(90_000):
        call(libc.syscall(222, 1, ctypes.byref(event), ctypes.byref(timer)))  # timer_create


@flood
def mappings():
    """Tables of pages for room that is never used otherwise: one page in each two MiB."""
    held = mmap.mmap(-1, 60 << 30, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x4000)  # without a reserve
    for at in range(0, len(held), 2 << 20):
        held[at] = 1


@flood
def shared_memory():
    held = []
    try:
        for _ in range(400):
            held.append(call(libc.shmget(0, 1 << 20, 0o600)))
            libc.shmat.restype = ctypes.c_void_p
            ctypes.memset(libc.shmat(held[-1], None, 0), 1, 1 << 20)
    finally:
        for one in held:
            libc.shmctl(one, 0, None)


@flood
def queues():
    """Bytes in queues of messages stay in the kernel until somebody reads them."""
    held = []
    try:
        for _ in range(8000):
            held.append(call(libc.msgget(0, 0o600)))
            call(libc.msgsnd(held[-1], ctypes.create_string_buffer(b"\1" + bytes(8 + 8000)), 8000, 0o4000))
    finally:
        for one in held:
            libc.msgctl(one, 0, None)


@flood
def watches():
    """Each set of descriptors of epoll keeps memory of the kernel for each that it watches."""
    held = []
    ends = [os.pipe()[0] for _ in range(200)]
    for _ in range(1600):
        held.append(select.epoll())
        for end in ends:
            held[-1].register(end)


def main():
    try:
        floods[sys.argv[1]]()
        print("all of it", flush=True)
    except MemoryError:
        print("stopped ENOMEM", flush=True)
    except OSError as e:
        print("stopped", errno.errorcode.get(e.errno, e.errno), flush=True)


if __name__ == "__main__":
    main()
