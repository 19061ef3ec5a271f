#!/usr/bin/env python3
"""Reservations and maintenance windows, checkpoints, and the reasons for which a job waits, with a
real controller and real containers.

usage: reserve_test.py BIN_DIR [-k CASE] [--keep]
"""
import json
import os
import sys
import time

import cluster
from cluster import contains, equal, wait_for


def nodes_of(c):
    said = c.root(["gctl", "show", "node", "--json"]).stdout
    return sorted(node["name"] for node in json.loads(said)["nodes"])


def case_a_reservation_holds_its_nodes(c):
    member, other = c.users
    first = nodes_of(c)[0]
    denied = c.as_user(["gctl", "reserve", "mine", "-w", first, "-t", "10", "-u", member], user=member)
    equal(denied.returncode, 1, denied.stdout)
    contains(denied.stderr, "neither operator nor administrator")
    made = c.root(["gctl", "reserve", "ci", "-w", first, "-t", "30", "-u", member])
    equal(made.returncode, 0, made.stderr)
    contains(c.as_user(["gctl", "reservations"], user=member).stdout, "ci   active")
    # A user who may not use the reservation does not see it either.
    equal("ci " in c.as_user(["gctl", "reservations"], user=other).stdout, False)
    contains(c.root(["ginfo", "-N"]).stdout, "resv")
    refused = c.as_user(["gbatch", "--reservation=ci", "-t", "5", "--wrap=true"], user=other)
    equal(refused.returncode, 1, refused.stdout)
    contains(refused.stderr, 'there is no reservation "ci"')
    contains(c.as_user(["gbatch", "--reservation=ic", "-t", "5", "--wrap=true"], user=member).stderr,
             'there is no reservation "ic"')
    contains(c.as_user(["gbatch", "--reservation=ci", "-t", "90", "--wrap=true"], user=member).stderr,
             "needs a time limit of")
    outside = c.submit("-w", first, "-t", "5", "--wrap=true", user=other)
    wait_for("the words", lambda: "eservation ci has" in
             c.root(["gctl", "why", str(outside)]).stdout)
    contains(c.as_user(["gctl", "why", str(outside)], user=other).stdout, "a reservation of others")
    contains(c.as_user(["gqueue", "--why"], user=other).stdout, "a reservation of others")
    inside = c.submit("--reservation=ci", "-t", "5", "--wrap=hostname", user=member)
    c.ended(inside, "completed")
    equal(c.account(inside)["row"]["reservation"], "ci")
    equal(c.account(inside)["row"]["node_list"], first)
    c.kill_and_restart(c.daemon("ctld"))
    wait_for("the controller", lambda: c.root(["gctl", "ping"]).returncode == 0)
    since = time.monotonic()  # the new controller measures waiting times from here on
    contains(c.root(["gctl", "reservations", "-ho", "%n %N"]).stdout, f"ci {first}")
    # a wait of at least a second is counted
    wait_for("a wait that counts", lambda: time.monotonic() > since + 2)
    equal(c.root(["gctl", "unreserve", "ci"]).returncode, 0)
    c.ended(outside, "completed")
    waits = c.account(outside)["waits"]
    equal(sum(part["length"] for part in waits) > 0, True, f"the wait of {outside} by cause: {waits}")


def case_one_comes_again_and_one_ends_when_idle(c):
    member = c.users[0]
    first = nodes_of(c)[0]
    made = c.root(["gctl", "reserve", "lesson", "-w", first, "-S", "now+1hour", "-t", "60", "-u",
                   member, "--repeat", "daily"])
    equal(made.returncode, 0, made.stderr)
    contains(made.stdout, ", daily")
    # Keys may be shortened.
    made = c.root(["slurm/scontrol", "create", "res", "res=open", "start=now", "dur=30", "NodeCnt=1",
                   f"user={member}", "fl=REPLACE_DOWN,PURGE_COMP=0:12"])
    equal((made.returncode, made.stdout), (0, "Reservation created: open\n"), made.stderr)
    # A job that names both runs in the one that is on.
    job = c.submit("--reservation=lesson,open", "-t", "5", "--wrap=hostname", user=member)
    c.ended(job, "completed")
    equal(c.account(job)["row"]["reservation"], "open")
    c.kill_and_restart(c.daemon("ctld"))
    wait_for("the controller", lambda: c.root(["gctl", "ping"]).returncode == 0)
    contains(c.root(["gctl", "reservations", "-ho", "%n %R"]).stdout, "lesson daily")
    contains(c.root(["slurm/scontrol", "show", "reservation", "lesson"]).stdout,
             "Flags=DAILY,SPEC_NODES")
    wait_for("the end of the idle reservation", lambda: "open" not in
             c.root(["gctl", "reservations", "-ho", "%n"]).stdout)
    skipped = c.root(["slurm/scontrol", "update", "ReservationName=lesson", "Flags+=SKIP"])
    equal((skipped.returncode, skipped.stdout), (0, "Reservation updated.\n"), skipped.stderr)
    equal(c.root(["gctl", "unreserve", "lesson"]).returncode, 0)


