#!/usr/bin/env python3
"""Features of jobs, with real daemons and containers: arrays, dependencies, hold, requeue, limits,
signals, memory, output, and who may see and do what.

usage: jobs_test.py BIN_DIR [-k CASE] [--keep]
"""
import json
import os
import re
import sys

import cluster
from cluster import contains, equal, text, wait_for


def case_exit_codes_of_wait(c):
    for wrap, wanted in (("exit 0", 0), ("exit 3", 3), ("kill -TERM $$", 143)):
        done = c.as_user(["gbatch", "--wait", "--mem=40M", "-o", "/dev/null", "--wrap", wrap])
        equal(done.returncode, wanted, f"gbatch --wait of {wrap!r}: {done.stderr}")
    held = c.submit("-H", "--wrap=true")
    done = c.popen(["gbatch", "--wait", "--mem=40M", "-d", f"afterok:{held}", "--wrap=true"])
    c.as_user(["gcancel", held])
    equal(done.wait(timeout=30), 1, "exit status for a job that never ran")


def case_dependencies(c):
    held = c.submit("-H", "--wrap=exit 1")
    after = {kind: c.submit("-d", f"{kind}:{held}", "--wrap=true")
             for kind in ("after", "afterok", "afternotok", "afterany")}
    contains(c.queue_line(after["afterany"]), "Dependency")
    equal(c.as_user(["gctl", "release", held]).returncode, 0)
    c.ended(held, "failed", 1)
    for kind in ("after", "afternotok", "afterany"):
        c.ended(after[kind], "completed")
    entry = c.ended(after["afterok"], "cancelled")
    assert entry["row"]["started"] is None, "a job with a broken dependency started"
    one = c.submit("-J", "alone", "-d", "singleton", script="sleep 0.5\n")
    two = c.submit("-J", "alone", "-d", "singleton", "--wrap=true")
    first, second = c.ended(one, "completed"), c.ended(two, "completed")
    assert second["row"]["started"] >= first["row"]["ended"], "two of one name at a time"


def tasks_of(c, array):
    return [e for e in c.accounts().values() if e["row"]["array_job"] == array]


def case_array(c):
    """Six tasks run two at a time; one of them fails, and aftercorr follows task by task."""
    array = c.submit("-a", "0-5%2", "-o", "a_%A_%a.out", script="""
echo start $SLURM_ARRAY_TASK_ID $SLURM_ARRAY_JOB_ID
sleep 0.3
[ $SLURM_ARRAY_TASK_ID != 4 ]
""", defaults=("--mem=40M",))
    corr = c.submit("-a", "0-5", "-d", f"aftercorr:{array}", "--wrap=true")
    most = 0
    def over():
        nonlocal most
        now = c.root(["gqueue", "-h", "-r", "-t", "R", "-j", str(array)]).stdout
        most = max(most, len(now.splitlines()))
        rows = tasks_of(c, array)
        return len(rows) == 6 and all(r["row"]["phase"] == "ended" for r in rows)
    wait_for("the array's end", over)
    assert most <= 2, f"{most} tasks at a time"
    for i in range(6):
        contains(text(f"{c.out}/a_{array}_{i}.out"), f"start {i} {array}")
    outcomes = {r["row"]["array_task"]: r["row"]["outcome"] for r in tasks_of(c, array)}
    equal(outcomes, {i: "failed" if i == 4 else "completed" for i in range(6)})
    wait_for("the tasks after them", lambda: sorted(
        r["row"]["array_task"] for r in tasks_of(c, corr)
        if r["row"]["outcome"] == "completed") == [0, 1, 2, 3, 5])
    ran = [r["row"]["array_task"] for r in tasks_of(c, corr) if r["row"]["started"]]
    assert 4 not in ran, "aftercorr of a task that failed"


