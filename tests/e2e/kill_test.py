#!/usr/bin/env python3
"""kill -9 of controller, node daemons and shims at random moments under load, with real daemons.

usage: kill_test.py BIN_DIR [--kills N] [--seed S] [--nodes N] [--runtime crun|process]

While jobs are submitted without pause, random daemons and shims are killed with SIGKILL (daemons are
started again at once). At the end every acknowledged job must be accounted for:
  - none is lost, and none ran twice (each writes one line when it starts);
  - the exit code of each is the one it had, and a job whose shim was killed ends as a failure that
    says so;
  - no cgroup, mount or process of the cluster is left after `gantry down`.
The exit status is 0 only if all of that holds. The seed is printed, and makes the same choices again.
"""
import argparse
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

JOB_SECONDS = (0.0, 0.4)     # how long a job runs, uniformly
PAUSE_SECONDS = (0.02, 0.35)  # between two kills
SETTLE_SECONDS = 180          # for all jobs to end once the killing stops
USER = "gantry-kill-test"     # made for the test: jobs do not run as root


def read(path):
    try:
        with open(path, "rb") as f:
            return f.read()
    except OSError:
        return b""


def processes():
    """pid -> command line of every process on the machine."""
    found = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            line = read(f"/proc/{entry}/cmdline")
            if line:
                found[int(entry)] = line.split(b"\0")[:-1]
    return found


def program(argv):
    return os.path.basename(argv[0].decode(errors="replace")) if argv else ""


class Cluster:
    def __init__(self, bin_dir, top, nodes, runtime):
        self.bin, self.top = bin_dir, top
        self.state = os.path.join(top, "cluster")
        self.env = dict(os.environ, PATH=f"{bin_dir}:{os.environ['PATH']}",
                        GANTRY_CONF=f"{self.state}/client.conf")
        command = ["gantry", "up", "--nodes", str(nodes), "--cpus", str(min(2, os.cpu_count())),
                   "--memory", "1G", "--oversubscribe", "--user", USER, "--state", self.state]
        if runtime != "crun":
            command += ["--runtime", runtime]
        self.run(command, check=True)
        self.daemons = {}  # pid -> (argv, environment)
        for pid, argv in processes().items():
            if program(argv) in ("gantry-ctld", "gantry-noded") and self.state.encode() in b"\0".join(argv):
                self.daemons[pid] = argv
        want = nodes + 1
        if len(self.daemons) != want:
            sys.exit(f"expected {want} daemons below {self.state}, found {len(self.daemons)}")

    def run(self, command, check=False, timeout=60):
        command = [os.path.join(self.bin, command[0])] + command[1:]
        done = subprocess.run(command, env=self.env, capture_output=True, text=True, timeout=timeout,
                              check=False)
        if check and done.returncode != 0:
            sys.exit(f"{' '.join(command)}: exit {done.returncode}\n{done.stdout}{done.stderr}")
        return done

    def of_program(self, name):
        return [pid for pid, argv in self.daemons.items() if program(argv) == name]

    def shims(self):
        return [pid for pid, argv in processes().items()
                if program(argv) == "gantry-shim" and self.state.encode() in b"\0".join(argv)]

    def kill_and_restart(self, pid):
        argv = self.daemons.pop(pid)
        os.kill(pid, signal.SIGKILL)
        while os.path.exists(f"/proc/{pid}") and b"Z" not in read(f"/proc/{pid}/stat").rsplit(b")")[-1][:3]:
            time.sleep(0.001)
        log = open(os.path.join(self.top, "daemons.log"), "ab")
        child = subprocess.Popen([a.decode() for a in argv], env=self.env, stdin=subprocess.DEVNULL,
                                 stdout=log, stderr=log, start_new_session=True, close_fds=True)
        self.daemons[child.pid] = argv
        self.children = getattr(self, "children", []) + [child]
        return child.pid


    def stop(self):
        """Asks every daemon to end; those it started itself are waited for by the caller."""
        for pid in self.daemons:
            try:
                os.kill(pid, signal.SIGTERM)
            except ProcessLookupError:
                pass
        deadline = time.time() + 15
        while time.time() < deadline and any(pid in processes() for pid in self.daemons):
            for child in getattr(self, "children", []):
                child.poll()
            time.sleep(0.05)


