#!/usr/bin/env python3
"""The site's storage on a real cluster: a job sees its tenant's directory and the datasets that it asked
for, and nothing else of it, by whatever name. All files here may be read and written by everybody, so
that only the wall is in the way; without it each attempt reaches its file. README.md lists the attempts.

usage: storage_test.py BIN_DIR [-k CASE] [--keep]
"""
import os
import shutil
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../e2e"))

import cluster  # noqa: E402
from cluster import contains, equal, wait_for  # noqa: E402

# Everything above a directory of the storage belongs to root, so it is not below /var/tmp.
TOP = f"/srv/gantry-storage-{os.getpid()}"
PLANTED = "planted-in-the-storage-of-red"


def put(path, text):
    with open(path, "w", encoding="ascii") as f:
        f.write(text)
    os.chmod(path, 0o666)


def make_storage():
    for name in ("tenants/red", "tenants/blue", "sets/open", "sets/closed"):
        os.makedirs(f"{TOP}/{name}")
        os.chmod(f"{TOP}/{name}", 0o777)
    put(f"{TOP}/tenants/red/file", PLANTED)
    put(f"{TOP}/sets/closed/file", PLANTED)
    put(f"{TOP}/sets/open/file", "open-to-blue")
    put(f"{TOP}/tenants/blue/file", "of-blue")


def set_storage(c, on):
    config = f"{c.state}/gantry.yaml"
    text = cluster.text(config)
    line = f"  storage: [{TOP}]\n"
    text = text.replace("\nnoded:\n", f"\nnoded:\n{line}", 1) if on else text.replace(line, "", 1)
    equal(line in text, on, "noded.storage in gantry.yaml")
    with open(config, "w", encoding="ascii") as f:
        f.write(text)
    for node in c.of_program("gantry-noded"):
        c.kill_and_restart(node)
    wait_for("the nodes", lambda: c.root(["ginfo", "-h", "-o", "%T"]).stdout.split() == ["idle"])


def apply(c, read="[blue]"):
    documents = f"""
apiVersion: gantry/v1
kind: Tenant
name: red
storage: {{path: {TOP}/tenants/red}}
quota: {{cpu: 8}}
roles: {{user: {{users: [{c.red}]}}}}
---
apiVersion: gantry/v1
kind: Tenant
name: blue
storage: {{path: {TOP}/tenants/blue}}
quota: {{cpu: 8}}
roles: {{user: {{users: [{c.blue}]}}}}
---
apiVersion: gantry/v1
kind: Dataset
name: open
tenant: red
path: {TOP}/sets/open
read: {read}
---
apiVersion: gantry/v1
kind: Dataset
name: closed
tenant: red
path: {TOP}/sets/closed
"""
    path = f"{c.top}/documents.yaml"
    with open(path, "w", encoding="ascii") as f:
        f.write(documents)
    c.root(["gtenant", "apply", "-f", path, "--yes"], check=True)


def job(c, script, *options, user=None):
    user = user or c.blue
    tenant = "red" if user == c.red else "blue"
    number = c.submit("-n1", "-p", tenant, *options, script=script, user=user)
    entry = c.ended(number)
    return number, entry, c.output(number)


def case_0_set_up(c):
    c.red, c.blue = c.users[:2]
    make_storage()
    apply(c)
    set_storage(c, True)


def case_1_a_job_sees_its_own(c):
    _, entry, out = job(c, """
cat $GANTRY_TENANT_DIR/file; echo
echo new > $GANTRY_TENANT_DIR/new && echo wrote
cat $GANTRY_DATASET_OPEN/file; echo
echo x > $GANTRY_DATASET_OPEN/x || echo read-only
grun -n1 cat $GANTRY_TENANT_DIR/file
""", "--dataset=open")
    equal(entry["row"]["outcome"], "completed", out)
    for text in ("of-blue\n", "wrote", "open-to-blue", "read-only"):
        contains(out, text)
    equal(out.count("of-blue"), 2, "by the step as well")
    equal(cluster.text(f"{TOP}/tenants/blue/new"), "new\n", "on the node")
    _, entry, out = job(c, "echo x > $GANTRY_DATASET_OPEN/x && cat $GANTRY_TENANT_DIR/file\n", "--dataset=open:rw",
                        user=c.red)
    contains(out, PLANTED)
    equal(cluster.text(f"{TOP}/sets/open/x"), "x\n", "the owner's job wrote to the dataset")
    number, _, _ = job(c, "true\n", "--dataset=open")
    contains(c.root(["gctl", "show", "job", str(number)]).stdout, "Datasets=open")


