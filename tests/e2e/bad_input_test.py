#!/usr/bin/env python3
"""Malformed scripts, options, configurations and bytes: each is refused clearly, and the daemons
survive.

usage: bad_input_test.py BIN_DIR [-k CASE] [--keep]
"""
import random
import re
import socket
import struct
import subprocess
import sys

import cluster
from cluster import equal, program, text

SCRIPTS = {  # name: text of a batch script that must be refused
    "empty": "", "no interpreter": "echo hi\n", "only a blank": " \n",
    "unknown directive": "#!/bin/sh\n#SBATCH --no-such-option=1\n",
    "nodes of letters": "#!/bin/sh\n#SBATCH -N many\n", "no nodes": "#!/bin/sh\n#SBATCH -N 0\n",
    "negative nodes": "#!/bin/sh\n#SBATCH -N -3\n", "turned range": "#!/bin/sh\n#SBATCH -N 4-2\n",
    "huge nodes": "#!/bin/sh\n#SBATCH -N 99999999999999999999\n",
    "memory of letters": "#!/bin/sh\n#SBATCH --mem=lots\n",
    "huge memory": "#!/bin/sh\n#SBATCH --mem=99999999999999T\n",
    "time of letters": "#!/bin/sh\n#SBATCH -t soon\n",
    "time with six colons": "#!/bin/sh\n#SBATCH -t 1:2:3:4:5:6\n",
    "array of letters": "#!/bin/sh\n#SBATCH -a x-y\n",
    "array turned": "#!/bin/sh\n#SBATCH -a 9-1\n",
    "array too large": "#!/bin/sh\n#SBATCH -a 0-99999999999\n",
    "dependency of letters": "#!/bin/sh\n#SBATCH -d afterok:abc\n",
    "dependency of no kind": "#!/bin/sh\n#SBATCH -d whenever:1\n",
    "an open quote": "#!/bin/sh\n#SBATCH --job-name='half\n",
}
OPTIONS = [  # command lines that must be refused
    ["gbatch", "--wrap=true", "-n", "x"], ["gbatch", "--wrap=true", "-c", "-1"],
    ["gbatch", "--wrap=true", "-c", "99999"], ["gbatch", "--wrap=true", "-p", "nowhere"],
    ["gbatch", "--wrap=true", "-w", "nobody[1-3]"], ["gbatch", "--wrap=true", "-w", "node["],
    ["gbatch", "--wrap=true", "-C", "a&|b"], ["gbatch", "--wrap=true", "--signal=NOPE"],
    ["gbatch", "--wrap=true", "--mem=1M", "--mem-per-cpu=1M"],
    ["gbatch", "--wrap=true", "--begin=someday"], ["gbatch", "--wrap=true", "--nice=-5"],
    ["gbatch", "--wrap=true", "--open-mode=sideways"], ["gbatch", "--wrap=true", "--network=moon"],
    ["gbatch", "--wrap=true", "--gpus-per-node=three"], ["gbatch", "/no/such/script"],
    ["gbatch", "--wrap=true", "--qos=gold"], ["gbatch", "--", "-"],
    ["gqueue", "-t", "NOSTATE"], ["gqueue", "-j", "x"], ["gqueue", "--sort"],
    ["gacct", "-S", "once"], ["gacct", "-o", "NoField"], ["gacct", "-j", "-1"],
    ["gcancel"], ["gcancel", "12x"], ["gcancel", "-s", "NOSIG", "1"],
    ["gctl"], ["gctl", "frobnicate"], ["gctl", "update", "job", "1"],
    ["gctl", "update", "job", "1", "time"], ["gctl", "show", "job", "99999999999999999999"],
    ["gctl", "drain", "nosuchnode"], ["gctl", "logs", "123456"], ["grun"], ["grun", "-n", "x", "true"],
]
CONFIGS = {  # name: a function that makes a mistake in the text of a sound gantry.yaml
    "not yaml": lambda y: "{{{{", "a list": lambda y: "- a\n- b\n", "empty": lambda y: "",
    "unknown key": lambda y: y + "\nsurprise: 1\n",
    "port of letters": lambda y: re.sub(r"port: \d+", "port: http", y),
    "port too large": lambda y: re.sub(r"port: \d+", "port: 99999", y),
    "memory negative": lambda y: y.replace("memory: 1G", "memory: -1G"),
    "no cpus": lambda y: re.sub(r"cpus: \d+", "cpus: 0", y),
    "nodes missing": lambda y: y[:y.index("nodes:")],
    "the same node twice": lambda y: y.replace("node2", "node1"),
    "partition of no node": lambda y: y.replace("nodes: all", "nodes: nosuch"),
    "relative path": lambda y: re.sub(r"state_dir: \S+", "state_dir: here", y),
    "heartbeat of letters": lambda y: y.replace("heartbeat: 1s", "heartbeat: often"),
    "an alias bomb": lambda y: "a: &a [x,x]\n" + "".join(
        f"b{i}: &b{i} [*{'a' if i == 0 else f'b{i - 1}'},*{'a' if i == 0 else f'b{i - 1}'}]\n"
        for i in range(30)),
    "half of it": lambda y: y[:len(y) // 3] + "\n  - {",
    "binary": lambda y: y + "\x01\x02\x7f",
}
GREETING = bytes([0xff, 0, 0, 0, 0, 0, 0, 0, 1, 0x7f, 3, 1]) + b"CURVE".ljust(20, b"\0") + bytes(32)


def well(c):
    """All daemons still run, and the controller answers."""
    done = c.as_user(["gctl", "ping"], timeout=20)
    equal(done.returncode, 0, f"gctl ping: {done.stderr}")
    for pid, argv in c.daemons.items():
        assert cluster.alive(pid), f"{program(argv)} has died"


def refused(done, what):
    assert done.returncode in (1, 2), f"{what}: exit status {done.returncode}: {done.stderr[-300:]}"
    assert done.stderr.strip(), f"{what}: refused without a word"
    for bad in ("terminate called", "Assertion", "Segmentation", "Traceback"):
        assert bad not in done.stderr, f"{what}: {done.stderr[-300:]}"


def case_scripts(c):
    wrong = []
    for name, script in SCRIPTS.items():
        try:
            refused(c.as_user(["gbatch"], input=script), f"a script: {name}")
        except AssertionError as e:
            wrong.append(str(e))
    equal(wrong, [])
    well(c)


def case_options(c):
    wrong = []
    for command in OPTIONS:
        try:
            refused(c.as_user(command, timeout=20), " ".join(command))
        except AssertionError as e:
            wrong.append(str(e))
    equal(wrong, [])
    well(c)


def case_configurations(c):
    sound = text(f"{c.state}/gantry.yaml")
    path = f"{c.top}/bad.yaml"
    wrong = []
    for name, change in CONFIGS.items():
        with open(path, "w", encoding="utf-8") as f:
            f.write(change(sound))
        for command in (["gantry-ctld", "--config", path, "--check"],
                        ["gantry-noded", "--config", path, "--name", "node1", "--state-dir",
                         f"{c.top}/bad-state", "--run-dir", f"{c.top}/bad-run"]):
            try:
                refused(c.root(command, timeout=20), f"{command[0]} with {name}")
            except (AssertionError, subprocess.TimeoutExpired) as e:
                wrong.append(f"{name}: {e}")
    equal(wrong, [])
    well(c)


def ports(c):
    yaml = text(f"{c.state}/gantry.yaml")
    return [int(re.search(r"port: (\d+)", yaml).group(1))] + [
        int(p) for p in re.findall(r"address: '127.0.0.1:(\d+)'", yaml)]


def throw(port, data, half_close):
    with socket.create_connection(("127.0.0.1", port), timeout=5) as s:
        try:
            s.sendall(data)
            if half_close:
                s.shutdown(socket.SHUT_WR)
            s.settimeout(0.05)
            s.recv(4096)
        except OSError:
            pass  # it closed the connection, or sends nothing


def case_random_bytes(c):
    rng = random.Random(7)
    for port in ports(c):
        for n in range(60):
            size = rng.choice([1, 3, 10, 64, 65, 200, 5000])
            throw(port, rng.randbytes(size), n % 2 == 0)
        well(c)


def case_broken_greetings(c):
    rng = random.Random(8)
    versions = [GREETING[:10] + bytes([v]) + GREETING[11:] for v in (0, 1, 2, 99)]  # old protocols
    null = GREETING[:12] + b"NULL".ljust(20, b"\0") + bytes(32)
    for port in ports(c):
        for cut in range(0, 64, 7):
            throw(port, GREETING[:cut], True)
        for greeting in versions + [null]:
            throw(port, greeting, False)
        for _ in range(20):
            throw(port, GREETING + rng.randbytes(rng.choice([1, 40, 202, 900])), False)
        throw(port, GREETING + b"\x04\xc8\x05HELLO" + rng.randbytes(194), False)
        throw(port, GREETING + b"\x06" + struct.pack(">Q", 1 << 62), False)  # a frame of 4 EiB
        throw(port, GREETING + b"\x04\x00", False)
        well(c)


def case_jobs_still_run(c):
    job = c.submit("--wrap=echo still here")
    c.ended(job, "completed")
    equal(c.output(job), "still here\n")


if __name__ == "__main__":
    sys.exit(cluster.main(__doc__, globals(), "bad", nodes=2))
