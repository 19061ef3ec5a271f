#!/usr/bin/env python3
"""GPUs in containers, with the stand-in driver: a job has its own device files and no others.

Opening a device file without a driver gives ENXIO if the device cgroup allows it, and EPERM if it
denies it; so every device number can be tried.

usage: gpu_test.py BIN_DIR [-k CASE] [--keep]
"""
import json
import os
import shutil
import subprocess
import sys
import time

import cluster
from cluster import contains, equal, wait_for

GPUS = 4
# minors of the device files by GPU number: as on real hardware, the two differ
MINORS = [2, 3, 1, 0]
COMMON = ["nvidia-uvm", "nvidia-uvm-tools", "nvidiactl"]
# Tries each device of the stand-in, through its own file and through files made by mknod.
PROBE = r"""
import errno, os, stat
def word(path, flags):
    try:
        os.close(os.open(path, flags))
        return "opened"
    except OSError as e:
        return errno.errorcode[e.errno]
found = sorted(n for n in os.listdir("/dev") if n.startswith("nvidia"))
print("files", " ".join(found))
for n in found:
    if stat.S_ISCHR(os.stat("/dev/" + n).st_mode):
        print("open", n, word("/dev/" + n, os.O_RDWR))
for major, minor in [(195, m) for m in range(8)] + [(195, 255), (508, 0), (511, 1), (511, 2)]:
    path = f"/tmp/try-{major}-{minor}"
    try:
        os.mknod(path, stat.S_IFCHR | 0o666, os.makedev(major, minor))
        print("mknod", major, minor, word(path, os.O_RDWR))
    except OSError as e:
        print("mknod", major, minor, errno.errorcode[e.errno])
for name in ("CUDA_VISIBLE_DEVICES", "SLURM_JOB_GPUS", "SLURM_GPUS_ON_NODE"):
    print(name, os.environ.get(name, "-"))
"""


class Fleet:
    """Makes a folder per node with the library, fleet.json beside it, and files as the node's
    kernel shows them."""

    def __init__(self, c):
        self.c = c
        self.dir = f"{c.top}/gpus"
        self.build = os.path.dirname(os.path.abspath(sys.argv[1].rstrip("/")))
        for node in (f"node{i + 1}" for i in range(c.nodes)):
            folder = f"{self.dir}/{node}"
            os.makedirs(folder)
            shutil.copy(f"{self.build}/nvml/libnvidia-ml.so.1", folder)
            with open(f"{folder}/fleet.json", "w", encoding="utf-8") as f:
                json.dump({"driver": "550.54.15", "cuda": 12040,
                           "gpus": [{"model": "h100", "count": GPUS, "minors": MINORS},
                                    {"model": "h100", "count": 1, "minors": [7], "mig": True}]}, f)
            self.control(node, "init")
            self.control(node, "tree", folder)

    def uuid(self, node, gpu):
        """The uuid of a GPU, found by its number in the driver's list."""
        shown = self.c.root(["ginfo", "-g", "-h", "-n", node, "-o", "%g %U"], check=True).stdout
        return dict(line.split() for line in shown.splitlines())[str(gpu)]

    def control(self, node, *words):
        done = subprocess.run([f"{self.c.bin}/gantry-fake-gpu", f"{self.dir}/{node}/fleet.json",
                               *map(str, words)], capture_output=True, text=True, check=False)
        equal(done.returncode, 0, f"gantry-fake-gpu {words}: {done.stderr}")
        return done.stdout


def declare(c, of_nodes="", noded="", partitions="", prepare=None):
    """Gives the nodes GPUs: adds them to the configuration of `gantry up` and restarts the
    daemons."""
    c.fleet = Fleet(c)
    if prepare:
        prepare(c)
    c.root(["gantry", "down", "--state", c.state], check=True)
    path = f"{c.state}/gantry.yaml"
    with open(path, encoding="utf-8") as f:
        text = f.read()
    text = text.replace("memory: 1G", f"gpus: {GPUS + 1}, gpu_model: h100, {of_nodes}memory: 1G")
    text = text.replace("noded:\n", f"noded:\n  gpu_library: {c.fleet.dir}/%n/libnvidia-ml.so.1\n"
                        f"  gpu_root: {c.fleet.dir}/%n\n{noded}")
    text += partitions
    with open(path, "w", encoding="utf-8") as f:
        f.write(text)
    c.root(["gantry", "up", "--restarts", "0", "--state", c.state], check=True, timeout=120)
    c.find_daemons()


