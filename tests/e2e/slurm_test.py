#!/usr/bin/env python3
"""Calls that third-party clients of Slurm make, against real daemons and containers: each case
makes the calls of one or more clients with their own lists of options, and reads the answers as
those clients do.

usage: slurm_test.py BIN_DIR [-k CASE] [--keep]
"""
import json
import re
import sys

import cluster
from cluster import contains, equal, text, wait_for
from slurm_calls import MEM, cluster_of, in_state, keys, ok, script, slurm, state


# ---- submission and the queue -------------------------------------------------------------------

def case_submitit(c):
    """submitit: an array with its header, the id read by its regular expression, pending ranges,
    results."""
    path = script(c, "submitit.sh", """
# Parameters
#SBATCH --array=0-3%2
#SBATCH --cpus-per-task=1
#SBATCH --error=/var/tmp/none/%A_%a_0_log.err
#SBATCH --job-name=submitit
#SBATCH --mem=40MB
#SBATCH --nodes=1
#SBATCH --ntasks-per-node=1
#SBATCH --open-mode=append
#SBATCH --output=OUT/%A_%a_0_log.out
#SBATCH --signal=USR2@90
#SBATCH --time=5
#SBATCH --wckey=submitit

export SUBMITIT_EXECUTOR=slurm
echo task $SLURM_ARRAY_TASK_ID of $SLURM_ARRAY_JOB_ID, $SLURM_ARRAY_TASK_COUNT
""".replace("OUT", c.out).replace("/var/tmp/none", c.out))
    out = ok(c, "sbatch", path)
    job = re.search(r"job (?P<id>[0-9]+)", out).group("id")
    equal(out, f"Submitted batch job {job}\n")
    wait_for("the array's end", lambda: sorted(ok(
        c, "squeue", "-h", "-t", "all", "-r", "-j", job, "-o", "%i %T").split("\n")[:-1])
        == [f"{job}_{i} COMPLETED" for i in range(4)])
    equal(text(f"{c.out}/{job}_2_0_log.out"), f"task 2 of {job}, 4\n")
    equal(ok(c, "squeue", "-h", "-t", "all", "-r", "-j", job, "-o", "%w").split()[0], "submitit")


def case_dask_jobqueue(c):
    path = script(c, "dask.sh", """
#SBATCH -J dask-worker
#SBATCH -e OUT/dask-worker-%J.err
#SBATCH -o OUT/dask-worker-%J.out
#SBATCH -n 1
#SBATCH -N 1
#SBATCH --cpus-per-task=1
#SBATCH --mem=40M
#SBATCH -t 00:30:00
echo $SLURM_JOB_ID; sleep 60
""".replace("OUT", c.out))
    job = re.search(r"\d+", ok(c, "sbatch", path)).group()
    in_state(c, job, "RUNNING")
    equal(ok(c, "scancel", job), "")
    in_state(c, job, "CANCELLED")
    equal(ok(c, "scancel", job, "999999"), "", "scancel of what is over")
    equal(text(f"{c.out}/dask-worker-{job}.out"), f"{job}\n")


def case_parsl(c):
    """parsl: blank lines between directives; states through squeue with quoted ids."""
    path = script(c, "parsl.submit", f"""

#SBATCH --job-name=parsl.block-0
#SBATCH --output={c.out}/parsl.stdout
#SBATCH --error={c.out}/parsl.stderr
#SBATCH --nodes=1
#SBATCH --time=10
#SBATCH --ntasks-per-node=1
#SBATCH --mem=40m
#SBATCH --cpus-per-task=1

echo CORES=$SLURM_CPUS_ON_NODE
exit 3
""")
    out = ok(c, "sbatch", path)
    job = re.match(r"Submitted batch job (?P<id>\S*)", out).group("id")
    def status():
        lines = ok(c, "squeue", "--noheader", "--format=%i %t", "-t", "all", "--job",
                   f"{job},999999").split("\n")
        return dict(line.split() for line in lines if line).get(job)
    wait_for("F", lambda: status() == "F")
    contains(text(f"{c.out}/parsl.stdout"), "CORES=1")


