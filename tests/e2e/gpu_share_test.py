#!/usr/bin/env python3
"""Parts of GPUs in containers, with stand-ins for NVIDIA's driver and MPS: jobs of one tenant share
a GPU through the tenant's own daemon; another tenant is on another GPU and reaches none of this.

usage: gpu_share_test.py BIN_DIR [-k CASE] [--keep]
"""
import glob
import json
import os
import stat
import sys

import cluster
from cluster import contains, equal, wait_for
from gpu_test import GPUS, declare, place, tried

MPS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../nvml/nvidia-cuda-mps-control")
DISCOVERED = {"resources": [{"name": "cards", "devices": [
    {"id": "a", "files": ["/dev/card-a"], "env": {"CARD_SLOT": "7"}},
    {"id": "b", "files": ["/dev/card-b", "/dev/card-b2"], "env": {"CARD_SLOT": "8"}}]}]}
# Opens the files of declared resources. ENXIO means that the open was allowed, as no driver is
# behind the number.
FILES = r"""
import errno, os
for name in ("xfpga0", "xfpga1", "card-a", "card-b", "card-b2"):
    try:
        os.close(os.open("/dev/" + name, os.O_RDWR))
    except OSError as e:
        print("file", name, errno.errorcode[e.errno])
for name in sorted(os.environ):
    if name.startswith("GANTRY_GRES_") or name == "CARD_SLOT":
        print("set", f"{name}={os.environ[name]}")
"""
SEE = """env | grep -E 'CUDA_|SHARDS|GPU_SHARE|GPUS_ON_NODE' | sort
echo pipe "$(cat /dev/mps/devices 2>&1)"
echo shm $(ls /dev/shm)
echo mine > /dev/shm/of-$SLURM_JOB_ID
echo ready
while [ ! -e stop ]; do sleep 0.1; done
"""


def make_files(c):
    for name, (major, minor) in {"xfpga0": (240, 0), "xfpga1": (240, 1), "card-a": (241, 7),
                                 "card-b": (241, 8), "card-b2": (241, 9)}.items():
        os.mknod(f"{c.fleet.dir}/node1/dev/{name}", stat.S_IFCHR | 0o666, os.makedev(major, minor))
        os.chmod(f"{c.fleet.dir}/node1/dev/{name}", 0o666)


def start(c):
    if hasattr(c, "fleet"):
        return
    command = f"{c.top}/what-is-there"
    with open(command, "w", encoding="utf-8") as f:
        f.write(f"#!/bin/sh\ncat <<'END'\n{json.dumps(DISCOVERED)}\nEND\n")
    os.chmod(command, 0o755)
    declare(c, of_nodes="gpu_sharing: mps, gpu_shards: 8, "
            "gres: [license:3, 'fpga:/dev/xfpga[0-1]', cards:2], ",
            noded=f"  mps_control: {os.path.abspath(MPS)}\n  gres_command: {command}\n",
            partitions="  - {name: red, nodes: all}\n  - {name: blue, nodes: all}\n",
            prepare=make_files)


def part(c, tenant, amount, *options):
    job = c.submit("-n1", "-w", "node1", "-p", tenant, amount, *options,
                   script=f"#!/bin/sh\n{SEE}", defaults=("--mem=20M", "-o", "%j.out"))
    return job


def seen(c, job):
    c.running(job)
    wait_for("its output", lambda: "ready" in c.output(job))
    lines = c.output(job).splitlines()
    return {**dict(line.split("=", 1) for line in lines if "=" in line),
            **{line.split()[0]: line.split()[1:] for line in lines if line.startswith(("pipe", "shm"))}}


def daemons(c):
    """The pipe directory of each MPS daemon of this cluster."""
    found = []
    for pid in cluster.processes():
        for entry in cluster.read(f"/proc/{pid}/environ").split(b"\0"):
            if entry.startswith(b"CUDA_MPS_PIPE_DIRECTORY=/") and b"/mps-node" in entry \
                    and c.state.encode() in entry:
                found.append(entry.decode().split("=", 1)[1])
    return sorted(found)


def cancel(c, *jobs):
    c.root(["gcancel", *map(str, jobs)], check=True)
    for job in jobs:
        c.ended(job)


