#!/usr/bin/env python3
"""Features that a site sets up around its jobs, under Slurm's names, against real daemons:
triggers, mail, sbcast, licences, projects. The controller is restarted with the options that each
case needs.

usage: slurm_site_test.py BIN_DIR [-k CASE] [--keep]
"""
import grp
import os
import pwd
import re
import shutil
import sys

import cluster
from cluster import contains, equal, text, wait_for
from slurm_calls import MEM, answers, in_state, make_team, ok, run_to_end, script, slurm


def restart_with(c, key, value):
    """Restarts the controller with one more option."""
    path = f"{c.state}/gantry.yaml"
    config = text(path)
    assert f"\n  {key}:" not in config, key
    with open(path, "w", encoding="utf-8") as f:
        f.write(config.replace("\ncontroller:\n", f"\ncontroller:\n  {key}: {value}\n", 1))
    c.kill_and_restart(c.daemon("ctld"))
    answers(c)


def case_strigger(c):
    """The controller runs a user's trigger once, as the user, with a job's id; operators' triggers
    are for nodes."""
    told, program = f"{c.out}/told", f"{c.out}/tell"
    script(c, "tell", f"echo $(id -un) $(id -gn) $HOME $PWD $1 $(grep -h ^NoNewPrivs: /proc/self/status) "
           f"$(ls /proc/self/fd | wc -l) >> {told}\n")
    os.chmod(program, 0o755)
    job = ok(c, "sbatch", "--parsable", MEM, "-o", "/dev/null", "--wrap=sleep 100").strip()
    refused = slurm(c, "strigger", "--set", "-j", job, "--fini", "-p", program)
    equal(refused.returncode, 1)
    contains(refused.stderr, "controller.user_triggers is off")
    restart_with(c, "user_triggers", "true")
    ok(c, "strigger", "--set", "-j", job, "--fini", "-p", program)
    ok(c, "strigger", "--set", "-j", job, "--fini", "--offset=3600", "-p", program, "--flags=PERM")
    rows = ok(c, "strigger", "--get").splitlines()
    equal(rows[0], "TRIG_ID RES_TYPE   RES_ID TYPE                                OFFSET USER     "
          "FLAGS PROGRAM")
    later = rows[2].split()
    equal(later[1:], ["job", job, "fini", "3600", c.user, "PERM", program])
    refused = slurm(c, "strigger", "--set", "--down", "-p", program)
    equal(refused.returncode, 1)
    contains(refused.stderr, "slurm_set_trigger error: ")
    c.kill_and_restart(c.daemon("ctld"))
    wait_for("the controller", lambda: slurm(c, "scontrol", "ping").returncode == 0)
    equal(len(ok(c, "strigger", "-N", "--get", "-j", job).splitlines()), 2)
    ok(c, "scancel", job)
    wait_for("the program", lambda: os.path.exists(told) and text(told).endswith("\n"))
    home = pwd.getpwnam(c.user).pw_dir
    equal(text(told), f"{c.user} {grp.getgrgid(pwd.getpwnam(c.user).pw_gid).gr_name} {home} / {job} "
          "NoNewPrivs: 1 4\n")
    wait_for("the one that fired to be gone",
             lambda: len(ok(c, "strigger", "-N", "--get").splitlines()) == 1)
    ok(c, "strigger", "--clear", f"--id={later[0]}")
    equal(ok(c, "strigger", "--get"), "")
    gone = slurm(c, "strigger", "--clear", f"--id={later[0]}")
    equal(gone.returncode, 1)
    ok(c, "strigger", "-Q", "--clear", f"--id={later[0]}")
    # Root is an operator, so root's trigger may be for a node that is drained.
    nodes = f"{c.top}/drained"
    with open(f"{c.top}/note", "w", encoding="utf-8") as f:
        f.write(f"#!/bin/sh\necho $(id -u) $1 >> {nodes}\n")
    os.chmod(f"{c.top}/note", 0o755)
    c.root(["slurm/strigger", "--set", "--node=node1", "--drained", "-p", f"{c.top}/note"], check=True)
    c.root(["gctl", "drain", "node1", "-r", "test"], check=True)
    wait_for("the node's program", lambda: os.path.exists(nodes) and text(nodes).endswith("\n"))
    equal(text(nodes), "0 node1\n")
    c.root(["gctl", "resume", "node1"], check=True)


