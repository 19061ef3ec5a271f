#!/usr/bin/env python3
"""Accounting and steps as third-party clients of Slurm use them, against real daemons and
containers: sacct, srun and salloc with the clients' own lists of options. See slurm_test.py.

usage: slurm_steps_test.py BIN_DIR [-k CASE] [--keep]
"""
import contextlib
import json
import os
import re
import signal
import subprocess
import sys

import cluster
from cluster import contains, equal, text, wait_for
from slurm_calls import MEM, cluster_of, in_state, ok, run_to_end, script, slurm, state


# ---- accounting ---------------------------------------------------------------------------------


def case_submitit_sacct(c):
    """A job is known at once; rows are found by the header, steps by their dot, pending tasks as
    ranges."""
    array = ok(c, "sbatch", "--parsable", MEM, "-H", "-a", "0-5%2", "--wrap=true").strip()
    out = ok(c, "sacct", "-o", "JobID,State,NodeList", "--parsable2", "-j", array)
    header, *rows = out.splitlines()
    equal(header, "JobID|State|NodeList")
    equal(rows, [f"{array}_[0-5%2]|PENDING|None assigned"])
    ok(c, "scancel", array)
    good, bad = run_to_end(c, "--wrap=true"), run_to_end(c, "--wrap=exit 3")
    rows = [line.split("|") for line in ok(c, "sacct", "-o", "JobID,State,NodeList", "--parsable2",
                                           "-j", good, "-j", bad).splitlines()[1:]]
    states = {r[0]: r[1] for r in rows if "." not in r[0]}
    equal(states, {good: "COMPLETED", bad: "FAILED"})
    assert f"{good}.batch" in [r[0] for r in rows], rows
    assert f"{good}.extern" in [r[0] for r in rows], rows


def case_workflow_engines_sacct(c):
    """The calls of snakemake 7 and its plugin, parsl, toil, reframe, blahp and ARC."""
    name = "uuid-of-snakemake"
    job = run_to_end(c, "-J", name, "--wrap=exit 7")
    equal(ok(c, "sacct", "-P", "-n", "--format=JobIdRaw,State", "-j", job).splitlines()[0],
          f"{job}|FAILED")
    today = ok(c, "sacct", "-X", "--parsable2", "--clusters", "all", "--noheader",
               "--format=JobIdRaw,State", "--starttime", "now-1hour", "--endtime", "now", "--name",
               name)
    equal(today, f"{job}|FAILED\n")
    equal(ok(c, "sacct", "-X", "--noheader", "--format=jobid,state%20", "--job",
             f"{job},999999").split(), [job, "FAILED"])
    equal(ok(c, "sacct", "-n", "-j", f"{job},999999", "--format", "JobIDRaw,State,ExitCode", "-P",
             "-S", "1970-01-01").splitlines()[0], f"{job}|FAILED|7:0")
    out = ok(c, "sacct", "-S", "2020-01-01", "-P", "-j", job, "-o",
             "jobid,state,exitcode,end,nodelist", env={"SLURM_TIME_FORMAT": "%s"})
    assert re.search(rf"^{job}\|FAILED\|7:0\|\d+\|\S+$", out, re.M), out
    out = ok(c, "sacct", "-j", job, "--noconvert", "-P", "--format",
             "JobID,UserCPU,SystemCPU,MaxRSS,ExitCode,AllocCPUS").splitlines()
    batch = next(line for line in out if line.startswith(f"{job}.batch|")).split("|")
    assert re.fullmatch(r"(\d+-)?(\d+:)?\d\d:\d\d(\.\d+)?", batch[1]), batch
    assert batch[3].isdigit(), batch
    equal(ok(c, "sacct", "-j", job, "-o", "ExitCode", "-P", "-n").splitlines()[0], "7:0")
    equal(len(ok(c, "sacct", "-j", f"{job}.batch", "-o", "NCPUS,Start,End,UserCPU,SystemCPU", "-P",
                 "-n").splitlines()), 1)
    refused = slurm(c, "sacct", "-nu", c.user, "-o", "Account%256", "|", "tail", "-1")
    equal(refused.returncode, 1)
    equal(ok(c, "sacct", "-n", "-j", "999999"), "")


