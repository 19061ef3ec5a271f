#!/usr/bin/env python3
"""The controller's store was replaced by an older copy, or is missing, while newer jobs run on the
nodes: the controller notices it, ends none of them, and goes on when it is told to. Also a store
that is damaged.

usage: old_store_test.py BIN_DIR [-k CASE] [--keep]
"""
import os
import shutil
import signal
import sys

import cluster
from cluster import alive, contains, equal, wait_for

DAMAGED = 65  # exit status of gantry-ctld for a damaged store


def stop_controller(c, how):
    """Stops the controller with the signal `how`; returns its arguments for start_controller()."""
    pid = c.daemon("ctld")
    if how == signal.SIGKILL:
        return c.kill(pid)
    argv = c.daemons.pop(pid)
    os.kill(pid, how)
    wait_for("the controller's end", lambda: not alive(pid))
    return argv


def start_controller(c, argv):
    child = c.spawn(argv)
    wait_for("the controller", lambda: child.poll() is not None or c.root(["gctl", "ping"]).returncode == 0)
    return child


def refuses(c, argv, *needles):
    """A controller that is started ends with status DAMAGED, sooner or later, and says why."""
    log = f"{c.top}/daemons.log"
    before = os.path.getsize(log) if os.path.exists(log) else 0
    child = c.spawn(argv)
    wait_for("the controller to give up", lambda: child.poll() is not None)
    del c.daemons[child.pid]
    said = cluster.text(log)[before:]
    equal(child.returncode, DAMAGED, f"exit status; it said {said[-400:]!r}")
    for needle in needles:
        contains(said, needle, "what it said")


def node_line(c, node):
    return c.root(["ginfo", "-hN", "-n", node, "-o", "%T %E"]).stdout.strip()


def all_nodes_answer(c):
    """Waits until both nodes have registered with the controller that runs now."""
    for node in ("node1", "node2"):
        c.ended(c.submit("-w", node, "--wrap=true"), "completed")


def case_an_older_store_is_noticed_and_newer_jobs_run_on(c):
    state, copy = f"{c.state}/ctld", f"{c.top}/copy"
    waits = c.submit("--begin=now+1hour", "--wrap=true")
    argv = stop_controller(c, signal.SIGTERM)
    shutil.copytree(state, copy)  # a backup at this moment
    start_controller(c, argv)
    # Only a node that has heard of this controller start can prove that it knows more than the
    # copy.
    all_nodes_answer(c)
    go = f"{c.out}/go"
    newer = c.submit(script=f"while [ ! -e {go} ]; do sleep 0.1; done\necho done\n")
    c.running(newer)
    shim, = c.shims(job=newer)
    node = c.queue_line(newer, "%N")
    argv = stop_controller(c, signal.SIGKILL)
    shutil.copytree(state, f"{c.top}/true")

    # Only data.mdb is replaced by the copy: the mark beside it shows that the store is old.
    shutil.copy(f"{copy}/data.mdb", f"{state}/data.mdb")
    refuses(c, argv, "is older than what is known of it", "--accept-old-store")
    # data.mdb is missing.
    os.remove(f"{state}/data.mdb")
    refuses(c, argv, "is older than what is known of it")
    # The whole directory is replaced by the copy: the nodes show that the store is old.
    shutil.rmtree(state)
    shutil.copytree(copy, state)
    refuses(c, argv, "is older than what is known of it", "node1: it has heard of controller start",
            "node2: it has heard of controller start")
    # the second time the controller knows it at once
    refuses(c, argv, "is older than what is known of it")
    assert alive(shim), "the newer job was ended"

    done = c.root(["gantry-ctld", "--config", f"{c.state}/gantry.yaml", "--accept-old-store"])
    equal(done.returncode, 0, done.stderr)
    child = start_controller(c, argv)
    wait_for("the nodes", lambda: all(word in node_line(c, node) for word in ("newer", f"{newer}.1")))
    assert alive(shim), "the newer job was ended"
    contains(c.queue_line(waits), "JobHeldAdmin", "the job that waited when the copy was made")
    fresh = c.submit("--wrap=true")
    assert fresh > newer + 10_000, f"job {fresh} after job {newer}"
    c.ended(fresh, "completed")  # it runs on the other node
    # After a restart the newer attempts are still known.
    start_controller(c, stop_controller(c, signal.SIGKILL))
    wait_for("the node again", lambda: "newer" in node_line(c, node))
    assert alive(shim), "the newer job was ended"
    with open(go, "w", encoding="ascii"):
        pass
    wait_for("the newer job's end", lambda: not alive(shim))
    wait_for("the node to be open again", lambda: "newer" not in node_line(c, node))
    contains(c.output(newer), "done", "what the newer job wrote")
    assert child.returncode in (None, -signal.SIGKILL)