def case_mail(c):
    done = slurm(c, "sbatch", MEM, "--mail-type=END", "-o", "/dev/null", "--wrap=true")
    equal(done.returncode, 0, done.stderr)
    contains(done.stderr, "no mail is sent here")
    in_state(c, done.stdout.split()[-1], "COMPLETED")
    ok(c, "sbatch", MEM, "--mail-type=NONE", "-o", "/dev/null", "--wrap=true")
    box, program = f"{c.out}/letters", f"{c.top}/sendmail"
    with open(program, "w", encoding="utf-8") as f:
        f.write(f"#!/bin/sh\n{{ echo As: $(id -u) $(id -G); echo \"$@\"; cat; echo; }} >> {box}\n")
    os.chmod(program, 0o755)
    restart_with(c, "mail_program", program)
    job = ok(c, "sbatch", "--parsable", MEM, "-J", "posted", "--mail-type=BEGIN,END,FAIL",
             "--mail-user=alice@example.org,bob", "-o", "/dev/null", "--wrap=exit 3").strip()
    show = ok(c, "scontrol", "show", "job", job)
    contains(show, "MailUser=alice@example.org,bob MailType=BEGIN,END,FAIL")
    wait_for("two letters", lambda: text(box).count("Subject: ") == 2)
    letters = text(box)
    # the mail program runs as the user, because it may let root use any sender's address
    user = pwd.getpwnam(c.user)
    equal(set(re.findall("^As: .*", letters, re.M)), {f"As: {user.pw_uid} {user.pw_gid}"})
    contains(letters, "-i -- alice@example.org bob\nTo: alice@example.org, bob\n")
    assert re.search(rf"^Subject: Slurm Job_id={job} Name=posted Began, Queued time 00:00:\d\d$",
                     letters, re.M), letters
    assert re.search(rf"^Subject: Slurm Job_id={job} Name=posted Failed, Run time 00:00:\d\d, "
                     r"FAILED, ExitCode 3$", letters, re.M), letters


def case_sbcast(c):
    with open(f"{c.out}/model.bin", "wb") as f:
        f.write(bytes(range(256)) * 4096)
    os.chmod(f"{c.out}/model.bin", 0o640)
    shutil.chown(f"{c.out}/model.bin", c.user, c.user)
    path = script(c, "sbcast.sh", """
sbcast -v model.bin /tmp/copy.bin; echo first $?
sbcast model.bin /tmp/copy.bin 2>/dev/null; echo again $?
sbcast -f model.bin /tmp/; echo forced $?
srun -N2 --ntasks-per-node=1 sh -c 'cmp model.bin /tmp/copy.bin && cmp model.bin /tmp/model.bin &&
  stat -c "%a %s" /tmp/copy.bin; ls /tmp | grep -c sbcast || true'
""")
    out = ok(c, "sbatch", "--wait", "-N2", "--ntasks-per-node=1", "--switches=1", MEM, "-o",
             f"{c.out}/sbcast.out", path)
    said = text(f"{c.out}/sbcast.out")
    for line in ("first 0", "again 1", "forced 0"):
        contains(said, line + "\n")
    equal(said.count("640 1048576\n"), 2, said)
    equal(re.findall(r"^sbcast: \S+: done$", said, re.M).__len__(), 2, said)
    assert re.match(r"Submitted batch job \d+\n$", out), out


def case_licenses(c):
    """Two of three jobs have a licence each; the third job waits until one of them ends."""
    path = f"{c.state}/gantry.yaml"
    before = text(path)
    with open(path, "w", encoding="utf-8") as f:
        f.write("licenses: [matlab:2, fluent:5]\n" + before)
    c.kill_and_restart(c.daemon("ctld"))
    answers(c)
    try:
        held = ["-n", "1", "-L", "matlab:1", MEM, "-o", f"{c.out}/%j.lic"]
        one = ok(c, "sbatch", "--parsable", *held, "--wrap",
                 "echo $SLURM_JOB_LICENSES; sleep 300").strip()
        two = ok(c, "sbatch", "--parsable", *held, "--wrap", "sleep 300").strip()
        in_state(c, one, "RUNNING")
        in_state(c, two, "RUNNING")
        three = ok(c, "sbatch", "--parsable", *held, "--wrap", "true").strip()
        wait_for("its reason", lambda: ok(c, "squeue", "-h", "-j", f"{three},999999", "-o",
                                          "%t %r %W") == "PD Licenses matlab:1\n")
        equal(ok(c, "scontrol", "show", "lic", "matlab"),
              "LicenseName=matlab\n    Total=2 Used=2 Free=0 Reserved=0 Remote=no\n")
        shown = ok(c, "squeue", "-h", "-L", "matlab", "-o", "%i").split()
        equal(sorted(shown, key=int), [one, two, three])
        equal(ok(c, "squeue", "-h", "-L", "fluent", "-o", "%i"), "")
        contains(ok(c, "scontrol", "show", "job", three), " Licenses=matlab:1 ")
        for wrong in ("maple", "matlab:3"):
            bad = slurm(c, "sbatch", "-L", wrong, MEM, "--wrap=true")
            equal((bad.returncode, bad.stderr.splitlines()[-1]), (1, "sbatch: error: Batch job "
                  "submission failed: Invalid license specification"))
        equal(text(f"{c.out}/{one}.lic"), "matlab:1\n")
        ok(c, "scancel", one)
        in_state(c, three, "COMPLETED")
        equal(ok(c, "sacct", "-X", "-n", "-P", "-j", three, "-o", "Licenses"), "matlab:1\n")
        ok(c, "scancel", two)
        in_state(c, two, "CANCELLED")
    finally:
        with open(path, "w", encoding="utf-8") as f:
            f.write(before)
        c.kill_and_restart(c.daemon("ctld"))
        answers(c)


