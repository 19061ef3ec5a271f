#!/usr/bin/env python3
"""Options of submit and of srun that only running tasks can show, under Slurm's names, against real
daemons and containers. See slurm_test.py.

usage: slurm_tasks_test.py BIN_DIR [-k CASE] [--keep]
"""
import os
import re
import resource
import sys

import cluster
from cluster import contains, equal, text
from slurm_calls import MEM, ok, run_to_end, script, slurm


def output_of(c, name, body, *options):
    """What a batch job writes that ends well."""
    out = f"{c.out}/{name}.out"
    run_to_end(c, "-o", out, *options, script(c, f"{name}.sh", body))
    return text(out)


def case_overcommit(c):
    """Ten tasks share one core; a step shares cores if the job does, or if it asks for it."""
    out = output_of(c, "over", """
echo $SLURM_CPUS_ON_NODE $SLURM_OVERCOMMIT $SLURM_NTASKS
srun sh -c 'nproc' | sort | uniq -c
""", "-N1", "-n10", "-O")
    equal(out.split(), ["1", "1", "10", "10", "1"])
    out = output_of(c, "oversteps", """
srun -n5 true; echo refused $?
srun -O -n5 sh -c 'nproc' | sort | uniq -c
SLURM_OVERCOMMIT=1 srun -n3 sh -c 'nproc' | sort | uniq -c
""", "-n2", "-N1")
    contains(out, "More processors requested than permitted")
    equal(out.split("refused 1\n")[1].split(), ["5", "2", "3", "2"])
    outside = slurm(c, "srun", MEM, "-N1", "-n6", "--overcommit", "-l", "true")
    equal(outside.returncode, 0, outside.stderr)


def case_around_tasks(c):
    """--task-prolog changes the environment and says lines, --task-epilog runs behind the program."""
    prolog = script(c, "prolog", "echo print HEADER of $SLURM_PROCID in $SLURM_SCRIPT_CONTEXT\n"
                                 "echo export TEST=from the prolog\necho unset GONE\n"
                                 "echo not a word\n")
    epilog = script(c, "epilog", f"echo behind $SLURM_PROCID in $SLURM_SCRIPT_CONTEXT\n")
    slow = script(c, "slow", "sleep 100\n")
    out = output_of(c, "around", f"""
export GONE=here
srun -n2 --task-prolog={prolog} --task-epilog={epilog} sh -c 'echo "<$TEST><$GONE>"' | sort
srun -n1 --task-epilog={epilog} sh -c 'exit 3'; echo code $?
srun -n1 --task-epilog={epilog} sh -c 'kill -KILL $$'; echo code $?
srun -n1 --task-epilog={slow} true 2>&1; echo code $?
SLURM_TASK_PROLOG=/bin/false srun -n1 echo never 2>&1; echo code $?
""", "-n2", "-N1")
    equal(out.split("srun: error: node")[0], "<from the prolog><>\n<from the prolog><>\n"
          "HEADER of 0 in prolog_task\nHEADER of 1 in prolog_task\n"
          "behind 0 in epilog_task\nbehind 1 in epilog_task\nbehind 0 in epilog_task\n", out)
    contains(out, "code 137\n")
    contains(out, "error: TaskEpilog failed status=9\ncode 0\n")
    contains(out, "error: --task-prolog failed status=1\n")
    assert "never" not in out, out


def case_words_of_srun(c):
    """--open-mode, --preserve-env, --threads, --slurmd-debug, --debugger-test, --meeting-point."""
    out = output_of(c, "words", f"""
for i in 1 2; do srun -n1 --open-mode=append -o {c.out}/appended echo line $i; done
for i in 1 2; do srun -n1 --open-mode=truncate -o {c.out}/cut echo line $i; done
echo sizes; srun -n1 -N1 sh -c 'echo $SLURM_NNODES $SLURM_NTASKS'
srun -E -n1 -N1 sh -c 'echo $SLURM_NNODES $SLURM_NTASKS'
srun -T 1 --slurmd-debug=debug sh -c 'echo $SLURM_PROCID' | sort
echo master; srun -n1 sh -c 'echo "<$MASTER_ADDR>"'
srun -n1 --meeting-point sh -c '[ -n "$MASTER_ADDR" ] && [ -n "$MASTER_PORT" ] && echo met'
(sleep 2; scancel -s CONT $SLURM_JOB_ID.$(squeue -h -s -j $SLURM_JOB_ID -o %i | sed 's/.*[.]//' | grep -v batch | tail -1)) &
srun -n1 -N1 --debugger-test sh -c 'echo went on' 2>&1
wait
""", "-n4", "-N2")
    equal(text(f"{c.out}/appended"), "line 1\nline 2\n")
    equal(text(f"{c.out}/cut"), "line 2\n")
    equal(out.split("sizes\n")[1].split("master\n")[0], "1 1\n2 4\n0\n1\n2\n3\n")
    equal(out.split("master\n")[1].split("\n")[:2], ["<>", "met"])
    assert re.search(r"task:0, host:\S+, pid:\d+, executable:sh\n", out), out
    contains(out, "went on\n")


def case_limits(c):
    """Soft limits and the umask go with the job, within the hard limits of its node."""
    show = "ulimit -n; ulimit -c; umask"
    body = script(c, "limits.sh", f"{show}; srun -n1 sh -c '{show}'\n")
    def submit(*options):
        out = f"{c.out}/limits.out"
        if os.path.exists(out):
            os.unlink(out)
        run_to_end(c, "-o", out, *options, body)
        return text(out).split(), oct(os.stat(out).st_mode & 0o777)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    before = os.umask(0o027)
    resource.setrlimit(resource.RLIMIT_NOFILE, (1000, hard))
    try:
        words, mode = submit()
        equal((words[0], words[2], words[3], words[5]), ("1000", "0027", "1000", "0027"))
        equal(mode, "0o640")
        words, _ = submit("--propagate=CORE")
        assert words[0] != "1000", words
        words, _ = submit("--propagate=NONE")
        equal((words[0] != "1000", words[2]), (True, "0027"))
    finally:
        os.umask(before)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


if __name__ == "__main__":
    sys.exit(cluster.main(__doc__, globals(), "slurmtasks", nodes=2, users=1))
