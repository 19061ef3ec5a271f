#!/usr/bin/env python3
"""srun in heterogeneous jobs: one step runs over several components, and its tasks see each other
as one step. Also srun and salloc that request such a job themselves.

usage: het_steps_test.py BIN_DIR [-k CASE] [--keep]
"""
import re
import sys

import cluster
from cluster import contains, equal, text, wait_for
from slurm_calls import MEM, ok, script, slurm

OVER = {"COMPLETED", "FAILED", "CANCELLED", "NODE_FAIL", "TIMEOUT"}


def sections(c, name, body):
    """Runs the body in a job with two tasks on one node and one task on each of two others; returns
    the output after each line "== NAME"."""
    path = script(c, f"{name}.sh", f"""#SBATCH -n2 {MEM} -o {c.out}/{name}.out
#SBATCH hetjob
#SBATCH -N2 -n2 {MEM}
cd {c.out}
{body}
true
""")
    job = ok(c, "sbatch", "--parsable", path).strip()
    wait_for(f"the end of job {job}", lambda: set(ok(
        c, "squeue", "-h", "-t", "all", "-j", job, "-o", "%T").split()) <= OVER)
    out = text(f"{c.out}/{name}.out")
    parts = re.split(r"^== (\w+)\n", out, flags=re.M)
    return job, dict(zip(parts[1::2], parts[2::2])), out


def case_groups(c):
    """Checks ranks, labels, files, input and exit codes over all components that --het-group
    names."""
    tell = "echo $SLURM_PROCID/$SLURM_NTASKS $SLURM_LOCALID $SLURM_NODEID/$SLURM_NNODES"
    nodes = "echo $SLURM_JOB_NODELIST $SLURM_JOB_NUM_NODES $SLURM_JOB_CPUS_PER_NODE " \
            "$SLURM_STEP_NODELIST $SLURM_STEP_NUM_NODES $SLURM_STEP_NUM_TASKS " \
            "$SLURM_STEP_TASKS_PER_NODE"
    job, said, out = sections(c, "groups", f"""
echo == both; srun -l --het-group=0,1 sh -c '{tell}' | sort
echo == range; srun --het-group=0-1 sh -c 'echo $SLURM_GTIDS $SLURM_JOB_ID' | sort
echo == second; srun -l --het-group=1 sh -c '{tell}' | sort
echo == first; srun -l sh -c '{tell}' | sort
echo == sized; srun -l --het-group=0,1 -n1 -N1 sh -c '{tell}' | sort
echo == two; srun -l --het-group=0 -n1 sh -c 'echo front $SLURM_PROCID' : \\
  --het-group=1 sh -c 'echo back $SLURM_PROCID' | sort
echo == places; srun -l -n1 echo a : echo b | sort
echo == alike; srun -l -n1 : sh -c 'echo $SLURM_PROCID' | sort
echo == nodes; srun -n1 : sh -c '{nodes}' | sort -u
echo == own; srun --het-group=1 sh -c '{nodes}' | sort -u
echo == names; echo $SLURM_JOB_NAME_HET_GROUP_1 $SLURM_JOB_QOS_HET_GROUP_1
echo == input; echo word | srun --het-group=0,1 cat
echo == order; srun -l --het-group=1 sh -c 'echo theirs $SLURM_PROCID' : \
  --het-group=0 sh -c 'echo mine $SLURM_PROCID' | sort
echo == outputs; srun --het-group=1 -o ones.txt sh -c 'echo one $SLURM_PROCID' : \
  --het-group=0 -o twos.txt sh -c 'echo two $SLURM_PROCID'; sort ones.txt; sort twos.txt
echo == meet; srun --meeting-point --het-group=0,1 sh -c 'echo $MASTER_ADDR $MASTER_PORT' | sort -u | wc -l
echo == files; srun --het-group=0,1 -o groups_%t.txt sh -c 'echo task $SLURM_PROCID'
""")
    equal(said.get("both"), "0: 0/4 0 0/3\n1: 1/4 1 0/3\n2: 2/4 0 1/3\n3: 3/4 0 2/3\n", out)
    equal(said["range"], f"0,1 {job}\n0,1 {job}\n2 {job}\n3 {job}\n")
    equal(said["second"], "0: 0/2 0 0/2\n1: 1/2 0 1/2\n")
    equal(said["first"], "0: 0/2 0 0/1\n1: 1/2 1 0/1\n")
    equal(said["sized"], "0: 0/2 0 0/2\n1: 1/2 0 1/2\n")
    equal(said["two"], "0: front 0\n1: back 1\n2: back 2\n")
    equal(said["places"], "0: a\n1: b\n2: b\n")
    equal(said["alike"], "0: 0\n1: 1\n2: 2\n")
    lists = ok(c, "squeue", "-h", "-t", "all", "-j", job, "-o", "%N").split()
    every = ok(c, "scontrol", "show", "hostlistsorted", ",".join(lists)).strip()
    equal(said["nodes"], f"{every} 3 2,1(x2) {every} 3 3 1(x3)\n")
    equal(said["own"], f"{lists[1]} 2 1(x2) {lists[1]} 2 2 1(x2)\n")
    equal(said["names"], "groups.sh normal\n")
    equal(said["input"], "word\n" * 4)
    equal(said["order"], "0: mine 0\n1: mine 1\n2: theirs 2\n3: theirs 3\n")
    equal(said["outputs"], "one 2\none 3\ntwo 0\ntwo 1\n")
    equal(said["meet"].strip(), "1")
    equal([text(f"{c.out}/groups_{i}.txt") for i in range(4)], [f"task {i}\n" for i in range(4)])
    steps = ok(c, "sacct", "-n", "-P", "-j", job, "-o", "JobID,State").splitlines()
    contains(steps, f"{job}+0.0|COMPLETED")
    contains(steps, f"{job}+1.0|COMPLETED")
    equal([steps.count(f"{job}+{i}.extern|COMPLETED") for i in range(2)], [1, 1])