def case_notes(c):
    """sacctmgr modify job, of a job that the controller knows and of one that it has forgotten."""
    path = f"{c.state}/gantry.yaml"
    before = text(path)
    with open(path, "w", encoding="utf-8") as f:
        f.write(before.replace("controller:\n", "controller:\n  min_job_age: 3s\n", 1))
    try:
        c.kill_and_restart(c.daemon("ctld"))
        answers(c)
        job = run_to_end(c, "--wrap=srun bash -c 'exit 3'; exit 0")
        noted = ["sacct", "-nPX", "-j", job, "-o", "ExitCode,DerivedExitCode,Comment"]
        wait_for("the steps", lambda: ok(c, *noted) == "0:0|3:0|\n")
        said = ok(c, "sacctmgr", "-i", "modify", "job", f"job={job}", "set", "DerivedExitCode=22",
                  "Comment=hello")
        equal(said.startswith(f" Modified jobs...\n  {job} submitted at "), True, said)
        equal(ok(c, *noted), "0:0|0:22|hello\n")
        wait_for("the job to be forgotten", lambda: slurm(
            c, "scontrol", "show", "job", job).returncode != 0)
        for text_of in ("first", "second"):
            ok(c, "sacctmgr", "-i", "modify", "job", f"job={job}", "set", f"Comment={text_of}")
        c.root(["slurm/sacctmgr", "-i", "modify", "job", f"job={job}", "set", "AdminComment=seen"],
               check=True)
        equal(ok(c, *noted[:-1], "DerivedExitCode,Comment,AdminComment"), "0:22|second|seen\n")
        bad = slurm(c, "sacctmgr", "-i", "modify", "job", f"job={job}", "set", "AdminComment=mine")
        equal(bad.returncode, 1, bad.stdout)
    finally:
        with open(path, "w", encoding="utf-8") as f:
            f.write(before)
        c.kill_and_restart(c.daemon("ctld"))
        answers(c)
    equal(ok(c, *noted[:-1], "DerivedExitCode,Comment,AdminComment"), "0:22|second|seen\n")


def case_projects(c):
    """A user belongs to accounts and may charge only these."""
    make_team(c)
    held = ["-H", MEM, "-o", "/dev/null", "-p", "team", "--wrap=true"]
    job = ok(c, "sbatch", "--parsable", *held).strip()
    equal(ok(c, "squeue", "-h", "-j", f"{job},999999", "-o", "%a"), "mine\n")
    ok(c, "sbatch", "-A", "open", *held)
    bad = slurm(c, "sbatch", "-A", "theirs", *held)
    equal((bad.returncode, bad.stdout, bad.stderr.splitlines()[-1]),
          (1, "", "sbatch: error: Batch job submission failed: Invalid account or "
           "account/partition combination specified"))
    bad = slurm(c, "scontrol", "update", f"JobId={job}", "Account=theirs")
    equal(bad.returncode, 1, bad.stdout)
    equal(ok(c, "sacctmgr", "-nP", "show", "users", "withassoc", "format=account", "where",
             f"user={c.user}"), "mine\nopen\n")
    ok(c, "scancel", "-u", c.user)


if __name__ == "__main__":
    sys.exit(cluster.main(__doc__, globals(), "slurm_site", nodes=2))
