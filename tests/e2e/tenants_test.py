#!/usr/bin/env python3
"""Tenants with a real controller: documents and manifests, onboarding, quota that limits and
refuses, roles, history, rollback, a killed controller, offboarding.

usage: tenants_test.py BIN_DIR [-k CASE] [--keep]
"""
import fcntl
import glob
import json
import os
import pty
import struct
import subprocess
import sys
import termios

import cluster
from cluster import contains, equal, wait_for

MANIFESTS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../tenancy/manifests")


def gtenant(c, *words, status=0, text=None):
    done = c.root(["gtenant", *words], input=text) if text is not None else c.root(
        ["gtenant", *words], stdin=-3)
    equal(done.returncode, status, f"gtenant {' '.join(words)}: {done.stdout}{done.stderr}")
    return done.stdout + done.stderr


def revision(c):
    history = json.loads(gtenant(c, "history", "--json"))
    return max([r["revision"] for r in history["revisions"]], default=0)


def remove(c, *kinds_and_names):
    for kind, name in kinds_and_names:
        gtenant(c, "delete", kind, name, "--yes")


def tenant(name, rest):
    return f"apiVersion: gantry/v1\nkind: Tenant\nname: {name}\n{rest}"


def case_documents_are_planned_applied_and_kept(c):
    text = tenant("docs", "cohort: all\nquota: {cpu: {nominal: 2, borrow: 2}}\n"
                  "roles: {user: {users: [nobody]}}\n") + \
        "---\napiVersion: gantry/v1\nkind: Cohort\nname: all\n"
    before = revision(c)
    contains(gtenant(c, "apply", "-n", "-f", "-", text=text), "2 to create")
    equal(revision(c), before, "revision after a dry run")
    contains(gtenant(c, "apply", "-y", "-m", "the first", "-f", "-", text=text), "Applied as revision")
    contains(gtenant(c, "apply", "-y", "-f", "-", text=text), "0 to create, 0 to change")
    equal(revision(c), before + 1, "revision after the same again")
    more = text.replace("nominal: 2", "nominal: 3")
    contains(gtenant(c, "diff", "-f", "-", text=more, status=3), "quota.cpu.nominal  2 -> 3")
    gtenant(c, "apply", "-y", "-f", "-", text=more)
    history = json.loads(gtenant(c, "history", "tenant", "docs", "--json"))["revisions"]
    equal([(r["author"], r["comment"]) for r in history], [("root", ""), ("root", "the first")])
    contains(gtenant(c, "rollback", str(before + 1), "--yes"), "3 -> 2")
    contains(gtenant(c, "get", "tenant", "docs"), "nominal: 2")
    c.kill_and_restart(c.daemon("ctld"))
    wait_for("the controller", lambda: c.root(["gctl", "ping"]).returncode == 0)
    contains(gtenant(c, "get", "tenant", "docs"), "nominal: 2")
    equal(revision(c), before + 3, "revision after a restart")
    remove(c, ("tenant", "docs"), ("cohort", "all"))


def case_a_mistake_applies_nothing(c):
    before = revision(c)
    text = tenant("good", "") + "---\n" + tenant("bad", "quota: {gpu: lots}\n")
    contains(gtenant(c, "apply", "-y", "-f", "-", text=text, status=1),
             "standard input:8:14: quota.gpu: \"lots\" is not a number of GPUs")
    contains(gtenant(c, "apply", "-y", "-f", "-", text=tenant("lone", "cohort: none\n"), status=1),
             "standard input:4:9: Tenant lone: cohort: there is no Cohort `none`")
    # The cluster's configuration has a queue of this name.
    contains(gtenant(c, "apply", "-y", "-f", "-", text=tenant("batch", ""), status=1),
             "the cluster's configuration has a partition of this name")
    equal(revision(c), before, "revision")


