#!/usr/bin/env python3
"""srun --mpi=pmi2: tasks find each other through the PMI servers of the step's nodes, by PMI-1 and
PMI-2; so does Debian's MPICH if it is installed.

usage: pmi2_test.py BIN_DIR [-k CASE] [--keep]
"""
import ctypes.util
import os
import re
import shutil
import subprocess
import sys

import cluster
import mpi_test
from cluster import contains, equal

CLIENT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "pmi_client.py")
# This is Slurm's own client of PMI-2. ctypes loads it, because Debian's package of the library has
# no header.
LIBRARY = """
import ctypes, os, sys
pmi = ctypes.CDLL("libpmi2.so.0")
number = lambda: ctypes.byref(ctypes.c_int())
size, rank, length = ctypes.c_int(), ctypes.c_int(), ctypes.c_int()
assert pmi.PMI2_Init(number(), ctypes.byref(size), ctypes.byref(rank), number()) == 0
text = ctypes.create_string_buffer(1024)
assert pmi.PMI2_Job_GetId(text, 1024) == 0
job = text.value
assert pmi.PMI2_KVS_Put(b"key%d" % rank.value, b"value %d;" % rank.value) == 0
assert pmi.PMI2_KVS_Fence() == 0
other = (rank.value + 1) % size.value
assert pmi.PMI2_KVS_Get(job, -1, b"key%d" % other, text, 1024, ctypes.byref(length)) == 0
print(f"rank {rank.value} of {size.value} in {job.decode()}: {text.value.decode()}", flush=True)
assert pmi.PMI2_Finalize() == 0
"""


def client(c):
    path = f"{c.out}/pmi_client.py"
    if not os.path.exists(path):
        shutil.copy(CLIENT, path)
        os.chmod(path, 0o644)
    return f"python3 {path}"


def run(c, options, command):
    return mpi_test.run(c, options, command)


def ranks(out, size, mapping, got):
    """Checks the lines that ranks print; returns the nodes on which they ran, in the order of
    ranks."""
    total = 10 * size * (size - 1) // 2
    found = re.findall(rf"^rank (\d+) of {size} on (\S+) mapping {re.escape(mapping)} got "
                       rf"{re.escape(got)} total {total}$", out, re.M)
    equal(sorted(int(rank) for rank, _ in found), list(range(size)), out)
    return [node for _, node in sorted(found)]


def case_two_nodes(c):
    out = run(c, ("-N2", "-n4"), f"srun --mpi=pmi2 {client(c)} 1; srun --mpi=pmi2 {client(c)} 2")
    equal(ranks(out, 4, "(vector,(0,2,2))", "a=0,a=1,a=2,a=3"), ["node1"] * 2 + ["node2"] * 2, out)
    equal(ranks(out, 4, "(vector,(0,2,2))", "a=0;,a=1;,a=2;,a=3;"),
          ["node1"] * 2 + ["node2"] * 2, out)
    contains(out, "status 0")


def case_uneven_nodes_and_pieces(c):
    out = run(c, ("-N2", "-n3"), f"srun --mpi=pmi2 {client(c)} 1 split")
    equal(ranks(out, 3, "(vector,(0,1,2),(1,1,1))", "a=0,a=1,a=2"), ["node1", "node1", "node2"],
          out)


def case_versions_together_and_twice(c):
    """The ranks of one step may use either version; each step has its own values."""
    with open(f"{c.out}/both", "w", encoding="utf-8") as f:
        f.write(f"0 {client(c)} 2\n1 {client(c)} 1\n")
    out = run(c, ("-N1", "-n2"), f"srun --mpi=pmi2 --multi-prog {c.out}/both\n"
              f"srun --mpi=pmi2 {client(c)} 1\nsrun --mpi=pmi2 true")
    equal(ranks(out, 2, "(vector,(0,1,2))", "a=0;,a=1"), ["node1"] * 2, out)
    equal(ranks(out, 2, "(vector,(0,1,2))", "a=0,a=1"), ["node1"] * 2, out)
    contains(out, "status 0")


def case_from_outside(c):
    done = c.as_user(["slurm/srun", "-N1", "-n2", "--mem=40M", "--mpi=pmi2",
                      *client(c).split(), "2"])
    equal(ranks(done.stdout, 2, "(vector,(0,1,2))", "a=0;,a=1;"), ["node1"] * 2, done.stderr)
    equal(done.returncode, 0, done.stderr)