def case_psij(c):
    path = script(c, "psij.sh", f"""
#SBATCH --job-name="psij"
#SBATCH --chdir="{c.out}"
#SBATCH --nodes=1
#SBATCH --ntasks=1
#SBATCH --cpus-per-task=1
#SBATCH --mem=40960K
#SBATCH --time=0:5:0
#SBATCH --export=NONE
#SBATCH -e /dev/null
#SBATCH -o /dev/null
echo "$HOME $USER $PATH" > psij.env
""")
    job = ok(c, "sbatch", path).split()[-1]
    def status():
        rows = ok(c, "squeue", "-O", "JobArrayID,StateCompact,Reason", "-t", "all", "--me")
        for line in rows.split("\n")[1:]:
            words = line.split()
            if words:
                equal(len(words), 3, f"words of {line!r}")
                if words[0] == job:
                    return words[1]
        return None
    wait_for("CD", lambda: status() == "CD")
    contains(text(f"{c.out}/psij.env"), c.user)
    assert job in ok(c, "squeue", "--me", "-o", "%i", "-h", "-r", "-t", "all").split("\n")
    equal(ok(c, "scancel", "-Q", job), "")


def case_open_ondemand(c):
    """A script on standard input, --parsable, and 48 fields with the client's own separators."""
    out = ok(c, "sbatch", "-H", "-D", c.out, "-J", "ood", "-o", f"{c.out}/ood.log", "-A", "any",
             "-t", "00:05:00", MEM, "-n", "1", "--export", "NONE", "--parsable",
             input="#!/bin/sh\necho ood\n")
    job = out.strip().split(";")[0]
    fields = ("account jobid batchhost mincpus numcpus mintmpdisk numnodes endtime dependency feature "
              "arrayjobid groupname groupid oversubscribe sockets jobarrayid cores name threads "
              "comment arraytaskid timelimit timeleft minmemory timeused reqnodes nodelist command "
              "contiguous qos partition prioritylong reason starttime statecompact state username "
              "userid reservation submittime wckey licenses excnodes corespec nice schednodes sct "
              "workdir tres-alloc tres-per-node reasonlist").split()
    def info():
        got = ok(c, "squeue", "--all", "--states=all", "--noconvert", "-O",
                 ",".join(f + ":\x1f" for f in fields) + ",", "-j", job)
        rows = got.split("\x1f\n")[1:]
        values = rows[0].split("\x1f")
        return dict(zip(fields, values)) if len(values) == len(fields) else None
    equal(info()["statecompact"], "PD")
    equal(info()["reason"], "JobHeldUser")
    equal(info()["workdir"], c.out)
    equal(info()["command"], "(null)")
    named = ok(c, "sbatch", "-M", cluster_of(c), "--parsable", MEM, "--wrap=true").strip()
    equal(named.split(";")[1], cluster_of(c))
    equal(ok(c, "scancel", "-M", cluster_of(c), job), "")
    gone = slurm(c, "squeue", "-j", "999999")
    equal((gone.returncode, gone.stderr), (1, "slurm_load_jobs error: Invalid job id specified\n"))


def case_batchspawner(c):
    body = """#!/bin/bash
#SBATCH --output=OUT/jupyter.log
#SBATCH --chdir=OUT
#SBATCH --export=PATH,HOME
#SBATCH --get-user-env=L
#SBATCH --mem=40M
#SBATCH --time=5
sleep 60
""".replace("OUT", c.out)
    job = ok(c, "sbatch", "--parsable", input=body).splitlines()[-1].split(";")[0]
    wait_for("RUNNING", lambda: re.match(r"^(RUNNING|COMPLETING)", ok(
        c, "squeue", "-h", "-j", job, "-o", "%T %B")))
    host = ok(c, "squeue", "-h", "-j", job, "-o", "%T %B").split()[-1]
    assert host in ok(c, "squeue", "-h", "-j", job, "-o", "%N"), host
    ok(c, "scancel", job)


