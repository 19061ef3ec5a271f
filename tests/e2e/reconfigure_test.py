#!/usr/bin/env python3
"""The configuration is read again while jobs run; tokens act for users.

usage: reconfigure_test.py BIN_DIR [-k CASE] [--keep]
"""
import os
import re
import signal
import socket
import subprocess
import sys
import time

import cluster
import job_network_test
from cluster import contains, equal, text, wait_for
from slurm_calls import MEM, in_state, ok, script, slurm


def yaml_of(c):
    return f"{c.state}/gantry.yaml"


def change(c, find, replace):
    """Rewrites the configuration and returns the old text."""
    before = text(yaml_of(c))
    after = re.sub(find, replace, before, count=1, flags=re.M)
    if after == before:
        raise AssertionError(f"{find!r} is not in {before!r}")
    put(c, after)
    return before


def put(c, content):
    with open(yaml_of(c), "w", encoding="utf-8") as f:
        f.write(content)


def most_time(c):
    return ok(c, "sinfo", "-h", "-p", "batch", "-o", "%l").split()[0]


def reconfigure(c, *command):
    return c.root(list(command) or ["slurm/scontrol", "reconfigure"])


def case_a_new_value_counts_and_jobs_go_on(c):
    go = f"{c.out}/go"
    job = ok(c, "sbatch", "--parsable", MEM, "-N2", "-o", "%j.out", script(
        c, "running.sh", f"srun --mem=0 bash -c 'while [ ! -e {go} ]; do sleep 0.1; done; "
        "echo done $SLURM_PROCID'\n")).strip()
    in_state(c, job, "RUNNING")
    waiting = ok(c, "sbatch", "--parsable", "--hold", "--wrap=true").strip()
    wait_for("the step", lambda: ok(c, "squeue", "-h", "-s", "-j", job).strip())
    before = change(c, r"default: true", "default: true, max_time: 2h")
    try:
        equal(most_time(c), "infinite")
        done = reconfigure(c)
        equal((done.returncode, done.stdout, done.stderr), (0, "", ""))
        equal(most_time(c), "2:00:00")
        wait_for("the nodes", lambda: ok(c, "sinfo", "-h", "-r", "-o", "%D").strip() == "2")
        in_state(c, job, "RUNNING")
        in_state(c, waiting, "PENDING")
        contains(slurm(c, "sbatch", "-t", "3:00:00", "--wrap=true").stderr, "Requested time limit")
        with open(go, "w", encoding="utf-8"):
            pass
        c.ended(int(job), "completed", code=0)
        equal(sorted(c.output(job).split("\n")[:2]), ["done 0", "done 1"])
        ok(c, "scancel", waiting)
    finally:
        put(c, before)
        reconfigure(c, "gctl", "reconfigure")
    equal(most_time(c), "infinite")


def case_nodes_are_never_seen_down(c):
    """While the daemons start anew, a listing shows the nodes as they were."""
    wait_for("the nodes", lambda: ok(c, "sinfo", "-h", "-o", "%t").strip() == "idle")
    for _ in range(3):
        equal(reconfigure(c).returncode, 0)
        end = time.monotonic() + 1.5
        while time.monotonic() < end:
            equal(ok(c, "sinfo", "-h", "-N", "-o", "%t").split(), ["idle", "idle"])
    # The nodes are back by themselves; on a loaded machine that may take longer than the loop above.
    wait_for("both nodes", lambda: "2 of 2 nodes up" in c.root(["gctl", "ping"]).stdout)


def case_partitions_of_commands_last(c):
    def shown(name):
        return ok(c, "sinfo", "-h", "-p", name, "-o", "%P %l %D %a").strip()

    made = c.root(["slurm/scontrol", "create", "PartitionName=night", "Nodes=ALL", "MaxTime=30"])
    equal((made.returncode, made.stdout, made.stderr), (0, "", ""))
    equal(shown("night"), "night 30:00 2 up")
    contains(slurm(c, "sbatch", "-p", "night", "-t", "60", "--wrap=true").stderr,
             "Requested time limit is invalid")
    job = ok(c, "sbatch", "--parsable", MEM, "-p", "night", "-t", "5", "--wrap=true").strip()
    c.ended(int(job), "completed", code=0)
    equal(c.root(["gctl", "partition", "update", "night", "max_time=2h"]).returncode, 0)
    before = change(c, r"default: true", "default: true, max_time: 2h")
    try:
        equal(reconfigure(c).returncode, 0)
        equal(shown("night"), "night 2:00:00 2 up")
    finally:
        put(c, before)
        reconfigure(c)
    held = ok(c, "sbatch", "--parsable", "--hold", "-p", "night", "-t", "5", "--wrap=true").strip()
    refused = c.root(["slurm/scontrol", "delete", "PartitionName=night"])
    equal(refused.returncode, 1)
    contains(refused.stderr, "delete_partition PartitionName=night: Partition is in use")
    ok(c, "scancel", held)
    equal(slurm(c, "scontrol", "delete", "PartitionName=night").returncode, 1, "no administrator")
    equal(c.root(["slurm/scontrol", "delete", "PartitionName=night"]).returncode, 0)
    contains(slurm(c, "scontrol", "show", "part", "night").stdout, "Partition night not found")


