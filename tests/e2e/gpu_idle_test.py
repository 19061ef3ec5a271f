#!/usr/bin/env python3
"""Jobs that do not use their GPUs, with the stand-in driver, cause an event, a warning, a requeue
or a cancel; a job that uses them is left alone.

usage: gpu_idle_test.py BIN_DIR [-k CASE] [--keep]
"""
import json
import sys

import cluster
from cluster import contains, equal, wait_for
from gpu_test import GPUS, declare, place, restarts

# Tenant fraud requeues an idle job after a warning and tenant search cancels it; tenant patient
# does neither.
TENANTS = """apiVersion: gantry/v1
kind: Tenant
name: fraud
roles:
  user: {users: [USER]}
idle_gpus: {note: 1s, warn: 2s, requeue: 4s}
---
apiVersion: gantry/v1
kind: Tenant
name: search
roles:
  user: {users: [USER]}
idle_gpus: {warn: 1s, cancel: 3s}
---
apiVersion: gantry/v1
kind: Tenant
name: patient
roles:
  user: {users: [USER]}
"""


def beat_faster(c):
    path = f"{c.state}/gantry.yaml"
    with open(path, encoding="utf-8") as f:
        text = f.read()
    contains(text, "heartbeat: 1s\n")
    with open(path, "w", encoding="utf-8") as f:
        f.write(text.replace("heartbeat: 1s\n", "heartbeat: 500ms\n"))


def start(c):
    if hasattr(c, "fleet"):
        return
    declare(c, noded="  gpu_sample: 500ms\n", prepare=beat_faster)
    c.root(["gtenant", "apply", "-y", "-f", "-"], check=True,
           input=TENANTS.replace("USER", c.users[0]))


def submit(c, tenant, *options):
    return c.submit("-n1", "-p", tenant, "--gpus-per-node=1", *options,
                    "--wrap", "echo began; sleep 120", defaults=("--mem=40M", "-o", "%j.out", "-e",
                                                                 "%j.err"))


def errors(c, job):
    return cluster.text(f"{c.out}/{job}.err")


def steps(c, job):
    told = map(json.loads, c.root(["gtenant", "events", "--json"], check=True).stdout.splitlines())
    return [e["step"] for e in told if e.get("job") == str(job) and "step" in e]


def case_requeued_after_a_warning(c):
    start(c)
    job = submit(c, "fraud", "--requeue")
    wait_for("a warning", lambda: "GPUs of this job have done nothing for" in errors(c, job))
    contains(errors(c, job), "after 0:04 it goes back to the queue")
    wait_for("it to be back in the queue", lambda: restarts(c, job) >= 1)
    equal(steps(c, job)[:3], ["note", "warn", "requeue"])
    c.root(["gcancel", str(job)], check=True)
    c.ended(job)


def case_cancelled_where_it_may_not_go_back(c):
    start(c)
    job = submit(c, "search", "--no-requeue")
    c.ended(job, "cancelled")
    contains(errors(c, job), "after 0:03 it is cancelled")
    equal(steps(c, job), ["warn", "cancel"])
    contains(c.root(["gctl", "show", "job", str(job)]).stdout, "its GPUs have done nothing for")


def case_who_works_is_left_alone_and_so_is_who_nobody_asks(c):
    start(c)
    everywhere = [(n, g) for n in ("node1", "node2") for g in range(GPUS)]
    for n, g in everywhere:
        c.fleet.control(n, "set", g, "utilization=60")
    works = submit(c, "search")
    c.running(works)
    node, gpu = place(c, works)
    for n, g in everywhere:
        if (n, g) != (node, gpu):
            c.fleet.control(n, "set", g, "utilization=0")
    patient = submit(c, "patient")
    c.running(patient)
    idle = submit(c, "search")
    c.ended(idle, "cancelled")
    equal([c.phase(patient), c.phase(works)], ["running", "running"])
    # This job stops working, and from now on its idle time counts.
    c.fleet.control(node, "set", gpu, "utilization=0")
    c.ended(works, "cancelled")
    equal(c.phase(patient), "running")
    c.root(["gcancel", str(patient)], check=True)
    c.ended(patient)


if __name__ == "__main__":
    sys.exit(cluster.main(__doc__, globals(), "gpu_idle", nodes=2))
