#!/usr/bin/env python3
"""grun and galloc over four nodes: ranks that find each other, output, input, exit codes, and what
becomes of a step when a node daemon or a shim is killed.

usage: steps_test.py BIN_DIR [-k CASE] [--keep]
"""
import os
import re
import shutil
import signal
import sys

import cluster
from cluster import contains, equal, wait_for

FOUR = ("-N", "4", "--ntasks-per-node=2", "-t", "3:00")


def case_ranks_reduce(c):
    """Eight ranks on four nodes find rank 0 at MASTER_ADDR:MASTER_PORT and add up a number."""
    shutil.copy(os.path.join(os.path.dirname(os.path.abspath(__file__)), "rank.py"), c.out)
    os.chmod(f"{c.out}/rank.py", 0o644)
    job = c.submit(script="#SBATCH -N 4 --ntasks-per-node=2 --network=host -t 3:00\n"
                          f"grun python3 {c.out}/rank.py\necho status $?\n")
    c.ended(job, "completed")
    lines = sorted(re.findall(r"^rank .*$", c.output(job), re.M))
    equal(lines, [f"rank {r} of 8 on node{r // 2 + 1} node {r // 2} local {r % 2} total 36"
                  for r in range(8)], "what the ranks say")
    contains(c.output(job), "status 0")
    steps = [s["step"] for s in c.account(job)["steps"]]
    contains(steps, "0", "steps in the accounts")


def case_without_network(c):
    """In containers with loopback only, on one node and on several, the node daemons carry the
    output."""
    for options, wanted in ((("-n", "2"), {"node1", "node2", "node3", "node4"}), (FOUR, None)):
        job = c.submit(*options, "--network=none",
                       script="grun sh -c 'echo $SLURM_PROCID:$SLURMD_NODENAME'\n"
                              "echo status $?\nls /sys/class/net\n")
        c.ended(job, "completed")
        got = sorted(re.findall(r"^\d:node\d$", c.output(job), re.M))
        if wanted is None:
            equal(got, [f"{r}:node{r // 2 + 1}" for r in range(8)])
        else:
            equal([g[:2] for g in got], ["0:", "1:"])
        contains(c.output(job), "status 0")
        equal(c.output(job).split("status 0")[1].split(), ["lo"], "network devices")


def case_labels_and_exit_code(c):
    job = c.submit(*FOUR, script="grun -l sh -c 'echo from $SLURM_PROCID; exit $SLURM_PROCID'\n"
                                 "echo status $?\n")
    c.ended(job, "completed")
    got = sorted(re.findall(r"^\d: from \d$", c.output(job), re.M))
    equal(got, [f"{r}: from {r}" for r in range(8)], "labelled lines")
    contains(c.output(job), "status 7")


def case_side_by_side(c):
    """Two steps at a time in a job of two cores have one core each; with --overlap both have the
    same."""
    script = """
see() {
  grun -n 1 $1 sh -c "grep Cpus_allowed_list /proc/self/status; touch $2; i=0
    until [ -e $3 ] || [ \\$i = 300 ]; do sleep 0.1; i=\\$((i + 1)); done; [ -e $3 ]"
}
cd $(mktemp -d -p $PWD)
see "$1" one two > cores1 & first=$!
see "$1" two one > cores2 & second=$!
wait $first || exit 10
wait $second || exit 11
cmp -s cores1 cores2 && echo same || echo different
"""
    path = f"{c.out}/side.sh"
    with open(path, "w", encoding="utf-8") as f:
        f.write(f"#!/bin/bash\n{script}")
    for option, wanted in (("--exact", "different"), ("--overlap", "same")):
        job = c.submit("-n", "2", "-N", "1", path, option)
        c.ended(job, "completed", 0)
        contains(c.output(job), wanted, f"cores of two steps with {option}")


def case_input_to_rank_0(c):
    job = c.submit(*FOUR, script="printf 'one\\ntwo\\n' | grun -l cat\necho status $?\n")
    c.ended(job, "completed")
    equal(re.findall(r"^\d: .*$", c.output(job), re.M), ["0: one", "0: two"], "lines of cat")
    contains(c.output(job), "status 0")


