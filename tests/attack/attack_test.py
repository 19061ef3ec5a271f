#!/usr/bin/env python3
"""Attempts to share or reach a device of another tenant, with real containers: README.md lists them.

Tenant red has a whole GPU, a part of one with an MPS daemon, a slice and an FPGA; tenant blue, who knows all
about it, tries to get at them: by what it asks for, from inside of its containers, by what it leaves
behind. Devices are a stand-in's: an open that is let through says ENXIO.

usage: attack_test.py BIN_DIR [-k CASE] [--keep]
"""
import errno
import json
import os
import re
import shutil
import socket
import stat
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "../e2e"))

import cluster  # noqa: E402
from cluster import contains, equal, wait_for  # noqa: E402
from gpu_test import GPUS, MINORS, declare, entries, find, place, tried  # noqa: E402
from without_walls import NOT_AS_ROOT, through, tried_without_walls  # noqa: E402

MPS = os.path.abspath(os.path.join(HERE, "../nvml/nvidia-cuda-mps-control"))
KEY = 0x67616e74
VICTIM = f"""
import ctypes, os, time
libc = ctypes.CDLL(None)
assert libc.shmget({KEY}, 4096, 0o1666) >= 0
assert libc.semget({KEY}, 1, 0o1666) >= 0
assert libc.msgget({KEY}, 0o1666) >= 0
for path in ("/dev/shm/red", "/tmp/red"):
    with open(path, "w") as f:
        f.write("secret")
    os.chmod(path, 0o666)
libc.mq_open(b"/red", os.O_CREAT | os.O_RDWR, 0o666, None)
print("ready", flush=True)
while not os.path.exists("stop"):
    time.sleep(0.2)
"""
# An attempt counts as stopped if it ended with one of these errors or with one of these words of
# the probe. ESRCH and ENOENT mean that the target has no name inside the container.
STOPPED = {"EPERM", "EACCES", "ENOENT", "ESRCH", "EROFS", "ENOSYS", "ENOTDIR", "ECONNREFUSED", "EBADF",
           "none", "no new privileges", "its own only", "empty", "overwritten",
           "nothing there"}
# What a machine for tests may lack: a driver with parameters, PCI devices with memory, device files of the
# machine's memory, a daemon of MPS at its usual place, device programs, io_uring and user namespaces.
OF_THE_MACHINE = {"change-the-drivers-parameters", "map-a-pci-devices-memory", "open-the-machines-memory",
                  "use-the-default-mps-directory", "load-a-device-program", "perf-or-io-uring",
                  "make-a-user-namespace", "reach-io-ports", "load-a-module"}
SPOOF = {"CUDA_VISIBLE_DEVICES": "spoofed", "NVIDIA_VISIBLE_DEVICES": "all", "SLURM_JOB_GPUS": "spoofed",
         "GANTRY_JOB_GPUS": "spoofed", "GPU_DEVICE_ORDINAL": "spoofed", "GANTRY_GRES_FPGA": "spoofed"}


def start(c, kind="part"):
    """Starts a victim job of this kind, and both tenants if they do not exist yet. There is one
    victim at a time, since a node here has two cores."""
    if not hasattr(c, "victims"):
        c.victims, (c.red, c.blue) = {}, c.users
        declare(c, of_nodes="gpu_sharing: mps, gpu_shards: 8, gres: ['fpga:/dev/xfpga[0-1]'], ",
                noded=f"  mps_control: {MPS}\n", prepare=make_files)
        for tenant, user in (("red", c.red), ("blue", c.blue)):
            c.root(["gtenant", "create", tenant, "--user", user, "--cpus", "64", "--yes"], check=True)
        shutil.copy(f"{HERE}/probe.py", f"{c.out}/probe.py")
    if kind in c.victims:
        return
    for job in c.victims.values():
        cancel(c, job)
    option = {"part": "--gpus=0.5", "whole": "--gpus=1", "slice": "--gres=mig:1g.10gb:1"}[kind]
    job = submit(c, "red", option, script=f"#!/bin/sh\nexec python3 - <<'END'\n{VICTIM}\nEND\n")
    c.running(job)
    c.said(job, "ready")
    c.victims = {kind: job}
    c.job, c.victim = job, know(c, job, kind)


def cancel(c, *jobs):
    c.root(["gcancel", *map(str, jobs)], check=True)
    for job in jobs:
        c.ended(job)


def make_files(c):
    for n in range(2):
        path = f"{c.fleet.dir}/node1/dev/xfpga{n}"
        os.mknod(path, stat.S_IFCHR | 0o666, os.makedev(240, n))
        os.chmod(path, 0o666)


