#!/usr/bin/env python3
"""Programs that start workers on several nodes, as their users write them: PyTorch, MPICH,
ipyparallel and dask, in a tenant's queue and without an option about networks.

usage: launchers_test.py BIN_DIR [-k CASE] [--keep]
"""
import os
import re
import shutil
import subprocess
import sys

import cluster
import job_network_test
import mpi_test
from cluster import contains, equal

PYTHON = "/usr/bin/python3"  # Debian's, which has Debian's packages
TENANT = """
apiVersion: gantry/v1
kind: Tenant
name: lab
roles: {user: {users: [USER1]}}
"""
TRAIN = """
import os, torch, torch.distributed as dist
dist.init_process_group("gloo")
rank, size = dist.get_rank(), dist.get_world_size()
total = torch.tensor([rank + 1.0])
dist.all_reduce(total)
# Each rank has other data; the mean of the gradients makes all models the same.
torch.manual_seed(1)
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(4, 1))
step = torch.optim.SGD(model.parameters(), 0.1)
torch.manual_seed(rank)
for _ in range(3):
    step.zero_grad()
    model(torch.randn(8, 4)).pow(2).mean().backward()
    step.step()
weights = torch.cat([p.detach().flatten() for p in model.parameters()])
every = [torch.zeros_like(weights) for _ in range(size)]
dist.all_gather(every, weights)
same = all(torch.equal(weights, other) for other in every)
print(f"rank {rank} of {size} on {os.environ['SLURMD_NODENAME']} total {total.item():g} "
      f"same {same}", flush=True)
"""
PARALLEL = """
import ipyparallel, os, sys
client = ipyparallel.Client(profile_dir=sys.argv[1])
client.wait_for_engines(3, timeout=90)
nodes = client[:].apply_sync(lambda: __import__("os").environ["SLURMD_NODENAME"])
print("engines on", *sorted(nodes))
print("sum", sum(client[:].map_sync(lambda x: x * x, range(30))))
"""
DASK = """
import sys
from distributed import Client
client = Client(scheduler_file=sys.argv[1], timeout=60)
client.wait_for_workers(4, timeout=90)
print("workers on", *sorted(client.run(lambda: __import__("os").environ["SLURMD_NODENAME"]).values()))
values = client.map(lambda x: x * x, range(100))
# One task that needs the results of all others, so workers fetch from each other.
print("sum", client.submit(sum, values).result(timeout=60))
client.shutdown()
"""


def has(*modules):
    """Whether Python has the modules; says which one is not there."""
    for name in modules:
        if subprocess.run([PYTHON, "-c", f"import {name}"], check=False,
                          capture_output=True).returncode:
            cluster.pass_over(f"there is no {name} for Python; `./dev test` installs it")
            return False
    return True


def put(c, name, text):
    with open(f"{c.out}/{name}", "w", encoding="utf-8") as f:
        f.write(text)
    os.chmod(f"{c.out}/{name}", 0o644)
    return f"{c.out}/{name}"


def run(c, options, script):
    """The output of a job of the tenant, which has to end well."""
    if not hasattr(c, "has_tenant"):
        done = c.root(["gtenant", "apply", "-y", "-f", "-"],
                      input=TENANT.replace("USER1", c.users[0]))
        equal(done.returncode, 0, done.stdout + done.stderr)
        c.has_tenant = True
    job = c.submit("-p", "lab", "-t", "4:00", *options, script=f"set -e\nPATH={c.bin}/slurm:$PATH\n" + script,
                   defaults=("--mem=600M", "-o", "%j.out"))
    entry = c.ended(job, patience=200)
    equal(entry["row"]["outcome"], "completed", c.output(job))
    return c.output(job)


def trained(out):
    lines = sorted(re.findall(r"^rank .*$", out, re.M))
    equal(lines, [f"rank {r} of 4 on node{r + 1} total 10 same True" for r in range(4)], out)


def case_torch_by_srun(c):
    """Ranks from Slurm's variables, the meeting point is the first node by its name."""
    if not has("torch"):
        return
    trained(run(c, ("-N4", "--ntasks-per-node=1"), f"""
export MASTER_ADDR=$(scontrol show hostnames $SLURM_JOB_NODELIST | head -n 1) MASTER_PORT=29500
export OMP_NUM_THREADS=1
srun sh -c 'RANK=$SLURM_PROCID WORLD_SIZE=$SLURM_NTASKS exec {PYTHON} {put(c, "train.py", TRAIN)}'
"""))