class Load(threading.Thread):
    """Submits one job after the other and keeps the ids that were acknowledged."""

    def __init__(self, cluster, rng, out_dir):
        super().__init__(daemon=True)
        self.cluster, self.rng, self.out = cluster, rng, out_dir
        self.jobs = {}       # id -> expected exit code
        self.refused = 0
        self.stop = threading.Event()

    def run(self):
        while not self.stop.is_set():
            code = self.rng.choice([0, 0, 1, 3, 42])
            pause = self.rng.uniform(*JOB_SECONDS)
            script = (f"#!/bin/bash\necho start $$ >> {self.out}/$SLURM_JOB_ID\n"
                      f"sleep {pause:.3f}\nexit {code}\n")
            done = subprocess.run(
                [f"{self.cluster.bin}/gbatch", "--parsable", "--no-requeue", "--mem=20M",
                 "--time=5:00", "-o", "/dev/null", "-D", self.out], input=script, text=True,
                env=self.cluster.env, capture_output=True, check=False, timeout=120, user=USER,
                group=USER, extra_groups=[])
            if done.returncode == 0 and done.stdout.strip().isdigit():
                self.jobs[int(done.stdout)] = code
            else:
                self.refused += 1
                self.last_refusal = (done.stdout + done.stderr).strip()
                time.sleep(0.05)


def job_of_shim(pid):
    """The job of a shim by its command line: gantry-shim job STATE_DIR JOB.ATTEMPT"""
    argv = read(f"/proc/{pid}/cmdline").split(b"\0")[:-1]
    match = re.fullmatch(rb"(\d+)\.(\d+)", argv[-1]) if argv else None
    return int(match.group(1)) if match else None


def cgroups(root):
    """Directories of jobs below the cluster's own cgroup, in every hierarchy."""
    return sorted(path for top, dirs, _ in os.walk("/sys/fs/cgroup")
                  for path in (os.path.join(top, name) for name in dirs)
                  if f"/{root}/" in path and re.search(r"/job_[^/]*$", path))


def leftovers(state):
    """What is still there of the cluster below `state` when it should be gone."""
    found = []
    for pid, argv in processes().items():
        if state.encode() in b"\0".join(argv) and pid != os.getpid():
            found.append(f"process {pid}: {b' '.join(argv)[:120].decode(errors='replace')}")
    for line in read("/proc/self/mountinfo").decode(errors="replace").splitlines():
        if state in line:
            found.append("mount: " + line.split()[4])
    root = re.search(r"^\s*cgroup_root:\s*(\S+)", read(f"{state}/gantry.yaml").decode(), re.M)
    if root:
        found += ["cgroup: " + path for path in cgroups(root.group(1).strip("\"'"))]
    return found


def accounts(cluster):
    done = cluster.run(["gacct", "--json", "-a"], timeout=120)
    if done.returncode != 0:
        sys.exit(f"gacct: {done.stderr}")
    rows = {}
    data = json.loads(done.stdout)
    for entry in data["jobs"] if isinstance(data, dict) and "jobs" in data else data["rows"]:
        rows[entry["row"]["job"]] = entry
    return rows


