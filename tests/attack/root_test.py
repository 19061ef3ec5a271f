#!/usr/bin/env python3
"""Attempts of an ordinary user to make root's daemons do what the user may not do. README.md lists
them.

The attempts try to write to /proc/sys/kernel/core_pattern, whose text the kernel runs as root. Its
text is compared before and after, and is put back if it ever differs.

usage: root_test.py BIN_DIR [-k CASE] [--keep]
"""
import contextlib
import json
import os
import re
import shutil
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "../e2e"))

import cluster  # noqa: E402
from cluster import contains, equal, text  # noqa: E402

CORE = "/proc/sys/kernel/core_pattern"
DENIED = {"EPERM", "EACCES"}


@contextlib.contextmanager
def core_pattern_stays():
    before = text(CORE)
    try:
        yield
    finally:
        after = text(CORE)
        if after != before:
            with open(CORE, "w", encoding="utf-8") as f:
                f.write(before)
        equal(after, before, CORE)


def refused(c, *options, why):
    """Submits a job that must never run; its reason must say why in one sentence."""
    job = c.submit(*options, script="sleep 30\n", defaults=("--mem=40M",))
    try:
        entry = c.ended(job, "failed", patience=20)
        contains(entry["cause"], why, f"the reason of {' '.join(options)}")
        equal(entry["row"]["started"], None, f"start with {' '.join(options)}")
    finally:
        c.root(["gcancel", "-Q", str(job)])


def script(c, name, lines):
    path = f"{c.out}/{name}"
    with open(path, "w", encoding="utf-8") as f:
        f.write("#!/bin/sh\n" + lines)
    os.chmod(path, 0o755)
    return path


def link(c, target):
    name = f"{c.out}/link{len(os.listdir(c.out))}"
    os.symlink(target, name)
    return os.path.basename(name)


def case_the_kernels_files_as_output(c):
    why = "belongs to the node's kernel (proc)"
    with core_pattern_stays():
        for options in (["-e", CORE], ["-o", CORE, "--open-mode=append"], ["-o", CORE, "--open-mode=truncate"],
                        ["-e", link(c, CORE)], ["-o", link(c, "/proc/sys/kernel") + "/core_pattern"],
                        ["-J", "..", "-o", "%x/%x/%x/%x/%x/%x" + CORE]):
            refused(c, *options, why=why)
        refused(c, "-e", "/dev/stderr", why="Too many levels")
        array = c.submit("-a", "0-1", "-e", CORE, script="sleep 30\n", defaults=("--mem=40M",))
        tasks = cluster.wait_for("the end of both tasks", lambda: [
            e["row"] for e in c.accounts().values()
            if e["row"]["array_job"] == array and e["row"]["phase"] == "ended" and e["row"]["outcome"] == "failed"],
            patience=20)
        equal({task["started"] for task in tasks}, {None}, "starts of tasks")


def case_the_kernels_files_as_output_of_a_step(c):
    with core_pattern_stays():
        done = c.as_user(["grun", "-n1", "--mem=40M", "-o", CORE, "true"])
        equal(done.returncode != 0, True, "a step with its output there")
        contains(done.stderr, "belongs to the node's kernel (proc)")
        job = c.submit(script=f"grun -n1 -e {CORE} -o /dev/null true && echo taken; echo end\n")
        c.ended(job, "completed")
        contains(c.output(job), "end")
        equal("taken" in c.output(job), False, c.output(job))


def case_the_kernels_files_as_output_of_a_component(c):
    with core_pattern_stays():
        done = c.as_user(["slurm/sbatch", "--parsable", "--mem=40M", "-e", CORE, ":", "--mem=40M",
                          script(c, "het.sh", "sleep 30\n")])
        equal(done.returncode, 0, done.stderr)
        entry = c.ended(int(done.stdout), "failed", patience=20)
        contains(entry["cause"], "belongs to the node's kernel (proc)")
        done = c.as_user(["slurm/srun", "--mem=40M", "-o", CORE, "true", ":", "--mem=40M", "true"])
        equal(done.returncode != 0, True, "a step of two components with its output there")


def case_a_notice_into_the_kernels_files(c):
    """The user chooses the text of a notice and the path to which the shim, running as root, would
    write it."""
    with core_pattern_stays():
        job = c.submit("-e", CORE, "-o", "/dev/null", script="sleep 30\n", defaults=("--mem=40M",))
        entry = c.ended(job)
        equal(entry["row"]["started"], None, "start")
        done = c.as_user(["slurm/scontrol", "notify", str(job), f"|{c.out}/x.sh"])
        equal(done.returncode != 0, True, "a notice for what never ran")
        job = c.submit(script="sleep 30\n")
        c.running(job)
        c.as_user(["slurm/scontrol", "notify", str(job), "you are told"])
        c.said(job, "you are told")
        c.root(["gcancel", str(job)], check=True)
        c.ended(job)


