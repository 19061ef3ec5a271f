#!/usr/bin/env python3
"""GPUs of steps over two nodes, with the stand-in driver: srun within sbatch, and which of its
node's GPUs each task sees.

usage: gpu_steps_test.py BIN_DIR [-k CASE] [--keep]
"""
import sys

import cluster
from cluster import contains, equal, text, wait_for
from gpu_test import GPUS, declare
from slurm_calls import MEM, ok, script, state

SHOW = "sh -c 'echo $SLURM_PROCID $SLURMD_NODENAME $SLURM_LOCALID $CUDA_VISIBLE_DEVICES'"


def start(c):
    if hasattr(c, "fleet"):
        return
    declare(c)
    c.of_node = {f"node{i + 1}": {c.fleet.uuid(f"node{i + 1}", gpu): gpu for gpu in range(GPUS)}
                 for i in range(c.nodes)}


def steps(c, name, options, lines, wanted="COMPLETED"):
    """Runs one batch job with a step for each line; returns its output, and for each step the words
    of each rank."""
    body = "".join(f"echo 'step:{line}'\nsrun {line} {SHOW} | sort\n" for line in lines)
    job = ok(c, "sbatch", "--parsable", MEM, "-o", f"{c.out}/{name}.out", "--gpu-names=uuid",
             *options,
             script(c, f"{name}.sh", "set -o pipefail -e\n" + body)).strip()
    wait_for(f"the end of job {job}", lambda: state(c, job) not in
             ("PENDING", "CONFIGURING", "RUNNING", "COMPLETING"))
    out = text(f"{c.out}/{name}.out")
    equal(state(c, job), wanted, out)
    return out, [[row.split() for row in part.splitlines()[1:]] for part in out.split("step:")[1:]]


def held(c, rows):
    """Returns, by node, the GPUs that each task sees if all see all; they must be GPUs of that
    node."""
    of = {row[1]: row[3].split(",") for row in rows}
    equal(sorted(of), sorted(c.of_node))
    for node, gpus in of.items():
        equal([g for g in gpus if g not in c.of_node[node]], [], node)
        equal({row[3] for row in rows if row[1] == node}, {",".join(gpus)})
    return of