def probe(c, *options):
    job = c.submit("-n1", *options, script=f"#!/bin/sh\nexec python3 - <<'END'\n{PROBE}\nEND\n")
    c.ended(job, "completed")
    lines = [line.split() for line in c.output(job).splitlines()]
    return {"files": lines[0][1:],
            "open": {w[1]: w[2] for w in lines if w[0] == "open"},
            "mknod": {(int(w[1]), int(w[2])): w[3] for w in lines if w[0] == "mknod"},
            **{w[0]: (w + [""])[1] for w in lines if "_" in w[0]}}


def case_a_job_opens_its_own_devices_and_no_others(c):
    def add_cuda(c):
        for node in ("node1", "node2"):
            shutil.copy(f"{c.fleet.build}/nvml/libcuda.so.1", f"{c.fleet.dir}/{node}")
    declare(c, noded=f"  cuda_library: {c.top}/gpus/%n/libcuda.so.1\n",
            partitions="  - {name: blue, nodes: all}\n", prepare=add_cuda)
    own = probe(c, "--gpus-per-node=2", "-w", "node1")
    held = own["SLURM_JOB_GPUS"].split(",")
    equal(len(held), 2)
    equal(own["files"], sorted([f"nvidia{MINORS[int(n)]}" for n in held] + COMMON))
    equal(set(own["open"].values()), {"ENXIO"}, "its own: let through to a driver that is not there")
    equal(set(own["mknod"].values()), {"EPERM"}, "no job makes device files")
    equal(own["SLURM_GPUS_ON_NODE"], "2")
    equal(len(own["CUDA_VISIBLE_DEVICES"].split(",")), 2)
    contains(own["CUDA_VISIBLE_DEVICES"], "GPU-")


def case_tasks_of_a_step_see_gpus_of_their_own(c):
    show = "sh -c 'echo $SLURM_LOCALID $CUDA_VISIBLE_DEVICES'"

    def run(options, line):
        # The first two of the four GPUs are on NUMA node 0, the others on NUMA node 1.
        return c.submit("-n2", "-N1", "-w", "node1", *options, script="#!/bin/sh\n"
                        f"echo all $CUDA_VISIBLE_DEVICES\ngrun {line} {show}\n")
    two = ("--gpus-per-node=2",)
    for options, line, which in [
            (two, "", [[0, 1], [0, 1]]), (two, "--gpu-bind=per_task:1", [[0], [1]]),
            (two, "--gpu-bind=single:2", [[0], [0]]), (two, "--gpu-bind=map_gpu:1,0", [[1], [0]]),
            (two, "--gpu-bind=mask_gpu:0x3,0x2", [[0, 1], [1]]),
            (("--gpus-per-task=1",), "", [[0], [1]]),
            (("--gpus-per-task=1",), "--gpu-bind=none", [[0, 1], [0, 1]])]:
        job = run(options, line)
        c.ended(job, "completed")
        got = dict(words.split() for words in c.output(job).splitlines())
        held = got["all"].split(",")
        equal(len(held), 2)
        equal([got["0"], got["1"]], [",".join(held[g] for g in gpus) for gpus in which], line)
    job = run(("--gpus-per-node=4",), "--gpu-bind=closest")
    c.ended(job, "completed")
    got = dict(words.split() for words in c.output(job).splitlines())
    held = got["all"].split(",")
    halves = [",".join(held[:2]), ",".join(held[2:])]
    if os.path.exists("/sys/devices/system/node/node1"):
        equal({got["0"], got["1"]} <= {*halves, got["all"]}, True, str(got))
    else:
        equal([got["0"], got["1"]], [halves[0]] * 2, "all cores are of node 0")
    job = run(two, "--gpu-bind=map_gpu:2")
    c.ended(job, "failed")
    contains(c.output(job), "a task is bound to GPU 2, and the job has 2 on the node")


def case_a_job_without_gpus_has_none(c):
    none = probe(c, "-w", "node1")
    equal(none["files"], [])
    equal(none.get("SLURM_JOB_GPUS"), "-")


# Tries devices inside the job's device cgroup, with files that anybody may open.
ENTER = r"""
import errno, os, stat, sys
with open(sys.argv[1], "w") as f:
    f.write("0")
for word in sys.argv[4:]:
    major, minor = map(int, word.split(":"))
    path = f"{sys.argv[2]}/{major}-{minor}"
    if not os.path.exists(path):
        os.mknod(path, stat.S_IFCHR | 0o666, os.makedev(major, minor))
    try:
        os.close(os.open(path, int(sys.argv[3])))
        print(word, "opened")
    except OSError as e:
        print(word, errno.errorcode[e.errno])
"""


