#!/usr/bin/env python3
"""The audit log of a real cluster: what it has of users, administrators and refusals, what it must
not have, and how a change of it is found.

usage: audit_test.py BIN_DIR [-k CASE] [--keep]
"""
import glob
import json
import os
import stat
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../e2e"))

import cluster  # noqa: E402
from cluster import contains, equal, wait_for  # noqa: E402

SECRET = "hunter2-never-in-the-log"


def log_of(c):
    return f"{c.state}/ctld/audit"


def records(c, *options):
    """The records of a request that has just been answered may be a second away from the disk, but
    they are in the file at once."""
    done = c.root(["gctl", "audit", "show", "--dir", log_of(c), "--json", "-n", "1000", *options],
                  check=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


def case_who_did_what(c):
    one, two = c.users[:2]
    job = c.submit("-H", "-J", "mine", script=f"export TOKEN={SECRET}\ntrue\n", user=one)
    c.as_user(["gcancel", str(job)], user=two)
    c.root(["gctl", "update", str(job), "comment=looked at"])
    c.root(["gctl", "drain", "node1", "-r", "for the audit"])
    c.root(["gctl", "resume", "node1"])
    c.as_user(["gctl", "drain", "node1", "-r", "no"], user=one)
    c.root(["gctl", "show", "job", str(job), "--script"])
    c.as_user(["gcancel", str(job)], user=one)
    said = [(r["user"], r["message"], r["outcome"]) for r in records(c)]
    for wanted in ((one, "SubmitJob", "done"), ("root", "UpdateNodes", "done"),
                   (one, "UpdateNodes", "permission_denied"), (one, "CancelJobs", "done")):
        assert wanted in said, (wanted, said)
    refused = [r for r in records(c, "--refused", "-u", two)]
    equal([r["message"] for r in refused], ["CancelJobs"], "what the other user was refused")
    contains(refused[0]["about"], f"job={job}")
    submit = [r for r in records(c, "-r", "SubmitJob", "-u", one)][-1]
    contains(submit["about"], "name=mine")
    equal(submit["right"], "user")
    drain = [r for r in records(c, "-r", "UpdateNodes", "-u", "root")][0]
    equal(drain["right"], "admin")
    contains(drain["about"], "node")


def case_looks_at_others(c):
    """A look at another user's script is written, at one's own it is not."""
    one = c.users[0]
    job = c.submit("-H", script="true\n", user=one)
    before = len(records(c, "-r", "ShowJob"))
    c.as_user(["slurm/scontrol", "write", "batch_script", str(job), "-"], user=one)
    equal(len(records(c, "-r", "ShowJob")), before, "looks at one's own script")
    c.root(["slurm/scontrol", "write", "batch_script", str(job), "-"], check=True)
    looks = records(c, "-r", "ShowJob")
    equal(len(looks), before + 1, "looks at another's script")
    equal((looks[-1]["user"], looks[-1]["right"]), ("root", "admin"))
    c.root(["gcancel", str(job)])


def case_no_secret_and_no_reader(c):
    for path in glob.glob(f"{log_of(c)}/*"):
        with open(path, encoding="utf-8") as f:
            assert SECRET not in f.read(), path
        equal(stat.S_IMODE(os.stat(path).st_mode), 0o600, path)
    equal(stat.S_IMODE(os.stat(log_of(c)).st_mode), 0o700)
    done = c.as_user(["gctl", "audit", "show", "--dir", log_of(c)])
    equal(done.returncode != 0, True, done.stdout)
    contains(done.stderr, "cannot be read")


def case_killed_controller(c):
    """What was answered to an administrator is in the log after a kill, and the chain goes on."""
    c.root(["gctl", "drain", "node2", "-r", "before the kill"], check=True)
    c.kill_and_restart(c.of_program("gantry-ctld")[0])
    wait_for("the controller", lambda: c.root(["gctl", "ping"]).returncode == 0, 30)
    drains = records(c, "-r", "UpdateNodes", "-u", "root")
    contains(drains[-1]["about"], "node2")
    c.root(["gctl", "resume", "node2"], check=True)
    contains(c.root(["gctl", "audit", "verify", "--dir", log_of(c)], check=True).stdout,
             "the chain is whole")


def case_auditors_elsewhere(c):
    """Without the files: the controller's pages, checked where the command runs. Only for auditors and administrators."""
    auditor, other = c.users[:2]
    c.root(["gtenant", "apply", "-y", "-f", "-"], check=True, input=f"""\
apiVersion: gantry/v1
kind: Tenant
name: watched
quota: {{cpu: 1}}
roles: {{auditor: {{users: [{auditor}]}}}}
""")
    c.root(["gctl", "drain", "node1", "-r", "for the auditor"])
    c.root(["gctl", "resume", "node1"])
    local = [r["seq"] for r in records(c)]
    done = c.as_user(["gctl", "audit", "show", "--json", "-n", "1000"], user=auditor)
    equal(done.returncode, 0, done.stderr)
    seen = [json.loads(line) for line in done.stdout.splitlines()]
    equal([r["seq"] for r in seen][:len(local)], local, "records of the controller")
    few = c.as_user(["gctl", "audit", "show", "-r", "UpdateNodes", "-n", "2"], user=auditor)
    equal(len(few.stdout.splitlines()), 2, few.stdout + few.stderr)
    done = c.as_user(["gctl", "audit", "verify"], user=auditor)
    contains(done.stdout, "the controller: ")
    contains(done.stdout, "the chain is whole")
    head = done.stdout.splitlines()[1].split()[1]
    equal(c.as_user(["gctl", "audit", "verify", "--head", head], user=auditor).returncode, 0)
    contains(c.as_user(["gctl", "audit", "verify", "--head", "0" * 64], user=auditor).stderr, "no record has the hash")
    done = c.as_user(["gctl", "audit", "export", "--after", str(local[-2])], user=auditor)
    equal(json.loads(done.stdout.splitlines()[0])["seq"], local[-1], done.stderr)
    done = c.as_user(["gctl", "audit", "show"], user=other)
    equal(done.returncode != 0, True, done.stdout)
    contains(done.stderr, "neither auditor nor administrator")
    refused = [r for r in records(c) if r["message"] == "ReadAudit"]
    equal((refused[-1]["user"], refused[-1]["outcome"]), (other, "permission_denied"), "who was refused is written")


def case_tampering(c):
    copy = f"{c.out}/copy"
    subprocess.run(["cp", "-a", log_of(c), copy], check=True)
    verify = ["gctl", "audit", "verify", "--dir", copy]
    head = c.root(verify, check=True).stdout.split("head ")[1].strip()
    path = glob.glob(f"{copy}/*")[0]
    with open(path, encoding="utf-8") as f:
        lines = f.readlines()
    forged = json.loads(lines[-1])
    forged["seq"] += 1
    changes = {
        "a record that was changed": (lines[:2] + [lines[2].replace('"user":"', '"user":"x', 1)] + lines[3:], "line 3 was changed"),
        "a record that is gone": (lines[:2] + lines[3:], "line 3"),
        "two records changed round": (lines[:2] + [lines[3], lines[2]] + lines[4:], "line 3"),
        "a record that was made up": (lines + [json.dumps(forged, separators=(",", ":")) + "\n"], f"line {len(lines) + 1}"),
        "half a record": (lines[:-1] + [lines[-1][:40] + "\n"], f"line {len(lines)}"),
    }
    for what, (changed, said) in changes.items():
        with open(path, "w", encoding="utf-8") as f:
            f.writelines(changed)
        done = c.root(verify)
        equal(done.returncode != 0, True, f"{what}: {done.stdout}")
        contains(done.stderr, said, what)
    # Without the chain nobody would see it: the line reads as any other. `show` ends before it.
    with open(path, "w", encoding="utf-8") as f:
        f.writelines(changes["a record that was changed"][0])
    with open(path, encoding="utf-8") as f:
        read = [json.loads(line)["user"] for line in f]
    equal((len(read), read[2]), (len(lines), "x" + json.loads(lines[2])["user"]), "what is read without the chain")
    done = c.root(["gctl", "audit", "show", "--dir", copy, "--json", "-n", "1000"])
    equal(f'"user":"{read[2]}"' in done.stdout, False, "what is shown")
    with open(path, "w", encoding="utf-8") as f:
        f.writelines(lines[:-1])
    contains(c.root(verify, check=True).stdout, "the chain is whole")
    done = c.root(verify + ["--head", head])
    equal(done.returncode != 0, True, done.stdout)
    contains(done.stderr, "the log was cut off or made anew")


if __name__ == "__main__":
    sys.exit(cluster.main(__doc__, globals(), "audit", nodes=2, users=2))