def case_jobs_of_one_tenant_share_a_gpu_and_no_other_tenant_does(c):
    start(c)
    one = part(c, "red", "--gpus=0.5")
    a = seen(c, one)
    two = part(c, "red", "--gres=shard:2")
    b = seen(c, two)
    equal(place(c, one), place(c, two), "side by side")
    equal([a["CUDA_MPS_ACTIVE_THREAD_PERCENTAGE"], b["CUDA_MPS_ACTIVE_THREAD_PERCENTAGE"]],
          ["50", "25"])
    equal([a["CUDA_MPS_PINNED_DEVICE_MEM_LIMIT"], b["CUDA_MPS_PINNED_DEVICE_MEM_LIMIT"]],
          ["0=40779M", "0=20389M"])
    equal([a["CUDA_MPS_PIPE_DIRECTORY"], a["CUDA_VISIBLE_DEVICES"]],
          ["/dev/mps", b["CUDA_VISIBLE_DEVICES"]])
    equal([b["SLURM_SHARDS_ON_NODE"], b["SLURM_GPUS_ON_NODE"], a["GANTRY_GPU_SHARE"]],
          ["2", "1", "0.500"])
    equal(a["pipe"], [a["CUDA_VISIBLE_DEVICES"]], "the daemon serves its GPU")
    contains(" ".join(a["shm"]), "cuda.mps")
    contains(" ".join(b["shm"]), f"of-{one}")
    equal(len(daemons(c)), 1, "one daemon for the tenant and GPU")
    contains(c.root(["gctl", "show", "job", str(one)]).stdout, "gres/gpu=0.5")
    table = c.root(["ginfo", "-g", "-h", "-n", "node1", "-o", "%g %s %j"]).stdout
    contains(table, f"part 0.5 {one}")
    contains(table, f"part 0.25 {two}")
    cancel(c, two)
    equal(len(daemons(c)), 1, "red has another job")
    third = part(c, "blue", "--gpus-per-node=0.25")
    other = seen(c, third)
    equal(other["CUDA_VISIBLE_DEVICES"] != a["CUDA_VISIBLE_DEVICES"], True, "another GPU")
    equal(other["shm"], ["cuda.mps"], "nothing of the first tenant's")
    equal(len(daemons(c)), 2)
    c.jobs = [one, third]


def case_daemons_outlive_the_node_daemon_and_end_with_their_last_job(c):
    start(c)
    before = daemons(c)
    equal(len(before), 2)
    c.kill_and_restart(c.daemon("node1"))
    cancel(c, c.jobs[1])
    wait_for("blue's daemon to end", lambda: len(daemons(c)) == 1)
    equal(set(daemons(c)) < set(before), True, "red's was found again")
    cancel(c, c.jobs[0])
    wait_for("red's daemon to end", lambda: not daemons(c))
    equal(glob.glob(f"{c.top}/**/mps-node1/*", recursive=True), [], "no directory is left")


def case_a_daemon_without_jobs_is_cleaned_after_a_restart(c):
    start(c)
    job = part(c, "red", "--gpus=0.3")
    seen(c, job)
    equal(len(daemons(c)), 1)
    argv = c.kill(c.daemon("node1"))
    for pid in c.shims("node1", job):
        os.kill(pid, 9)
    c.spawn(argv)
    c.root(["gcancel", str(job)])
    c.ended(job)
    wait_for("its daemon to end", lambda: not daemons(c))


def case_jobs_of_one_tenant_share_a_slice_and_no_other_tenant_does(c):
    start(c)
    half = part(c, "red", "--gres=mig:3g.40gb:0.5")
    a = seen(c, half)
    fifth = part(c, "red", "--gres=mig:3g.40gb:0.2")
    b = seen(c, fifth)
    contains(a["CUDA_VISIBLE_DEVICES"], "MIG-")
    equal(a["CUDA_VISIBLE_DEVICES"], b["CUDA_VISIBLE_DEVICES"], "side by side in one slice")
    equal([a["CUDA_MPS_ACTIVE_THREAD_PERCENTAGE"], b["CUDA_MPS_ACTIVE_THREAD_PERCENTAGE"]],
          ["50", "20"], "of the slice")
    limits = [int(x["CUDA_MPS_PINNED_DEVICE_MEM_LIMIT"][2:-1]) for x in (a, b)]
    equal([15000 < limits[0] <= 20480, abs(limits[0] * 2 - limits[1] * 5) < 10], [True, True], limits)
    equal([a["pipe"], a["CUDA_MPS_PIPE_DIRECTORY"], b["GANTRY_GPU_SHARE"]],
          [[a["CUDA_VISIBLE_DEVICES"]], "/dev/mps", "0.200"], "the daemon serves the slice")
    contains(" ".join(b["shm"]), f"of-{half}")
    equal(len(daemons(c)), 1, "one daemon for the tenant and slice")
    contains(c.root(["gctl", "show", "job", str(half)]).stdout, "gres/gpu=0.5")
    contains(c.root(["slurm/squeue", "-h", "-j", str(half), "-o", "%b"]).stdout, "gres:mig:3g.40gb:0.5")
    table = c.root(["ginfo", "-g", "-h", "-n", "node1", "-o", "%g %s %j"]).stdout
    contains(table, f"part 0.5 {half}")
    contains(table, f"part 0.2 {fifth}")
    contains(c.root(["ginfo", "--layout", "-n", "node1"]).stdout, f"3g.40gb job {half}")
    c.kill_and_restart(c.daemon("node1"))
    cancel(c, half)
    equal(len(daemons(c)), 1, "red has another job in the slice")
    other = part(c, "blue", "--gres=mig:3g.40gb:0.25")
    third = seen(c, other)
    contains(third["CUDA_VISIBLE_DEVICES"], "MIG-")
    equal(third["CUDA_VISIBLE_DEVICES"] != a["CUDA_VISIBLE_DEVICES"], True, "another slice")
    equal([third["shm"], len(daemons(c))], [["cuda.mps"], 2], "nothing of the first tenant's")
    cancel(c, fifth)
    wait_for("red's daemon to end", lambda: len(daemons(c)) == 1)
    whole = c.submit("-n1", "-w", "node1", "-p", "red", "--gres=mig:7g.80gb:1", "--mem=20M",
                     "--wrap", "true", defaults=())
    wait_for("a reason to wait", lambda: "Resources" in c.queue_line(whole) or
             "MigRepartition" in c.queue_line(whole))
    cancel(c, other)
    c.ended(whole, "completed")
    wait_for("its daemon to end", lambda: not daemons(c))


