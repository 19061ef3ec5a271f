"""Calls Gantry by Slurm's command names, for the tests beside this module."""
import os
import re

from cluster import text, wait_for

MEM = "--mem=40M"


def slurm(c, *command, **options):
    """Runs a command by its Slurm name as the user, with the other commands on PATH."""
    env = {"PATH": f"{c.bin}/slurm:{c.env['PATH']}", **options.pop("env", {})}
    return c.as_user([f"slurm/{command[0]}", *command[1:]], env=env, **options)


def ok(c, *command, **options):
    done = slurm(c, *command, **options)
    if done.returncode != 0 or done.stderr:
        raise AssertionError(f"{command}: exit {done.returncode}, {done.stdout!r}, {done.stderr!r}")
    return done.stdout


def script(c, name, body):
    path = f"{c.out}/{name}"
    with open(path, "w", encoding="utf-8") as f:
        f.write("#!/bin/bash\n" + body)
    os.chmod(path, 0o755)
    return path


def state(c, job):
    return ok(c, "squeue", "-h", "-t", "all", "-j", f"{job},999999", "-o", "%T").split("\n")[0]


def in_state(c, job, wanted):
    wait_for(f"job {job} to be {wanted}, not {state(c, job)}", lambda: state(c, job) == wanted)


def cluster_of(c):
    return re.search(r"^cluster\s*=\s*(\S+)", text(f"{c.state}/client.conf"), re.M).group(1)


def keys(record):
    return dict(word.split("=", 1) for word in record.split() if "=" in word)


def run_to_end(c, *options, **more):
    job = ok(c, "sbatch", "--parsable", MEM, "-o", "/dev/null", *options, **more).strip()
    wait_for(f"the end of job {job}", lambda: ok(
        c, "sacct", "-X", "-n", "-P", "-j", job, "-o", "End").strip() not in ("", "Unknown"))
    return job


def answers(c):
    wait_for("the controller", lambda: slurm(c, "scontrol", "ping").returncode == 0)


def make_team(c):
    """Makes a tenant for the user with three projects, one of which belongs to another user."""
    with open(f"{c.top}/team.yaml", "w", encoding="utf-8") as f:
        f.write(f"""apiVersion: gantry/v1
kind: Tenant
name: team
quota:
  cpu: {{nominal: 2}}
projects:
  theirs: {{users: {{somebody: 1}}}}
  mine: {{users: {{{c.user}: 2, somebody: 1}}}}
  open: {{shares: 1}}
roles:
  user: {{users: [{c.user}, somebody]}}
""")
    c.root(["gtenant", "apply", "--yes", "-f", f"{c.top}/team.yaml"], check=True)