def case_all_fields(c):
    """aiida asks for every field that --helpformat names; ood asks for its own fields and
    separators."""
    job = run_to_end(c, "--comment=noted", "--wrap=true")
    fields = [f for f in ok(c, "sacct", "--helpformat").split("\n", 2)[2].split() if f]
    out = ok(c, "sacct", "--format=" + ",".join(fields), "--parsable", f"--jobs={job}").splitlines()
    equal(len(out[1].split("|")), len(out[0].split("|")), "values and names")
    equal(dict(zip(out[0].split("|"), out[1].split("|")))["Comment"], "noted")
    out = ok(c, "sacct", "-P", "--delimiter", "\x1f", "-n", "--units", "G", "--allocations", "-o",
             "JobID,State,ReqMem,Elapsed,AllocTRES", "-j", job)
    equal(len(out.strip().split("\x1f")), 5)
    rows = ok(c, "sacct", "--parsable", "-n", "--delimiter=^|^", "--format=JobID,State",
              f"--user={c.user}", "--starttime=now-1day", "--state=CD")
    assert f"{job}^|^COMPLETED^|^" in rows.splitlines(), rows
    data = json.loads(ok(c, "sacct", "--json", "-j", job))
    equal(data["jobs"][0]["state"]["current"], ["COMPLETED"])
    equal(data["jobs"][0]["job_id"], int(job))
    equal(len(ok(c, "sacct", "--parsable2", "-j", job).splitlines()[0].split("|")), 7)


def case_final_states(c):
    job = ok(c, "sbatch", "--parsable", MEM, "-o", "/dev/null", "--wrap=sleep 100").strip()
    in_state(c, job, "RUNNING")
    ok(c, "scancel", job)
    uid = c.as_user(["gacct", "--json", "-j", job]).stdout
    uid = json.loads(uid)["rows"][0]["row"]["uid"]
    def final():
        return ok(c, "sacct", "-X", "-n", "-P", "-j", job, "-o", "State").strip()
    wait_for("CANCELLED by", lambda: final() == f"CANCELLED by {uid}")
    killed = run_to_end(c, "--wrap=kill -KILL $$")
    equal(ok(c, "sacct", "-X", "-n", "-P", "-j", killed, "-o", "State,ExitCode").strip(),
          "FAILED|0:9")


def case_cancelled_with_its_step(c):
    """A cancelled job leaves a line in its output and a state in sacct; before, a notice reaches
    its output."""
    out = f"{c.out}/cancelled.out"
    job = ok(c, "sbatch", "--parsable", "-n", "1", MEM, "-o", out, "--wrap",
             "srun -n1 sh -c 'echo begun; exec sleep 300'").strip()
    wait_for("the step", lambda: "begun" in text(out))
    ok(c, "scontrol", "notify", job, "save", "your", "work")
    wait_for("the word", lambda: "slurmstepd: error: save your work\n" in text(out))
    ok(c, "scancel", job)
    def rows():
        return dict(line.split("|", 1) for line in
                    ok(c, "sacct", "-n", "-P", "-j", job, "-o", "JobID,State,ExitCode").split("\n")
                    if line)
    wait_for("the end", lambda: "RUNNING" not in str(rows()) and "COMPLETING" not in str(rows()))
    found = rows()
    assert re.match(r"CANCELLED by \d+\|0:0$", found[job]), found
    equal(found[f"{job}.batch"], "CANCELLED|0:15", str(found))
    equal(found[f"{job}.0"], "CANCELLED|0:15", str(found))
    contains(text(out), "srun: Job step aborted: Waiting up to ")
    assert re.search(rf"^slurmstepd: error: \*\*\* JOB {job} ON \S+ CANCELLED AT \S+ \*\*\*$",
                     text(out), re.M), text(out)


# ---- steps --------------------------------------------------------------------------------------

def batch_output(c, name, body, *options):
    """Returns the output of a batch job that ended with status 0."""
    job = ok(c, "sbatch", "--parsable", MEM, "-o", f"{c.out}/{name}.out", *options,
             script(c, f"{name}.sh", body)).strip()
    wait_for(f"the end of job {job}", lambda: state(c, job) not in
             ("PENDING", "CONFIGURING", "RUNNING", "COMPLETING"))
    out = text(f"{c.out}/{name}.out")
    equal(state(c, job), "COMPLETED", f"job {job}: {out}")
    return out