def case_kernel_files_and_devices_as_input(c):
    allowed = "; a regular file, a named pipe or /dev/null is allowed"
    refused(c, "--input=/proc/kallsyms",
            why=f"input file /proc/kallsyms: belongs to the node's kernel (proc){allowed}")
    refused(c, "--input=/dev/kmsg", why=f"input file /dev/kmsg: is a device{allowed}")
    refused(c, f"--input={link(c, '/proc/kallsyms')}", why="belongs to the node's kernel (proc)")
    refused(c, "--input=/proc/self/maps", why="belongs to the node's kernel (proc)")
    refused(c, "--input=/dev/fd/0", why="Too many levels")


def case_read_the_kernels_files_as_a_log(c):
    """The path first is the job's output; when it is read again it leads to another file."""
    job = c.submit("-o", "log-%j", script="echo said; sleep 60\n", defaults=("--mem=40M",))
    path = f"{c.out}/log-{job}"
    cluster.wait_for("the output", lambda: text(path) == "said\n")
    equal(c.as_user(["gctl", "logs", str(job)]).stdout, "said\n")
    for target in ("/proc/self/maps", "/proc/self/mountinfo", "/dev/kmsg", "/dev/zero"):
        os.unlink(path)
        os.symlink(target, path)
        done = c.as_user(["gctl", "logs", str(job)])
        equal((done.returncode != 0, done.stdout), (True, ""), target)
        contains(done.stderr, "not a regular file", target)
    c.root(["gcancel", str(job)], check=True)
    c.ended(job)


def case_the_hosts_proc_by_a_mount(c):
    where = link(c, "/proc")
    for target in ("/tmp/x", "/tmp/x y"):
        refused(c, f"--container-mounts={c.out}/{where}:{target}", why="leads to what belongs to the node's kernel")
    job = c.submit("--container-mounts=/:/tmp/all of it",
                   script="cd '/tmp/all of it' && ls proc sys | grep -v : | grep -c .; ls etc/passwd\n")
    c.ended(job, "completed")
    equal(c.output(job), "0\netc/passwd\n", "what a mount of / shows")


def case_trace_init(c):
    shutil.copy(f"{HERE}/user.py", f"{c.out}/user.py")
    steps = c.submit(script="grun -n1 /usr/bin/python3 user.py\n")
    batch = c.submit(script="exec /usr/bin/python3 user.py\n")
    for job in (batch, steps):
        c.ended(job, "completed")
        came = {row["attempt"]: row["came"] for row in map(json.loads, c.output(job).splitlines())}
        init = {a: what for a, what in came.items() if a.startswith("init-")}
        equal(len(init) >= 15, True, f"{len(init)} attempts")
        equal({a: what for a, what in init.items() if what not in DENIED}, {}, "attempts on init that were let")
        # Debuggers must still work between processes of the same job.
        equal({a: came[f"own-{a}"] for a in ("attach", "seize", "read-memory", "write-memory", "open-mem",
                                             "follow-exe")},
              {"attach": 0, "seize": 0, "read-memory": 8, "write-memory": 8, "open-mem": "opened",
               "follow-exe": "read"}, "a process of its own")


def case_without_the_user_root_reaches_each(c):
    """What the shim and the daemon would do if they opened these paths themselves, as root."""
    with core_pattern_stays():
        before = text(CORE)
        for path in (CORE, f"{c.out}/{link(c, CORE)}", f"{c.out}/{link(c, '/proc/sys/kernel')}/core_pattern"):
            for flags in (os.O_WRONLY | os.O_TRUNC, os.O_WRONLY | os.O_APPEND):
                fd = os.open(path, flags)
                os.write(fd, before.encode())
                os.close(fd)
    with open("/proc/kallsyms", encoding="utf-8") as f:
        equal(len(f.read(100)), 100, "symbols of the kernel as input")
    os.close(os.open("/dev/kmsg", os.O_RDONLY | os.O_NONBLOCK))
    with open(f"{c.out}/{link(c, '/proc/self/maps')}", encoding="utf-8") as f:
        contains(f.read(), "[heap]", "the daemon's memory as a log")
    shown = subprocess.run(["unshare", "--mount", "--propagation", "private", "sh", "-c",
                            f"mount --bind {c.out}/{link(c, '/proc')} /mnt && ls /mnt"], capture_output=True, text=True,
                           check=True).stdout
    contains(shown, "kallsyms", "a mount of what a link leads to")


def case_the_table_names_every_attempt(c):
    with open(f"{HERE}/README.md", encoding="utf-8") as f:
        named = set(re.findall(r"^\| `([a-z]+_[a-z_]+)`", f.read(), re.M))
    cases = {n[5:] for n in globals() if n.startswith("case_")}
    equal(named, cases - {"the_table_names_every_attempt", "without_the_user_root_reaches_each"}, "README.md")


if __name__ == "__main__":
    sys.exit(cluster.main(__doc__, globals(), "root", nodes=2))
