#!/usr/bin/env python3
"""Kills controller, node daemons, shims and their templates with SIGKILL at random moments under
load, with real daemons.

usage: kill_test.py BIN_DIR [--kills N] [--seed S] [--nodes N] [--runtime crun|process] [--keep]

Without --kills there are 60 kills, or 200 with GANTRY_LONG=1.

While jobs are submitted without pause, random daemons, shims and templates are killed with SIGKILL
(daemons are started again at once). At the end every acknowledged job must be accounted for:
  - none is lost, and none ran twice (each writes one line when it starts);
  - the exit code of each is the one it had, and a job whose shim was killed ends as a failure that
    says so;
  - the bill is the sum of what the jobs cost, to the last millionth;
  - no cgroup, mount or process of the cluster is left after `gantry down`.
The exit status is 0 only if all of that holds. The seed is printed, and makes the same choices again.
"""
import contextlib
import json
import os
import random
import re
import signal
import sys
import threading
import time

from cluster import SKIPPED, Cluster, arguments, cannot_run, parent, read, wait_for

PRICES = """apiVersion: gantry/v1
kind: PriceBook
name: base
currency: EUR
cpu: 1234.567891
memory: 76.543219
credits: {node_failure: all, launch_failure: all}
"""
JOB_SECONDS = (0.0, 0.4)     # how long a job runs, uniformly
PAUSE_SECONDS = (0.02, 0.35)  # pause between two kills
SETTLE_SECONDS = 180  # longest time for all jobs to end once the killing stops


class Load(threading.Thread):
    """Submits one job after the other and keeps the ids that were acknowledged."""

    def __init__(self, cluster, rng, out_dir):
        super().__init__(daemon=True)
        self.cluster, self.rng, self.out = cluster, rng, out_dir
        self.jobs = {}       # id -> expected exit code
        self.refused = 0
        self.stop = threading.Event()

    def run(self):
        while not self.stop.is_set():
            code = self.rng.choice([0, 0, 1, 3, 42])
            pause = self.rng.uniform(*JOB_SECONDS)
            script = (f"#!/bin/bash\necho start $$ >> {self.out}/$SLURM_JOB_ID\n"
                      f"sleep {pause:.3f}\nexit {code}\n")
            done = self.cluster.as_user(
                ["gbatch", "--parsable", "--no-requeue", "--mem=20M", "--time=5:00", "-o",
                 "/dev/null", "-D", self.out], input=script, timeout=120)
            if done.returncode == 0 and done.stdout.strip().isdigit():
                self.jobs[int(done.stdout)] = code
            else:
                self.refused += 1
                self.last_refusal = (done.stdout + done.stderr).strip()
                time.sleep(0.05)


def job_of_shim(pid):
    """The job of a shim, from its command line: gantry-shim job STATE_DIR JOB.ATTEMPT. It is None
    for job 0, the self-test of a starting node daemon: if that were killed again and again, the
    daemon would give up."""
    argv = read(f"/proc/{pid}/cmdline").split(b"\0")[:-1]
    match = re.fullmatch(rb"([1-9]\d*)\.(\d+)", argv[-1]) if argv else None
    return int(match.group(1)) if match else None


def check(load, rows, shim_killed, out_dir):
    errors = []
    for job, code in sorted(load.jobs.items()):
        entry = rows.get(job)
        if entry is None:
            errors.append(f"job {job} was acknowledged and is lost")
            continue
        row = entry["row"]
        starts = read(f"{out_dir}/{job}").count(b"start")
        if starts > 1:
            errors.append(f"job {job} ran {starts} times")
        if row["phase"] != "ended":
            errors.append(f"job {job} has not ended: {row['phase']}")
            continue
        exit_code, outcome = row["exit"]["code"], row["outcome"]
        if outcome == "node_fail":
            if job not in shim_killed:
                errors.append(f"job {job} is node_fail, and nobody killed its shim: {entry['cause']}")
            elif "shim" not in entry["cause"]:
                errors.append(f"job {job}: its cause does not name the shim: {entry['cause']!r}")
            continue
        if outcome != ("completed" if code == 0 else "failed") or exit_code != code:
            errors.append(f"job {job} should have exit {code}: {outcome} {exit_code}, {entry['cause']}")
        if starts != 1:
            errors.append(f"job {job} ended as {outcome} and wrote {starts} start lines")
    return errors


def apply_prices(cluster):
    path = f"{cluster.top}/prices.yaml"
    with open(path, "w", encoding="ascii") as file:
        file.write(PRICES)
    cluster.root(["gtenant", "price", "apply", "-y", "-f", path], check=True)