def case_nothing_runs_into_maintenance(c):
    names = nodes_of(c)
    made = c.root(["gctl", "reserve", "firmware", "--maintenance", "-w", ",".join(names), "-S",
                   "now+1hour", "-t", "60", "--comment", "new firmware"])
    equal(made.returncode, 0, made.stderr)
    long = c.submit("-t", "120", "--wrap=true")
    wait_for("the words", lambda: "would run into maintenance window firmware" in
             c.as_user(["gctl", "why", str(long)]).stdout)
    # The planner knows that a shorter job would start at once.
    contains(c.as_user(["gctl", "why", str(long)]).stdout, "--time=0:15:00: at once")
    short = c.submit("-t", "10", "--wrap=true")
    c.ended(short, "completed")
    equal(c.root(["gctl", "update", "job", str(long), "time=20"]).returncode, 0)
    c.ended(long, "completed")
    equal(c.root(["gctl", "unreserve", "firmware"]).returncode, 0)


def case_maintenance_goes_round_in_batches_and_stops_when_something_fails(c):
    names = nodes_of(c)
    log = f"{c.top}/maintained"
    job = c.submit("-w", names[0], "-t", "5", "--requeue", "--wrap=sleep 60")
    c.running(job)
    done = c.root(["gctl", "maintenance", "start", ",".join(names), "--batch", "1", "--requeue",
                   "--run", f"echo $GANTRY_NODE $(ginfo -hn $GANTRY_NODE -o %T) >> {log}"])
    equal(done.returncode, 0, done.stdout + done.stderr)
    with open(log, encoding="utf-8") as f:
        lines = [line.split() for line in f]
    equal([line[0] for line in lines], names, "one after the other")
    equal({line[1] for line in lines}, {"drained"})
    equal(c.root(["ginfo", "-R", "-h"]).stdout.strip(), "", "all are in service")
    c.root(["gcancel", str(job)], check=True)
    c.ended(job)
    done = c.root(["gctl", "maintenance", "start", ",".join(names), "--batch", "1", "--reason", "disks",
                   "--check", f"test $GANTRY_NODE != {names[0]}"])
    equal(done.returncode, 1, done.stdout)
    contains(done.stdout, f"{names[0]}: failed: stopped")
    contains(c.root(["ginfo", "-R", "-h"]).stdout, "disks: failed")
    equal(c.root(["gctl", "resume", names[0]]).returncode, 0)
    equal(c.root(["gctl", "maintenance", "start", ",".join(names)]).returncode, 2, "nothing to do")


def case_checkpoints_by_file_and_by_command(c):
    job = c.submit("--checkpoint-file=ckpt-%j", script='echo "file $GANTRY_CHECKPOINT_FILE"\n'
                   "until [ -e go ]; do sleep 0.1; done\n"
                   'touch "$GANTRY_CHECKPOINT_FILE"\n'
                   "until [ -e end ]; do sleep 0.1; done\n")
    c.running(job)
    c.said(job, f"ckpt-{job}")

    def checkpoint():
        shown = json.loads(c.root(["gctl", "show", "job", "--json", str(job)]).stdout)
        return shown["jobs"][0].get("checkpoint")
    equal(checkpoint(), None, "a checkpoint before the file was there")
    here = c.out
    open(os.path.join(here, "go"), "w", encoding="utf-8").close()
    wait_for("the checkpoint", checkpoint)
    first = checkpoint()
    done = c.as_user(["gctl", "checkpointed", str(job)])
    equal(done.returncode, 0, done.stderr)
    equal(checkpoint() > first, True, "a newer one by command")
    contains(c.root(["gctl", "show", "job", str(job)]).stdout, "LastCheckpoint=")
    open(os.path.join(here, "end"), "w", encoding="utf-8").close()
    c.ended(job, "completed")
    # Inside a job the command means the job itself, over the job's own socket.
    own = c.submit("--wrap=gctl checkpointed && gctl show job $GANTRY_JOB_ID")
    c.ended(own, "completed")
    contains(c.output(own), "LastCheckpoint=")


if __name__ == "__main__":
    sys.exit(cluster.main(__doc__, globals(), name="reserve", nodes=2, users=2))