def case_srun_of_launchers(c):
    """The calls of submitit, parsl, snakemake, HyperQueue, torchx, and of Open MPI's and MPICH's
    daemons."""
    out = batch_output(c, "launchers", f"""
set -e
srun --unbuffered --output {c.out}/s_%t.out --error {c.out}/s_%t.err bash -c 'echo rank $SLURM_PROCID'
echo parsl; srun --ntasks 4 -l bash -c 'echo $SLURM_LOCALID $SLURM_NODEID'
echo snakemake; srun -n1 --cpu-bind=q echo one
echo hq; srun --overlap --ntasks=2 --nodes=2 bash -c 'echo $SLURM_NODEID' | sort
echo torchx; srun --output={c.out}/t.out --error={c.out}/t.err --wait=60 --kill-on-bad-exit=1 \\
  --export=ALL,TORCHX=yes bash -c 'echo $TORCHX $SLURM_JOB_ID'
echo orted; srun --ntasks-per-node=1 --kill-on-bad-exit --mpi=none --cpu-bind=none --ntasks=2 bash -c \\
  'echo $SLURM_NODEID $(nproc)' | sort
echo hydra; srun -N 2 -n 2 --input none bash -c 'echo $SLURM_NODEID' | sort
echo one; srun -N1 -n1 -w $(scontrol show hostnames | tail -1) bash -c \\
  'echo $SLURM_STEP_NODELIST $SLURM_NTASKS $SLURM_JOB_NUM_NODES'
echo relative; srun -r 1 -N1 -n1 hostname
echo stdin | srun -n2 cat
""", "-N", "2", "--ntasks-per-node=2")
    parts = re.split(r"^(parsl|snakemake|hq|torchx|orted|hydra|one|relative)\n", out, flags=re.M)
    said = dict(zip(parts[1::2], parts[2::2]))
    equal(sorted(said["parsl"].split("\n")[:-1]), ["0: 0 0", "1: 1 0", "2: 0 1", "3: 1 1"])
    equal(said["hq"], "0\n1\n")
    equal(text(f"{c.out}/t.out").split()[0], "yes")
    equal(said["orted"], "0 2\n1 2\n", "a daemon on each node, with all its cores")
    equal(said["hydra"], "0\n1\n")
    last = said["one"].split()
    equal(last[1:], ["1", "2"])
    equal(said["relative"].split("\n")[0], last[0])
    contains(said["relative"], "stdin\n")
    equal(sorted(text(f"{c.out}/s_{i}.out") for i in range(4)), [f"rank {i}\n" for i in range(4)])


RANK = """
import os, socket
rank, size = int(os.environ["SLURM_PROCID"]), int(os.environ["SLURM_NTASKS"])
address = (os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]))
local = int(os.environ["SLURM_LOCALID"])
print(rank, local, size, flush=True)
"""


def case_pytorch_style(c):
    """The variables that torch's init and Lightning read, over nodes x tasks; ranks are in block
    order."""
    path = f"{c.out}/rank.py"
    with open(path, "w", encoding="utf-8") as f:
        f.write(RANK)
    out = batch_output(c, "torch", f"srun --meeting-point python3 {path}\n", "-N", "2",
                       "--ntasks-per-node=2")
    equal(sorted(out.split("\n")[:-1]), ["0 0 4", "1 1 4", "2 0 4", "3 1 4"])


def case_srun_exit_codes(c):
    out = batch_output(c, "codes", """
srun -n2 bash -c 'exit $((SLURM_PROCID * 3))'; echo code $?
srun -n1 bash -c 'kill -KILL $$'; echo code $?
srun -n2 --kill-on-bad-exit bash -c '[ $SLURM_PROCID = 1 ] && exit 9; sleep 60'; echo code $?
srun -n2 --wait=1 bash -c '[ $SLURM_PROCID = 0 ] && exit 0; sleep 60'; echo late $?
srun -n1 --no-such; echo bad $?
srun -n1 --hold true; echo refused $?
srun -n1 --mpi=openmpi true; echo refused $?
srun --mpi=list
true
""", "-n", "2")
    codes = re.findall(r"^code (\d+)$", out, re.M)
    equal(codes[:2], ["3", "137"])
    assert codes[2] in ("9", "137", "143"), codes
    assert re.search(r"^late (137|143)$", out, re.M), out
    assert re.search(r"^srun: error: \S+: task 1: Exited with exit code 3$", out, re.M), out
    assert re.search(r"^srun: error: \S+: task 0: Killed$", out, re.M), out
    contains(out, "srun: unrecognized option '--no-such'\n")
    contains(out, "bad 255\n")
    equal(re.findall(r"^refused (\d+)$", out, re.M), ["1", "255"])
    contains(out, '"openmpi": there are pmix, pmi2 and none')
    contains(out, "MPI plugin types are...\n\tnone\n\tpmi2\n\tpmix\n")