def submit(c, tenant, *options, script=None, env=None):
    user = c.red if tenant == "red" else c.blue
    command = ["gbatch", "--parsable", "-n1", "-w", "node1", "-p", tenant, "--mem=30M", "-o", "%j.out",
               *options]
    done = c.as_user(command, user=user, env=env, **({"input": script} if script else {}))
    equal(done.returncode, 0, f"{' '.join(command)}: {done.stderr}")
    return int(done.stdout)


def refused(c, *command, why="", user=None, **options):
    done = c.as_user(list(command), user=user or c.blue, **options)
    equal(done.returncode != 0, True, f"{' '.join(command)} was taken: {done.stdout}")
    contains(done.stdout + done.stderr, why, " ".join(command))


def grants(c, job):
    shown = json.loads(c.root(["gctl", "show", "job", str(job), "--json"], check=True).stdout)
    return find(shown, "placement")[0].get("gpus", [])


def know(c, job, kind):
    """Everything about the victim's job that an attacker could find out."""
    inner = [pid for pid, argv in cluster.processes().items()
             if argv[:2] == [b"python3", b"-"] and job_of(c, pid) == str(job)]
    mps = [os.path.dirname(e.decode().split("=", 1)[1]) for pid in cluster.processes()
           for e in cluster.read(f"/proc/{pid}/environ").split(b"\0")
           if e.startswith(b"CUDA_MPS_PIPE_DIRECTORY=/") and c.state.encode() in e]
    equal(bool(mps), kind == "part", "a daemon for a part, and else none")
    held = grants(c, job)
    minors = [7] if kind == "slice" else [MINORS[g.get("gpu", 0)] for g in held]
    caps = {w for w, what in tried(c, job, [f"511:{m}" for m in range(1, 1200)],
                                   os.O_RDONLY).items() if what != "EPERM"}
    equal(len(caps), 2 if kind == "slice" else 0, "capabilities of a slice")
    planted = f"{c.out}/planted-{kind}"
    if os.path.exists(planted):
        os.unlink(planted)
    os.mknod(planted, stat.S_IFCHR | 0o666, os.makedev(195, minors[0]))
    os.chmod(planted, 0o666)
    for old in getattr(c, "listeners", []):
        old.close()
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(f"\0gantry-attack-{kind}")
    listener.listen()
    port = socket.socket()
    port.bind(("127.0.0.1", 0))
    port.listen()
    c.listeners = [listener, port]
    uuid = c.fleet.uuid("node1", held[0].get("gpu", 0))
    return {"minors": minors, "caps": [int(w.split(":")[1]) for w in caps] or list(range(3, 1080)),
            "pid": max(inner), "mps": mps[0] if mps else f"{c.state}/nodes/node1/run/mps-node1/{uuid}",
            "uuid": uuid, "shm": "red", "key": KEY, "planted": planted, "rights": sorted(caps),
            "socket": f"gantry-attack-{kind}", "port": port.getsockname()[1],
            "host_dev": f"{c.fleet.dir}/node1/dev", "cgroup": os.path.dirname(entries(c, job)[0])}


def job_of(c, pid):
    """The number of the job of this cluster whose cgroup the process is in, for example "12"; "" if there is
    none."""
    found = re.search(rf"/{c.cgroup_root()}/.*/job_(\d+)\.", cluster.text(f"/proc/{pid}/cgroup"))
    return found.group(1) if found else ""


def attack(c, name, *options):
    """Runs all attempts of probe.py in a job of tenant blue; returns the outcome of each."""
    facts = f"{c.out}/facts-{name}"
    job = submit(c, "blue", *options,
                 script=(f"#!/bin/sh\nwhile [ ! -e {facts} ]; do sleep 0.1; done\n"
                         f"exec python3 probe.py {facts}\n"),
                 env=dict(SPOOF, CUDA_MPS_PIPE_DIRECTORY=c.victim["mps"]))
    c.running(job)
    slices = "mig" in "".join(options)
    own = [7 if slices else MINORS[g.get("gpu", 0)] for g in grants(c, job)]
    with open(facts + ".new", "w", encoding="utf-8") as f:
        json.dump(dict(c.victim, own_minors=own), f)
    os.chmod(facts + ".new", 0o644)
    os.rename(facts + ".new", facts)
    c.ended(job, "completed")
    came = {}
    for line in c.output(job).splitlines():
        row = json.loads(line)
        came[row["attempt"]] = row["came"]
    equal(bool(set(own) & set(c.victim["minors"])), slices, "a GPU of both")
    return came


def check(came, but=()):
    wrong = {a: what for a, what in came.items() if what not in STOPPED and a not in but}
    equal(wrong, {}, "attempts that were not stopped")
    equal(len(came) >= 50, True, f"{len(came)} attempts")