def case_cancel_part_of_an_array(c):
    array = c.submit("-H", "-a", "0-9", "--wrap=true")
    equal(c.as_user(["gcancel", f"{array}_[3-9]"]).returncode, 0)
    c.as_user(["gctl", "release", array])
    wait_for("three tasks", lambda: sorted(
        r["row"]["array_task"] for r in tasks_of(c, array)
        if r["row"]["outcome"] == "completed") == [0, 1, 2])
    equal(c.root(["gqueue", "-h", "-j", str(array)]).stdout.strip(), "", "still queued")


def case_hold_and_release(c):
    job = c.submit("-H", "--wrap=true")
    contains(c.queue_line(job), "JobHeldUser")
    c.as_user(["gctl", "release", job])
    c.ended(job, "completed")
    job = c.submit("-H", "--wrap=true")
    equal(c.root(["gctl", "hold", str(job)]).returncode, 0)
    contains(c.queue_line(job), "JobHeldAdmin")
    assert c.as_user(["gctl", "release", job]).returncode != 0, "released what an admin holds"
    c.root(["gctl", "release", str(job)], check=True)
    c.ended(job, "completed")


def case_begin_and_deadline(c):
    job = c.submit("-b", "now+1hour", "--wrap=true")
    contains(c.queue_line(job), "BeginTime")
    c.as_user(["gcancel", job])
    c.ended(job, "cancelled")


def case_requeue_from_inside(c):
    """The job requeues itself once; its second run knows that it is a restart."""
    job = c.submit(script="""
echo run ${SLURM_RESTART_COUNT:-0} >> runs
if [ ${SLURM_RESTART_COUNT:-0} = 0 ]; then gctl requeue $SLURM_JOB_ID; sleep 60; fi
""")
    entry = c.ended(job, "completed")
    equal(entry["row"]["restarts"], 1)
    equal(text(f"{c.out}/runs").split("\n")[:2], ["run 0", "run 1"])


def case_time_limit_and_signal(c):
    job = c.submit("-t", "0:03", "--signal=B:USR1@2", script="""
trap 'echo warned' USR1
echo ready
while :; do sleep 0.1; done
""")
    entry = c.ended(job, "timeout")
    contains(c.output(job), "warned")
    contains(c.output(job), "TIME LIMIT")
    seconds = (entry["row"]["ended"] - entry["row"]["started"]) / 1e6
    assert 2.9 <= seconds < 20, f"it ran {seconds} s"


def case_cancel(c):
    """SIGTERM is sent first; a job that ignores it is killed after kill_wait."""
    job = c.submit(script="trap 'echo asked; exit 0' TERM\necho ready\nwhile :; do sleep 0.1; done\n")
    c.said(job, "ready")
    c.as_user(["gcancel", job])
    c.ended(job, "cancelled")
    contains(c.output(job), "asked")
    stubborn = c.submit(script="trap '' TERM\necho ready\nwhile :; do sleep 0.1; done\n")
    c.said(stubborn, "ready")
    c.as_user(["gcancel", stubborn])
    c.ended(stubborn, "cancelled", patience=30)
    equal(c.as_user(["gcancel", stubborn]).returncode, 0, "gcancel of an ended job")
    equal(c.as_user(["gcancel", "999999"]).returncode, 1, "gcancel of no job")
    equal(c.as_user(["gcancel", "x7"]).returncode, 1, "gcancel of a malformed id")


def case_signals_to_the_batch_shell(c):
    job = c.submit(script="trap 'echo usr2' USR2\necho ready\nwhile :; do sleep 0.1; done\n")
    c.said(job, "ready")
    equal(c.as_user(["gcancel", "-b", "-s", "USR2", job]).returncode, 0)
    c.said(job, "usr2")
    equal(c.phase(job), "running", "phase after a signal")
    c.as_user(["gcancel", "-n", "no-such-name"])
    equal(c.phase(job), "running", "phase after gcancel of another name")
    c.as_user(["gcancel", "--me", "-t", "RUNNING"])
    c.ended(job, "cancelled")