def case_exclusive_steps(c):
    """A step that needs its own cores waits for them, even if no message says that they are
    free."""
    out = batch_output(c, "exclusive", """
await() { i=0; until eval "$1" || [ $i = 600 ]; do sleep 0.1; i=$((i + 1)); done; }
cd $(mktemp -d)
srun -n2 sh -c 'touch here$SLURM_PROCID; i=0
  until [ -e go ] || [ $i = 600 ]; do sleep 0.1; i=$((i + 1)); done; echo first' & first=$!
await '[ -e here0 ] && [ -e here1 ]'
srun -n1 --exclusive echo second 2>said & second=$!
await 'grep -q retrying said'
srun -n1 --overlap echo beside
touch go
wait $first $second
cat said
srun -n2 sh -c 'touch up$SLURM_PROCID; exec sleep 300' & killed=$!
await '[ -e up0 ] && [ -e up1 ]'
kill -KILL $killed
srun -n2 --exact echo alone
srun -n1 --exclusive=user true; echo refused $?
srun -n1 --exclusive --overlap true; echo refused $?
true
""", "-n", "2", "-N", "1")
    said = [line for line in out.split("\n") if line in ("first", "second", "beside", "alone")]
    equal(said, ["beside", "first", "first", "second", "alone", "alone"], out)
    assert re.search(r"^srun: Job \d+ step creation temporarily disabled, retrying \(Requested nodes "
                     r"are busy\)\nsrun: Step created for StepId=\d+\.\d+$", out, re.M), out
    equal(out.count("refused 1\n"), 2, out)


def case_multi_prog(c):
    conf = f"{c.out}/multi.conf"
    with open(conf, "w", encoding="utf-8") as f:
        f.write("# who does what\n0 echo master %t\n1-2 echo 'worker %o' of %t\n* echo rest\n")
    out = batch_output(c, "multi", f"srun -n4 --multi-prog {conf} | sort\n", "-n", "4", "-N", "2")
    equal(out, "master 0\nrest\nworker 0 of 1\nworker 1 of 2\n")


def case_srun_outside(c):
    done = slurm(c, "srun", MEM, "-n", "2", "-t", "5", "-l", "bash", "-c",
                 "echo $SLURM_JOB_ID $SLURM_JOB_NODELIST $SLURM_NODELIST $SLURM_JOB_NUM_NODES")
    equal(done.returncode, 0, done.stderr)
    lines = sorted(done.stdout.split("\n")[:-1])
    assert all(re.fullmatch(rf"{i}: \d+ (\S+) \1 1", line) for i, line in enumerate(lines)), lines
    equal(len(lines), 2)
    equal(slurm(c, "srun", MEM, "bash", "-c", "exit 5").returncode, 5)
    equal(slurm(c, "srun", MEM, "-n", "2", "-i", "none", "cat").returncode, 0, "end of file at once")
    when = slurm(c, "srun", MEM, "-n", "1", "--test-only", "true")
    assert re.match(r"srun: Job \d+ to start at \d{4}-\S+ using \d+ processors on nodes \S+ in "
                    r"partition \S+", when.stderr), when.stderr
    bad = slurm(c, "srun", "-p", "nope", "true")
    equal((bad.returncode, bad.stderr), (1, "srun: error: invalid partition specified: nope\nsrun: "
          "error: Unable to allocate resources: Invalid partition name specified\n"))


