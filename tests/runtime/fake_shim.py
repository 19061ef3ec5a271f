#!/usr/bin/python3
"""A stand-in for gantry-shim whose template dies in different ways, for test_template.cc.

With the argument `template` it treats each order as the file PLAY in its state directory says:
  die           ends at once; no shim is made
  forked        forks a shim that signs its lock and stays, and ends without an answer
  forked-ended  the same with a shim that has ended before the template does
  stop          stops (SIGSTOP); it neither answers nor ends
  rubbish       answers with rubbish
With the argument `job` it is a shim that was started without the template. Each shim adds a line to
STARTS.
"""
import array
import os
import signal
import socket
import sys
import time


def shim(state, lock):
    with open("/proc/self/stat", encoding="ascii") as f:
        start = f.read().rsplit(")", 1)[1].split()[19]
    os.pwrite(lock, f"{os.getpid()} {start}\n".encode(), 0)
    with open(f"{state}/STARTS", "a", encoding="ascii") as f:
        f.write("a shim\n")


def template(state):
    with socket.socket(fileno=3) as orders:
        size = socket.CMSG_SPACE(array.array("i").itemsize)
        words, control, _, _ = orders.recvmsg(4096, size)
        if not words:
            return
        lock = array.array("i", control[0][2])[0]
        with open(f"{state}/PLAY", encoding="ascii") as f:
            play = f.read().strip()
        if play == "stop":
            os.kill(os.getpid(), signal.SIGSTOP)
        if play == "rubbish":
            orders.send(b"?")
            time.sleep(60)
        if play.startswith("forked"):
            pid = os.fork()
            if pid == 0:
                orders.close()
                shim(state, lock)
                if play == "forked":
                    time.sleep(60)
                os._exit(0)
            if play == "forked-ended":
                os.waitpid(pid, 0)
            else:
                time.sleep(0.2)


if sys.argv[1] == "template":
    template(sys.argv[2])
else:
    shim(sys.argv[2], 3)
    time.sleep(60)