def case_out_of_memory(c):
    job = c.submit("--mem=64M", defaults=("-o", "%j.out"), script="""
exec python3 -c 'x = bytearray(256 << 20); print(len(x))'
""")
    entry = c.ended(job, "out_of_memory")
    peak = entry["usage"]["memory_peak_bytes"]
    assert 40 << 20 <= peak <= 66 << 20, f"peak of {peak} bytes"
    contains(c.root(["gacct", "-n", "-P", "-X", "-j", str(job), "-o", "State"]).stdout,
             "OUT_OF_MEMORY")


def case_logs(c):
    job = c.submit(script="echo one; sleep 1; echo two >&2; sleep 0.3; echo three\n")
    c.said(job, "one")
    following = c.popen(["gctl", "logs", "-f", job])
    out, _ = following.communicate(timeout=60)
    equal((following.returncode, out), (0, "one\ntwo\nthree\n"), "gctl logs -f")
    c.ended(job, "completed")
    equal(c.as_user(["gctl", "logs", job]).stdout, "one\ntwo\nthree\n", "gctl logs")
    other = c.as_user(["gctl", "logs", job], user=c.users[1])
    assert other.returncode != 0 and "one" not in other.stdout, "another user's output"


def case_output_files(c):
    os.makedirs(f"{c.out}/deep", exist_ok=True)
    os.chmod(f"{c.out}/deep", 0o777)
    job = c.submit("-J", "named", "-o", "deep/%x-%j-%u-%N.out", "-e", "deep/%j.err",
                   script="echo out; echo err >&2\n", defaults=("--mem=40M",))
    node = c.ended(job, "completed")["row"]["node_list"]
    path = f"{c.out}/deep/named-{job}-{c.user}-{node}.out"
    equal((text(path), text(f"{c.out}/deep/{job}.err")), ("out\n", "err\n"))
    import pwd
    equal(os.stat(path).st_uid, pwd.getpwnam(c.user).pw_uid, "owner of the output")
    for mode, wanted in (("append", "out\nmore\n"), ("truncate", "more\n")):
        again = c.submit("-o", path, "--open-mode", mode, "--wrap=echo more",
                         defaults=("--mem=40M",))
        c.ended(again, "completed")
        equal(text(path), wanted, f"--open-mode={mode}")


def case_what_its_owner_has_to_mend_fails_at_once(c):
    """A job is not requeued for a path that would be wrong on every node; the reason names the
    path."""
    missing = f"{c.out}/no/such/directory"
    closed = "/etc/gantry-test-output"
    for options, cause in (
            (("-o", closed), f"output file {closed}: Permission denied"),
            (("-o", f"{missing}/out"), f"the folder {missing} does not exist"),
            (("-i", missing), f"input file {missing}: No such file or directory"),
            (("-D", missing, "-o", "/dev/null"),
             f"working directory {missing} does not exist"),
            (("--container-image", f"oci:{missing}:t"), f"image {missing}: No such file"),
            (("--container-mounts", f"{missing}:/mnt"), f"{missing}: No such file"),
            (("--container-image", "/root"), "image /root: ")):
        job = c.submit(*options, "--wrap=true", defaults=("--mem=40M",))
        entry = c.ended(job, "failed")
        contains(entry["cause"], cause)
        equal((entry["row"]["restarts"], entry["row"]["started"]), (0, None), f"{options}")
        contains(c.as_user(["gctl", "why", job]).stdout, "(FAILED): node")
        contains(c.as_user(["gctl", "why", job]).stdout, cause)
        contains(c.as_user(["gacct", "-n", "-j", job, "-o", "State,Cause%200"]).stdout, cause)
        contains(c.as_user(["gqueue", "-h", "-t", "all", "-j", job, "-o", "%T %r"]).stdout,
                 "FAILED JobLaunchFailure")