def case_from_a_job_without_gpus(c):
    start(c, "part")
    check(attack(c, "none"))


def case_from_a_job_with_a_gpu_of_its_own(c):
    start(c, "part")
    check(attack(c, "own", "--gpus=1"))


def case_from_a_job_with_a_part_of_another_gpu(c):
    start(c, "part")
    came = attack(c, "part", "--gpus=0.5")
    check(came)
    equal(came["find-the-victims-gpu-behind-its-own-pipe"], "its own only")


def case_from_a_job_beside_one_with_a_whole_gpu(c):
    start(c, "whole")
    check(attack(c, "whole", "--gpus=1"))


def case_from_a_slice_beside_the_victims_slice(c):
    start(c, "slice")
    # Both slices share the device file of their GPU, which therefore opens in any way; what keeps
    # them apart are the capability files.
    check(attack(c, "slice", "--gres=mig:1g.10gb:1"),
          but={"open-the-victims-gpu", "open-it-through-another-root"})
    beside = submit(c, "blue", "--gres=mig:1g.10gb:1", "--wrap", "sleep 600")
    c.running(beside)
    got = tried(c, beside, [f"511:{m}" for m in range(1, 1200)], os.O_RDONLY)
    mine = {w for w, what in got.items() if what != "EPERM"}
    equal([len(mine), mine & (set(c.victim["rights"]) | {"511:1", "511:2"})], [2, set()])
    cancel(c, beside)


def case_every_device_number_from_inside_of_the_cgroup(c):
    start(c)
    numbers = [f"195:{m}" for m in range(256)] + [f"{major}:{minor}" for major in range(2, 512)
                                                  for minor in (0, 1) if major not in (5, 195)]
    job = submit(c, "blue", "--gpus=1", "--gres=fpga:1", "--wrap", "sleep 600")
    c.running(job)
    gpu = MINORS[grants(c, job)[0].get("gpu", 0)]
    got = tried(c, job, numbers)
    own = {f"195:{gpu}", "195:255", "508:0", "508:1", "240:0"}
    equal({w for w, what in got.items() if what != "EPERM" and not w.startswith("13")} - own, set())
    equal({got[w] for w in own}, {"ENXIO"}, "its own")
    cancel(c, job)
    # Without the rules the victim's number is let through to the driver.
    path = f"{c.top}/files/195-{c.victim['minors'][0]}"
    try:
        os.close(os.open(path, os.O_RDWR))
        raise AssertionError("a driver is there")
    except OSError as e:
        equal(e.errno, errno.ENXIO, path)


def case_by_what_is_asked(c):
    start(c)
    mine, red = ["gbatch", "-n1", "-p", "blue", "--wrap", "true"], c.job
    refused(c, "gbatch", "-n1", "-p", "red", "--gpus=0.1", "--wrap", "true", why="red")
    refused(c, "gctl", "update", "job", str(red), "TimeLimit=1", why="")
    refused(c, "grun", f"--jobid={red}", "true", why="")
    refused(c, "grun", f"--jobid={red}", "--overlap", "cat", "/dev/mps/devices", why="")
    refused(c, *mine, "--gpus=2.5", why="whole ones, or a part of one")
    refused(c, *mine, "--gres=shard:9", why="shards of one GPU, which has 8")
    refused(c, *mine, "--gres=mig:1g.10gb:1.5", why="a job gets whole ones, or a part of one")
    refused(c, *mine, f"--gres=gpu:{c.victim['uuid']}:1", why="GPUs of model")
    refused(c, *mine, "--gres=fpga:3", why="at most 2")
    refused(c, *mine, "--oversubscribe", why="")
    refused(c, *mine, "--gpu-bind=none", why="")
    for bind in ("/dev:/hostdev", f"{c.fleet.dir}/node1/dev/nvidia2:/dev/nvidia2",
                 f"{c.victim['mps']}/pipe:/pipe", "/proc/driver:/driver"):
        done = c.as_user([*mine[:-2], f"--container-mounts={bind}", "--parsable", "--mem=30M", "-o",
                          "%j.out", "--wrap",
                          "for f in /hostdev/nvidia* /dev/nvidia* /pipe/* /driver/*; do "
                          "[ -e $f ] && (exec 3<>$f) 2>&1; done; echo end"], user=c.blue)
        if done.returncode == 0:
            job = int(done.stdout)
            c.ended(job)
            for line in c.output(job).splitlines():
                equal("No such device" in line, False, f"{bind}: let through to the driver: {line}")