def case_an_ended_job_runs_again(c):
    job = ok(c, "sbatch", "--parsable", MEM, "-o", "%j.out", "--open-mode=append",
             "--wrap=echo run $SLURM_RESTART_COUNT").strip()
    c.ended(int(job), "completed", code=0)
    ok(c, "scontrol", "requeue", job)
    # As with Slurm it begins two minutes later, unless somebody says otherwise.
    contains(ok(c, "squeue", "-h", "-j", job, "-o", "%T %r"), "PENDING BeginTime")
    ok(c, "scontrol", "update", f"JobId={job}", "StartTime=now")
    wait_for("two runs", lambda: c.output(job) == "run\nrun 1\n")
    contains(ok(c, "scontrol", "show", "job", job), "Restarts=1")
    wait_for("two ends", lambda: ok(c, "sacct", "-n", "-X", "-D", "-j", job, "-o", "state").split()
             == ["COMPLETED", "COMPLETED"])


def case_an_unsound_file_changes_nothing(c):
    since = c.root(["gctl", "ping"]).stdout.split("; answered")[0]
    before = change(c, r"default: true", "default: true, max_tyme: 2h")
    try:
        refused = reconfigure(c)
        equal(refused.returncode, 1, refused.stdout)
        contains(refused.stderr, "slurm_reconfigure error")
        contains(refused.stderr, "gantry.yaml:")
        contains(refused.stderr, "max_tyme")
    finally:
        put(c, before)
    change(c, r"^cluster: \S+", "cluster: other")
    try:
        refused = reconfigure(c, "gctl", "reconfigure")
        equal(refused.returncode, 1, refused.stdout)
        contains(refused.stderr, "cluster has changed, which takes a restart of gantry-ctld")
    finally:
        put(c, before)
    equal(c.root(["gctl", "ping"]).stdout.split("; answered")[0], since, "no restart")


def case_what_it_cannot_start_with_is_taken_back(c):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        tokens = f"{c.top}/metrics.tokens"
        with open(os.open(tokens, os.O_WRONLY | os.O_CREAT, 0o600), "w", encoding="utf-8") as f:
            f.write("* secret-of-everything\n")
        port = taken.getsockname()[1]
        before = change(c, r"^controller:\n", "controller:\n  metrics_host: 127.0.0.1\n"
                        f"  metrics_port: {port}\n  metrics_tokens: {tokens}\n")
        try:
            refused = reconfigure(c)
            equal(refused.returncode, 1, refused.stdout)
            contains(refused.stderr, "goes on with the one it had")
            contains(refused.stderr, str(port))
        finally:
            put(c, before)
    ok(c, "squeue")
    equal(reconfigure(c).returncode, 0, "the next one is well again")


def case_only_administrators(c):
    refused = slurm(c, "scontrol", "reconfigure")
    equal(refused.returncode, 1, refused.stdout)
    contains(refused.stderr, "slurm_reconfigure error: Access/permission denied")


def case_a_signal_does_the_same_and_triggers_fire(c):
    fired = f"{c.top}/reconfigured"
    program = f"{c.top}/on-reconfig"
    with open(program, "w", encoding="utf-8") as f:
        f.write(f"#!/bin/sh\necho \"$1\" >> {fired}\n")
    os.chmod(program, 0o755)
    equal(c.root(["slurm/strigger", "--set", "--reconfig", "-p", program]).returncode, 0)
    contains(c.root(["slurm/strigger", "--get"]).stdout, "node            * reconfig")
    before = change(c, r"default: true", "default: true, max_time: 3h")
    try:
        os.kill(c.daemon("ctld"), signal.SIGHUP)
        # After the signal a command may find no controller for a moment, because it starts again.
        listing = ["slurm/sinfo", "-h", "-p", "batch", "-o", "%l"]
        wait_for("the new value", lambda: c.root(listing).stdout.strip() == "3:00:00")
        wait_for("the trigger", lambda: text(fired))
        equal(text(fired), "*\n")
    finally:
        put(c, before)
        reconfigure(c)
    equal(text(fired), "*\n", "it fires once")


def devices(c, *options):
    job = ok(c, "sbatch", "--parsable", MEM, "-o", "%j.out", *options,
             "--wrap=ls /sys/class/net").strip()
    c.ended(int(job), "completed")
    return c.output(job).split()


