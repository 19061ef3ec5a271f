#!/usr/bin/env python3
"""Real clients of Slurm's commands, unchanged, against real daemons and containers. A client that
is not installed is skipped. Also behaviour on which such clients and scripts rely.

usage: slurm_clients_test.py BIN_DIR [-k CASE] [--keep]
"""
import os
import re
import shutil
import signal
import subprocess
import sys
import time

import cluster
from cluster import contains, equal, text, wait_for
from slurm_calls import (MEM, answers, cluster_of, in_state, keys, make_team, ok, run_to_end, script,
                         slurm)


def client(c, command, **options):
    """Runs a program that is no part of Gantry, as the user, with Slurm's command names on its
    PATH."""
    env = dict(c.env, HOME=c.out, USER=c.user, PATH=f"{c.bin}/slurm:{c.env['PATH']}",
               **options.pop("env", {}))
    return subprocess.run(command, env=env, cwd=c.out, capture_output=True, text=True, check=False,
                          user=c.user, group=c.user, extra_groups=[], timeout=120,
                          stdin=subprocess.DEVNULL, **options)


def installed(name):
    if shutil.which(name):
        return True
    cluster.pass_over(f"there is no {name}")
    return False


def partition_of(c):
    return ok(c, "sinfo", "-h", "-o", "%R").split()[0]


def case_clustershell(c):
    """ClusterShell finds its groups of Slurm nodes, with the example configuration that it
    brings."""
    example = "/etc/clustershell/groups.conf.d/slurm.conf.example"
    if not installed("nodeset"):
        return
    if not os.path.exists(example):
        cluster.pass_over(f"there is no {example}")
        return
    folder = f"{c.out}/clustershell"
    os.makedirs(f"{folder}/groups.conf.d", exist_ok=True)
    shutil.copy(example, f"{folder}/groups.conf.d/slurm.conf")
    with open(f"{folder}/groups.conf", "w", encoding="utf-8") as f:
        f.write("[Main]\ndefault: slurmpart\nconfdir: $CFGDIR/groups.conf.d\n")
    def nodeset(*arguments):
        done = client(c, ["nodeset", *arguments], env={"CLUSTERSHELL_CFGDIR": folder})
        equal(done.returncode, 0, done.stderr)
        return done.stdout.strip()
    part = partition_of(c)
    all_nodes = ok(c, "sinfo", "-h", "-o", "%N", "-p", part).strip()
    equal(nodeset("-f", f"@slurmpart:{part}"), all_nodes)
    job = ok(c, "sbatch", "--parsable", MEM, "-N2", "-o", "/dev/null", "--wrap=sleep 60").strip()
    in_state(c, job, "RUNNING")
    equal(nodeset("-f", f"@slurmjob:{job}"), all_nodes)
    equal(nodeset("-f", f"@slurmuser:{c.user}"), all_nodes)
    contains(nodeset("-f", "-s", "slurmstate", "-a"), all_nodes.split("[")[0])
    ok(c, "scancel", job)


def case_snakemake(c):
    """`snakemake --slurm` uses --wrap, sacct, sacctmgr, sinfo, and srun inside of the job."""
    if not os.environ.get("GANTRY_LONG"):
        cluster.pass_over("GANTRY_LONG=1 runs it: it takes a minute, as it looks at its jobs so rarely")
        return
    if not installed("snakemake"):
        return
    make_team(c)
    folder = f"{c.out}/snakemake"
    os.makedirs(folder)
    with open(f"{folder}/Snakefile", "w", encoding="utf-8") as f:
        f.write("""
rule a:
    output: "a.txt"
    resources: mem_mb=700, runtime=5
    shell: "echo made by a > {output}"
""")
    shutil.chown(folder, c.user, c.user)
    done = client(c, ["snakemake", "--slurm", "--jobs", "1", "--latency-wait", "20", "-d", folder,
                      "-s", f"{folder}/Snakefile", "--default-resources", "slurm_account='mine'",
                      "slurm_partition='team'", "disk_mb=1"],
                  env={"XDG_CACHE_HOME": folder})
    equal(done.returncode, 0, done.stdout[-2000:] + done.stderr[-4000:])
    equal(text(f"{folder}/a.txt"), "made by a\n")


