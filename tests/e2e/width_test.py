#!/usr/bin/env python3
"""Every table fits a terminal of 80 columns, with the names that a site really has: long names of
jobs, tenants and projects, arrays, dependencies, reservations, prices, budgets, many nodes.

usage: width_test.py BIN_DIR [-k CASE] [--keep]

The commands run in a terminal of 80 columns. Sentences (`gctl why`) are no tables, and neither are
records (`gctl show job`, `scontrol show`), whose lines have keys for clients. Under Slurm's
names those tables are looked at that fit 80 columns there.
"""
import os
import re
import shlex
import subprocess
import sys

import cluster
from cluster import wait_for

COLUMNS = 80
TENANT = "computational-linguistics"
NAME = "train-resnet50-imagenet-lr0.1-seed42"

DOCUMENTS = f"""apiVersion: gantry/v1
kind: Cohort
name: faculty-of-sciences
---
apiVersion: gantry/v1
kind: Tenant
name: {TENANT}
cohort: faculty-of-sciences
quota: {{cpu: {{nominal: 4, borrow: 2}}, memory: {{nominal: 3G}}}}
projects: {{speech-recognition: {{shares: 3}}, machine-translation: {{shares: 1}}}}
roles: {{user: {{users: [USERS]}}}}
---
apiVersion: gantry/v1
kind: Budget
name: {TENANT}-this-year
tenant: {TENANT}
amount: 1234567.89
period: year
---
apiVersion: gantry/v1
kind: PriceBook
name: base
currency: EUR
cpu: 36.00
memory: 0.5
"""

# Tables of ours. The words {job} and so on are replaced; a command that ends with another status
# than 0 is a failure.
OURS = """
gqueue
gqueue -l
gqueue --start
gqueue --why
gqueue -t all
gqueue -r
gacct
gacct -a
gacct --efficiency
gacct -j {job}
gacct -j {array}
ginfo
ginfo -l
ginfo -N
ginfo -N -l
ginfo -R
ginfo -s
ginfo --drift
ginfo --gpus
ginfo --layout
gprio
gprio -w
gshare
greport
greport --by user
greport --by project,user
greport --by job_type
greport this-month -b tenant
gtenant list
gtenant quota
gtenant quota {tenant}
gtenant budget list
gtenant price list
gtenant request list
gtenant access
gtenant access {tenant}
gtenant history
gtenant meter list
gtenant secret list
gctl reservations
gctl top
gctl top --cost
gctl mig
gctl service list
gctl enroll --list
gctl who-can submit {tenant}
gctl show stats
gantry status --state {state}
""".strip().splitlines()

SLURMS = """
squeue -s
sinfo
sinfo -N
sinfo -R
sinfo -s
sinfo -T
sacct
sacct -b
strigger --get
sacctmgr list account
sacctmgr list user
sacctmgr list cluster format=cluster,controlhost
""".strip().splitlines()


def terminal(c, words):
    """What a command shows in a terminal of 80 columns, colours taken away, and its status."""
    line = f"stty cols {COLUMNS} rows 50; exec " + shlex.join(words)
    done = subprocess.run(["script", "-qec", line, "/dev/null"], env=dict(c.env, TERM="xterm", MANPAGER="cat"),
                          stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60,
                          errors="replace", check=False)
    return done.returncode, re.sub(r"\x1b\[[0-9;]*m", "", done.stdout).replace("\r", "")


def fill(c):
    """A day at a site, in short; returns what replaces the words of the commands."""
    with open(f"{c.top}/site.yaml", "w", encoding="utf-8") as f:
        f.write(DOCUMENTS.replace("USERS", ", ".join(c.users)))
    c.root(["gtenant", "apply", "--yes", "-f", f"{c.top}/site.yaml"], check=True)
    use = ["-A", "speech-recognition", "-t", "2:00:00", "-J", NAME]
    done = c.submit("--wrap=true", *use)
    c.ended(done, "completed")
    failed = c.submit("--wrap=exit 3", *use, user=c.users[1])
    c.ended(failed, "failed")
    runs = c.submit("--wrap=sleep 300", "-N2", *use)
    c.running(runs)
    held = c.submit("--hold", "--wrap=true", *use)
    waits = c.submit("--wrap=true", "-N2", "--exclusive", "-d", f"afterok:{held}", *use)
    array = c.submit("-a", "1-1000%7", "--wrap=sleep 300", *use, user=c.users[1])
    c.submit("--wrap=true", "--begin=now+3hours", *use)
    c.submit("--wrap=true", "-N3", "-t", "1-00:00:00", "-J", NAME, "-A", "machine-translation")
    c.root(["gctl", "drain", "node4", "-r", "the fan of its second power supply makes a noise"],
           check=True)
    c.root(["gctl", "reserve", "--name", "summer-school-of-2026", "--start", "now+3days",
            "--duration", "8:00:00", "--nodes", "node[1-3]", "--tenants", TENANT,
            "--comment", "the course in room 101"])
    return {"job": done, "failed": failed, "array": array, "waits": waits, "held": held,
            "tenant": TENANT, "state": c.state}