def check(load, rows, shim_killed, out_dir):
    errors = []
    for job, code in sorted(load.jobs.items()):
        entry = rows.get(job)
        if entry is None:
            errors.append(f"job {job} was acknowledged and is lost")
            continue
        row = entry["row"]
        starts = read(f"{out_dir}/{job}").count(b"start")
        if starts > 1:
            errors.append(f"job {job} ran {starts} times")
        if row["phase"] != "ended":
            errors.append(f"job {job} has not ended: {row['phase']}")
            continue
        exit_code, outcome = row["exit"]["code"], row["outcome"]
        if outcome == "node_fail":
            if job not in shim_killed:
                errors.append(f"job {job} is node_fail, and nobody killed its shim: {entry['cause']}")
            elif "shim" not in entry["cause"]:
                errors.append(f"job {job}: its cause does not name the shim: {entry['cause']!r}")
            continue
        if outcome != ("completed" if code == 0 else "failed") or exit_code != code:
            errors.append(f"job {job} should have exit {code}: {outcome} {exit_code}, {entry['cause']}")
        if starts != 1:
            errors.append(f"job {job} ended as {outcome} and wrote {starts} start lines")
    return errors


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bin_dir")
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--nodes", type=int, default=3)
    parser.add_argument("--runtime", default="crun")
    parser.add_argument("--keep", action="store_true", help="keep the state directory")
    args = parser.parse_args()
    rng = random.Random(args.seed)
    top = tempfile.mkdtemp(prefix="gantry-kill.")
    os.chmod(top, 0o755)
    out_dir = os.path.join(top, "out")
    os.mkdir(out_dir)
    os.chmod(out_dir, 0o777)
    if os.getuid() != 0:
        print("skipped: this test makes a user and containers, so it needs root")
        return 77
    subprocess.run(["useradd", "--no-create-home", "--home-dir", out_dir, USER], check=False)
    print(f"seed {args.seed}, {args.kills} kills, state in {top}", flush=True)
    cluster = Cluster(os.path.realpath(args.bin_dir), top, args.nodes, args.runtime)
    errors = []
    try:
        load = Load(cluster, random.Random(args.seed + 1), out_dir)
        load.start()
        kills = {"gantry-ctld": 0, "gantry-noded": 0, "gantry-shim": 0}
        shim_killed = set()
        while sum(kills.values()) < args.kills:
            time.sleep(rng.uniform(*PAUSE_SECONDS))
            kind = rng.choice(sorted(kills))
            if kind == "gantry-shim":
                shims = cluster.shims()
                if not shims:
                    continue
                pid = rng.choice(shims)
                job = job_of_shim(pid)
                try:
                    os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:
                    continue
                if job:
                    shim_killed.add(job)
            else:
                cluster.kill_and_restart(rng.choice(cluster.of_program(kind)))
            kills[kind] += 1
            if sum(kills.values()) % 20 == 0:
                print(f"  {sum(kills.values())} kills, {len(load.jobs)} jobs acknowledged", flush=True)
        load.stop.set()
        load.join(timeout=130)
        print(f"killed {kills}; {len(load.jobs)} jobs acknowledged, {load.refused} submits refused",
              flush=True)
        deadline = time.time() + SETTLE_SECONDS
        while time.time() < deadline:
            rows = accounts(cluster)
            open_jobs = [j for j in load.jobs if j not in rows or rows[j]["row"]["phase"] != "ended"]
            if not open_jobs:
                break
            time.sleep(0.5)
        errors = check(load, rows, shim_killed, out_dir)
        if len(load.jobs) < args.kills / 2:
            errors.append(f"only {len(load.jobs)} jobs were acknowledged: too little load")
    finally:
        cluster.stop()
        for child in getattr(cluster, "children", []):
            if child.poll() is None:
                try:
                    child.wait(timeout=15)
                except subprocess.TimeoutExpired:
                    errors.append(f"pid {child.pid} survived SIGTERM")
                    child.kill()
        errors += leftovers(cluster.state)
        subprocess.run(["userdel", USER], check=False)
        if not errors and not args.keep:
            shutil.rmtree(top, ignore_errors=True)
        else:
            print(f"kept: {top}")
    for error in errors[:40]:
        print("FAIL:", error)
    print("FAILED" if errors else "all jobs accounted for, nothing left behind")
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main())