def case_step_is_cancelled(c):
    """scancel JOB.STEP ends or signals one step; the other step and the job go on."""
    out = f"{c.out}/two.out"
    path = script(c, "two.sh", """
srun -n1 --exact sh -c 'sleep 300' & one=$!
srun -n1 --exact sh -c 'trap "echo heard; exit 6" USR1; echo there; while :; do sleep 0.1; done' & two=$!
wait $one; echo one $?
wait $two; echo two $?
""")
    job = ok(c, "sbatch", "--parsable", "-n", "2", "-N", "1", MEM, "-o", out, path).strip()
    def steps():
        rows = ok(c, "sacct", "-n", "-P", "-j", job, "-o", "JobID,State").split()
        return sorted(r for r in rows if re.match(r"\d+\.\d+\|RUNNING$", r))
    wait_for("two steps", lambda: len(steps()) == 2 and "there" in text(out))
    equal(ok(c, "scancel", f"{job}.7"), "", "a step that is not there")
    # Either of the two steps may have got number 0.
    ok(c, "scancel", "-s", "USR1", f"{job}.0", f"{job}.1")
    wait_for("the answer", lambda: "heard" in text(out))
    wait_for("the ends", lambda: re.search(r"^one 138$", text(out), re.M))
    in_state(c, job, "COMPLETED")
    contains(text(out), "two 6\n")

    out = f"{c.out}/one.out"
    job = ok(c, "sbatch", "--parsable", "-n", "1", MEM, "-o", out, "--wrap",
             "srun sh -c 'echo begun; exec sleep 300'; echo killed $?").strip()
    wait_for("the step", lambda: "begun" in text(out))
    equal(ok(c, "scancel", f"{job}.0"), "")
    in_state(c, job, "COMPLETED")
    contains(text(out), "Killed")
    contains(text(out), "killed 137\n")


def first_lines(process, tasks):
    """Returns what it prints until it has printed a line of each task."""
    said = ""
    while not all(re.search(rf"^{task}: line", said, re.M) for task in tasks):
        line = process.stdout.readline()
        assert line, said
        said += line
    return said


def case_sattach(c):
    """A second and a third reader attach to a step; what they do has no effect on it."""
    out = f"{c.out}/attached.out"
    path = script(c, "attached.sh", """mkfifo /tmp/silent; exec 3<>/tmp/silent  # no end of input
srun -n 2 -N 2 -l <&3 bash -c '
n=0; while [ ! -e go ]; do echo line $n of $SLURM_PROCID; n=$((n+1)); sleep 0.05; done
if [ $SLURM_PROCID = 0 ]; then read word; echo heard $word; fi
echo wrong of $SLURM_PROCID >&2; exit $((SLURM_PROCID * 3))'
echo ended $?
""")
    with contextlib.suppress(FileNotFoundError):
        os.unlink(f"{c.out}/go")
    job = ok(c, "sbatch", "--parsable", MEM, "-N", "2", "-n", "2", "-o", out, path).strip()
    wait_for("the step", lambda: "1: line 0" in text(out) and "0: line 0" in text(out))
    step = f"{job}.0"
    layout = ok(c, "sattach", "--layout", step)
    equal(layout, "Job step layout:\n\t2 tasks, 2 nodes (node[1-2])\n\n"
          "\tNode 0 (node1), 1 task(s): 0 \n\tNode 1 (node2), 1 task(s): 1 \n")
    denied = slurm(c, "sattach", step, user=c.users[1])
    equal((denied.returncode, denied.stderr),
          (1, "sattach: error: Could not get job step info: Invalid job id specified\n"))
    both = c.popen(["slurm/sattach", "-l", step], stdin=subprocess.PIPE)
    second = c.popen(["slurm/sattach", "-l", "--output-filter=1", step])
    leaves = c.popen(["slurm/sattach", step])
    deaf = c.popen(["slurm/sattach", step])  # a reader whose output is not read
    heard = [first_lines(both, "01"), first_lines(second, "1")]
    leaves.stdout.readline()
    leaves.send_signal(signal.SIGINT)
    equal(leaves.wait(timeout=30), 128 + signal.SIGINT, "Ctrl-C leaves, and nothing else")
    leaves.stdout.close()
    both.stdin.write("this\n")
    both.stdin.flush()
    script(c, "go", "")
    # Not communicate(), which loses what readline() has read ahead.
    said = [before + p.stdout.read() for before, p in zip(heard, (both, second))]
    deaf.communicate(timeout=60)
    equal([p.wait(timeout=60) for p in (both, second, deaf)], [3, 3, 3])
    in_state(c, job, "COMPLETED")
    for line in ("0: heard this\n", "0: wrong of 0\n", "1: wrong of 1\n",
                 "sattach: error: task 1 exited with exit code 3\n"):
        contains(said[0], line)
    assert "0: " not in said[1], said[1]
    whole = text(out)
    contains(whole, "ended 3\n")
    for task in "01":
        counts = [int(n) for n in re.findall(rf"^{task}: line (\d+) of {task}$", whole, re.M)]
        equal(counts, list(range(len(counts))), "srun misses nothing")
        seen = [int(n) for n in re.findall(rf"^{task}: line (\d+) of {task}$", said[0], re.M)]
        equal(seen, counts, "a reader who comes later has what was written before")
    gone = slurm(c, "sattach", step)
    equal((gone.returncode, gone.stderr),
          (1, "sattach: error: Could not get job step info: Invalid job id specified\n"))


