#!/usr/bin/env python3
"""What srun takes inside a job and says about its step, in Slurm's words, against real daemons and
containers. See slurm_steps_test.py.

usage: slurm_step_words_test.py BIN_DIR [-k CASE] [--keep]
"""
import glob
import os
import re
import signal
import subprocess
import sys

import cluster
from cluster import contains, equal, text, wait_for
from slurm_calls import MEM, in_state, ok, script, slurm, state

SAID = "slurmstepd: error: *** STEP {}.0 ON node"


def batch_output(c, name, body, *options):
    """Returns the output of a batch job that ended with status 0."""
    out = f"{c.out}/{name}.out"
    job = ok(c, "sbatch", "--parsable", "-o", out, *(options or (MEM,)),
             script(c, f"{name}.sh", body)).strip()
    wait_for(f"the end of job {job}", lambda: state(c, job) not in
             ("PENDING", "CONFIGURING", "RUNNING", "COMPLETING"))
    equal(state(c, job), "COMPLETED", f"job {job}: {text(out)}")
    return job, text(out)


def accounted(c, line, fields):
    return ok(c, "sacct", "-n", "-P", "-j", line, "-o", fields).strip()


# ---- options inside a job -----------------------------------------------------------------------


def case_options_of_jobs(c):
    """Options that choose or describe an allocation are taken and mean nothing more."""
    _, out = batch_output(c, "taken", """
srun -n1 -p nope -A nobody --qos=none -C big --comment=x --signal=USR1@10 --mem-bind=local \\
  --propagate=ALL --nice=5 --wckey=k echo taken
srun -n1 --exclude=$(hostname) true; echo excluded $?
srun -n1 -t 5 --mem=20M --gres=none sh -c 'echo step'
""")
    contains(out, "taken\n")
    contains(out, "srun: error: Unable to create step for job")
    contains(out, "excluded 1\n")
    contains(out, "step\n")


def case_memory_of_a_step(c):
    """A step has a memory limit of its own; one that wants more than the job has is refused."""
    job, out = batch_output(c, "memory", """
srun -n1 --mem=1G true; echo refused $?
srun -n1 --mem=20M python3 -c 'x = b"x" * (60 << 20)'; echo small $?
srun -n1 --mem-per-cpu=90M python3 -c 'x = b"x" * (60 << 20)'; echo large $?
""", "--mem=100M")
    contains(out, "Memory required by task is not available\n")
    contains(out, "refused 1\n")
    contains(out, "small 137\n")
    contains(out, "large 0\n")
    rss = accounted(c, f"{job}.1", "MaxRSS")
    assert 60 << 10 < int(rss[:-1]) <= 100 << 10, rss


def case_places_of_tasks(c):
    """--cpu-bind and --mem-bind bind the tasks, and each says to what with verbose."""
    _, out = batch_output(c, "places", """
exec 2>&1
srun -n1 --cpu-bind=verbose,rank true
SLURM_CPU_BIND=verbose,none srun -n1 true
srun -n1 --mem-bind=verbose,local true
srun -n1 head -1 /proc/self/numa_maps
srun -n1 --mem-bind=none head -1 /proc/self/numa_maps
srun -n1 --cpu-bind=map_cpu:4000 true; echo foreign $?
""", MEM, "--mem-bind=map_mem:0")
    assert re.search(r"^cpu-bind=RANK - \w+, task  0  0 \[\d+\]: mask 0x[1248]0* set$", out, re.M), out
    assert re.search(r"^cpu-bind=NONE - \w+, task  0  0 \[\d+\]: mask 0x", out, re.M), out
    contains(out, "mem-bind=LOC - ")
    assert re.search(r"^\S+ bind:0 ", out, re.M), out
    assert re.search(r"^\S+ default ", out, re.M), out
    contains(out, "which the step does not have there")
    contains(out, "foreign 1\n")


def case_copied_program(c):
    """--bcast copies the program into the job's containers, and the tasks run the copy."""
    say = script(c, "say.sh", 'echo "$0 $(stat -c %a $0)"')
    _, out = batch_output(c, "bcast", f"""
srun -n1 --bcast=/tmp/copy {say}
srun -n1 --bcast {say}
srun -n1 --bcast=/nowhere/copy {say}; echo nowhere $?
""")
    assert re.search(r"^/tmp/copy 7[0-7]{2}$", out, re.M), out
    assert re.search(r"^/tmp/slurm_bcast_\d+\.\d+ 7[0-7]{2}$", out, re.M), out
    contains(out, "Step launch aborted.\n")
    contains(out, "nowhere 1\n")