def case_over_two_nodes(c):
    start(c)
    lines = {"--gpu-bind=none": None,
             "": [[0, 1], [0, 1]],
             "--gpu-bind=per_task:1": [[0], [1]],
             "--gpu-bind=single:1": [[0], [1]],
             "--gpu-bind=single:2": [[0], [0]],
             "--gpu-bind=map_gpu:1,0": [[1], [0]],
             "--gpu-bind=mask_gpu:0x3,0x2": [[0, 1], [1]],
             "-m cyclic --gpu-bind=per_task:1": [[0], [1]]}
    _, seen = steps(c, "per_node", ("-N", "2", "-n", "4", "--ntasks-per-node=2",
                                    "--gpus-per-node=2"), lines)
    all_of = held(c, seen[0])
    for (line, which), rows in zip(lines.items(), seen):
        cyclic = "cyclic" in line
        equal([(row[0], row[1], row[2]) for row in rows],
              [(str(r), f"node{1 + (r % 2 if cyclic else r // 2)}",
                str(r // 2 if cyclic else r % 2)) for r in range(4)], line)
        for _, node, task, gpus in rows if which else []:
            equal(gpus, ",".join(all_of[node][g] for g in which[int(task)]), f"{line} on {node}")


def case_gpus_per_task(c):
    start(c)
    lines = ["--gpu-bind=none", "", "-n 2 -N 2", "--gpu-bind=map_gpu:1,0"]
    _, seen = steps(c, "per_task", ("-N", "2", "-n", "4", "--gpus-per-task=1"), lines)
    all_of = held(c, seen[0])
    equal([len(gpus) for gpus in all_of.values()], [2, 2])
    equal([row[3] for row in seen[1]], [g for node in ("node1", "node2") for g in all_of[node]])
    equal([row[3] for row in seen[2]], [all_of[node][0] for node in ("node1", "node2")])
    equal([row[3] for row in seen[3]],
          [all_of[node][g] for node in ("node1", "node2") for g in (1, 0)])


def case_gpus_of_a_step(c):
    """A step has as many of its job's GPUs as it asks for; steps side by side have different
    ones."""
    start(c)
    lines = ["", "--gres=gpu:1", "--gpus-per-node=1", "--gpus=2", "--gpus-per-task=1 -n2 -N2",
             "--gres=none"]
    _, seen = steps(c, "own", ("-N", "2", "-n", "4", "--ntasks-per-node=2", "--gpus-per-node=2"),
                    lines)
    all_of = held(c, seen[0])
    for line, rows in zip(lines[1:5], seen[1:5]):
        equal({row[1]: row[3] for row in rows}, {n: g[0] for n, g in all_of.items()}, line)
    equal({len(row) for row in seen[5]}, {3}, "no GPU is seen")
    job = ok(c, "sbatch", "--parsable", MEM, "-o", f"{c.out}/beside.out", "-N1", "-n2",
             "--gpus-per-node=2", script(c, "beside.sh", f"""
for i in 1 2; do srun -n1 --exact --gres=gpu:1 -o beside_$i.out sh -c 'echo $CUDA_VISIBLE_DEVICES \\
  $SLURM_STEP_GPUS; while [ ! -e beside.go ]; do sleep 0.05; done' & done
until [ -s beside_1.out ] && [ -s beside_2.out ]; do sleep 0.05; done
srun -n1 --overlap --gres=gpu:3 true; echo much $?
srun -n1 --overlap --gres=gpu:1 --immediate true; echo overlaps $?
srun -n1 --gres=gpu:1 --immediate true; echo busy $?
touch beside.go; wait
""")).strip()
    wait_for(f"the end of job {job}", lambda: state(c, job) not in
             ("PENDING", "CONFIGURING", "RUNNING", "COMPLETING"))
    out = text(f"{c.out}/beside.out")
    contains(out, "Invalid generic resource (gres) specification\nmuch 1\noverlaps 0\n")
    contains(out, "Requested nodes are busy\nbusy 1\n")
    both = [text(f"{c.out}/beside_{i}.out").split() for i in (1, 2)]
    equal([both[0][0], both[1][0]], ["0", "0"], "each counts its own")
    assert both[0][1] != both[1][1], both


# Tries to open the GPUs' files that the container has.
OPEN = """import errno, glob, os
for path in sorted(glob.glob("/dev/nvidia[0-9]*")):
    try:
        os.close(os.open(path, os.O_RDWR))
    except OSError as e:
        print(errno.errorcode[e.errno], end=" ")
print(os.environ["CUDA_VISIBLE_DEVICES"], os.environ["SLURM_GPUS_ON_NODE"])
"""


def case_a_step_opens_its_own_gpus_alone(c):
    """Tasks of a step cannot open GPUs of the job that their step does not have. Numbers count the
    step's GPUs, as those of a job count the job's."""
    start(c)
    out = f"{c.out}/alone.out"
    program = script(c, "open.py", OPEN)
    job = ok(c, "sbatch", "--parsable", MEM, "-o", out, "-N1", "-n2", "--gpus-per-node=2",
             script(c, "alone.sh", f"""
srun -n1 python3 {program}
srun -n1 --gres=gpu:1 python3 {program}
srun -n1 --gpus=1 --gpus-per-node=0 sh -c 'touch alone.on; while [ ! -e alone.go ]; do sleep 0.05; done' &
until [ -e alone.on ]; do sleep 0.05; done
srun -n1 --gres=gpu:1 python3 {program}
scontrol show step $SLURM_JOB_ID.2 | grep -E 'TRES=|Tres'
touch alone.go; wait
srun -n2 --gpu-bind=verbose,map_gpu:1,0 true
srun -n1 --gpu-freq=low,verbose true
""")).strip()
    wait_for(f"the end of job {job}", lambda: state(c, job) not in
             ("PENDING", "CONFIGURING", "RUNNING", "COMPLETING"))
    lines = text(out).splitlines()
    equal(lines[0], "ENXIO ENXIO 0,1 2", "its driver is not there, but nothing is forbidden")
    for line in lines[1:3]:
        equal(sorted(line.split()[:2]), ["ENXIO", "EPERM"])
        equal(line.split()[2:], ["0", "1"])
    assert lines[1].split()[:2] != lines[2].split()[:2], "another GPU than that of step 2"
    contains(text(out), "gres/gpu=1")
    contains(text(out), "TresPerStep=cpu:1,gres:gpu:1\n")
    for mask, place in (("0x2", 1), ("0x1", 0)):
        contains(text(out), f"gpu-bind: usable_gres={mask}; bit_alloc=0x3; local_inx=2; "
                 f"global_list={place}; local_list={place}\n")
    contains(text(out), "GpuFreq=control_disabled\n")


def case_a_gpu_that_is_not_there(c):
    """Each node reports the missing GPU, and the step fails."""
    start(c)
    out, _ = steps(c, "absent", ("-N", "2", "-n", "2", "--gpus-per-node=1"),
                   ["--gpu-bind=map_gpu:3"], wanted="FAILED")
    for node in ("node1", "node2"):
        contains(out, f"{node}: task {node[-1] == '2':d}: a task is bound to GPU 3, and the job has "
                 "1 on the node")


if __name__ == "__main__":
    sys.exit(cluster.main(__doc__, globals(), "gpusteps", nodes=2))