def case_sattach_too_slow(c):
    """A reader that does not read neither stops the step nor takes data from its srun."""
    size = 64 << 20
    path = script(c, "much.sh", f"""srun -n 1 bash -c '
echo begun; while [ ! -e much ]; do sleep 0.05; done; head -c {size} /dev/zero | tr "\\0" x' > much.out
""")
    with contextlib.suppress(FileNotFoundError):
        os.unlink(f"{c.out}/much")
    job = ok(c, "sbatch", "--parsable", MEM, "-n", "1", "-o", "/dev/null", path).strip()
    wait_for("the step", lambda: "begun" in text(f"{c.out}/much.out"))
    deaf = c.popen(["slurm/sattach", "-v", f"{job}.0"])
    equal(deaf.stdout.readline(), "sattach: Node node1, 1 tasks\n")
    script(c, "much", "")
    in_state(c, job, "COMPLETED")
    equal(os.path.getsize(f"{c.out}/much.out"), size + len("begun\n"))
    said = deaf.communicate(timeout=60)[0]
    missed = re.findall(r"node1: (\d+) bytes of output were not read in time", said)
    equal(said.count("x") + sum(map(int, missed)), size, "told how much it has not had")
    assert missed, len(said)


def case_cyclic(c):
    """Tasks are numbered round the nodes, by srun's option and by the job's."""
    ask = "srun -l %s sh -c 'echo $SLURMD_NODENAME $SLURM_LOCALID $SLURM_GTIDS' | sort\n"
    wanted = "0: node1 0 0,2\n1: node2 0 1,3\n2: node1 1 0,2\n3: node2 1 1,3\n"
    size = ("-n", "4", "-N", "2")
    equal(batch_output(c, "cyclic", ask % "-m cyclic", *size), wanted)
    equal(batch_output(c, "cyclic2", ask % "", *size, "-m", "cyclic"), wanted)
    equal(batch_output(c, "block", ask % "-m block", *size, "-m", "cyclic"),
          "0: node1 0 0,1\n1: node1 1 0,1\n2: node2 0 2,3\n3: node2 1 2,3\n")
    equal(batch_output(c, "first", "echo in | srun -m cyclic --input=0 cat\n", *size), "in\n")


def case_salloc(c):
    done = slurm(c, "salloc", MEM, "-n", "2", "-t", "5", "bash", "-c",
                 "echo job $SLURM_JOB_ID; srun -l hostname; exit 4")
    equal(done.returncode, 4, done.stderr)
    job = re.search(r"salloc: Granted job allocation (\d+)\n", done.stderr).group(1)
    contains(done.stdout, f"job {job}\n")
    contains(done.stderr, f"salloc: Relinquishing job allocation {job}\n")
    equal(len(re.findall(r"^[01]: ", done.stdout, re.M)), 2)


def case_tasks_without_nodes(c):
    """With -n alone a job gets the fewest nodes that hold the tasks."""
    done = slurm(c, "salloc", MEM, "-n", "3", "-t", "5", "bash", "-c",
                 "echo $SLURM_JOB_NUM_NODES $SLURM_TASKS_PER_NODE $SLURM_JOB_CPUS_PER_NODE; "
                 "srun -l hostname")
    equal(done.returncode, 0, done.stderr)
    contains(done.stdout, "2 2,1 2,1\n")
    ranks = dict(re.findall(r"^(\d): (\S+)$", done.stdout, re.M))
    equal([ranks[r] == ranks["0"] for r in "012"], [True, True, False])
    one = slurm(c, "salloc", MEM, "-n", "2", "-t", "5", "bash", "-c", "echo on $SLURM_JOB_NUM_NODES")
    contains(one.stdout, "on 1\n")
    never = slurm(c, "sbatch", MEM, "-N", "1", "-n", "3", "--wrap", "true")
    equal(never.returncode, 1)
    contains(never.stderr, "do not fit on 1 node")