def case_the_network_of_jobs_that_do_not_say(c):
    equal(devices(c), ["lo"] if job_network_test.missing() else ["eth0", "lo"])
    before = change(c, "allow_host_network: true",
                    "allow_host_network: true, host_network_by_default: true")
    try:
        equal(reconfigure(c).returncode, 0)
        # Links of other clusters may come and go meanwhile.
        before_it = set(os.listdir("/sys/class/net"))
        found = set(devices(c))
        after_it = set(os.listdir("/sys/class/net"))
        assert before_it & after_it <= found <= before_it | after_it, (before_it, found, after_it)
        equal(devices(c, "--network=none"), ["lo"])
    finally:
        put(c, before)
        reconfigure(c)


def jwt(c, *words, user=None):
    done = slurm(c, "scontrol", "token", *words, user=user)
    equal(done.returncode, 0, done.stderr)
    equal(done.stdout.startswith("SLURM_JWT="), True, done.stdout)
    return done.stdout.strip().split("=", 1)[1]


def with_token(c, token, *command):
    return subprocess.run([f"{c.bin}/{command[0]}", *command[1:]], capture_output=True, text=True,
                          env=dict(c.env, GANTRY_TOKEN=token), timeout=60, check=False)


def case_tokens(c):
    member, other = c.users
    token = jwt(c, "lifespan=600")
    # A token acts for its user, whoever shows it.
    job = slurm(c, "sbatch", "--parsable", "--hold", "--wrap=true", user=other,
                env={"SLURM_JWT": token}).stdout.strip()
    equal(ok(c, "squeue", "-h", "-j", job, "-o", "%u").strip(), member)
    equal(slurm(c, "scancel", job, user=other).returncode, 1)
    equal(slurm(c, "scancel", job, user=other, env={"GANTRY_TOKEN": token}).returncode, 0)
    # The token is not passed on to jobs, which have their own credentials.
    job = slurm(c, "sbatch", "--parsable", MEM, "-o", "%j.out", "--wrap=env; scontrol token; true",
                env={"SLURM_JWT": token}).stdout.strip()
    c.ended(int(job), "completed")
    equal(token in c.output(job), False, "the token is in the job's environment")
    contains(c.output(job), "slurm_fetch_token")
    shown = slurm(c, "srun", MEM, "env", env={"SLURM_JWT": token, "GANTRY_TOKEN": token})
    contains(shown.stdout, "SLURM_PROCID=0")
    equal(token in shown.stdout, False, "the token is in the step's environment")
    # Only administrators can make a token for another user.
    refused = slurm(c, "scontrol", "token", f"username={member}", user=other)
    equal(refused.returncode, 1)
    contains(refused.stderr, "Access/permission denied")
    made = c.root(["gctl", "token", "-u", other, "-t", "10"])
    equal(made.returncode, 0, made.stderr)
    # A token that would last too long is not made; a changed or expired token is refused.
    refused = slurm(c, "scontrol", "token", "lifespan=99999999")
    equal(refused.returncode, 1)
    contains(refused.stderr, "controller.max_token_lifetime")
    head, body, mac = token.split(".")
    bad = slurm(c, "squeue", env={"SLURM_JWT": ".".join([head, body, mac[:-2] + "AA"])})
    equal(bad.returncode, 1, bad.stdout)
    contains(bad.stderr, "Protocol authentication error")
    short = jwt(c, "lifespan=1")
    wait_for("its end", lambda: slurm(c, "squeue", env={"SLURM_JWT": short}).returncode == 1, 10)
    # A token made with a token ends no later than it, and is for the same user only.
    fresh = jwt(c, "lifespan=60")
    refused = slurm(c, "scontrol", "token", "lifespan=600", env={"SLURM_JWT": fresh})
    equal(refused.returncode, 1, refused.stdout)
    contains(refused.stderr, "the token that was shown is valid for")
    made = slurm(c, "scontrol", "token", "lifespan=30", env={"SLURM_JWT": fresh})
    equal(made.returncode, 0, made.stderr)
    admin = c.root(["gctl", "token", "-t", "60"]).stdout.strip().split("=", 1)[-1]
    refused = with_token(c, admin, "gctl", "token", "-u", member, "-t", "10")
    equal(refused.returncode, 1, refused.stdout)
    contains(refused.stderr, "makes tokens for root only")
    refused = with_token(c, admin, "gctl", "key", "add", "root", "0" * 64)
    equal(refused.returncode, 1, refused.stdout)
    contains(refused.stderr, "a token makes nothing that holds when the token does no more")
    # A token is still valid after the controller was started again.
    reconfigure(c)
    equal(slurm(c, "squeue", env={"SLURM_JWT": token}).returncode, 0)


if __name__ == "__main__":
    sys.exit(cluster.main(__doc__, globals(), name="conf", nodes=2, users=2))