def case_sort_of_sinfo(c):
    names = ok(c, "sinfo", "-h", "-N", "-o", "%N").split()
    equal(ok(c, "sinfo", "-h", "-N", "-S", "-N", "-o", "%N").split(), names[::-1])
    equal(slurm(c, "sinfo", "-h", "-N", "-o", "%N", env={"SINFO_SORT": "-N"}).stdout.split(),
          names[::-1])
    c.root(["gctl", "drain", names[-1], "-r", "test"], check=True)
    try:
        states = [line.split()[0] for line in ok(c, "sinfo", "-h", "-o", "%t %N").splitlines()]
        equal(states[0], "drain", "partitions as configured, then from the highest state down")
        states = [line.split()[0] for line in
                  ok(c, "sinfo", "-h", "-S", "t", "-o", "%t %N").splitlines()]
        equal(states[-1], "drain")
    finally:
        c.root(["gctl", "resume", names[-1]], check=True)


def case_names_of_nodes(c):
    """Most scripts of torchrun set MASTER_ADDR in this way; and programs look for their own
    name."""
    first = "$(scontrol show hostnames $SLURM_JOB_NODELIST | head -n1)"
    job = run_to_end(c, "-N2", "-n2", "--network=host", "-o", "names.out",
                     "--wrap=srun -l getent hosts " + first)
    shown = text(f"{c.out}/names.out").splitlines()
    equal(sorted(line.split()[0] for line in shown), ["0:", "1:"], f"tasks of job {job}: {shown}")
    equal({line.split()[1] for line in shown}, {"127.0.0.1"})
    run_to_end(c, "-o", "names.out", "--network=none", "--wrap=getent hosts $(hostname)")
    equal(text(f"{c.out}/names.out").split()[0], "127.0.0.1")
    run_to_end(c, "-o", "names.out", "--wrap=getent hosts $(hostname)")
    own = text(f"{c.out}/names.out").split()[0]  # the job's own address, if it has a network
    equal(own.startswith(("100.64.", "127.0.0.1")), True, own)
    run_to_end(c, "-o", "names.out", "--wrap=getent hosts localhost && cat /etc/hosts")
    with open("/etc/hosts", encoding="utf-8") as f:
        contains(text(f"{c.out}/names.out"), f.readline())


def variables(text_of):
    return dict(line.split("=", 1) for line in text_of.splitlines() if line.startswith("SLURM"))


def case_environment_of_steps(c):
    """Variables of a step on another node than the script's, and of steps that srun and salloc
    request themselves."""
    run_to_end(c, "-N2", "-n3", "-o", "step.out",
               "--wrap=srun -n3 bash -c '[ $SLURM_PROCID = 2 ] && env; true'")
    step = variables(text(f"{c.out}/step.out"))
    here = {name: step.get("SLURM_" + name) for name in
            ("CPUS_ON_NODE", "TOPOLOGY_ADDR", "NODEID", "LAUNCH_NODE_IPADDR")}
    equal(here, {"CPUS_ON_NODE": "1", "TOPOLOGY_ADDR": step["SLURMD_NODENAME"], "NODEID": "1",
                 "LAUNCH_NODE_IPADDR": "127.0.0.1"})
    for command in (["srun", MEM, "-n2", "bash", "-c", "[ $SLURM_PROCID = 1 ] && env; true"],
                    ["salloc", MEM, "-n2", "env"]):
        own = variables(slurm(c, *command).stdout)
        equal({name: own.get("SLURM_" + name) for name in
               ("JOB_QOS", "NPROCS", "MEM_PER_NODE", "JOB_USER", "CLUSTER_NAME")},
              {"JOB_QOS": "normal", "NPROCS": "2", "MEM_PER_NODE": "40", "JOB_USER": c.user,
               "CLUSTER_NAME": cluster_of(c)})
        equal(own["SLURM_SUBMIT_HOST"], os.uname().nodename)


def case_ends_of_tasks(c):
    done = slurm(c, "srun", MEM, "-N1", "-n2", "false")
    equal((done.returncode, bool(re.fullmatch(
        r"srun: error: node\d: tasks 0-1: Exited with exit code 1\n", done.stderr))), (1, True),
        done.stderr)


def case_tasks_of_a_waiting_array(c):
    job = ok(c, "sbatch", "--parsable", "--hold", MEM, "-a", "1-6%2", "--wrap=true").strip()
    equal(ok(c, "squeue", "-h", "-j", f"{job}_2", "-o", "%i"), f"{job}_2\n")
    equal(ok(c, "squeue", "-h", "-j", f"{job}_[2-3],{job}_6", "-o", "%i"), f"{job}_[2-3,6]\n")
    equal(ok(c, "squeue", "-h", "-r", "-j", f"{job}_4,{job}_5", "-o", "%i %C"),
          f"{job}_4 1\n{job}_5 1\n")
    shown = keys(ok(c, "scontrol", "-o", "show", "job", f"{job}_3"))
    equal((shown["ArrayTaskId"], shown["ArrayTaskThrottle"]), ("3", "2"))
    ok(c, "scancel", job)