def case_2_files_of_the_job_may_lie_there(c):
    own = f"{TOP}/tenants/blue"
    number = c.submit("-n1", "-p", "blue", "-D", own, "--mem=40M", "-o", f"{own}/%j.txt", script="pwd; grun -n1 -o step.txt pwd\n",
                      user=c.blue, defaults=())
    c.ended(number, "completed")
    equal(cluster.text(f"{own}/{number}.txt"), own + "\n", "the job's output")
    equal(cluster.text(f"{own}/step.txt"), own + "\n", "the step's output")
    contains(c.as_user(["gctl", "logs", str(number)], user=c.blue).stdout, own)


ATTEMPTS = {
    "by-its-path": ("cat {red}/file", ()),
    "by-listing": ("ls -R {top}; cat {top}/tenants/*/file", ()),
    "by-a-link-in-its-own-directory": ("ln -sf {red}/file $GANTRY_TENANT_DIR/link; cat $GANTRY_TENANT_DIR/link", ()),
    "by-a-mount": ("cat /mnt/file", ("--container-mounts={red}:/mnt",)),
    "by-a-mount-of-what-is-above": ("cat /mnt/{name}/tenants/red/file", ("--container-mounts=/srv:/mnt",)),
    "by-a-mount-through-a-link": ("cat /mnt/file", ("--container-mounts={out}/to-red:/mnt",)),
    "by-its-directory": ("cat file", ("-D", "{red}", "-o", "{out}/%j.out")),
    "by-a-dataset-that-it-did-not-ask-for": ("cat {top}/sets/open/file {top}/sets/closed/file", ()),
    "by-standard-input": ("cat", ("-i", "{red}/file")),
    "by-standard-input-through-a-link": ("cat", ("-i", "{out}/to-red/file")),
    "by-an-input-of-a-step": ("$(dirname $(command -v grun))/slurm/srun -n1 -i {red}/file cat", ()),
    "by-an-image": ("cat /file", ("--container-image={red}",)),
    "by-the-processes-of-the-node": ("cat /proc/[0-9]*/root{red}/file /proc/[0-9]*/cwd/file", ()),
}


def tried(c):
    """What each attempt's job wrote, or why there was none."""
    out = {}
    link = f"{c.out}/to-red"
    if not os.path.islink(link):
        os.symlink(f"{TOP}/tenants/red", link)
    for name, (script, options) in ATTEMPTS.items():
        words = {"red": f"{TOP}/tenants/red", "top": TOP, "name": os.path.basename(TOP), "out": c.out}
        done = c.as_user(["gbatch", "--parsable", "-n1", "-p", "blue", "--mem=40M", "-o", "%j.out",
                          *(o.format(**words) for o in options)], user=c.blue, input="#!/bin/bash\n" + script.format(**words) + " 2>&1\n")
        if done.returncode != 0:
            out[name] = done.stderr
            continue
        number = int(done.stdout)
        entry = wait_for(f"{name}: the end or the reason", lambda n=number: (
            c.account(n) if c.phase(n) == "ended" or "launch" in c.queue_line(n) or "BeginTime" in c.queue_line(n) else None))
        out[name] = f"{c.output(number)} {entry['cause']}"
        c.root(["gcancel", "-Q", str(number)])
    return out


def case_3_nothing_of_others_is_reached(c):
    for name, text in tried(c).items():
        equal(PLANTED in text, False, f"{name}: {text}")
    # What it writes does not get there either.
    for where in ("{red}/out", "{out}/to-red/out"):
        path = where.format(red=f"{TOP}/tenants/red", out=c.out)
        number = c.submit("-n1", "-p", "blue", "--mem=40M", "-o", path, script="echo written\n", user=c.blue, defaults=())
        wait_for("the reason", lambda n=number: c.phase(n) == "ended" or c.queue_line(n).split("|")[1] not in ("None", "Priority", "Resources"))
        c.root(["gcancel", "-Q", str(number)])
        equal(os.path.exists(f"{TOP}/tenants/red/out"), False, path)


def case_4_an_output_that_becomes_a_link(c):
    number = c.submit("-n1", "-p", "blue", script="echo mine\n", user=c.blue)
    c.ended(number, "completed")
    path = f"{c.out}/{number}.out"
    os.unlink(path)
    os.symlink(f"{TOP}/tenants/red/file", path)
    done = c.as_user(["gctl", "logs", str(number)], user=c.blue)
    equal(PLANTED in done.stdout + done.stderr, False, "gctl logs")
    os.unlink(path)


def has_checkpoint(c, number):
    return "LastCheckpoint=20" in c.root(["gctl", "show", "job", str(number)]).stdout