def entries(c, job):
    found = []
    for root in ("/sys/fs/cgroup/devices", "/sys/fs/cgroup"):
        for path, _, files in os.walk(root):
            if path.endswith(f"/job_{job}.1") and c.cgroup_root() in path and "cgroup.procs" in files:
                found.append(f"{path}/cgroup.procs")
        if found:
            break
    return found


def tried(c, job, numbers=tuple([f"195:{m}" for m in range(16)] +
                               ["195:255", "508:0", "508:1", "511:1", "511:2"]), flags=os.O_RDWR):
    folder = f"{c.top}/files"
    os.makedirs(folder, exist_ok=True)
    done = subprocess.run([sys.executable, "-c", ENTER, entries(c, job)[0], folder, str(flags),
                           *numbers],
                          capture_output=True, text=True, check=True)
    return dict(line.split() for line in done.stdout.splitlines())


def case_the_device_cgroup_of_each_job_is_its_own(c):
    held = {}
    for group in ((1, 2), (0,)):  # two jobs at a time, because the node has two cores
        jobs = [c.submit("-n1", "-w", "node1", f"--gpus-per-node={n}", "--wrap", "sleep 60")
                for n in group]
        for job, count in zip(jobs, group):
            c.running(job)
            shown = json.loads(c.root(["gctl", "show", "job", str(job), "--json"], check=True).stdout)
            held[job] = [g.get("gpu", 0) for g in find(shown, "placement")[0].get("gpus", [])]
            equal(len(held[job]), count)
        for job in jobs:
            own = held[job]
            may = {f"195:{MINORS[n]}" for n in own} | ({"195:255", "508:0", "508:1"} if own else set())
            got = tried(c, job)
            equal({w for w, what in got.items() if what != "EPERM"}, may, f"with {len(own)} GPUs")
        c.root(["gcancel", *map(str, jobs)], check=True)
        for job in jobs:
            c.ended(job)
    one, two = [h for h in held.values() if h]
    equal(len(set(one + two)), 3, "no device twice")


def case_a_gpu_that_fails_takes_down_its_own_jobs(c):
    jobs = [c.submit("-n1", "--gpus-per-node=1", "--requeue", "--wrap", "sleep 60")
            for _ in range(2)]
    places = []
    for job in jobs:
        c.running(job)
        places.append(place(c, job))
    node, gpu = places[0]
    start = time.monotonic()
    c.fleet.control(node, "xid", gpu, 79)
    wait_for("the job to run again", lambda: restarts(c, jobs[0]) == 1 and
             c.phase(jobs[0]) == "running")
    took = time.monotonic() - start
    equal(place(c, jobs[0]) != places[0], True, "another device")
    equal([restarts(c, jobs[1]), place(c, jobs[1])], [0, places[1]], "the other job runs on")
    print(f"        from the event to running elsewhere {took:.2f} s")
    contains(c.root(["ginfo", "-R"]).stdout, f"GPU {gpu}: gpu-xid-79: ")
    table = c.root(["ginfo", "--gpus", "-n", node]).stdout.splitlines()
    equal(len(table), 1 + GPUS + 1)
    contains(table[1 + gpu], "failed")
    c.root(["gcancel", *map(str, jobs)], check=True)
    for job in jobs:
        c.ended(job)
    whole = c.submit("-n1", "-w", node, f"--gpus-per-node={GPUS}", "--wrap", "true")
    wait_for("a reason to wait", lambda: "ReqNodeNotAvail" in c.queue_line(whole))
    c.root(["gcancel", str(whole)], check=True)
    # The driver does not list this GPU any more. The other numbers must stay, because jobs name
    # GPUs by them.
    numbers = ["ginfo", "-g", "-h", "-n", node, "-o", "%g %U"]
    before = c.root(numbers).stdout
    c.kill_and_restart(c.daemon(node))
    wait_for("the node", lambda: "gpu-lost" in c.root(["ginfo", "-R"]).stdout)
    equal(c.root(numbers).stdout, before, "numbers")
    c.fleet.control(node, "reset", gpu)