def case_waiting_jobs_change(c):
    """Changes by scontrol to a waiting job take effect when it starts."""
    job = ok(c, "sbatch", "--parsable", "--hold", "--mem=40M", "-o", "%j.out",
             "--wrap=echo $SLURM_CPUS_ON_NODE $SLURM_MEM_PER_NODE $SLURMD_NODENAME").strip()
    ok(c, "scontrol", "update", f"jobid={job}", "CPUsPerTask=2", "MinMemoryNode=60",
       "ExcNodeList=node1", "Requeue=0")
    shown = keys(ok(c, "scontrol", "-o", "show", "job", job))
    equal([shown[key] for key in ("CPUs/Task", "MinMemoryNode", "ExcNodeList", "Requeue")],
          ["2", "60M", "node1", "0"])
    refused = slurm(c, "scontrol", "update", f"job={job}", "NumNodes=99")
    equal(refused.returncode, 1)
    contains(refused.stderr, f"Requested node configuration is not available for job {job}")
    ok(c, "scontrol", "release", job)
    c.ended(int(job), "completed")
    equal(c.output(job), "2 60 node2\n")


def case_notme(c):
    job = ok(c, "sbatch", "--parsable", "--hold", MEM, "--wrap=true").strip()
    equal(ok(c, "squeue", "-h", "--notme", "-o", "%i"), "")
    contains(c.root(["slurm/squeue", "-h", "--notme", "-o", "%i"]).stdout, job)
    ok(c, "scancel", job)


def case_scancel_choices(c):
    def held(*options):
        return ok(c, "sbatch", "--parsable", "--hold", MEM, *options, "--wrap=true").strip()

    def queue():
        return sorted(ok(c, "squeue", "-h", "-o", "%i").split(), key=int)

    before = queue()
    keyed, array, plain = held("--wckey=blue"), held("-a", "1-3"), held()
    ok(c, "scancel", "--wckey=green")
    ok(c, "scancel", "--wckey=blue")
    equal([job in ok(c, "squeue", "-h", "-o", "%F").split() for job in (keyed, array, plain)],
          [False, True, True])
    equal(slurm(c, "scancel", "-i", f"{array}_2", input="y\n").returncode, 0)
    equal(ok(c, "squeue", "-h", "-j", array, "-o", "%i"), f"{array}_[1,3]\n")
    asked = slurm(c, "scancel", "--interactive", plain, input="n\n")
    equal((asked.returncode, asked.stdout), (0, f"Cancel job_id={plain} name=wrap partition=batch "
                                               "[y/n]? "))
    in_state(c, plain, "PENDING")
    equal(slurm(c, "scancel", "-i", plain, input="y\n").returncode, 0)
    in_state(c, plain, "CANCELLED")
    ok(c, "scancel", "--qos=nothing")
    ok(c, "scancel", "-q", "normal")
    equal(ok(c, "squeue", "-h", "-o", "%F").split(), [])
    equal(before, [], "jobs of other cases")


def case_srun_beside(c):
    """Programs before and after a step, an allocation at once or not at all, and a single
    Ctrl-C."""
    for name in ("before", "behind"):
        os.chmod(script(c, name, f"echo {name} $1 $2\n"), 0o755)
    done = slurm(c, "srun", MEM, f"--prolog={c.out}/before", f"--epilog={c.out}/behind", "echo", "in")
    equal((done.returncode, done.stdout), (0, "before echo in\nin\nbehind echo in\n"))
    done = slurm(c, "srun", MEM, "--prolog=none", "--epilog=/nonexistent", "true")
    equal((done.returncode, done.stderr), (0, "srun: error: /nonexistent could not be run\n"))
    done = slurm(c, "srun", "-I", MEM, "echo", "at once")
    equal((done.returncode, done.stdout), (0, "at once\n"))
    nodes = ok(c, "sinfo", "-h", "-o", "%D").split()[0]
    full = ok(c, "sbatch", "--parsable", "--mem=0", "-N", nodes, "-o", "/dev/null",
              "--wrap=sleep 100").strip()
    in_state(c, full, "RUNNING")
    busy = slurm(c, "srun", "--immediate=1", MEM, "true")
    equal((busy.returncode, busy.stderr),
          (1, "srun: error: Unable to allocate resources: Requested nodes are busy\n"))
    busy = slurm(c, "salloc", "-I1", MEM, "true")
    equal(busy.returncode, 1)
    contains(busy.stderr, "salloc: error: Unable to allocate resources: Requested nodes are busy\n")
    ok(c, "scancel", full)
    run = c.popen(["slurm/srun", "--quit-on-interrupt", MEM, "bash", "-c",
                   "trap : INT; echo up; sleep 100; sleep 100"])
    equal(run.stdout.readline(), "up\n")
    run.send_signal(signal.SIGINT)
    run.wait(timeout=30)
    contains(run.stdout.read(), "srun: forcing job termination\n")


