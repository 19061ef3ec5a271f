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
from cluster import contains, equal  # noqa: E402

# Outcomes without walls of a machine that lacks what the attempt is about.
NOT_THERE = {"ENOENT", "EAFNOSUPPORT", "ENOSYS", "ENODEV", "EOPNOTSUPP", "nothing there", "all are zero"}
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


def case_floods_stay_in_their_job(c):
    """Each flood ends, or is held, in its own job; a neighbour on the same node goes on."""
    neighbour = c.submit("-w", "node1", script="for i in $(seq 600); do echo $i; sleep 0.05; done\n")
    c.running(neighbour)
    memory = c.submit("-w", "node1", "--mem=40M", script="exec /usr/bin/python3 -c 'x = bytearray(400 << 20)'\n", defaults=())
    entry = c.ended(memory)
    equal(entry["row"]["outcome"] in ("out_of_memory", "failed"), True, entry["row"]["outcome"])
    forks = c.submit("-w", "node1", script="""exec /usr/bin/python3 -c '
import os, signal, sys
n = 0
try:
    while n < 200000:
        if os.fork() == 0:
            signal.pause()
        n += 1
except OSError as e:
    print("stopped", e.errno, flush=True)
    os.killpg(0, signal.SIGKILL)
'
""")
    c.ended(forks)
    held = c.output(forks)  # by the limit of processes, or of the memory that they take
    equal("stopped 11" in held or "memory limit" in held, True, f"a fork bomb: {held}")
    disk = c.submit("-w", "node1", script="""exec /usr/bin/python3 -c '
import errno
try:
    with open("/tmp/flood", "wb") as f:
        for i in range(4096):
            f.write(bytes(1 << 20))
    print("all of it")
except OSError as e:
    print("stopped", errno.errorcode[e.errno])
'
""")
    entry = c.ended(disk)
    equal("all of it" in c.output(disk), False, "4 GiB in /tmp")
    files = c.submit("-w", "node1", script="""exec /usr/bin/python3 -c '
import os
held = []
try:
    while len(held) < 2000000:
        held.append(os.open("/dev/null", os.O_RDONLY))
except OSError as e:
    print("stopped", e.errno, len(held))
'
""")
    c.ended(files, "completed")
    contains(c.output(files), "stopped 24", "open files")
    c.root(["gcancel", str(neighbour)], check=True)
    entry = c.ended(neighbour)
    equal(entry["row"]["outcome"], "cancelled", "the neighbour ran until it was cancelled")
    equal(c.root(["ginfo", "-h", "-o", "%T"], check=True).stdout.split()[0] in ("idle", "mixed"), True, "the nodes")


def case_the_table_names_every_attempt(c):
    with open(f"{HERE}/README.md", encoding="utf-8") as f:
        named = set(re.findall(r"^\| `walls/([a-z0-9-]+)`", f.read(), re.M))
    with open(f"{HERE}/walls.py", encoding="utf-8") as f:
        there = {n.replace("_", "-") for n in re.findall(r'^@attempt\("\w+"\)\ndef (\w+)', f.read(), re.M)}
    there |= {"floods-stay-in-their-job"}
    equal(named, there, "README.md")


if __name__ == "__main__":
    sys.exit(cluster.main(__doc__, globals(), "walls", nodes=2))