def case_nextflow(c):
    path = script(c, ".command.run", f"""
#SBATCH -J nf-hello
#SBATCH -o {c.out}/.command.log
#SBATCH --no-requeue 
#SBATCH --signal B:USR2@30
#SBATCH -c 1
#SBATCH -t 00:05:00
#SBATCH --mem 40M
echo nf
""")
    job = re.search(r"Submitted batch job (\d+)", ok(c, "sbatch", path)).group(1)
    def status():
        lines = ok(c, "squeue", "--noheader", "-o", "%i %t", "-t", "all", "-u", c.user).split("\n")
        return dict(line.split() for line in lines if line).get(job)
    wait_for("CD", lambda: status() == "CD")
    equal(text(f"{c.out}/.command.log"), "nf\n")


def case_aiida(c):
    path = script(c, "_aiidasubmit.sh", """
#SBATCH --no-requeue
#SBATCH --job-name="aiida-7"
#SBATCH --get-user-env
#SBATCH --output=_scheduler-stdout.txt
#SBATCH --error=_scheduler-stderr.txt
#SBATCH --nodes=1
#SBATCH --ntasks-per-node=1
#SBATCH --time=00:05:00
#SBATCH --mem=40
sleep 60
""")
    job = re.search(r"(.*:\s*)?[Ss]ubmitted batch job\s+(\d+)", ok(c, "sbatch", path)).group(2)
    fields = "%i^^^%t^^^%r^^^%B^^^%u^^^%D^^^%C^^^%R^^^%P^^^%l^^^%M^^^%S^^^%j^^^%V"
    def row():
        out = ok(c, "squeue", "--noheader", "-o", fields, f"--jobs={job},{job}",
                 env={"SLURM_TIME_FORMAT": "standard"})
        return out.strip().split("^^^")
    wait_for("R", lambda: row()[1] == "R")
    equal(len(row()), 14)
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d", row()[11]), row()[11]
    equal(row()[12], "aiida-7")
    ok(c, "scancel", job)
    equal(ok(c, "squeue", "--noheader", "-o", fields, "--jobs=999998,999998"), "")


def case_snakemake_7(c):
    """stderr is merged into stdout, so nothing else may stand there; the last word is the id."""
    out = ok(c, "sbatch", "-J", "snake", "-o", "logs-%j.log", "--export=ALL", "-t", "5", "--mem",
             "40", "--ntasks=1", "--cpus-per-task=1", "-D", c.out, "--wrap=echo 'a b'")
    job = out.split()[-1]
    in_state(c, job, "COMPLETED")
    equal(text(f"{c.out}/logs-{job}.log"), "a b\n")


def case_snakemake_plugin(c):
    name = "5b6c-uuid"
    out = ok(c, "sbatch", "--parsable", "--job-name", name, "--output", f"{c.out}/plugin-%a.log",
             "--export=ALL", "--comment", "rule_a_wildcards", "-t", "5", "--mem", "40",
             "--ntasks=1", "--cpus-per-task=1", "--array=1-2", "-D", c.out, "/dev/stdin",
             input="#!/bin/sh\necho $SLURM_ARRAY_TASK_ID\n")
    job = out.strip().split(";")[0]
    assert job.isdigit(), out
    def states():
        out = ok(c, "squeue", "--format=%i|%T", "--states=all", "--noheader", "--name", name)
        return dict(line.split("|") for line in out.split("\n") if line)
    wait_for("both", lambda: states() == {f"{job}_1": "COMPLETED", f"{job}_2": "COMPLETED"})
    equal(ok(c, "squeue", "-h", "-t", "all", "-j", f"{job}_1,999999", "-o", "%k"), "rule_a_wildcards\n")


