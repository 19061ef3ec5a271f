"""Kills a node of `gantry up` with all that runs on it, as a power cut would; without a node, the whole
cluster.

usage: kill-node.py STATE [NODE]
"""
import os
import signal
import sys
import time

home = "/".join([sys.argv[1], *(f"nodes/{node}" for node in sys.argv[2:]), ""])


def processes():
    out = {}
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as f:
                parent = int(f.read().rsplit(")", 1)[1].split()[1])
            with open(f"/proc/{pid}/cmdline", "rb") as f:
                out[int(pid)] = parent, f.read()
        except (OSError, IndexError):
            pass
    return out


while True:
    known = processes()
    doomed = {pid for pid, (_, words) in known.items() if home.encode() in words and pid != os.getpid()}
    while more := {pid for pid, (parent, _) in known.items() if parent in doomed} - doomed:
        doomed |= more
    for pid in doomed:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
    if not doomed:
        break
    time.sleep(0.05)