def case_what_a_reset_mends_waits_for_the_end_of_the_job(c):
    c.find_daemons()
    job = c.submit("-n1", "-w", "node2", "--gpus-per-node=1", "--requeue", "--wrap", "sleep 120")
    c.running(job)
    node, gpu = place(c, job)
    c.fleet.control(node, "set", gpu, "remap_pending=1")
    said = f"GPU {gpu}: gpu-row-remap: "
    wait_for("a check", lambda: said in c.root(["ginfo", "-R"]).stdout)
    equal([c.phase(job), restarts(c, job)], ["running", 0])
    c.root(["gcancel", str(job)], check=True)
    c.ended(job)
    whole = c.submit("-n1", "-w", node, f"--gpus-per-node={GPUS}", "--wrap", "true")
    wait_for("the GPU to be closed", lambda: "ReqNodeNotAvail" in c.queue_line(whole))
    c.fleet.control(node, "set", gpu, "remap_pending=0")
    c.ended(whole, "completed")


def case_slices_are_cut_out_as_the_queue_wants(c):
    def slices(node):
        lines = c.root(["ginfo", "-g", "-h", "-n", node, "-o", "%s %t %j"]).stdout.splitlines()
        return [line.split() for line in lines if "@" in line]
    big = c.submit("-n1", "-w", "node1", "--gres=mig:3g.40gb:1", "--wrap", "env; sleep 60")
    small = c.submit("-n1", "-w", "node1", "--gres=mig:1g.10gb:2", "--wrap", "sleep 60")
    for job in (big, small):
        c.running(job)
    got = slices("node1")
    equal(sorted(s[0].split("@")[0] for s in got), ["1g.10gb", "1g.10gb", "3g.40gb"])
    equal({s[2] for s in got}, {str(big), str(small)})
    contains(c.output(big), "CUDA_VISIBLE_DEVICES=MIG-")
    # The jobs share the device file of their GPU; only the capability files keep their slices
    # apart.
    caps = {}
    for job in (big, small):
        shown = json.loads(c.root(["gctl", "show", "job", str(job), "--json"], check=True).stdout)
        caps[job] = {w for w, what in tried(c, job, [f"511:{m}" for m in range(3, 1200)],
                                            os.O_RDONLY).items() if what != "EPERM"}
        equal(len(find(shown, "placement")[0]["gpus"]), len(caps[job]) // 2)
    equal(caps[big] & caps[small], set(), "capabilities of both")
    wait = c.submit("-n1", "-w", "node1", "--gres=mig:4g.40gb:1", "--wrap", "true")
    wait_for("a reason to wait", lambda: "PENDING|Resources" in c.queue_line(wait))
    # Another GPU of the node could be cut into slices if an operator switched its mode.
    node, gpu, *row = c.root(["gctl", "mig", "-h", "-o", "%N %g %w %s %j"]).stdout.split()
    equal([node, *row], ["node1", "on", "4g.40gb", str(wait)])
    contains(c.as_user(["gctl", "why", str(wait)]).stdout, f"MIG mode on: an operator can switch GPU {gpu} of")
    equal(c.as_user(["gctl", "mig"]).returncode, 1, "operators only")
    c.root(["gcancel", str(big), str(small)], check=True)
    c.ended(wait, "completed")


def case_memory_is_overwritten_between_tenants_and_what_a_job_did_is_told(c):
    def took_all(partition):
        job = c.submit("-n1", "-w", "node2", "-p", partition, f"--gpus-per-node={GPUS}", "--wrap",
                       "while [ ! -e stop ]; do sleep 0.1; done")
        c.running(job)
        return job

    def end(job, column):
        c.root(["gcancel", str(job)], check=True)
        c.ended(job)
        return c.root(["gacct", "-nPX", "-j", str(job), "-o", column]).stdout.strip()
    equal(end(took_all("blue"), "GPUScrub"), ",".join(["done"] * GPUS))
    job = took_all("blue")
    for gpu in range(GPUS):
        c.fleet.control("node2", "set", gpu, "utilization=70", "power=500")
    wait_for("a look at it", lambda: c.root(["gctl", "top", "-h", "-o", "%j %g %b %w"]).stdout
             .split("\n")[:1] == [f"{job} 0 70% 500W"])
    equal(end(job, "GPUScrub"), ",".join(["not_needed"] * GPUS))
    shown = c.root(["gacct", "-nPX", "-j", str(job), "-o", "GPUEff,GPUEnergy"]).stdout.strip()
    equal([word[-1] for word in shown.split("|")], ["%", "h"], shown)
    with_series = json.loads(c.root(["gacct", "--efficiency", "--json", "-j", str(job)]).stdout)
    equal(find(with_series, "points") > 0, True)
    for gpu in range(GPUS):
        c.fleet.control("node2", "set", gpu, "utilization=0", "power=100")
    equal(end(took_all("batch"), "GPUScrub"), ",".join(["done"] * GPUS))


def case_who_stays_on_a_gpu_closes_it(c):
    job = c.submit("-n1", "-w", "node2", "--gpus-per-node=1", "--wrap", "sleep 120")
    c.running(job)
    node, gpu = place(c, job)
    c.fleet.control(node, "process", gpu, 4711, 300)
    c.root(["gcancel", str(job)], check=True)
    c.ended(job)
    said = f"GPU {gpu}: gpu-not-idle: process 4711 is left on it"
    wait_for("it to be closed", lambda: said in c.root(["ginfo", "-R"]).stdout)
    contains(c.root(["ginfo", "-h", "-n", node, "-o", "%T"]).stdout, "idle")
    # `gctl resume` opens the GPU at once, without the minute in which it would prove to be idle.
    c.fleet.control(node, "end", gpu, 4711)
    c.root(["gctl", "resume", node, "--gpu", str(gpu)], check=True)
    wait_for("it to be open", lambda: said not in c.root(["ginfo", "-R"]).stdout, 10)
    again = c.root(["gctl", "resume", node, "--gpu", str(gpu)])
    equal([again.returncode != 0, f"GPU {gpu} of {node} is in service" in again.stderr], [True, True])


def case_a_gpu_is_taken_out_of_service_by_hand(c):
    job = c.submit("-n1", "-w", "node2", "--gpus-per-node=1", "--wrap", "sleep 120")
    c.running(job)
    node, gpu = place(c, job)
    free = (gpu + 1) % GPUS
    c.root(["gctl", "drain", node, "--gpu", f"{gpu},{free}", "-r", "a noisy fan"], check=True)

    def shown():
        lines = c.root(["ginfo", "-g", "-h", "-n", node, "-o", "%g|%t|%e"], check=True).stdout
        return {int(g): (state, cause) for g, state, cause in
                (line.strip().split("|") for line in lines.splitlines())}
    said = shown()
    equal([said[gpu][0], said[free][0]], ["draining", "drained"])
    contains(said[free][1], "drained by root: a noisy fan since 20")
    contains(c.root(["ginfo", "-R"]).stdout, f"GPU {free}: drained by root: a noisy fan")
    contains(c.root(["ginfo", "--layout", "-n", node]).stdout, "drained by root: a noisy fan")
    # Both daemons are killed: the GPUs stay drained, and the job runs on.
    c.find_daemons()
    c.kill_and_restart(c.daemon("ctld"))
    c.kill_and_restart(c.daemon(node))
    wait_for("the node", lambda: c.root(["ginfo", "-h", "-n", node, "-o", "%T"]).stdout.strip()
             in ("mixed", "allocated"))
    equal([shown()[gpu][0], shown()[free][0]], ["draining", "drained"])
    rest = c.submit("-n1", "-w", node, f"--gpus-per-node={GPUS - 2}", "--wrap",
                    "echo $SLURM_JOB_GPUS")
    c.ended(rest, "completed")
    equal({gpu, free} & set(map(int, c.output(rest).strip().split(","))), set(), "GPUs of the rest")
    more = c.submit("-n1", "-w", node, f"--gpus-per-node={GPUS}", "--wrap", "true")
    wait_for("a reason to wait", lambda: "ReqNodeNotAvail" in c.queue_line(more))
    equal(restarts(c, job), 0)
    c.root(["gcancel", str(job)], check=True)
    c.ended(job)
    equal(shown()[gpu][0], "drained")
    c.root(["gctl", "resume", node, "--gpu", f"{gpu},{free}"], check=True)
    c.ended(more, "completed")
    equal(shown()[gpu], ("free", "-"))


def place(c, job):
    shown = json.loads(c.root(["gctl", "show", "job", str(job), "--json"], check=True).stdout)
    where = find(shown, "placement")[0]
    return where["node"], (where["gpus"][0] or {}).get("gpu", 0)


def restarts(c, job):
    shown = json.loads(c.root(["gctl", "show", "job", str(job), "--json"], check=True).stdout)
    return find(shown, "restarts") or 0


def find(tree, key):
    if isinstance(tree, dict):
        if key in tree:
            return tree[key]
        tree = list(tree.values())
    if isinstance(tree, list):
        for item in tree:
            if (got := find(item, key)) is not None:
                return got
    return None


if __name__ == "__main__":
    sys.exit(cluster.main(__doc__, globals(), "gpu", nodes=2))