def case_others_that_poll(c):
    """The calls of clusterfutures, blahp, ARC, rslurm, batchtools, toil, signac-flow and
    jupyterlab-slurm."""
    job = ok(c, "sbatch", "-J", "poll", MEM, "-o", "/dev/null", "--wrap=exit 0").split()[3]
    in_state(c, job, "COMPLETED")
    equal(ok(c, "squeue", "--noheader", "--format=%i %T", "--jobs", f"{job},999997",
             "--states=all"), f"{job} COMPLETED\n")
    equal(ok(c, "squeue", "-a", "-h", "-o", "%i:%T", "-t", "all", "-j", job), f"{job}:COMPLETED\n")
    equal(ok(c, "squeue", "-u", c.user, "-h", "--format=%2t%100j", "-t", "CD", "-n", "poll"),
          "CD" + "poll".ljust(100) + "\n")
    held = ok(c, "sbatch", "-H", "-J", "held", MEM, "--wrap=true").split()[3]
    equal(ok(c, "squeue", f"--user={c.user}", "--states=PD,CF,RF,RH,RQ,SE", "--noheader",
             "--format=%i", "-r", "-n", "held"), f"{held}\n")
    rows = ok(c, "squeue", "-n", "held").split("\n")
    equal(len(rows[1].split()), len(rows[0].split()), "words of a row and its header")
    row = ok(c, "squeue", "-u", c.user, "-o", "%.18i %.9P %.8j %.8u %.2t %.10M %.6D %R", "-h", "-n",
             "held")
    equal(len(row.split()), 8)
    equal(ok(c, "squeue", "-h", "-j", f"{held},999999", "--format", "%i %t %M"), f"{held} PD 0:00\n")
    ok(c, "scancel", "--name", "held")
    in_state(c, held, "CANCELLED")


def case_torchx_json(c):
    job = ok(c, "sbatch", "--parsable", "--comment=x", MEM, "--wrap=sleep 60").strip()
    in_state(c, job, "RUNNING")
    data = json.loads(ok(c, "squeue", "--json", "-j", job))
    entry = data["jobs"][0]
    equal(entry["job_state"][0], "RUNNING")
    equal(entry["job_id"], int(job))
    nodes = entry["job_resources"]["nodes"]
    equal(nodes["allocation"][0]["name"], nodes["list"])
    equal((data["errors"], data["warnings"]), ([], []))
    ok(c, "scancel", job)


def case_wait_and_exit_codes(c):
    done = slurm(c, "sbatch", "--wait", MEM, "-o", "/dev/null", "--wrap=exit 7")
    equal(done.returncode, 7, done.stderr)
    bad = slurm(c, "sbatch", "-p", "nope", "--wrap=true")
    equal((bad.returncode, bad.stdout), (1, ""))
    equal(bad.stderr, "sbatch: error: invalid partition specified: nope\n"
          "sbatch: error: Batch job submission failed: Invalid partition name specified\n")
    big = slurm(c, "sbatch", "--mem=900G", "--wrap=true")
    contains(big.stderr, "sbatch: error: Memory specification can not be satisfied\n")
    contains(big.stderr, "failed: Requested node configuration is not available\n")
    for options, words in ((("-C", "nope"), "Invalid feature specification"),
                           (("-w", "nope"), "Invalid node name specified"),
                           (("-d", "afterok:999999"), "Job dependency problem"),
                           (("--reservation=nope",), "Requested reservation is invalid"),
                           (("--qos=nope",), "Invalid qos specification")):
        done = slurm(c, "sbatch", MEM, *options, "--wrap=true")
        equal((done.returncode, done.stderr.splitlines()[-1]),
              (1, f"sbatch: error: Batch job submission failed: {words}"))


def case_signals(c):
    """A signal for the batch shell only, as SkyPilot and ipyparallel send it with B:SIG."""
    job = ok(c, "sbatch", "--parsable", MEM, "-o", f"{c.out}/sig.log", input="""#!/bin/bash
trap 'echo got; exit 0' USR1
echo ready
while :; do sleep 0.1; done
""").strip()
    wait_for("ready", lambda: "ready" in text(f"{c.out}/sig.log"))
    ok(c, "scancel", "-b", "-s", "USR1", job)
    in_state(c, job, "COMPLETED")
    contains(text(f"{c.out}/sig.log"), "got")


# ---- scontrol and sinfo -------------------------------------------------------------------------