def case_manifests_of_kubernetes_and_kueue(c):
    for name in ("teams", "kueue", "exported"):
        before = revision(c)
        said = gtenant(c, "apply", "-y", "-f", f"{MANIFESTS}/{name}.yaml")
        contains(said, "note: ")
        contains(said, f"Applied as revision {before + 1}")
        contains(gtenant(c, "apply", "-y", "-f", f"{MANIFESTS}/{name}.yaml"),
                 "0 to create, 0 to change, 0 to remove")
    contains(gtenant(c, "quota", "fraud"), "gpu-a100")
    contains(gtenant(c, "list"), "fraud-detection")
    # Exported documents change nothing when they are applied again.
    folder = f"{c.top}/exported"
    gtenant(c, "export", "-d", folder)
    contains(gtenant(c, "apply", "-y", "--prune", "-f", folder), "0 to create, 0 to change, 0 to remove")
    with open(f"{folder}/empty.yaml", "w", encoding="utf-8") as f:
        f.write("# nothing\n")
    contains(gtenant(c, "apply", "-y", "--prune", "-f", f"{folder}/empty.yaml"), "0 unchanged")
    equal(json.loads(gtenant(c, "get", "tenants", "--json"))["documents"], [])


def case_onboarding_quota_and_offboarding(c):
    member, stranger = c.users
    gtenant(c, "create", "team", "--cpus", "1", "--user", member, "--cost-center", "cc-7", "--yes")
    refused = c.as_user(["gbatch", "-p", "team", "--wrap=true"], user=stranger)
    equal(refused.returncode, 1, refused.stderr)
    first = c.submit("-p", "team", "-c1", "--wrap=sleep 600", user=member)
    c.running(first)
    second = c.submit("-p", "team", "-c1", "--wrap=sleep 600", user=member)
    # A tenant without a cohort is in the common one of all such tenants, which lend it nothing
    # here.
    wait_for("the reason", lambda: "CohortQuota" in c.queue_line(second))
    never = c.as_user(["gbatch", "-p", "team", "-c2", "--mem=40M", "--wrap=true"], user=member)
    equal(never.returncode, 1, never.stdout)
    contains(never.stderr, "quota exceeded: the job asks for cpu=2; tenant team can never have more "
             "than cpu=1")
    quota = json.loads(gtenant(c, "quota", "team", "--json"))["rows"][0]
    equal((quota["queued"], quota["running"]), (1, 1))
    cell = quota["cells"][0]
    equal((cell["resource"], cell["used"], cell["nominal"], cell["available"]),
          ("cpu", 1000, 1000, 0))
    contains(c.as_user(["gprio"], user=member).stdout, str(second))
    contains(c.as_user(["gshare"], user=member).stdout, member)
    contains(c.as_user(["gtenant", "list"], user=member).stdout, "team")
    equal("team" in c.as_user(["gtenant", "list"], user=stranger).stdout, False, "a stranger's list")
    denied = c.as_user(["gtenant", "create", "mine", "--cpus", "1", "--yes"], user=member)
    equal(denied.returncode, 1, denied.stdout)
    # Less quota than is used: the plan says so, and no job is ended.
    with_less = gtenant(c, "get", "tenant", "team").replace("cpu: 1\n", "cpu: 0.5\n")
    contains(gtenant(c, "apply", "-n", "-f", "-", text=with_less), "! team holds 1 cpu and could hold 0.5")
    gtenant(c, "delete", "tenant", "team", "--yes", status=1)
    folder = f"{c.top}/archive"
    contains(gtenant(c, "offboard", "team", "--no-wait", "--yes", "--archive", folder),
             "run this again when its jobs have ended (1 job queued and 1 running)")
    closed = c.as_user(["gbatch", "-p", "team", "--wrap=true"], user=member)
    equal(closed.returncode, 1, "a submit to a queue that is closed")
    contains(closed.stderr, "its limit is 0")
    contains(gtenant(c, "offboard", "team", "--cancel", "--yes", "--archive", folder), "- Tenant team")
    equal("team" in gtenant(c, "list"), False, "team in the list")
    records = glob.glob(f"{folder}/team-*.jsonl")
    equal(len(records), 1, "archives")
    with open(records[0], encoding="utf-8") as f:
        jobs = {json.loads(line)["row"]["job"] for line in f}
    equal(jobs, {first, second}, "jobs in the archive")