def case_variables_of_bindings(c):
    """Tasks are told of the bindings and of the distribution that srun was given."""
    _, out = batch_output(c, "bindings", """
srun -n1 --cpu-bind=v,rank --mem-bind=map_mem:0 env 2>/dev/null | grep -E '^SLURM_(CPU|MEM)_BIND' | sort
srun -n1 -m '*:*' env | grep ^SLURM_DISTRIBUTION
srun -B 1-1:1:1 sh -c 'echo tasks $SLURM_NTASKS'
""")
    contains(out, "SLURM_CPU_BIND=verbose,rank\nSLURM_CPU_BIND_LIST=\nSLURM_CPU_BIND_TYPE=rank\n"
             "SLURM_CPU_BIND_VERBOSE=verbose\nSLURM_MEM_BIND=quiet,map_mem:0\n"
             "SLURM_MEM_BIND_LIST=0\nSLURM_MEM_BIND_PREFER=\nSLURM_MEM_BIND_TYPE=map_mem:\n"
             "SLURM_MEM_BIND_VERBOSE=quiet\n")
    contains(out, "SLURM_DISTRIBUTION=block:cyclic\n")
    contains(out, "tasks 1\n")


def case_affinity(c):
    """On real cores a task may use just those CPUs that it was bound to."""
    _, out = batch_output(c, "affinity", """
show() { srun "$@" sh -c 'grep Cpus_allowed_list /proc/self/status | cut -f2'; }
echo all $(show -n1 -c2); set -- $(show -n2 -l | sort | cut -d' ' -f2)
echo each $1 $2
for cpu in $1 $2; do echo map $(show -n1 -c2 --cpu-bind=map_cpu:$cpu); done
echo mask $(show -n1 -c2 --cpu-bind=mask_cpu:$(printf %x $((1 << $2))))
echo rank $(show -n2 --cpu-bind=rank -l | sort | cut -d' ' -f2)
echo both $(show -n2 --cpu-bind=none | sort -u)
""", MEM, "-n2", "-N1")
    each = re.search(r"^each (\d+) (\d+)$", out, re.M)
    whole = re.search(r"^all (\S+)$", out, re.M)
    assert each and whole, out
    one, two = each.groups()
    contains(out, f"map {one}\nmap {two}\nmask {two}\nrank {one} {two}\nboth {whole[1]}\n")


def case_commands_in_a_step(c):
    """Commands in a step of srun's own allocation reach the controller, and srun in a step starts another."""
    out = ok(c, "srun", MEM, "-n1", "sh", "-c", "squeue -h -o 'here %i' -j $SLURM_JOB_ID")
    assert re.fullmatch(r"here \d+\n", out), out
    out = ok(c, "srun", MEM, "-n1", "srun", "--overlap", "-n1", "printenv", "SLURM_STEP_ID",
             "SLURM_SRUN_COMM_HOST")
    assert re.fullmatch(r"1\n[\w.]+\n", out), out


def case_allocations_of_srun(c):
    """-c alone starts as many tasks as fit; no file is made; an allocation that ends first can end its command."""
    for options, wanted in ((("-w", "node2"), "node1 node2"), (("-N1", "-w", "node2"), "node2")):
        named = slurm(c, "salloc", MEM, "-N2", "srun", *options, "printenv", "SLURMD_NODENAME")
        equal(" ".join(sorted(named.stdout.split())), wanted, "-w alone is no number of nodes")
    before = sorted(glob.glob(f"{c.out}/slurm-*.out"))
    out = ok(c, "srun", MEM, "-N1", "--exclusive", "-c1", "printenv", "SLURM_PROCID")
    equal(sorted(out.split()), ["0", "1"])
    equal(sorted(glob.glob(f"{c.out}/slurm-*.out")), before, "files of allocations")
    shell = c.popen(["slurm/salloc", MEM, "-n1", "--kill-command=TERM", "sh", "-c",
                     "echo job $SLURM_JOB_ID; sleep 300"])
    said = ""
    while not re.search(r"^job \d+$", said, re.M):
        line = shell.stdout.readline()
        assert line, said
        said += line
    job = re.search(r"^job (\d+)$", said, re.M).group(1)
    ok(c, "scancel", job)
    rest = shell.communicate(timeout=30)[0]
    contains(rest, f"salloc: Job allocation {job} has been revoked.\n")
    equal(shell.returncode, 128 + signal.SIGTERM)