def case_outside_of_a_job(c):
    done = c.as_user(["grun", "-N", "2", "-n", "4", "--mem=40M", "-l", "sh", "-c",
                      "echo $SLURM_NODEID; exit 5"])
    equal(done.returncode, 5, f"exit status ({done.stderr})")
    equal(sorted(done.stdout.split("\n")), ["", "0: 0", "1: 0", "2: 1", "3: 1"])
    done = c.as_user(["grun", "--mem=40M", "cat"], input="hello\n")
    equal((done.returncode, done.stdout), (0, "hello\n"))
    done = c.as_user(["grun", "--mem=40M", "/no/such/program"])
    assert done.returncode != 0, "a program that is not there"
    contains(done.stderr, "/no/such/program")


def case_galloc(c):
    done = c.as_user(["galloc", "-N", "2", "-n", "4", "--mem=40M", "sh", "-c",
                      f"{c.bin}/grun -l hostname; echo $SLURM_JOB_NODELIST; exit 9"])
    equal(done.returncode, 9, f"exit status ({done.stderr})")
    equal(len(re.findall(r"^\d: ", done.stdout, re.M)), 4, done.stdout)
    contains(done.stdout, "node[")
    job = int(re.search(r"job allocation (\d+)", done.stderr).group(1))
    c.ended(job)


def case_kill_on_bad_exit(c):
    """With -K the first failure ends the other tasks; without it they go on."""
    body = "'if [ $SLURM_PROCID = 3 ]; then exit 4; fi; exec sleep 300'"
    job = c.submit(*FOUR, script=f"grun -K sh -c {body}\necho status $?\n")
    c.ended(job)
    assert re.search(r"status (4|137|143)\b", c.output(job)), c.output(job)


def case_signal_to_the_step(c):
    job = c.submit("-n", "1", "-t", "3:00", script="""
grun sh -c 'trap "echo got it; exit 6" USR1; echo ready; while :; do sleep 0.1; done'
echo status $?
""")
    c.said(job, "ready")
    equal(c.as_user(["gcancel", "-s", "USR1", job]).returncode, 0)
    c.ended(job, "completed")
    contains(c.output(job), "got it")
    contains(c.output(job), "status 6")


def case_noded_killed(c):
    """The job and its running step go on, and output arrives, while node daemons are killed."""
    go = f"{c.out}/go"
    job = c.submit(*FOUR, script=f"""
grun -l sh -c 'echo before; while [ ! -e {go} ]; do sleep 0.1; done; echo after'
echo status $?
""")
    wait_for("eight lines", lambda: c.output(job).count(": before") == 8)
    # the node of the batch script, and another one
    victims = [c.daemon("node1"), c.daemon("node3")]
    arguments = [c.kill(pid) for pid in victims]
    with open(go, "w", encoding="utf-8"):
        pass
    wait_for("eight lines more", lambda: c.output(job).count(": after") == 8)
    assert c.phase(job) == "running" or "status" in c.output(job)
    for argv in arguments:
        c.spawn(argv)
    c.ended(job, "completed", 0)
    contains(c.output(job), "status 0")


def case_shim_killed(c):
    """The job ends, and gacct and gctl name the node and the cause."""
    job = c.submit(*FOUR, "--no-requeue", script="grun sh -c 'echo up; exec sleep 300'\n")
    wait_for("eight lines", lambda: c.output(job).count("up") == 8)
    shims = c.shims("node3", job)
    assert shims, "no shim of the job on node3"
    for pid in shims:
        os.kill(pid, signal.SIGKILL)
    entry = c.ended(job, "node_fail")
    contains(entry["cause"], "node3", "cause")
    contains(entry["cause"], "shim", "cause")
    contains(c.root(["gctl", "show", "job", str(job)]).stdout, entry["cause"], "gctl show job")
    shown = c.root(["gacct", "-n", "-P", "-X", "-j", str(job), "-o", "State,Cause"]).stdout
    contains(shown, "node3", "gacct")
    wait_for("the end of all shims of the job", lambda: not c.shims(job=job))


if __name__ == "__main__":
    sys.exit(cluster.main(__doc__, globals(), "steps", nodes=4))