def case_classes_of_jobs(c):
    """A job names its class; the tenant decides who may name which class; gprio shows the order."""
    member = c.users[0]
    text = tenant("ranked", f"quota: {{cpu: 1}}\nroles: {{user: {{users: [{member}]}}}}\n"
                  "allowed_classes: [normal, best-effort]\nclasses: {nightly: 5}\n")
    gtenant(c, "apply", "-y", "-f", "-", text=text)
    refused = c.as_user(["gbatch", "-p", "ranked", "--priority-class=production-critical",
                         "--wrap=true"], user=member)
    equal(refused.returncode, 1, refused.stdout)
    contains(refused.stderr, "production-critical")
    unknown = c.as_user(["gbatch", "-p", "ranked", "--tenant-class=hourly", "--wrap=true"],
                        user=member)
    equal(unknown.returncode, 1, unknown.stdout)
    first = c.submit("-p", "ranked", "--wrap=sleep 600", user=member)
    c.running(first)
    low = c.submit("-p", "ranked", "--priority-class=best-effort", "--wrap=true", user=member)
    usual = c.submit("-p", "ranked", "--wrap=true", user=member)
    nightly = c.submit("-p", "ranked", "--tenant-class=nightly", "--wrap=true", user=member)
    order = c.as_user(["gprio", "-ho", "%i"], user=member).stdout.split()
    equal(order, [str(nightly), str(usual), str(low)], "order of the jobs")
    c.as_user(["gcancel", str(first)], user=member)
    for job in (low, usual, nightly):
        c.ended(job, "completed", code=0)
    remove(c, ("tenant", "ranked"))


def case_a_person_at_a_terminal(c):
    """The bars of gtenant quota, and the question before a plan is applied."""
    gtenant(c, "create", "bars", "--cpus", "2", "--yes")

    def at_terminal(words, answer="", columns=120):
        ours, theirs = pty.openpty()
        # the bars have room from 105 columns on
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        os.write(ours, answer.encode())
        with subprocess.Popen([f"{c.bin}/gtenant", *words], env=dict(c.env, NO_COLOR="1"),
                              stdin=theirs, stdout=theirs, stderr=theirs) as process:
            os.close(theirs)
            said = b""
            try:
                while more := os.read(ours, 65536):
                    said += more
            except OSError:  # the other end of the terminal is closed
                pass
            status = process.wait(timeout=60)
        os.close(ours)
        return status, said.decode()

    contains(at_terminal(["quota", "bars"])[1], "[....................] 0%")
    narrow = at_terminal(["quota", "bars"], columns=80)[1]
    equal("[...." in narrow, False, narrow)
    status, said = at_terminal(["delete", "tenant", "bars"], "n\n")
    equal(status, 0, said)
    contains(said, "nothing was applied")
    contains(gtenant(c, "list"), "bars")
    contains(at_terminal(["delete", "tenant", "bars"], "y\n")[1], "Applied as revision")
    equal("bars" in gtenant(c, "list"), False, "bars in the list")


def sacctmgr(c, *words, status=0):
    done = c.root(["slurm/sacctmgr", *words], stdin=-3)
    equal(done.returncode, status, f"sacctmgr {' '.join(words)}: {done.stdout}{done.stderr}")
    return done.stdout + done.stderr