def checkpoint_of(c, path):
    """Whether the node tells when a file was written that a job names as its checkpoint. It looks every ten seconds, and has
    looked when it tells of the job's own file."""
    own_file = f"{TOP}/tenants/blue/ckpt"
    put(own_file, "")
    wait = "while [ ! -e looked ]; do sleep 0.2; done\n"
    other, own = (c.submit("-p", "blue", "-n1", f"--checkpoint-file={of}", script=wait, user=c.blue) for of in (path, own_file))
    c.running(other)
    c.running(own)
    os.utime(f"{TOP}/tenants/red/file")  # files from before the start are no checkpoints
    os.utime(own_file)
    wait_for("the job's own checkpoint", lambda: has_checkpoint(c, own))
    told = has_checkpoint(c, other)
    put(f"{c.out}/looked", "")
    c.ended(other, "completed")
    c.ended(own, "completed")
    os.unlink(f"{c.out}/looked")
    return told


def case_4_the_time_of_a_checkpoint(c):
    for path in (f"{TOP}/tenants/red/file", f"{c.out}/to-red/file"):
        equal(checkpoint_of(c, path), False, f"it tells when {path} was written")


def case_5_a_grant_that_goes(c):
    done = c.as_user(["gbatch", "-p", "blue", "--dataset=closed", "--wrap=true"], user=c.blue)
    other = c.as_user(["gbatch", "-p", "blue", "--dataset=absent", "--wrap=true"], user=c.blue)
    equal(done.stderr.replace("closed", "absent"), other.stderr, "a dataset of others, and none")
    contains(done.stderr, "there is no dataset closed that tenant blue may use")
    contains(c.as_user(["gbatch", "-p", "blue", "--dataset=open:rw", "--wrap=true"], user=c.blue).stderr, "may only read")
    number = c.submit("-H", "-p", "blue", "--dataset=open", script="cat $GANTRY_DATASET_OPEN/file\n", user=c.blue)
    apply(c, read="[]")
    c.as_user(["gctl", "release", str(number)], user=c.blue)
    wait_for("the reason", lambda: "DatasetDenied" in c.queue_line(number))
    contains(c.as_user(["gctl", "why", str(number)], user=c.blue).stdout, "may not use the dataset open any more")
    apply(c)
    c.ended(number, "completed")
    contains(c.output(number), "open-to-blue")


def case_6_a_directory_that_is_a_link(c):
    """Tenants may write above their datasets: a link in the way is not followed."""
    os.rename(f"{TOP}/sets/open", f"{TOP}/sets/away")
    os.symlink(f"{TOP}/tenants/red", f"{TOP}/sets/open")
    number = c.submit("-p", "blue", "--dataset=open", script="cat $GANTRY_DATASET_OPEN/file\n", user=c.blue)
    wait_for("the reason", lambda: c.account(number) and c.account(number)["cause"])
    contains(c.account(number)["cause"], "dataset open")
    c.root(["gcancel", "-Q", str(number)])
    equal(PLANTED in c.output(number), False, "what it read")
    os.unlink(f"{TOP}/sets/open")
    os.rename(f"{TOP}/sets/away", f"{TOP}/sets/open")


def case_7_a_directory_that_others_may_change(c):
    """A node does not start with a storage directory that somebody else could move away."""
    os.chmod(TOP, 0o777)
    node = c.of_program("gantry-noded")[0]
    argv = c.kill(node)
    child = c.spawn(argv)
    wait_for("the refusal", lambda: child.poll() is not None)
    del c.daemons[child.pid]
    contains(cluster.text(f"{c.top}/daemons.log"), f"others than root may write to {TOP}")
    os.chmod(TOP, 0o755)
    c.spawn(argv)
    wait_for("the node", lambda: c.root(["ginfo", "-h", "-o", "%T"]).stdout.split() == ["idle"])


def case_8_without_the_wall_each_attempt_bites(c):
    c.root(["gtenant", "apply", "--yes", "-f", documents_without(c)], check=True)
    set_storage(c, False)
    missed = {name: text for name, text in tried(c).items() if PLANTED not in text}
    for name in ("by-an-image",  # a directory that is no image
                 "by-a-link-in-its-own-directory",  # there is no such directory now
                 "by-the-processes-of-the-node"):  # stopped by the namespace of processes
        missed.pop(name, None)
    equal(missed, {}, "attempts that do not bite")
    equal(checkpoint_of(c, f"{TOP}/tenants/red/file"), True, "the time of a file as a checkpoint")


def documents_without(c):
    path = f"{c.top}/documents.yaml"
    text = "".join(line for line in cluster.text(path).splitlines(True) if not line.startswith("storage:"))
    with open(path, "w", encoding="ascii") as f:
        f.write(text)
    return path


def case_9_the_table_names_every_attempt(c):
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "README.md"), encoding="utf-8") as f:
        text = f.read()
    for name in (*ATTEMPTS, "the-time-of-a-file-as-a-checkpoint"):
        contains(text, f"`storage/{name}`", "README.md")


if __name__ == "__main__":
    try:
        status = cluster.main(__doc__, globals(), "storage", nodes=1, users=2)
    finally:
        shutil.rmtree(TOP, ignore_errors=True)
    sys.exit(status)