def case_a_start_that_the_copy_has_unconfirmed_is_not_repeated(c):
    state, copy, ran = f"{c.state}/ctld", f"{c.top}/starting", f"{c.out}/ran"
    noded = c.of_program("gantry-noded")
    all_nodes_answer(c)
    try:
        for pid in noded:
            os.kill(pid, signal.SIGSTOP)  # the node daemons now confirm nothing
        jobs = [c.submit("--no-requeue", "-w", node, script=f"echo again >> {ran}.{node}\n")
                for node in ("node1", "node2")]
        for job in jobs:
            wait_for("the job to be ordered", lambda: c.queue_line(job, "%T") == "CONFIGURING")
        argv = stop_controller(c, signal.SIGTERM)
        shutil.copytree(state, copy)
    finally:
        for pid in noded:
            os.kill(pid, signal.SIGCONT)
    start_controller(c, argv)
    for job in jobs:  # both nodes have then heard of this controller start
        c.ended(job, "completed")
    argv = stop_controller(c, signal.SIGKILL)
    shutil.rmtree(state)
    shutil.copytree(copy, state)
    refuses(c, argv, "is older than what is known of it")
    done = c.root(["gantry-ctld", "--config", f"{c.state}/gantry.yaml", "--accept-old-store"])
    equal(done.returncode, 0, done.stderr)
    start_controller(c, argv)
    for job, node in zip(jobs, ("node1", "node2")):
        contains(c.ended(job, "node_fail")["cause"], "has lost every trace of the job", "the cause")
        equal(cluster.text(f"{ran}.{node}"), "again\n", "what the runs of the job wrote")


def case_a_damaged_store_is_said_and_left_as_it_is(c):
    data = f"{c.state}/ctld/data.mdb"
    check = ["gantry-ctld", "--config", f"{c.state}/gantry.yaml", "--check-store"]
    contains(c.root(check).stderr, "in use by another controller", "the check beside a controller")
    argv = stop_controller(c, signal.SIGTERM)
    done = c.root(check)
    equal(done.returncode, 0, done.stderr)
    contains(done.stdout, "sound", "the check")
    with open(data, "rb") as file:
        whole = file.read()
    at = whole.rindex(b"controller_started") if b"controller_started" in whole else len(whole) // 2
    for damaged in (whole[:at // 4096 * 4096 - 100], whole[:4096] + b"\0" * 4096 + whole[8192:]):
        with open(data, "wb") as file:
            file.write(damaged)
        equal(c.root(check).returncode, DAMAGED, "exit status of the check")
        refuses(c, argv, f"{data} is damaged", "docs/store.md")
        with open(data, "rb") as file:
            equal(file.read() == damaged, True, "the damaged file is as it was")
    with open(data, "wb") as file:
        file.write(whole)
    equal(start_controller(c, argv).poll(), None, "the controller with the whole store")


if __name__ == "__main__":
    sys.exit(cluster.main(__doc__, globals(), "old", nodes=2))