def case_abort_and_leaving(c):
    """A rank that aborts or leaves ends the others, which wait for it, with one message."""
    wanted = {
        "abort": ("task 1 called abort with status 5: it is enough", "5|137|143"),
        "bad": ("task 1: its PMI request is not understood: hello ? world?", "1|137|143"),
        "flood": ("task 1: its PMI request is not understood: xxxxxxx", "1|137|143"),
        "gone": ("task 1: it has left PMI, and others wait for it in a fence", "1|137|143"),
        "leave": ("task 1", "6|137|143"),
    }
    for how, (message, status) in wanted.items():
        for nodes in ("1", "2"):
            out = run(c, ("-N", nodes, "-n2"), f"srun --mpi=pmi2 {client(c)} 1 {how}")
            if how == "gone" and nodes == "2":
                assert re.search(r"others wait for it in a fence|it waits in a fence for the tasks",
                                 out), out
            else:
                contains(out, message)
            assert re.search(rf"^status ({status})$", out, re.M), (how, nodes, out)
    out = run(c, ("-N2", "-n2"), f"srun --mpi=pmi2 {client(c)} 2 abort")
    contains(out, "task 1 called abort with status 1: it is enough")


def case_terminal(c):
    """With --pty a task has the PMI socket besides the terminal."""
    done = c.as_user(["slurm/srun", "-n1", "--mem=40M", "--mpi=pmi2", "--pty", *client(c).split(),
                      "1"])
    contains(done.stdout, "rank 0 of 1 on node")


def case_library(c):
    if not ctypes.util.find_library("pmi2"):
        cluster.pass_over("there is no libpmi2.so.0 (libpmi2-0)")
        return
    with open(f"{c.out}/library.py", "w", encoding="utf-8") as f:
        f.write(LIBRARY)
    out = run(c, ("-N2", "-n4"), f"srun --mpi=pmi2 python3 {c.out}/library.py")
    equal(sorted(re.findall(r"^rank (\d) of 4 in \d+\.0: (value \d;)$", out, re.M)),
          [(str(r), f"value {(r + 1) % 4};") for r in range(4)], out)


def case_mpich(c):
    if not shutil.which("mpicc.mpich"):
        cluster.pass_over("there is no mpicc.mpich (libmpich-dev)")
        return
    program = f"{c.out}/mpich_hello"
    with open(f"{program}.c", "w", encoding="utf-8") as f:
        f.write(mpi_test.HELLO)
    built = subprocess.run(["mpicc.mpich", "-o", program, f"{program}.c"], capture_output=True,
                           text=True, check=False)
    if built.returncode != 0:  # the compiler's wrapper is there without the library or its headers
        cluster.pass_over("mpicc.mpich builds no program here: " + (
            built.stderr.strip().splitlines() or ["it says nothing"])[-1])
        return
    hello = f"srun --mpi=pmi2 {program}"
    out = run(c, ("-N2", "-n4", "--network=host"), hello)
    equal(mpi_test.lines_of(4, out), [0, 1, 2, 3], out)
    equal(set(re.findall(r" on (\S+),", out)), {"node1", "node2"}, out)
    contains(out, "status 0")
    out = run(c, ("-N1", "-n2"), hello)
    equal(mpi_test.lines_of(2, out), [0, 1], out)
    for how, code in (("abort", 5), ("leave", 6)):
        out = run(c, ("-N2", "-n2", "--network=host"), f"{hello} {how}")
        contains(out, "task 1")
        assert re.search(rf"^status ({code}|137|143)$", out, re.M), out


def case_refusals(c):
    done = c.as_user(["slurm/srun", "--mpi=list"])
    contains(done.stdout, "\tpmi2\n\tpmix\n")
    done = c.as_user(["slurm/srun", "--mem=40M", "--mpi=openmpi", "true"])
    contains(done.stderr, '"openmpi": there are pmix, pmi2 and none')
    done = c.as_user(["grun", "--mpi=mpi", "true"])
    contains(done.stderr, "'mpi': there are pmix, pmi2 and none")


if __name__ == "__main__":
    sys.exit(cluster.main(__doc__, globals(), "pmi2", nodes=2))