def case_step_numbers(c):
    """Steps are numbered through all components; a step over several has one number."""
    job, said, out = sections(c, "numbers", """
echo == numbers; srun -n1 sh -c 'echo $SLURM_STEP_ID'; srun -n1 : -n1 sh -c 'echo $SLURM_STEP_ID'
srun --het-group=1 -n1 sh -c 'echo $SLURM_STEP_ID'; srun -n1 sh -c 'echo $SLURM_STEP_ID'
""")
    equal(said.get("numbers"), "0\n1\n1\n2\n3\n", out)
    steps = ok(c, "sacct", "-n", "-P", "-j", job, "-o", "JobID").split()
    equal([s for s in steps if re.search(r"\.\d+$", s)],
          [f"{job}+0.0", f"{job}+0.1", f"{job}+0.3", f"{job}+1.1", f"{job}+1.2"])


def case_ends(c):
    """The exit code is the highest of all; -K and signals reach every component."""
    job, said, out = sections(c, "ends", """
srun --het-group=0,1 sh -c 'exit $SLURM_PROCID'; echo == code $?
srun -K --het-group=0,1 sh -c '[ $SLURM_PROCID = 3 ] && exit 9; exec sleep 100'; echo == kill $?
srun --het-group=0,1 sh -c 'echo up; exec sleep 100' > ends.up &
until [ "$(grep -c up ends.up)" = 4 ]; do sleep 0.05; done
kill -TERM $!; wait $!; echo == term $?
srun --het-group=2 true; echo == beyond $?
srun --pty --het-group=0,1 true; echo == pty $?
srun --mpi=pmix --het-group=0,1 true; echo == pmix $?
srun --mpi=pmi2 --het-group=0,1 true; echo == pmi2 $?
""")
    codes = dict(re.findall(r"^== (\w+) (\d+)$", out, re.M))
    equal(said, {})
    assert codes.pop("kill") in ("9", "137", "143"), out
    equal(codes, {"code": "3", "term": "143", "beyond": "1", "pty": "1", "pmix": "1",
                  "pmi2": "1"}, out)
    contains(out, "srun: error: Attempt to run a job step with het group value of 2, but the job "
                  "allocation has maximum value of 1\n")
    contains(out, "srun: error: --pty is not supported over several components\n")
    exits = dict(line.split("|") for line in ok(
        c, "sacct", "-n", "-P", "-j", job, "-o", "JobID,ExitCode").splitlines())
    equal((exits[f"{job}+0.0"], exits[f"{job}+1.0"]), ("1:0", "3:0"))


def case_outside(c):
    """srun A : B and salloc A : B request a heterogeneous job and release it."""
    done = slurm(c, "srun", "-l", MEM, "-n2", "sh", "-c", "echo a $SLURM_PROCID $SLURM_HET_SIZE", ":",
                 MEM, "-N2", "sh", "-c", "echo b $SLURM_PROCID")
    equal((done.returncode, sorted(done.stdout.splitlines())),
          (0, ["0: a 0 2", "1: a 1 2", "2: b 2", "3: b 3"]), done.stderr)
    done = slurm(c, "salloc", MEM, "-n1", ":", MEM, "-N2", "bash", "-c",
                 "echo $SLURM_HET_SIZE $SLURM_JOB_NUM_NODES_HET_GROUP_1 "
                 "$SLURM_JOB_CPUS_PER_NODE_HET_GROUP_1; "
                 "srun -l --het-group=0,1 sh -c 'echo $SLURM_NTASKS'; exit 4")
    equal((done.returncode, sorted(done.stdout.splitlines())),
          (4, ["0: 3", "1: 3", "2 2 1(x2)", "2: 3"]), done.stderr)
    done = slurm(c, "salloc", "-J", "two", MEM, "-n1", ":", MEM, "-N2", "bash", "-c",
                 "echo $SLURM_JOB_NAME_HET_GROUP_1 $SLURM_NTASKS_HET_GROUP_1 "
                 "$SLURM_NNODES_HET_GROUP_1; exit 3")
    equal((done.returncode, done.stdout), (3, "two 2 2\n"), done.stderr)
    plain = slurm(c, "salloc", MEM, "-n1", "srun", "--het-group=1", "true")
    equal(plain.returncode, 1)
    contains(plain.stderr, "allocation has maximum value of 0\n")
    wait_for("the end of all", lambda: not ok(c, "squeue", "-h").strip())


if __name__ == "__main__":
    sys.exit(cluster.main(__doc__, globals(), "hetsteps", nodes=3))
