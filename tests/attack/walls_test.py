#!/usr/bin/env python3
"""What a job may not do, tried by walls.py in a job of an ordinary user, and the same without any
wall: each attempt must be stopped in the job, and reach what it wants without. README.md lists them.

usage: walls_test.py BIN_DIR [-k CASE] [--keep]
"""
import glob
import json
import os
import re
import shutil
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "../e2e"))

import cluster  # noqa: E402
from cluster import contains, equal, wait_for  # noqa: E402

# Outcomes without walls of a machine that lacks what the attempt is about.
NOT_THERE = {"ENOENT", "EAFNOSUPPORT", "ENOSYS", "ENODEV", "EOPNOTSUPP", "nothing there", "all are zero"}
# Floods of floods.py, each with what may refuse it beside the memory limit.
FLOODS = {"memory": (), "processes": ("EAGAIN",), "disk": ("ENOSPC",), "inodes": ("ENOSPC",), "inodes-of-shared-memory": ("ENOSPC",),
          "files": ("EMFILE",), "pipes": ("EMFILE", "EPERM"), "sockets": ("EMFILE", "ENOBUFS"), "timers": ("EAGAIN",),
          "mappings": ("ENOMEM",), "shared-memory": ("ENOSPC", "ENOMEM"), "queues": ("ENOSPC", "EMFILE"), "watches": ("EMFILE", "ENOSPC")}
# Attempts that a machine for tests may stop by itself, before any wall of ours.
OF_THE_MACHINE = {"open-a-disk", "make-a-user-namespace", "make-a-user-namespace-by-clone3", "watch-the-processor-of-all",
                  "raise-a-hard-limit"}


def told(c):
    """What the program is told, as if its author had read the code of this project."""
    shutil.copy(f"{HERE}/walls.py", f"{c.out}/walls.py")
    state = sorted(glob.glob(f"{c.state}/**", recursive=True))
    path = f"{c.out}/told.json"
    with open(path, "w", encoding="utf-8") as f:
        json.dump({"out": c.out, "state": c.state,
                   "keys": [p for p in state if re.search(r"key|secret|\.pem", os.path.basename(p)) and os.path.isfile(p)],
                   "store": [p for p in state if p.endswith(".mdb")],
                   "job_dirs": [p for p in state if os.path.basename(p).startswith("job") and os.path.isdir(p)]}, f)
    os.chmod(path, 0o644)
    return path


def outcomes(text):
    rows = [json.loads(line) for line in text.splitlines() if line.startswith("{")]
    return {row["attempt"]: row for row in rows}


def case_in_a_job_nothing_is_reached(c):
    path = told(c)
    for how in ("exec /usr/bin/python3 walls.py {}", "grun -n1 /usr/bin/python3 walls.py {}"):
        job = c.submit(script=how.format(path) + "\n")
        c.ended(job, "completed")
        came = outcomes(c.output(job))
        equal(len(came) >= 60, True, f"{len(came)} attempts")
        equal({a: row["came"] for a, row in came.items() if row["came"] == "reached"}, {}, "reached in a job")


def case_without_walls_each_attempt_reaches_what_it_wants(c):
    path = told(c)
    program = ["/usr/bin/python3", f"{c.out}/walls.py", path]
    left_open = os.open("/", os.O_RDONLY | os.O_DIRECTORY)
    root = outcomes(subprocess.run(["unshare", "--mount", "--propagation", "private"] + program, cwd=c.out, check=True,
                                   pass_fds=(left_open,), capture_output=True, text=True).stdout)
    user = outcomes(subprocess.run(program, user=c.user, group=c.user, extra_groups=[], cwd=c.out, check=True,
                                   pass_fds=(left_open,), capture_output=True, text=True).stdout)
    os.close(left_open)
    shown, missing, wrong = 0, [], {}
    for name, row in root.items():
        came = (user if row["without"] == "user" else root)[name]["came"]
        if came == "reached":
            shown += 1
        elif came in NOT_THERE or name in OF_THE_MACHINE:
            missing.append(f"{name} ({came})")
        else:
            wrong[name] = came
    print(f"  {shown} of {len(root)} reach it without walls; not on this machine: {', '.join(missing) or 'none'}")
    equal(wrong, {}, "attempts that do not bite")
    equal(shown >= 45, True, f"{shown} attempts bite")


def flood(c, name, *options, user=None):
    """Runs one flood of floods.py in a job; returns what it said and how the job ended."""
    job = c.submit("-w", "node1", *options, script=f"exec /usr/bin/python3 floods.py {name}\n", defaults=("-o", "%j.out"),
                   user=user)
    entry = c.ended(job)
    return c.output(job), entry["row"]["outcome"]


def case_floods_stay_in_their_job(c):
    """Each flood ends, or is held, in its own job; a neighbour on the same node goes on."""
    shutil.copy(f"{HERE}/floods.py", f"{c.out}/floods.py")
    neighbour = c.submit("-w", "node1", script="for i in $(seq 1200); do echo $i; sleep 0.05; done\n")
    c.running(neighbour)
    for name, how in FLOODS.items():
        since = len(c.output(neighbour).split())
        said, outcome = flood(c, name, "--mem=40M")
        stopped = re.search(r"^stopped (\w+)", said, re.M)
        equal("all of it" in said, False, f"{name}: {said}")
        # Killed by the memory limit, or refused by the limit that is named.
        equal(outcome == "out_of_memory" or "memory limit" in said or bool(stopped and stopped.group(1) in how), True,
              f"{name}: {outcome}: {said[-300:]}")
        wait_for(f"the neighbour beside {name}", lambda n=since: len(c.output(neighbour).split()) > n + 5, 10)
    c.root(["gcancel", str(neighbour)], check=True)
    entry = c.ended(neighbour)
    equal(entry["row"]["outcome"], "cancelled", "the neighbour ran until it was cancelled")
    equal(c.root(["ginfo", "-h", "-o", "%T"], check=True).stdout.split()[0] in ("idle", "mixed"), True, "the nodes")


def case_without_limits_each_flood_is_through(c):
    """The same programs as the same user in no cgroup of a job, in a /tmp of their own without a limit."""
    shutil.copy(f"{HERE}/floods.py", f"{c.out}/floods.py")
    for name in FLOODS:
        done = subprocess.run(["unshare", "--mount", "--propagation", "private", "sh", "-c",
                               "mount -t tmpfs -o mode=1777,size=90%,nr_inodes=0 none /tmp"
                               "&& mount -t tmpfs -o mode=1777,size=90%,nr_inodes=0 none /dev/shm "
                               f"&& exec setpriv --reuid={c.user} --regid={c.user} --clear-groups /usr/bin/python3 floods.py {name}"],
                              cwd=c.out, capture_output=True, text=True, check=False, timeout=120)
        contains(done.stdout, "all of it", f"{name}: {done.stderr[-300:]}")


def case_the_table_names_every_attempt(c):
    with open(f"{HERE}/README.md", encoding="utf-8") as f:
        named = set(re.findall(r"^\| `walls/([a-z0-9-]+)`", f.read(), re.M))
    with open(f"{HERE}/walls.py", encoding="utf-8") as f:
        there = {n.replace("_", "-") for n in re.findall(r'^@attempt\("\w+"\)\ndef (\w+)', f.read(), re.M)}
    there |= {f"flood-of-{name}" for name in FLOODS}
    equal(named, there, "README.md")


if __name__ == "__main__":
    sys.exit(cluster.main(__doc__, globals(), "walls", nodes=2))