def case_whole_gpus_and_parts_exclude_each_other(c):
    start(c)
    parts = [part(c, "red", "--gpus=0.1"), part(c, "blue", "--gpus=0.1")]
    for job in parts:
        seen(c, job)
    whole = c.submit("-n1", "-w", "node1", "-p", "red", f"--gpus-per-node={GPUS}", "--mem=20M",
                     "--wrap", "true", defaults=())
    wait_for("a reason to wait", lambda: "Resources" in c.queue_line(whole) or
             "Priority" in c.queue_line(whole))
    equal(c.phase(whole), "queued")
    cancel(c, *parts)
    c.ended(whole, "completed")


def case_other_resources_are_given_one_by_one(c):
    start(c)
    def run(*options):
        job = c.submit("-n1", "-w", "node1", *options,
                       script=f"#!/bin/sh\nexec python3 - <<'END'\n{FILES}\nEND\n")
        c.ended(job, "completed")
        words = [line.split() for line in c.output(job).splitlines()]
        return ({w[1]: w[2] for w in words if w[0] == "file"}, [w[1] for w in words if w[0] == "set"])
    files, variables = run("--gres=fpga:2,license:3")
    equal(files, {"xfpga0": "ENXIO", "xfpga1": "ENXIO", "card-a": "ENOENT", "card-b": "ENOENT",
                  "card-b2": "ENOENT"})
    equal(variables, ["GANTRY_GRES_FPGA=0,1", "GANTRY_GRES_LICENSE=0,1,2"])
    files, variables = run("--gres=cards:2")
    equal([files["card-a"], files["card-b2"], files["xfpga0"]], ["ENXIO", "ENXIO", "ENOENT"])
    equal(variables, ["CARD_SLOT=7,8", "GANTRY_GRES_CARDS=a,b"])
    equal(run()[1], [])
    holds = c.submit("-n1", "-w", "node1", "--gres=fpga:1,cards", "--wrap", "sleep 60")
    c.running(holds)
    got = tried(c, holds, ["240:0", "240:1", "241:7", "241:8", "241:9"])
    equal(got, {"240:0": "ENXIO", "240:1": "EPERM", "241:7": "ENXIO", "241:8": "EPERM",
                "241:9": "EPERM"})
    waits = c.submit("-n1", "-w", "node1", "--gres=fpga:2", "--wrap", "true")
    wait_for("a reason to wait", lambda: "PENDING|Resources" in c.queue_line(waits))
    cancel(c, holds)
    c.ended(waits, "completed")


def case_what_cannot_be_had_is_refused_by_name(c):
    start(c)
    for option, why in (("--gpus=1.5", "a job gets whole ones, or a part of one"),
                        ("--gpus=0.12345", "one to three decimals"),
                        ("--gres=shard:9", "has 8 in partition"),
                        ("--gres=shard:2,gpu:1", "parts of one GPU"),
                        ("--gres=mig:1g.10gb:1.5", "1.5 slices on a node: a job gets whole ones"),
                        ("--gres=mig:1g.10gb:1,shard:2", "whole GPUs or slices"),
                        ("--gres=fpga:3", "have at most 2"),
                        ("--gres=disk:1", "no node of partition batch has the resource disk; there "
                         "are gpu, mig, shard, cards, fpga, license")):
        done = c.as_user(["gbatch", "-n1", option, "--wrap", "true"])
        equal(done.returncode != 0, True, option)
        contains(done.stderr, why, option)


if __name__ == "__main__":
    sys.exit(cluster.main(__doc__, globals(), "gpushare", nodes=1))