def case_salloc_without_shell(c):
    done = slurm(c, "salloc", MEM, "-n", "1", "-t", "5", "--no-shell")
    equal((done.returncode, done.stdout), (0, ""), done.stderr)
    job = re.search(r"salloc: Granted job allocation (\d+)\n", done.stderr).group(1)
    equal(ok(c, "srun", "--jobid", job, "-n1", "echo", "in it"), "in it\n")
    equal(state(c, job), "RUNNING")
    ok(c, "scancel", job)
    wait_for(f"the end of job {job}", lambda: state(c, job) == "CANCELLED")
    wrong = slurm(c, "salloc", "--no-shell", "true")
    equal((wrong.returncode, wrong.stderr),
          (1, "salloc: error: --no-shell runs no command; leave it, or the command\n"))


def environment(printed):
    return dict(line.split("=", 1) for line in printed.splitlines() if "=" in line)


def case_environment_outside(c):
    """srun and salloc set the same variables as sbatch; that of -c only if it was given; also srun
    -v."""
    done = slurm(c, "srun", "-v", MEM, "-N2", "-n3", "-t", "5", "-J", "outside", "sh", "-c",
                 "[ $SLURM_PROCID = 2 ] && env")
    contains(done.stderr, "srun: launching StepId=")
    contains(done.stderr, ".0 on host node1, 2 tasks: 0-1\n")
    contains(done.stderr, ": nodes(2):`node[1-2]', cpu counts: 2(x1),1(x1)\n")
    contains(done.stderr, "srun: job-name            : outside\n")
    there = environment(done.stdout)
    equal({name: there.get(f"SLURM_{name}") for name in (
        "JOB_CPUS_PER_NODE", "CPUS_ON_NODE", "CLUSTER_NAME", "JOB_USER", "JOB_QOS", "MEM_PER_NODE",
        "TOPOLOGY_ADDR", "CPUS_PER_TASK")},
        {"JOB_CPUS_PER_NODE": "2,1", "CPUS_ON_NODE": "1", "CLUSTER_NAME": cluster_of(c),
         "JOB_USER": c.user, "JOB_QOS": "normal", "MEM_PER_NODE": "40", "TOPOLOGY_ADDR": "node2",
         "CPUS_PER_TASK": None})
    limit = int(there["SLURM_JOB_END_TIME"]) - int(there["SLURM_JOB_START_TIME"])
    equal(limit, 300)
    equal(ok(c, "srun", MEM, "-c", "1", "printenv", "SLURM_CPUS_PER_TASK"), "1\n")
    there = environment(slurm(c, "salloc", MEM, "-n2", "env").stdout)
    equal([there.get(f"SLURM_{name}") for name in (
        "JOB_NAME", "NTASKS", "NPROCS", "MEM_PER_NODE", "CLUSTER_NAME", "JOB_USER")],
        ["env", "2", "2", "40", cluster_of(c), c.user])


def case_steps_that_are_too_large(c):
    done = slurm(c, "salloc", "-Q", MEM, "-N2", "-n2", "sh", "-c",
                 "srun -N5 true; srun -n99 true; srun -w node9 true; echo $SLURM_JOB_ID")
    said = [line for line in done.stderr.splitlines()
            if line.startswith(("srun: error: Unable", "srun: error: Only"))]
    step = f"srun: error: Unable to create step for job {done.stdout.strip()}: "
    equal(said, ["srun: error: Only allocated 2 nodes asked for 5",
                 step + "More processors requested than permitted",
                 step + "Requested node configuration is not available"])


def case_changes_that_come_too_late(c):
    """Holding a running job or changing an ended one is refused in Slurm's words."""
    job = ok(c, "sbatch", "--parsable", MEM, "--wrap", "sleep 60").strip()
    in_state(c, job, "RUNNING")
    done = slurm(c, "scontrol", "hold", job)
    equal(done.returncode, 1)
    equal(done.stderr.splitlines()[:2], [f"Job is no longer pending execution for job {job}",
                                         "slurm_suspend error: Job is no longer pending execution"])
    ok(c, "scancel", job)
    in_state(c, job, "CANCELLED")
    done = slurm(c, "scontrol", "update", f"jobid={job}", "timelimit=5")
    equal((done.returncode, done.stderr),
          (1, f"Job/step already completing or completed for job {job}\n"))


if __name__ == "__main__":
    sys.exit(cluster.main(__doc__, globals(), "slurmsteps", nodes=2, users=2))