def too_wide(c, lines, names, folder=""):
    wrong = []
    for line in lines:
        words = shlex.split(line.format(**names))
        words[0] = f"{c.bin}/{folder}{words[0]}"
        status, shown = terminal(c, words)
        if status != 0:
            wrong.append(f"{line}: status {status}: {shown.strip()[-200:]}")
        wrong += [f"{line}: {len(part)} columns: {part}" for part in shown.splitlines()
                  if len(part.rstrip()) > COLUMNS]
    return wrong


def case_tables_fit_80_columns(c):
    names = fill(c)
    wrong = too_wide(c, OURS, names) + too_wide(c, SLURMS, names, "slurm/")
    assert not wrong, "\n".join(wrong)


def case_a_manual_page_at_a_terminal(c):
    """A person reads the page; into a file it goes as man takes it."""
    status, shown = terminal(c, [f"{c.bin}/gantry", "man", "gctl", "why"])
    assert status == 0 and ".SH" not in shown and "Say why a job does not run" in shown, shown
    assert c.root(["gantry", "man", "gctl", "why"], check=True).stdout.startswith(".TH GCTL-WHY 1")


def case_order_of_unknown_jobs(c):
    """gprio says that there is no such job, or that it does not wait."""
    done = c.root(["gprio", "-j", "99999"])
    assert done.returncode == 1 and "there is no job 99999" in done.stderr, done
    job = c.submit("--wrap=sleep 60", "-A", "speech-recognition", "-t", "5", user=c.users[1])
    held = c.submit("--hold", "--wrap=true", "-A", "speech-recognition", "-t", "5")
    wait_for("an answer", lambda: c.root(["gprio", "-j", f"{job}"]).returncode == 0)
    assert c.root(["gprio", "-j", str(held)]).returncode == 0
    c.root(["gcancel", str(job), str(held)], check=True)


def case_flags_of_reservations_that_say_what_is_so(c):
    done = c.root(["slurm/scontrol", "create", "reservation", "ReservationName=still",
                   "StartTime=now+10days", "Duration=10", "Users=root", "NodeCnt=1",
                   "Flags=STATIC_ALLOC,SPEC_NODES"])
    assert done.stdout == "Reservation created: still\n", done
    refused = c.root(["slurm/scontrol", "update", "ReservationName=still", "Flags=FLEX"])
    assert refused.returncode == 1 and "STATIC_ALLOC" in refused.stderr + refused.stdout, refused
    c.root(["slurm/scontrol", "delete", "ReservationName=still"], check=True)


def commands_of(c):
    """Every command and subcommand, as the help names them, and the daemons that people start."""
    found, new = [], [[name] for name in sorted(os.listdir(c.bin))
                      if os.path.islink(f"{c.bin}/{name}")] + [["gantry"]]
    new += [["gantry-ctld"], ["gantry-noded"], ["gantry-gate"]]
    while new:
        words = new.pop()
        found.append(words)
        said = c.root([*words, "--help"], check=True).stdout
        part = re.search(r"\nCommands:\n(.*?)\n\n", said + "\n\n", re.S)
        new += [words + [name] for name in re.findall(r"^  ([a-z][a-z-]*)\b", part.group(1), re.M)] \
            if part and len(words) < 3 else []
    return found


def case_help_fits_and_has_an_example(c):
    """The help of each command and subcommand is at most 80 columns wide and has an example."""
    wrong = []
    for words in commands_of(c):
        said = c.root([*words, "--help"], check=True).stdout
        name = " ".join(words)
        if not re.search(r"\nExamples?:\n", said):
            wrong.append(f"{name}: no example")
        wrong += [f"{name} --help: {len(line)} columns: {line}" for line in said.splitlines()
                  if len(line) > COLUMNS]
    assert not wrong, "\n".join(wrong)


if __name__ == "__main__":
    sys.exit(cluster.main(__doc__, globals(), name="width", nodes=4, users=2))