def case_torchrun(c):
    """torchrun's own rendezvous: one agent on each node, which starts the ranks. Debian's PyTorch
    does not understand its own defaults of --redirects and --tee."""
    if not has("torch"):
        return
    out = run(c, ("-N4", "--ntasks-per-node=1"), f"""
head=$(scontrol show hostnames $SLURM_JOB_NODELIST | head -n 1)
export OMP_NUM_THREADS=1
srun {PYTHON} -m torch.distributed.run --nnodes=4 --nproc_per_node=1 --rdzv_id=$SLURM_JOB_ID \\
  --rdzv_backend=c10d --rdzv_endpoint=$head:29500 --redirects=1 --tee=1 {put(c, "train.py", TRAIN)}
""")
    lines = re.findall(r"rank (\d) of 4 on (node\d) total 10 same True$", out, re.M)
    equal(sorted(rank for rank, _ in lines), list("0123"), out)
    equal(sorted(node for _, node in lines), [f"node{n}" for n in range(1, 5)], out)


def case_mpich(c):
    compiler = shutil.which("mpicc.mpich")
    if not compiler:
        cluster.pass_over("there is no mpicc.mpich (libmpich-dev)")
        return
    program = f"{c.out}/hello_mpich"
    subprocess.run([compiler, "-x", "c", "-", "-o", program], input=mpi_test.HELLO, text=True,
                   check=True)
    os.chmod(program, 0o755)
    out = run(c, ("-N2", "-n4"), f"srun --mpi=pmi2 {program}\n")
    lines = re.findall(r"^hello from rank (\d) of 4 on (\S+), sum 6$", out, re.M)
    equal(sorted(rank for rank, _ in lines), list("0123"), out)
    equal(len({node for _, node in lines}), 2, out)


def case_ipyparallel(c):
    """A controller in the batch script, engines on the other nodes."""
    if not has("ipyparallel"):
        return
    out = run(c, ("-N4", "--ntasks-per-node=1", "--overcommit"), f"""
export HOME=/tmp
profile=$SLURM_SUBMIT_DIR/profile-$SLURM_JOB_ID
mkdir -p $profile/security
{PYTHON} -m ipyparallel.controller --profile-dir=$profile --ip='*' --location=$(hostname) \\
  >controller.log 2>&1 &
until [ -s $profile/security/ipcontroller-engine.json ]; do sleep 0.2; done
srun -N3 -n3 --exclude=$SLURMD_NODENAME sh -c 'HOME=/tmp exec {PYTHON} -m ipyparallel.engine \\
  --profile-dir='$profile >engines.log 2>&1 &
{PYTHON} {put(c, "parallel.py", PARALLEL)} $profile || {{ cat controller.log engines.log; exit 1; }}
kill %1 %2
wait || true
""")
    contains(out, "engines on node2 node3 node4\nsum 8555\n")


def case_dask(c):
    """A scheduler and a worker on each node, which meet by a file in the submit directory."""
    if not has("distributed"):
        return
    out = run(c, ("-N4", "--ntasks-per-node=1", "--overcommit"), f"""
file=$SLURM_SUBMIT_DIR/dask-$SLURM_JOB_ID.json
dask-scheduler --no-dashboard --scheduler-file $file >scheduler.log 2>&1 &
until [ -s $file ]; do sleep 0.2; done
srun dask-worker --no-dashboard --nthreads 1 --no-nanny --local-directory /tmp \\
  --scheduler-file $file >workers.log 2>&1 &
{PYTHON} {put(c, "sum.py", DASK)} $file || {{ cat scheduler.log workers.log; exit 1; }}
wait || true
""")
    contains(out, "workers on node1 node2 node3 node4\nsum 328350\n")


if __name__ == "__main__":
    if why := job_network_test.missing():
        print(f"passed over: {why}")
        sys.exit(77)
    sys.exit(cluster.main(__doc__, globals(), "launchers", nodes=4, users=1))