def case_requeue_from_inside(c):
    """The job calls `scontrol requeue N` for itself and keeps its id, as with submitit."""
    job = ok(c, "sbatch", "--parsable", "--requeue", "--open-mode=append", MEM, "-o",
             f"{c.out}/requeue.log", input="""#!/bin/bash
echo run ${SLURM_RESTART_COUNT:-0}
if [ ${SLURM_RESTART_COUNT:-0} = 0 ]; then scontrol requeue $SLURM_JOB_ID; sleep 60; fi
""").strip()
    in_state(c, job, "COMPLETED")
    equal([line for line in text(f"{c.out}/requeue.log").splitlines() if line.startswith("run")],
          ["run 0", "run 1"])
    equal(ok(c, "sacct", "-X", "-n", "-P", "-j", job, "-o", "State").strip(), "COMPLETED")


def case_scontrol_show_job(c):
    """HyperQueue, covalent, SAGA, ARC and blahp read KEY=VALUE in Slurm's layout."""
    job = ok(c, "sbatch", "--parsable", "-H", "-J", "shown", "-t", "5", MEM, "-n", "1",
             script(c, "shown.sh", "true\n")).strip()
    out = ok(c, "scontrol", "show", "job", job)
    assert out.startswith(f"JobId={job} JobName=shown\n   UserId={c.user}("), out
    found = keys(out)
    for key in ("JobState Reason Dependency Requeue Restarts BatchFlag ExitCode RunTime TimeLimit "
                "SubmitTime StartTime EndTime Partition ReqNodeList NodeList NumNodes NumCPUs "
                "NumTasks CPUs/Task TRES MinMemoryNode Features Command WorkDir StdErr StdIn "
                "StdOut Priority Account QOS").split():
        assert key in found, key
    equal((found["JobState"], found["Reason"]), ("PENDING", "JobHeldUser"))
    equal((found["Priority"], ok(c, "squeue", "-h", "-j", job, "-o", "%Q").strip()), ("0", "0"))
    equal(found["StdOut"], f"{c.out}/slurm-{job}.out")
    equal(found["Command"], f"{c.out}/shown.sh")
    equal(re.search(r"JobState=(\w+)", ok(c, "scontrol", "show", "jobid", "-dd", job)).group(1),
          "PENDING")
    equal(len(ok(c, "scontrol", "-o", "show", "job", job).splitlines()), 1)
    ok(c, "scontrol", "release", job)
    in_state(c, job, "COMPLETED")
    gone = slurm(c, "scontrol", "show", "job", "999999")
    equal((gone.returncode, gone.stderr), (1, "slurm_load_jobs error: Invalid job id specified\n"))
    gone = slurm(c, "scontrol", "hold", "999999")
    equal(gone.returncode, 1)
    contains(gone.stderr, "Invalid job id specified")


def case_scontrol_update(c):
    job = ok(c, "sbatch", "--parsable", "-H", "-t", "30", MEM, "--wrap=true").strip()
    ok(c, "scontrol", "update", f"JobId={job}", "TimeLimit=10", "Nice=7", "Comment=later")
    found = keys(ok(c, "scontrol", "show", "job", job))
    equal((found["TimeLimit"], found["Nice"], found["Comment"]), ("00:10:00", "7", "later"))
    contains(ok(c, "scontrol", "write", "batch_script", job, "-"), "\ntrue\n")
    ok(c, "scancel", job)