def check_bill(cluster, rows):
    """Checks that the ledger over all time equals the costs of the jobs, and that no job was
    free."""
    done = cluster.root(["greport", "2020-01", "2199-12", "--json"], check=True)
    bill = json.loads(done.stdout)["rows"]
    jobs = [entry["row"] for entry in rows.values()]
    errors = []
    for what in ("cost", "credit"):
        ledger = sum(row.get(what) or 0 for row in bill)
        owed = sum(row.get(what) or 0 for row in jobs)
        print(f"{what}: {ledger / 1e6:.6f} in the ledger", flush=True)
        if ledger != owed:
            errors.append(f"{what}: the ledger has {ledger} millionths, the jobs come to {owed}")
    free = [row["job"] for row in jobs if row.get("started") and not row.get("cost")]
    if free:
        errors.append(f"jobs {free[:5]} ran and cost nothing")
    if sum(row.get("runs", 0) for row in bill) < len([r for r in jobs if r.get("started")]):
        errors.append("the ledger counts fewer runs than there were jobs that ran")
    return errors


def options(parser):
    long = os.environ.get("GANTRY_LONG") == "1"
    parser.add_argument("--kills", type=int, default=200 if long else 60)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--nodes", type=int, default=3)
    parser.add_argument("--runtime", default="crun")


def kill_one(cluster, kind, rng, shim_killed):
    """Kills one process of the kind; false if there was none."""
    if kind == "template":  # a killed template must have no effect
        templates = cluster.templates()
        return bool(templates) and kill_process(rng.choice(templates), lambda pid: True) is not None
    if kind != "gantry-shim":
        cluster.kill_and_restart(rng.choice(cluster.of_program(kind)))
        return True
    # A process that a shim has forked and that has not yet become the OCI runtime looks like a
    # shim.
    shims = cluster.shims()
    shims = [pid for pid in shims if parent(pid) not in shims]
    if not shims:
        return False
    job = kill_process(rng.choice(shims), job_of_shim)
    if job is None:
        return False
    shim_killed.add(job)
    return True


def kill_process(pid, what):
    """Sends SIGKILL unless what(pid) is None; returns what(pid), or None if the process has
    ended."""
    try:
        pidfd = os.pidfd_open(pid)
    except ProcessLookupError:
        return None
    try:
        found = what(pid)
        # None means that the process ended and its number may belong to another one
        if found is not None:
            signal.pidfd_send_signal(pidfd, signal.SIGKILL)
        return found
    except ProcessLookupError:
        return None
    finally:
        os.close(pidfd)


def kill_and_check(cluster, args, rng):
    apply_prices(cluster)
    load = Load(cluster, random.Random(args.seed + 1), cluster.out)
    load.start()
    kills = {"gantry-ctld": 0, "gantry-noded": 0, "gantry-shim": 0, "template": 0}
    shim_killed = set()
    while sum(kills.values()) < args.kills:
        time.sleep(rng.uniform(*PAUSE_SECONDS))
        kind = rng.choice(sorted(kills))
        if not kill_one(cluster, kind, rng, shim_killed):
            continue
        kills[kind] += 1
        if sum(kills.values()) % 20 == 0:
            print(f"  {sum(kills.values())} kills, {len(load.jobs)} jobs acknowledged", flush=True)
    load.stop.set()
    load.join(timeout=130)
    print(f"killed {kills}; {len(load.jobs)} jobs acknowledged, {load.refused} submits refused",
          flush=True)
    # The last kill may have hit the controller.
    wait_for("the controller", lambda: cluster.root(["gctl", "ping"]).returncode == 0)
    rows = {}

    def settled():
        rows.update(cluster.accounts())
        return all(j in rows and rows[j]["row"]["phase"] == "ended" for j in load.jobs)
    with contextlib.suppress(AssertionError):  # check() names the jobs that have not ended
        wait_for("the end of all jobs", settled, SETTLE_SECONDS)
    errors = check(load, rows, shim_killed, cluster.out) + check_bill(cluster, rows)
    if len(load.jobs) < args.kills / 2:
        errors.append(f"only {len(load.jobs)} jobs were acknowledged: too little load")
    return errors


def main():
    args = arguments(__doc__, options)
    if why := cannot_run():
        print(f"skipped: {why}")
        return SKIPPED
    cluster = Cluster(args.bin_dir, "kill", nodes=args.nodes, runtime=args.runtime)
    print(f"seed {args.seed}, {args.kills} kills, state in {cluster.top}", flush=True)
    errors = ["it did not get to its end"]
    try:
        cluster.start()
        errors = kill_and_check(cluster, args, random.Random(args.seed))
    finally:
        errors += cluster.stop()
        cluster.clean(args.keep or bool(errors))
    for error in errors[:40]:
        print("FAIL:", error)
    print("FAILED" if errors else "all jobs accounted for, nothing left behind")
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main())