def case_sacctmgr_changes(c):
    """Accounts and users by sacctmgr; its file is written, and read into an empty cluster."""
    user = c.users[0]
    contains(sacctmgr(c, "-i", "add", "account", "physics", "description=all of it"),
             " Adding Account(s)\n  physics\n")
    sacctmgr(c, "-i", "add", "account", "optics", "parent=physics", "fairshare=3")
    contains(sacctmgr(c, "-i", "add", "account", "optics", "parent=physics", status=1),
             "Nothing new added.")
    contains(sacctmgr(c, "add", "user", user, "account=optics"), "Changes Discarded")
    contains(sacctmgr(c, "-nP", "list", "assoc", "format=account,user", f"user={user}"), "")
    sacctmgr(c, "-i", "add", "user", user, "account=optics", "fairshare=4")
    equal(sacctmgr(c, "-nP", "list", "assoc", "format=account,user,share", f"user={user}"),
          f"optics|{user}|4\n")
    # An account is no partition: the job runs in the default one, with its limits.
    refused = c.as_user(["slurm/sbatch", "-p", "physics", "--wrap=true"])
    contains(refused.stderr, "Invalid partition name specified")
    refused = c.as_user(["slurm/sbatch", "-A", "nosuch", "--wrap=true"])
    contains(refused.stderr, "Invalid account or account/partition combination specified")
    equal("physics" in c.as_user(["slurm/sinfo", "-ho", "%R"]).stdout, False, "an account in sinfo")
    job = c.submit("-A", "optics", "--wrap=true")
    c.ended(job, "completed")
    queue = c.as_user(["slurm/scontrol", "show", "partition"]).stdout.split()[0].split("=")[1]
    equal(c.as_user(["slurm/sacct", "-nXP", "-j", str(job), "-o", "partition,account"]).stdout,
          f"{queue}|optics\n")
    sacctmgr(c, "-i", "modify", "account", "where", "name=optics", "set", "fairshare=5")
    sacctmgr(c, "-i", "modify", "account", "where", "name=physics", "set", "GrpTRES=cpu=1",
             "MaxWall=1:00:00")
    equal(sacctmgr(c, "-nP", "list", "account", "physics", "format=account,GrpTRES,MaxWall"),
          "physics|cpu=1|01:00:00\n")
    contains(c.as_user(["gbatch", "-A", "optics", "-c2", "--wrap=true"]).stderr,
             "can never have more than cpu=1")
    sacctmgr(c, "-i", "modify", "account", "physics", "set", "GrpTRES=cpu=-1", "MaxWall=-1")
    path = f"{c.out}/dump.cfg"
    sacctmgr(c, "dump", f"file={path}")
    with open(path, encoding="utf-8") as f:
        dumped = f.read()
    contains(dumped, "Parent - 'physics'\n")
    contains(dumped, "Account - 'optics':Description='optics':Organization='physics':Fairshare=5\n")
    sacctmgr(c, "-i", "delete", "user", "where", f"name={user}", "account=optics")
    equal("Parent - 'optics'" in dumped, True, "a parent in the dump")
    remove(c, ("tenant", "physics"))
    contains(sacctmgr(c, "-i", "load", path), "physics")
    sacctmgr(c, "dump", f"file={path}.again")
    with open(f"{path}.again", encoding="utf-8") as f:
        equal(f.read(), dumped, "dumped, loaded, and dumped again")
    contains(sacctmgr(c, "-i", "delete", "account", "physics"), "Deleting accounts")


def qos_row(c, name, fields):
    return sacctmgr(c, "-nP", "list", "qos", name, f"format={fields}").strip()