def case_whole_gpus_are_not_given_while_parts_are_held(c):
    start(c)
    job = submit(c, "blue", f"--gpus-per-node={GPUS}", "--wrap", "true")
    own = submit(c, "red", f"--gpus-per-node={GPUS}", "--wrap", "true")
    for waits in (job, own):
        wait_for("a reason to wait", lambda waits=waits: "PENDING" in c.queue_line(waits))
    c.root(["gcancel", str(job), str(own)], check=True)
    part = submit(c, "blue", "--gpus=0.4", "--wrap", "sleep 600")
    c.running(part)
    equal(place(c, part) != place(c, c.job), True, "another GPU than red's")
    cancel(c, part)


def case_steps_have_what_their_job_has(c):
    start(c)
    look = "ls /dev | grep ^nvidia[0-9]; mknod /tmp/x c 195 0; echo CVD=$CUDA_VISIBLE_DEVICES"
    script = f"#!/bin/sh\nexport CUDA_VISIBLE_DEVICES=spoofed\ngrun sh -c '{look}' 2>&1\n"
    job = submit(c, "blue", "--gpus=1", script=script)
    c.ended(job)
    said = c.output(job)
    seen = re.findall(r"^nvidia(\d+)$", said, re.M)
    equal(len(seen), 1, said)
    equal(int(seen[0]) in c.victim["minors"], False, said)
    contains(said, "Operation not permitted")
    refused(c, "grun", "-p", "blue", "--prolog=/bin/true", "true", why="")
    refused(c, "grun", "-p", "blue", "--task-prolog=/bin/true", "true", why="")


def case_nothing_is_left_behind(c):
    start(c)
    script = ("#!/bin/sh\nsetsid sh -c 'trap \"\" TERM HUP; while :; do sleep 1234.5; done' "
              "</dev/null >/dev/null 2>&1 &\nnohup sleep 1234.5 &\n"
              "echo left > /dev/shm/left; echo left > /tmp/left\necho done\n")
    job = submit(c, "blue", "--gpus=0.5", script=script)
    c.ended(job, "completed")
    wait_for("its processes to end", lambda: not any(
        b"1234.5" in b" ".join(argv) for argv in cluster.processes().values()))
    after = submit(c, "blue", "--gpus=0.5", "--wrap", "ls /dev/shm /tmp; echo end")
    c.ended(after, "completed")
    equal("left" in c.output(after), False, "files of the job before")


def case_cdi_of_a_users_own_is_not_read(c):
    start(c)
    for folder in ("cdi", ".config/cdi"):
        os.makedirs(f"{c.out}/{folder}", exist_ok=True)
        with open(f"{c.out}/{folder}/evil.json", "w", encoding="utf-8") as f:
            json.dump({"cdiVersion": "0.6.0", "kind": "nvidia.com/gpu", "devices": [
                {"name": "all", "containerEdits": {"deviceNodes": [
                    {"path": f"/dev/nvidia{c.victim['minors'][0]}"}]}}]}, f)
    job = submit(c, "blue", "--wrap", "ls /dev; echo end",
                 env={"CDI_SPEC_DIRS": f"{c.out}/cdi", "NVIDIA_VISIBLE_DEVICES": "all",
                      "CDI_DEVICES": "nvidia.com/gpu=all"})
    c.ended(job, "completed")
    equal("nvidia" in c.output(job), False, c.output(job))


def case_without_walls_each_attempt_reaches_what_it_wants(c):
    came = {}
    for kind in ("part", "slice"):
        start(c, kind)
        for name, what in tried_without_walls(c, c.victim, SPOOF).items():
            if not through(came.get(name, "")):
                came[name] = what
    held = {a: what for a, what in came.items() if not through(what)}
    print(f"  {len(came) - len(held)} of {len(came)} reach it without walls; not on this machine: {held}")
    equal({a: what for a, what in held.items() if a not in OF_THE_MACHINE}, {}, "attempts that do not bite")
    sys.path.insert(0, HERE)
    import probe  # pylint: disable=import-outside-toplevel
    equal(set(probe.attempts), set(came) | NOT_AS_ROOT, "attempts")
    equal(len(came) - len(held) >= 43, True, f"{len(came) - len(held)} attempts bite")


def case_the_table_names_every_attempt(c):
    start(c)
    with open(f"{HERE}/README.md", encoding="utf-8") as f:
        named = set(re.findall(r"^\| `([a-z0-9-]+)`", f.read(), re.M))
    sys.path.insert(0, HERE)
    import probe  # pylint: disable=import-outside-toplevel
    cases = {n[5:].replace("_", "-") for n in globals() if n.startswith("case_")}
    equal(named, set(probe.attempts) | cases - {"the-table-names-every-attempt"}, "README.md")


if __name__ == "__main__":
    sys.exit(cluster.main(__doc__, globals(), "attack", nodes=1, users=2))