def case_only_own_jobs(c):
    mine = c.submit("-H", "--wrap=true")
    other = c.users[1]
    rows = json.loads(c.as_user(["gqueue", "--json", "-t", "all"], user=other).stdout)["rows"]
    equal([r["job"] for r in rows if r["user"] == c.user], [], "jobs seen by another user")
    equal(c.as_user(["gacct", "-n", "-a", "-j", mine], user=other).stdout.strip(), "")
    done = c.as_user(["gcancel", mine], user=other)
    equal((done.returncode, done.stderr), (
        1, f"gcancel: error: Kill job error on job id {mine}: Access/permission denied\n"))
    equal(c.as_user(["gcancel", "--me", mine], user=other).returncode, 1, "gcancel --me")
    for command in (["gctl", "release", mine], ["gctl", "requeue", mine],
                    ["gctl", "update", "job", mine, "nice=5"], ["gctl", "show", "job", mine]):
        done = c.as_user(command, user=other)
        assert done.returncode != 0, f"{command} by another user: {done.stdout}{done.stderr}"
    for command in (["gctl", "drain", "node1", "--reason", "x"], ["gctl", "update", "partition",
                    "batch", "state=down"]):
        assert c.as_user(command).returncode != 0, f"{command} by an ordinary user"
    contains(c.queue_line(mine), "PENDING")
    c.as_user(["gcancel", mine])
    c.ended(mine, "cancelled")


def case_root_is_refused(c):
    done = c.root(["gbatch", "--mem=40M", "-o", "/dev/null", "--wrap=true"], cwd=c.out)
    assert done.returncode == 1 and "root" in done.stderr, f"{done.returncode} {done.stderr}"
    job = c.submit("--wrap=id -u; grep CapEff /proc/self/status; grep NoNewPrivs /proc/self/status")
    c.ended(job, "completed")
    uid, effective, no_new = c.output(job).splitlines()
    assert int(uid) > 0 and int(effective.split()[1], 16) == 0 and no_new.split()[1] == "1"


def case_named_node_that_was_busy(c):
    """A job that names a node waits for the jobs there and then starts; so does the next one."""
    first = [c.submit("-w", "node1", script="echo up; sleep 1.5\n") for _ in range(2)]
    for job in first:
        c.running(job)
    second = [c.submit("-w", "node1", "-t", "1", "--wrap=true") for _ in range(2)]
    for job in first + second:
        c.ended(job, "completed", patience=20)


def case_confined(c):
    """A job gets the one core that it asked for, sees no other job's processes, and has its own
    /tmp."""
    job = c.submit("-c", "1", script="""
echo cores $(nproc) processes $(ls -d /proc/[0-9]* | wc -l) tmp $(ls /tmp | wc -l)
touch /tmp/mine; ls /root 2>&1 | head -1
""")
    c.ended(job, "completed")
    found = re.search(r"cores (\d+) processes (\d+) tmp (\d+)", c.output(job))
    cores, count, tmp = (int(g) for g in found.groups())
    assert cores == 1 and count < 12 and tmp == 0, c.output(job)
    assert not os.path.exists("/tmp/mine"), "the job wrote to the node's /tmp"


def case_order_by_priority(c):
    """Two held jobs are released together: the one with the higher priority starts first."""
    c.root(["gctl", "update", "partition", "batch", "state=down"], check=True)
    low = c.submit("--nice=200", "-w", "node2", "--exclusive", "--wrap=sleep 0.2")
    high = c.submit("--nice=0", "-w", "node2", "--exclusive", "--wrap=sleep 0.2")
    c.root(["gctl", "update", "partition", "batch", "state=up"], check=True)
    first, second = c.ended(high, "completed"), c.ended(low, "completed")
    assert first["row"]["started"] <= second["row"]["started"], "the lower priority came first"


if __name__ == "__main__":
    sys.exit(cluster.main(__doc__, globals(), "jobs", nodes=2, users=2))