def case_sacctmgr_qos(c):
    """Priority classes by sacctmgr: made, given to an account, used by jobs, and removed."""
    equal(sacctmgr(c, "-nP", "list", "qos", "format=name,priority,preempt"),
          "best-effort|100|\nnormal|500|\nproduction-critical|1000|best-effort,normal\n")
    contains(sacctmgr(c, "add", "qos", "high", "Priority=800"),
             " Adding QOS(s)\n  high\n Settings\n  Description    = high\n"
             "  Priority       = 800\nWould you like to commit changes? (You have 30 seconds to "
             "decide)\n(N/y): \n Changes Discarded\n")
    equal(qos_row(c, "high", "name"), "")
    answered = c.root(["slurm/sacctmgr", "add", "qos", "high,low", "Priority=800"], input="y\n")
    equal(answered.returncode, 0, answered.stderr)
    equal(sacctmgr(c, "-i", "add", "qos", "high", status=1), " Nothing new added.\n")
    sacctmgr(c, "-i", "modify", "qos", "low", "set", "Priority=50", "GraceTime=5",
             "Description=what is left", "PreemptMode=cancel", "PreemptExemptTime=10:00")
    equal(qos_row(c, "low", "name,prio,gracet,preempt,preempte,preemptm,descr"),
          "low|50|00:00:05||00:10:00|cancel|what is left")
    equal(sacctmgr(c, "-i", "modify", "qos", "high", "set", "Preempt=low"),
          " Modified qos...\n  high\n")
    equal(qos_row(c, "high", "preempt"), "low")
    equal(sacctmgr(c, "-i", "modify", "qos", "high", "set", "Preempt=low,best-effort,normal"),
          " Modified qos...\n  high\n")
    equal(qos_row(c, "high", "preempt"), "best-effort,low,normal")
    sacctmgr(c, "-i", "modify", "qos", "high", "set", "MaxWall=60", "MaxTRES=cpu=2")
    equal(qos_row(c, "high", "maxwall,maxtres"), "01:00:00|cpu=2")
    contains(gtenant(c, "get", "priorityclass", "low"), "victim_mode: cancel")

    user = c.users[0]
    sacctmgr(c, "-i", "add", "account", "physics")
    sacctmgr(c, "-i", "add", "user", user, "account=physics")
    account = ["-nP", "list", "account", "physics", "format=qos,defaultqos"]
    equal(sacctmgr(c, *account), "best-effort,low,normal|normal\n")
    refused = c.as_user(["slurm/sbatch", "-A", "physics", "-q", "high", "--wrap=true"], user=user)
    contains(refused.stderr, "Invalid qos specification")
    sacctmgr(c, "-i", "modify", "account", "physics", "set", "QOS+=high", "DefaultQOS=low")
    equal(sacctmgr(c, *account), "best-effort,high,low,normal|low\n")
    path = f"{c.out}/qos.cfg"
    sacctmgr(c, "dump", f"file={path}")
    with open(path, encoding="utf-8") as f:
        contains(f.read(), ":DefaultQOS='low':QOS='best-effort,high,low,normal'\n")
    sacctmgr(c, "-i", "modify", "account", "physics", "set", "GrpJobs=1")
    running = c.submit("-A", "physics", "--wrap=sleep 600", user=user)
    c.running(running)
    first = c.submit("-A", "physics", "--wrap=true", user=user)
    done = c.as_user(["slurm/sbatch", "--parsable", "--mem=40M", "-o", "%j.out", "-A", "physics", "-q",
                      "high", "--wrap=true"], user=user)
    equal(done.returncode, 0, done.stderr)
    second = int(done.stdout)
    rows = c.as_user(["slurm/squeue", "-ho", "%i %q", "-t", "PD", "-u", user]).stdout
    equal(set(rows.splitlines()), {f"{first} low", f"{second} high"})
    equal(c.as_user(["gprio", "-ho", "%i"], user=user).stdout.split(), [str(second), str(first)])

    contains(sacctmgr(c, "-i", "delete", "qos", "low", status=1),
             "  DefQOS = low        C = ")
    sacctmgr(c, "-i", "modify", "account", "physics", "set", "QOS=normal,high", "DefaultQOS=normal")
    contains(sacctmgr(c, "-i", "delete", "qos", "low", status=1),
             f" Error with request: Job(s) active, cancel job(s) before remove\n  JobID = {running}")
    contains(sacctmgr(c, "-i", "delete", "qos", "high", status=1), "set QOS-=high")
    contains(sacctmgr(c, "-i", "delete", "qos", "normal", status=1), "A = root")
    c.as_user(["gcancel", str(running)], user=user)
    for job, how in ((running, "cancelled"), (first, "completed"), (second, "completed")):
        c.ended(job, how)
    equal(sacctmgr(c, "-i", "delete", "qos", "where", "name=low"), " Deleting QOS(s)...\n  low\n")
    equal(sacctmgr(c, "-i", "delete", "qos", "low", status=1), " Nothing deleted\n")
    sacctmgr(c, "-i", "modify", "account", "physics", "set", "QOS=", "DefaultQOS=")
    equal(sacctmgr(c, *account), "best-effort,normal|normal\n")
    gone = c.as_user(["slurm/sbatch", "-A", "physics", "-q", "low", "--wrap=true"], user=user)
    contains(gone.stderr, "not one of those allowed here: normal, best-effort")
    sacctmgr(c, "-i", "delete", "qos", "high")
    contains(sacctmgr(c, "-i", "delete", "qos", "best-effort", status=1), "is always there")
    remove(c, ("tenant", "physics"))
    mine = c.as_user(["slurm/sacctmgr", "-i", "add", "qos", "mine"], user=user)
    equal(mine.returncode, 1, mine.stdout)
    contains(mine.stderr, " Problem adding QOS: ")


if __name__ == "__main__":
    sys.exit(cluster.main(__doc__, globals(), name="tenants", nodes=2, users=2))