def case_cluster(c):
    """The calls of snakemake, ood, torchx, SkyPilot, reframe, exporter, ClusterShell, ARC and
    gpustat."""
    partitions = ok(c, "sinfo", "-h", "-o", "%P").split()
    default = next(p for p in partitions if p.endswith("*"))[:-1]
    assert default in ok(c, "sinfo", "-h", "-o", "%R").split()
    for out in (ok(c, "sinfo", "-aho", "%F/%C"), ok(c, "sinfo", "-h", "-o", " %C")):
        assert re.fullmatch(r" ?\d+(/\d+)+\n", out), out
    equal(len(ok(c, "sinfo", "-ahNO", "nodehost:100,gres:100,gresused:100,statelong").splitlines()),
          2)
    for line in ok(c, "scontrol", "show", "part", "-o").splitlines():
        for word in line.split():
            assert re.fullmatch(r"[^=]+=.+", word), word
    version = ok(c, "sinfo", "--version").split()
    equal((len(version), version[0]), (2, "slurm"))
    contains(ok(c, "sinfo", "--format", "%P,%m", "--noconvert"), "PARTITION,MEMORY\n")
    name, state = ok(c, "sinfo", "-h", "--Node", "-o", "%N\\x1f%t").splitlines()[0].split("\\x1f")
    equal(state.split("*")[0] in ("idle", "mix", "alloc"), True, state)
    assert re.search(r"^\s*NodeAddr=\S+", ok(c, "scontrol", "show", f"node={name}"), re.M)
    for line in ok(c, "scontrol", "-a", "show", "-o", "nodes").splitlines():
        assert keys(line)["State"].split("+")[0] in ("IDLE", "MIXED", "ALLOCATED"), line
    contains(ok(c, "scontrol", "-a", "show", "-o", "partitions"), "Default=YES")
    equal(ok(c, "scontrol", "show", "hostname", "a[1-2],b"), "a1\na2\nb\n")
    equal(ok(c, "scontrol", "show", "hostnames", env={"SLURM_JOB_NODELIST": "n[01-02]"}),
          "n01\nn02\n")
    for fields in (" %D,%T", "%R,%C", ' "%n %G"', "%N"):
        assert ok(c, "sinfo", "-h", "-o", fields)
    ok(c, "sinfo", "-h", "-N", "-O", "NodeList,AllocMem,Memory,CPUsState,StateLong")
    ok(c, "sinfo", "-h", "-o", "%N", "-p", default, "-t", "idle")
    ok(c, "sinfo", "-a", "-h", "-o", "PartitionName=%P TotalCPUs=%C TotalNodes=%D MaxTime=%l "
       "DefTime=%L NodeNames=%N")
    words = ok(c, "sinfo", "--noheader").split()
    equal((words[4].strip("*~") in ("idle", "mix", "alloc"), words[5] != ""), (True, True))
    config = dict(line.split("=", 1) for line in ok(c, "scontrol", "show", "config").splitlines()
                  if " = " in line)
    config = {k.strip(): v.strip() for k, v in config.items()}
    assert re.fullmatch(r"\d+ sec", config["MinJobAge"]), config["MinJobAge"]
    for key in ("ClusterName", "SchedulerTimeSlice", "AcctGatherNodeFreq", "MaxArraySize",
                "SLURM_VERSION"):
        assert config[key], key
    contains(ok(c, "scontrol", "ping"), "is UP")
    assert json.loads(ok(c, "sinfo", "--json"))["nodes"]


def case_accounts_and_diagnosis(c):
    """snakemake, ood and exporters on a cluster without tenants: an empty answer is no error."""
    equal(ok(c, "sacctmgr", "-n", "-s", "list", "user", c.user, "format=account%20"), "")
    equal(ok(c, "sacctmgr", "-nP", "show", "users", "withassoc", "format=account,qos", "where",
             f"user={c.user}", f"cluster={cluster_of(c)}"), "")
    equal(ok(c, "sshare", "-U", "--format", "Account%256", "--noheader"), "")
    for line in ok(c, "sshare", "-n", "-P", "-o", "account,fairshare").splitlines():
        equal(len(line.split("|")), 2)
    ok(c, "sprio", "-h")
    out = ok(c, "sdiag")
    for key in ("Server thread count", "Agent queue size", "DBD Agent queue size", "Last cycle",
                "Mean cycle", "Cycles per minute", "Depth Mean",
                "Total backfilled jobs (since last slurm start)"):
        assert re.search(rf"^\s*{re.escape(key)}:\s+\d+$", out, re.M), key
    job = ok(c, "sbatch", "--parsable", MEM, "-o", "/dev/null", "--wrap=sleep 60").strip()
    in_state(c, job, "RUNNING")
    wait_for("figures of the running script", lambda: slurm(
        c, "sstat", "-n", "-P", "-j", f"{job}.batch", "-o", "JobID,MaxRSS").stdout.startswith(
            f"{job}.batch|"))
    ok(c, "scancel", job)


if __name__ == "__main__":
    sys.exit(cluster.main(__doc__, globals(), "slurm", nodes=2))
