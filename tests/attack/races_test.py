#!/usr/bin/env python3
"""Races: while jobs start, end and are read, a program of their user changes a directory for a link, thousands
of times a second, so that the name means another thing between a look and an open. What is to be reached lies
in a directory that only root may enter. README.md lists the attempts.

usage: races_test.py BIN_DIR [-k CASE] [--keep]
"""
import contextlib
import os
import re
import stat
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "../e2e"))

import cluster  # noqa: E402
from cluster import equal, wait_for  # noqa: E402

PLANTED = "planted-where-only-root-may-enter"
JOBS = 24
# Changes two names in one step (renameat2 with RENAME_EXCHANGE), until its input ends.
RACER = r"""
import ctypes, os, select, sys, time
libc = ctypes.CDLL(None)
a, b = (p.encode() for p in sys.argv[1:3])
print("ready", flush=True)
n = 0
while not select.select([sys.stdin], [], [], 0)[0]:
    for _ in range(200):
        libc.syscall(316, -100, a, -100, b, 2)
        n += 1
print(n, flush=True)
"""


@contextlib.contextmanager
def racing(c, name, target):
    """`name` is in turn a directory of the user and a link to the target."""
    own, link = f"{c.out}/{name}", f"{c.out}/{name}-link"
    if not os.path.lexists(link):
        os.mkdir(own)
        with open(f"{own}/file", "w", encoding="ascii") as f:
            f.write("own\n")
        os.symlink(target, link)
        os.chown(own, os.stat(c.out).st_uid, -1)
        subprocess.run(["chown", "-Rh", c.user, own, link], check=True)
    racer = subprocess.Popen(["python3", "-c", RACER, own, link], user=c.user, group=c.user, extra_groups=[], cwd=c.out,
                             stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    racer.stdout.readline()
    try:
        yield own
    finally:
        changes = int(racer.communicate("\n")[0])
    equal(changes > 1000, True, f"{changes} changes")


def only_root(c):
    path = f"{c.top}/only-root"
    if not os.path.isdir(path):
        os.mkdir(path, 0o700)
        with open(f"{path}/file", "w", encoding="ascii") as f:
            f.write(PLANTED + "\n")
    return path


def all_ended(c, jobs):
    wait_for("the end of the jobs", lambda: all(c.phase(j) == "ended" for j in jobs) or not c.root(
        ["gqueue", "-h", "-t", "running,pending"]).stdout.strip(), 120)


def case_a_directory_of_the_output(c):
    target = only_root(c)
    with racing(c, "output", target) as name:
        jobs = [c.submit("-o", f"{name}/%j.txt", script="echo said\n", defaults=("--mem=20M",)) for _ in range(JOBS)]
        for job in jobs:
            wait_for("the end or the reason", lambda j=job: c.phase(j) == "ended" or "launch" in c.queue_line(j))
        c.root(["gcancel", "-Q", f"--user={c.user}"])
    equal(os.listdir(target), ["file"], "files that jobs made where only root may")
    own = [n for place in ("output", "output-link") if not os.path.islink(f"{c.out}/{place}") for n in os.listdir(f"{c.out}/{place}")]
    print(f"  {len(own) - 1} of {JOBS} wrote to their own directory")


def case_a_directory_that_is_mounted(c):
    target = only_root(c)
    with racing(c, "mounted", target) as name:
        jobs = [c.submit(f"--container-mounts={name}:/mnt", script="cat /mnt/file\n", defaults=("--mem=20M", "-o", "%j.out"))
                for _ in range(JOBS)]
        for job in jobs:
            wait_for("the end or the reason", lambda j=job: c.phase(j) == "ended" or "launch" in c.queue_line(j))
        c.root(["gcancel", "-Q", f"--user={c.user}"])
    said = [c.output(job) for job in jobs]
    equal([text for text in said if PLANTED in text], [], "what jobs read where only root may")
    print(f"  {sum('own' in text for text in said)} of {JOBS} read their own file")


def case_a_working_directory(c):
    target = only_root(c)
    with racing(c, "worked", target) as name:
        jobs = [c.submit("-D", name, script="cat file; touch made\n", defaults=("--mem=20M", "-o", f"{c.out}/%j.out"))
                for _ in range(JOBS)]
        for job in jobs:
            wait_for("the end or the reason", lambda j=job: c.phase(j) == "ended" or "launch" in c.queue_line(j))
        c.root(["gcancel", "-Q", f"--user={c.user}"])
    equal([text for text in map(c.output, jobs) if PLANTED in text], [], "what jobs read where only root may")
    equal(os.listdir(target), ["file"], "files that jobs made where only root may")


def case_a_log_that_is_read(c):
    """The node daemon reads the output for `gctl logs`, as the user."""
    target = only_root(c)
    own = f"{c.out}/read"
    with racing(c, "read", target) as name:
        job = c.submit("-H", "-o", f"{name}/file", script="true\n", defaults=("--mem=20M",))
        c.root(["gcancel", str(job)])
        job = c.submit("-o", "/dev/null", "-e", f"{name}/file", script="sleep 60\n", defaults=("--mem=20M",))
        wait_for("the job", lambda: c.phase(job) in ("running", "ended"))
        for _ in range(40):
            done = c.as_user(["gctl", "logs", "-e", str(job)])
            equal(PLANTED in done.stdout + done.stderr, False, f"a log of {own}")
        c.root(["gcancel", "-Q", str(job)])


def case_without_the_layer_root_loses_the_race(c):
    """A program of root that looks first and opens then, as many have: the link comes between."""
    target = only_root(c)
    lost = 0
    with racing(c, "naive", target) as name:
        def tries():
            nonlocal lost
            for _ in range(3000):
                with contextlib.suppress(OSError):
                    if not stat.S_ISDIR(os.lstat(name).st_mode):
                        continue
                    with open(f"{name}/file", encoding="ascii") as f:
                        lost += PLANTED in f.read()
            return lost
        wait_for("a lost race", tries, 30)
    print(f"  lost {lost} times")


def case_the_table_names_every_attempt(c):
    with open(f"{HERE}/README.md", encoding="utf-8") as f:
        named = set(re.findall(r"^\| `races/([a-z-]+)`", f.read(), re.M))
    cases = {n[5:].replace("_", "-") for n in globals() if n.startswith("case_")}
    equal(named, cases - {"the-table-names-every-attempt", "without-the-layer-root-loses-the-race"}, "README.md")


if __name__ == "__main__":
    sys.exit(cluster.main(__doc__, globals(), "races", nodes=1))