def case_time_limit_of_a_step(c):
    """A step's own time limit ends it with TIMEOUT, and the job goes on."""
    job, out = batch_output(c, "late", """
srun -n1 -t 0:01 sh -c 'sleep 60'; echo late $?
""")
    contains(out, SAID.format(job))
    assert re.search(r"CANCELLED AT \d{4}-\d\d-\d\dT\d\d:\d\d:\d\d DUE TO TIME LIMIT \*\*\*$", out,
                     re.M), out
    contains(out, "late 143\n")
    contains(out, "srun: Job step aborted: Waiting up to ")
    equal(accounted(c, f"{job}.0", "State,ExitCode"), "TIMEOUT|0:15")


def case_immediate(c):
    """A step with --immediate that does not get its cores at once gives up."""
    _, out = batch_output(c, "immediate", """
srun -n1 sh -c 'touch there; while [ ! -e go ]; do sleep 0.05; done' &
while [ ! -e there ]; do sleep 0.05; done
srun -n1 --exact --immediate true; echo busy $?
touch go; wait
srun -n1 --exact --immediate echo fine
""")
    contains(out, ": Requested nodes are busy\nbusy 1\n")
    contains(out, "fine\n")
    for name in ("there", "go"):
        os.unlink(f"{c.out}/{name}")


def case_uneven_allocation(c):
    """In a job of two nodes with three tasks there are steps with a task on each node, and on one
    node."""
    _, out = batch_output(c, "uneven", """
srun --ntasks-per-node=1 -N2 -n2 sh -c 'echo each $SLURMD_NODENAME'
srun -N1 -w node2 -n1 sh -c 'echo on $SLURMD_NODENAME'
srun --ntasks-per-node=1 --kill-on-bad-exit --mpi=none --cpu-bind=none --nodes=1 \\
  --nodelist=node2 --ntasks=1 sh -c 'echo daemon $SLURMD_NODENAME'
""", MEM, "-N2", "-n3")
    for line in ("each node1", "each node2", "on node2", "daemon node2"):
        contains(out, line + "\n")


# ---- files and input ----------------------------------------------------------------------------


def case_folder_is_made_later(c):
    """The folder of the output files may come soon after the submission."""
    folder = f"{c.out}/late folder"
    done = slurm(c, "sbatch", "--parsable", MEM, "-o", f"{folder}/%j.out", "--wrap=echo there")
    contains(done.stderr, "sbatch: warning: the folder ")
    job = done.stdout.strip()
    wait_for("the start", lambda: c.shims(job=job))
    os.mkdir(folder)
    os.chmod(folder, 0o777)
    in_state(c, job, "COMPLETED")
    equal(text(f"{folder}/{job}.out"), "there\n")


def case_input_of_tasks(c):
    """Standard input goes to all tasks, to one, or to none."""
    _, out = batch_output(c, "input", """
echo all | srun -N2 -n4 -l cat | sort
echo one | srun -N2 -n4 -l --input=2 cat
echo none | srun -N2 -n4 -l --input=none cat; echo ended $?
echo file > in.txt; srun -N2 -n2 -l -i in.txt cat | sort
""", MEM, "-N2", "--ntasks-per-node=2")
    equal(out, "0: all\n1: all\n2: all\n3: all\n2: one\nended 0\n0: file\n1: file\n")


def case_files_of_a_step(c):
    """Labels in files, --open-mode, and the words none and N in place of a file."""
    _, out = batch_output(c, "files", """
srun -N2 -n2 -l -o both.txt sh -c 'echo out; echo err >&2'; sort both.txt
srun -n1 --open-mode=append -o both.txt echo more; wc -l < both.txt
srun -n1 --open-mode=truncate -o both.txt echo less; cat both.txt
srun -N2 -n2 --open-mode=append -o each_%t.txt sh -c 'echo $SLURM_PROCID'
srun -N2 -n2 --open-mode=append -o each_%t.txt sh -c 'echo $SLURM_PROCID'; cat each_1.txt
srun -N2 -n2 -l -o label_%t.txt sh -c 'echo own'; cat label_1.txt
srun -N2 -n2 -o none sh -c 'echo gone'; srun -N2 -n2 -o 1 sh -c 'echo task $SLURM_PROCID'
srun -n1 -o no/such/file true; echo refused $?
""", MEM, "-N2", "-n2")
    equal(out, "0: err\n0: out\n1: err\n1: out\n5\nless\n1\n1\n1: own\ntask 1\n"
          f"srun: error: Could not open stdout file {c.out}/no/such/file: No such file or directory\n"
          "refused 1\n")


# ---- usage --------------------------------------------------------------------------------------