def case_srun_words(c):
    """--quiet, --relative, --unbuffered and --label work as scripts write them."""
    path = script(c, "words.sh", """
echo first $(srun -r 0 -N1 -n1 hostname -s) second $(srun --relative=1 -N1 -n1 sh -c 'echo $SLURMD_NODENAME')
srun --quiet -N1 -n1 --overlap --unbuffered --label echo said 2>&1
""")
    ok(c, "sbatch", "--wait", "-N2", "--ntasks-per-node=1", MEM, "-o", f"{c.out}/words.out", path)
    said = text(f"{c.out}/words.out")
    assert re.search(r"^first \S+ second node2$", said, re.M), said
    contains(said, "0: said\n")


def case_iterate(c):
    """`squeue -i` and `sinfo -i` repeat until they are killed, as watchers use them."""
    for command in (["squeue", "-i", "1"], ["sinfo", "--iterate=1"]):
        watch = client(c, ["timeout", "2.5", *command])
        equal(watch.returncode, 124, watch.stderr)
        assert len(re.findall(r"^\S+ \S+ .*:.*$", watch.stdout, re.M)) >= 2, watch.stdout


def case_suspend(c):
    """A suspended job makes no progress until it is resumed, whichever daemon is restarted
    meanwhile."""
    ticks = f"{c.out}/ticks"
    path = script(c, "ticks.sh", f"while :; do echo x >> {ticks}; sleep 0.05; done\n")
    job = ok(c, "sbatch", "--parsable", "-N2", "--ntasks-per-node=1", MEM, "-t", "5", "-o",
             "/dev/null", path).strip()
    def still():
        before = len(text(ticks))
        time.sleep(0.3)
        return len(text(ticks)) == before
    wait_for("some ticks", lambda: len(text(ticks)) > 4)
    bad = slurm(c, "scontrol", "suspend", job)
    equal((bad.returncode, bad.stderr.splitlines()[0]),
          (1, "slurm_suspend error: Access/permission denied"))
    def operator(*words):
        done = c.root(["slurm/scontrol", *words])
        equal((done.returncode, done.stderr), (0, ""), " ".join(words))
    operator("suspend", job)
    in_state(c, job, "SUSPENDED")
    wait_for("no more ticks", still)
    equal(ok(c, "squeue", "-h", "-t", "S", "-o", "%i %t"), f"{job} S\n")
    contains(ok(c, "scontrol", "show", "job", job), "JobState=SUSPENDED")
    equal(ok(c, "sacct", "-X", "-n", "-P", "-j", job, "-o", "State"), "SUSPENDED\n")
    c.kill_and_restart(c.daemon("ctld"))
    c.kill_and_restart(c.daemon("node1"))
    answers(c)
    in_state(c, job, "SUSPENDED")
    assert still(), "it goes on although it is suspended"
    operator("resume", job)
    in_state(c, job, "RUNNING")
    wait_for("more ticks", lambda: not still())
    operator("suspend", job)
    wait_for("no more ticks", still)
    equal(ok(c, "scancel", job), "")
    in_state(c, job, "CANCELLED")


def case_forms_of_the_environment(c):
    """SQUEUE_FORMAT and SINFO_FORMAT apply to calls without an option for the format."""
    job = ok(c, "sbatch", "--parsable", MEM, "--wrap", "sleep 60").strip()
    in_state(c, job, "RUNNING")
    env = {"SQUEUE_FORMAT": "%i;", "SQUEUE_FORMAT2": "name", "SQUEUE_STATES": "PD",
           "SINFO_FORMAT": "%N;"}
    equal(ok(c, "squeue", "-t", "R", "-h", "-j", job, env=env), f"{job};\n")
    equal(ok(c, "squeue", "-h", "-j", job, env=env), "")
    contains(ok(c, "squeue", "-l", "-t", "R", env=env), "TIME_LIMI")
    contains(ok(c, "squeue", "-s", "-j", job, env=env), f"{job}.batch")
    equal(ok(c, "squeue", "-h", "-t", "R", "-j", job, "-O", "jobid:@", env=env), f"{job}@\n")
    contains(ok(c, "sinfo", env=env), ";\n")
    for form in ("-s", "-N", "-R"):
        assert ";" not in ok(c, "sinfo", form, env=env), form
    ok(c, "scancel", job)



if __name__ == "__main__":
    sys.exit(cluster.main(__doc__, globals(), "slurm_clients", nodes=2))
