#!/usr/bin/env python3
"""Heterogeneous jobs by Slurm's commands: components on different nodes that start together, one
script that gets the variables of all components, and ends that end all of them.

usage: het_test.py BIN_DIR [-k CASE] [--keep]
"""
import json
import re
import sys

import cluster
from cluster import contains, equal, text, wait_for
from slurm_calls import MEM, in_state, keys, ok, script, slurm


def states(c, job):
    """JOB+N -> state of each component that squeue lists for the job."""
    rows = ok(c, "squeue", "-h", "-t", "all", "-j", f"{job},999999", "-o", "%i %T").splitlines()
    return dict(row.split() for row in rows)


def all_in(c, job, state, components=2):
    wait_for(f"all of {job} to be {state}, not {states(c, job)}", lambda: states(c, job) == {
        f"{job}+{i}": state for i in range(components)})


def nodes(c, job):
    return ok(c, "squeue", "-h", "-t", "all", "-j", job, "-o", "%N").split()


def accounts(c, job):
    """JobID -> state, as sacct lists them."""
    rows = ok(c, "sacct", "-n", "-P", "-j", job, "-o", "JobID,State").splitlines()
    return dict(row.split("|") for row in rows)


def case_directives(c):
    """A script with two components: which variables it gets, and what the commands call the
    components."""
    path = script(c, "het.sh", f"""
#SBATCH --job-name=front --nodes=1 --ntasks=1 {MEM} --time=5
#SBATCH --output={c.out}/het-%j.out
#SBATCH hetjob
#SBATCH --job-name=back --nodes=2 --ntasks=4 --ntasks-per-node=2 {MEM} --time=5
env | grep '^SLURM_' | sort
echo done
while [ ! -e {c.out}/het.go ]; do sleep 0.1; done
exit 7
""")
    out = ok(c, "sbatch", path)
    job = re.fullmatch(r"Submitted batch job (\d+)\n", out).group(1)
    all_in(c, job, "RUNNING")
    wait_for("the script's words", lambda: "done" in text(f"{c.out}/het-{job}.out"))
    env = dict(line.split("=", 1) for line in text(f"{c.out}/het-{job}.out").splitlines()
               if "=" in line)
    front, back = nodes(c, job)
    for name, value in {
            "SLURM_JOB_ID": job, "SLURM_HET_SIZE": "2", "SLURM_JOB_NUM_NODES": "1",
            "SLURM_JOB_NODELIST": front, "SLURM_JOB_NODELIST_HET_GROUP_0": front,
            "SLURM_JOB_NODELIST_HET_GROUP_1": back, "SLURM_JOB_ID_HET_GROUP_0": job,
            "SLURM_JOB_ID_HET_GROUP_1": str(int(job) + 1), "SLURM_JOB_NUM_NODES_HET_GROUP_1": "2",
            "SLURM_NTASKS_HET_GROUP_1": "4", "SLURM_TASKS_PER_NODE_HET_GROUP_1": "2(x2)"}.items():
        equal(env.get(name), value, name)
    equal(len({front, *ok(c, "scontrol", "show", "hostnames", back).split()}), 3, "nodes")

    second = str(int(job) + 1)
    equal(ok(c, "squeue", "-h", "-j", second, "-o", "%i"), f"{job}+1\n")
    equal(ok(c, "squeue", "-h", "-j", f"{job}+1", "-O", "HetJobID,HetJobIDSet,HetJobOffset").split(),
          [job, f"{job}-{second}", "1"])
    shown = ok(c, "scontrol", "show", "job", job).split("\n\n")
    record = keys(shown[1])
    equal((len([s for s in shown if s.strip()]), record["JobId"], record["HetJobId"],
           record["HetJobOffset"], record["HetJobIdSet"], record["JobName"]),
          (2, second, job, "1", f"{job}-{second}", "back"))
    listed = json.loads(ok(c, "squeue", "--json", "-j", job))["jobs"]
    equal([(j["job_id"], j["het_job_id"]["number"], j["het_job_offset"]["number"])
           for j in listed], [(int(job), int(job), 0), (int(second), int(job), 1)])

    script(c, "het.go", "")
    all_in(c, job, "FAILED")
    told = wait_for("both in sacct", lambda: (
        rows := accounts(c, job)) and rows.get(f"{job}+1") == "FAILED" and rows)
    equal((told[f"{job}+0"], told[f"{job}+0.batch"]), ("FAILED", "FAILED"))
    equal(ok(c, "sacct", "-X", "-n", "-P", "-j", f"{job}+1", "-o", "JobID,JobName,JobIDRaw"),
          f"{job}+1|back|{second}\n")


def case_killed_controller(c):
    """Components on the command line: the controller is killed while they run, one component is
    cancelled alone, and then all of them."""
    c.kill_and_restart(c.daemon("ctld"))
    wait_for("the controller", lambda: slurm(c, "scontrol", "ping").returncode == 0)
    job = ok(c, "sbatch", "--parsable", MEM, "-o", "/dev/null", ":", MEM, "-J", "middle", ":", MEM,
             "-J", "last", script(c, "sleep.sh", "sleep 300\n")).strip()
    c.kill_and_restart(c.daemon("ctld"))
    wait_for("the controller", lambda: slurm(c, "scontrol", "ping").returncode == 0)
    all_in(c, job, "RUNNING", 3)
    c.kill_and_restart(c.daemon("ctld"))
    wait_for("the controller", lambda: slurm(c, "scontrol", "ping").returncode == 0)
    equal(len(set(nodes(c, job))), 3, "nodes")
    equal(ok(c, "scancel", f"{job}+1"), "")
    wait_for("the end of one", lambda: states(c, job) == {
        f"{job}+0": "RUNNING", f"{job}+1": "CANCELLED", f"{job}+2": "RUNNING"})
    equal(ok(c, "scancel", job), "")
    all_in(c, job, "CANCELLED", 3)


def case_waits_whole(c):
    """No component starts before all can start."""
    holder = ok(c, "sbatch", "--parsable", MEM, "-N", "2", "--exclusive", "-o", "/dev/null",
                "--wrap=sleep 300").strip()
    in_state(c, holder, "RUNNING")
    job = ok(c, "sbatch", "--parsable", MEM, "-o", "/dev/null", ":", MEM,
             script(c, "short.sh", "exit 0\n")).strip()
    wait_for("the reason", lambda: ok(
        c, "squeue", "-h", "-j", job, "-o", "%i %T %r").splitlines() == [
            f"{job}+{i} PENDING Resources" for i in range(2)])
    ok(c, "scancel", holder)
    all_in(c, job, "COMPLETED")


def case_mistakes(c):
    """Options that a heterogeneous job cannot have are refused by name."""
    path = script(c, "exit.sh", "exit 0\n")
    for options, needle in {
            (MEM, "--array=1-2", ":", MEM): "heterogeneous",
            (MEM, ":", MEM, "--output=x"): "--output",
            (MEM, ":", MEM, "--dependency=afterok:1"): "--dependency",
            (MEM, "-N", "2", ":", MEM, "-N", "2"): "node"}.items():
        done = slurm(c, "sbatch", *options, path)
        equal((done.returncode, done.stdout), (1, ""), str(options))
        contains(done.stderr, needle)


if __name__ == "__main__":
    sys.exit(cluster.main(__doc__, globals(), "het", nodes=3))