def case_usage_of_a_step(c):
    """sstat of a busy step shows what it uses, and sacct what it used."""
    job = ok(c, "sbatch", "--parsable", MEM, "-o", "/dev/null", "--wrap", "srun -n1 python3 -c '"
             "x = b\"x\" * (20 << 20)\nwhile True: pass'").strip()
    in_state(c, job, "RUNNING")

    def used(step):
        line = slurm(c, "sstat", "-n", "-P", "-j", f"{job}.{step}", "-o", "MaxRSS,AveRSS,AveCPU")
        found = re.match(r"(\d+)K\|(\d+)K\|([\d:.]+)$", line.stdout.strip())
        return found if found and int(found.group(1)) > 20 << 10 else None

    step = wait_for("figures of the step", lambda: used(0))
    assert int(step.group(2)) > 20 << 10, step.group(0)
    wait_for("its time", lambda: used(0).group(3) > "00:01")
    assert used("batch"), "the job's batch step"
    ok(c, "scancel", job)
    in_state(c, job, "CANCELLED")
    rss, average, cpu = accounted(c, f"{job}.0", "MaxRSS,AveRSS,AveCPU").split("|")
    assert int(rss[:-1]) > 20 << 10 and int(average[:-1]) > 20 << 10, (rss, average)
    assert cpu > "00:00:00", cpu
    short, _ = batch_output(c, "short", "srun -n1 true\n")
    assert accounted(c, f"{short}.0", "MaxRSS") not in ("", "0"), short


# ---- signals and messages -----------------------------------------------------------------------


class Step:
    """An srun of our own that runs a step of two tasks."""

    def __init__(self, c, *options, command="sleep 300"):
        name = f"said_{len(os.listdir(c.out))}"
        self.said_in = f"{c.out}/{name}"
        with open(self.said_in, "wb") as said:
            self.process = subprocess.Popen(
                [f"{c.bin}/slurm/srun", MEM, "-n2", "-N1", "-J", name, *options, "sh", "-c",
                 f"echo begun; {command}"], stdin=subprocess.DEVNULL, stdout=said, stderr=said,
                env=dict(c.env, HOME=c.out, USER=c.user), cwd=c.out, user=c.user, group=c.user,
                extra_groups=[])
        wait_for("the step", lambda: self.said().count("begun\n") == 2)
        self.job = ok(c, "squeue", "-h", "-n", name, "-o", "%i").strip()

    def said(self):
        return text(self.said_in)

    def interrupt(self):
        self.process.send_signal(signal.SIGINT)

    def hears(self, line):
        wait_for(line, lambda: line + "\n" in self.said())


def case_interrupts(c):
    """The first Ctrl-C says how the tasks are, a second one ends the step; with -X the first one
    goes to the tasks."""
    step = Step(c)
    step.interrupt()
    step.hears("srun: interrupt (one more within 1 sec to abort)")
    step.hears(f"srun: StepId={step.job}.0 tasks 0-1: running")
    step.interrupt()
    for line in (f"srun: sending Ctrl-C to StepId={step.job}.0", "srun: forcing job termination"):
        step.hears(line)
    assert re.search(r"^srun: Job step aborted: Waiting up to \d+ seconds for job step to finish\.$",
                     step.said(), re.M), step.said()
    assert step.process.wait(timeout=30) in (130, 137), step.said()
    step = Step(c, "--disable-status")
    step.interrupt()
    step.hears(f"srun: sending Ctrl-C to StepId={step.job}.0")
    equal(step.process.wait(timeout=30), 130, step.said())


def case_messages(c):
    """scontrol notify reaches who runs srun, and scancel of a step is told there."""
    step = Step(c)
    ok(c, "scontrol", "notify", step.job, "save", "your", "work")
    step.hears("srun: save your work")
    ok(c, "scancel", f"{step.job}.0")
    equal(step.process.wait(timeout=30), 137, step.said())
    contains(step.said(), SAID.format(step.job))
    contains(step.said(), "srun: Job step aborted: Waiting up to ")


def case_pids_of_a_job(c):
    """scontrol listpids and pidinfo know the processes of a step inside of the job."""
    _, out = batch_output(c, "pids", """
srun -n1 sh -c 'scontrol listpids $SLURM_JOB_ID.$SLURM_STEP_ID; scontrol pidinfo $$; echo mine $$'
""")
    mine = re.search(r"^mine (\d+)$", out, re.M).group(1)
    assert re.search(rf"^{mine} +\d+ +0 +0 +0 *$", out, re.M), out
    assert re.search(r"^Slurm JobId=\d+ ends at ", out, re.M), out


if __name__ == "__main__":
    sys.exit(cluster.main(__doc__, globals(), "stepwords", nodes=2))
