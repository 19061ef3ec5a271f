#!/usr/bin/env python3
"""A running job gives back nodes (scontrol update NumNodes=, NodeList=), and running steps get other time
limits, on a real cluster.

usage: shrink_test.py BIN_DIR [-k CASE] [--keep]
"""
import os
import sys

import cluster
from cluster import contains, equal, wait_for
from slurm_calls import MEM, in_state, ok, script

RESIZE = """
sleep_on_all() {{ srun --mem=0 --overlap -N$1 sleep 300; echo "step ended $?"; }}
sleep_on_all 3 &
while [ $(squeue -h -s -j $SLURM_JOB_ID | wc -l) -lt 2 ]; do sleep 0.2; done
echo ready
while [ ! -e {go} ]; do sleep 0.1; done
scontrol update JobId=$SLURM_JOB_ID NumNodes=2
. ./slurm_job_${{SLURM_JOB_ID}}_resize.sh
echo now $SLURM_NNODES $SLURM_JOB_NODELIST ${{SLURM_NTASKS-none}} $SLURM_JOB_CPUS_PER_NODE
srun --mem=0 --overlap hostname >/dev/null && echo step on two
srun --mem=0 --overlap -N3 true || echo no third
wait
echo over
"""



def case_a_job_gives_back_a_node(c):
    go = f"{c.out}/go"
    job = ok(c, "sbatch", "--parsable", MEM, "-N3", "-n3", "-o", "%j.out",
             script(c, "resize.sh", RESIZE.format(go=go))).strip()
    c.said(int(job), "ready")
    busy = len(c.shims(job=job))
    with open(go, "w", encoding="ascii"):
        pass
    c.said(int(job), "now 2 ")
    contains(c.output(int(job)), "To reset Slurm environment variables, execute")
    wait_for("the third node has let go", lambda: len(c.shims(job=job)) < busy)
    shown = ok(c, "scontrol", "show", "job", job)
    contains(shown, "NumNodes=2")
    contains(shown, "NodeList=node[1-2]")
    wait_for("node3 is free", lambda: "idle" in ok(c, "sinfo", "-h", "-n", "node3", "-o", "%t"))
    c.said(int(job), "step on two")
    c.said(int(job), "no third")
    c.said(int(job), "step ended")  # it had lost a node
    c.ended(int(job), "completed")
    contains(c.output(int(job)), "over")
    contains(ok(c, "sacct", "-n", "-X", "-j", job, "-o", "NNodes,NodeList%30"), "node[1-2]")


def case_refusals(c):
    job = ok(c, "sbatch", "--parsable", MEM, "-N2", "-n2", "-o", "%j.out", script(c, "sleep.sh", "sleep 300\n")).strip()
    in_state(c, job, "RUNNING")
    for words, why in ((["NumNodes=3"], "it cannot grow"), (["NodeList=node2"], "it cannot give this one back"),
                       (["NodeList=node1,node3"], "it cannot grow"), (["NumTasks=1"], "only the number of nodes")):
        done = c.as_user(["slurm/scontrol", "update", f"JobId={job}", *words])
        equal(done.returncode, 1, done.stdout)
        contains(done.stderr, why)
    ok(c, "scontrol", "update", f"JobId={job}", "NodeList=node1")
    wait_for("one node", lambda: "NumNodes=1" in ok(c, "scontrol", "show", "job", job))
    ok(c, "scancel", job)
    c.ended(int(job), "cancelled")


def case_the_limit_of_a_running_step(c):
    body = "srun --mem=0 -t5 sleep 200; echo step $?\n"
    job = ok(c, "sbatch", "--parsable", MEM, "-n1", "-o", "%j.out", script(c, "limit.sh", body)).strip()
    wait_for("the step", lambda: f"{job}.0" in ok(c, "squeue", "-h", "-s", "-j", job, "-o", "%i"))
    contains(ok(c, "scontrol", "show", "step", f"{job}.0"), "TimeLimit=00:05:00")
    ok(c, "scontrol", "update", f"StepId={job}", "TimeLimit=0:0:02")
    contains(ok(c, "scontrol", "show", "step", f"{job}.0"), "TimeLimit=00:00:02")
    c.ended(int(job))
    contains(c.output(int(job)), "DUE TO TIME LIMIT")
    done = c.as_user(["slurm/scontrol", "update", f"StepId={job}.0", "TimeLimit=1"])
    equal(done.returncode, 1, done.stdout)
    equal(os.path.exists(f"{c.out}/go"), True)


if __name__ == "__main__":
    sys.exit(cluster.main(__doc__, globals(), "shrink", nodes=3))
