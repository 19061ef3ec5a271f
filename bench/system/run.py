#!/usr/bin/env python3
"""Puts the daemons of one build under load, and prints a table with the targets beside the figures.

usage: run.py BUILD_DIR [--out FILE] [--quick] [--only WORD]

Starts a cluster whose nodes run nothing, to measure the controller alone, and one with containers,
and removes both at the end. The figures are medians of several rounds. The last column has the
figures of Slurm 22.05 from Debian on such a machine, tuned and without containers.

Containers per second are compared with a bare loop of `crun run`. The loop uses the mounts, the
config.json, the limits and the parallelism of Gantry's jobs, but runs /bin/true. Its rounds
alternate with Gantry's.
"""
import argparse
import glob
import json
import os
import re
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time

ROUNDS = 3
MEMORY_MIB = 16  # memory of a job of bench_load


def note(text):
    print(text, file=sys.stderr, flush=True)


class Cluster:
    """A cluster from `gantry up` with a changed gantry.yaml. close() removes it."""

    def __init__(self, build, runtime, nodes, edit):
        self.bin = os.path.join(build, "bin")
        self.top = tempfile.mkdtemp(prefix="gantry-bench.")
        os.chmod(self.top, 0o755)
        self.state = os.path.join(self.top, "state")
        self.env = dict(os.environ, PATH=f"{self.bin}:{os.environ['PATH']}",
                        GANTRY_CONF=f"{self.state}/client.conf")
        self.gantry("up", "--runtime", runtime, "--nodes", str(nodes), "--cpus", "2", "--memory",
                    "1G", "--oversubscribe", "--state", self.state)
        self.gantry("down", "--state", self.state)
        path = f"{self.state}/gantry.yaml"
        with open(path, encoding="utf-8") as f:
            text = edit(f.read())
        with open(path, "w", encoding="utf-8") as f:
            f.write(text)
        self.gantry("up", "--state", self.state)

    def gantry(self, *args):
        done = subprocess.run([f"{self.bin}/gantry", *args], env=self.env, capture_output=True,
                              text=True, check=False)
        if done.returncode != 0:
            sys.exit(f"gantry {' '.join(args)}: {done.stdout}{done.stderr}")

    def load(self, *args):
        done = subprocess.run([f"{self.bin}/bench_load", *map(str, args)], env=self.env, cwd=self.top,
                              capture_output=True, text=True, check=False)
        if done.returncode != 0:
            sys.exit(f"bench_load {args}: {done.stderr}")
        return json.loads(done.stdout)

    def controller(self):
        for entry in os.listdir("/proc"):
            if entry.isdigit():
                try:
                    with open(f"/proc/{entry}/cmdline", "rb") as f:
                        argv = f.read().split(b"\0")
                except OSError:
                    continue
                if argv[0].endswith(b"gantry-ctld") and self.state.encode() in b"\0".join(argv):
                    return int(entry), [a.decode() for a in argv[:-1]]
        sys.exit("the controller is gone")

    def close(self):
        subprocess.run([f"{self.bin}/gantry", "down", "--cancel", "--remove", "--state", self.state],
                       env=self.env, capture_output=True, check=False)
        shutil.rmtree(self.top, ignore_errors=True)


def rss(pid):
    with open(f"/proc/{pid}/status", encoding="ascii") as f:
        return int(re.search(r"VmRSS:\s+(\d+)", f.read()).group(1)) * 1024


def median_of(field, runs):
    return statistics.median(run[field] for run in runs)


class Table:
    def __init__(self):
        self.rows = []

    def add(self, what, value, target="", slurm=""):
        note(f"  {what}: {value}")
        self.rows.append((what, value, target, slurm))

    def text(self):
        head = ("what", "measured", "target", "Slurm 22.05")
        widths = [max(len(str(r[i])) for r in [head, *self.rows]) for i in range(4)]
        lines = []
        for row in [head, tuple("-" * w for w in widths), *self.rows]:
            lines.append("  ".join(str(c).ljust(w) for c, w in zip(row, widths)).rstrip())
        return "\n".join(lines) + "\n"


def list_and_cancel(cluster, table, jobs, state):
    """Measures gqueue and gcancel. The controller also walks the ended jobs that it remembers, so
    `state` says for the table which ended jobs there are."""
    listed, cancelled = [], []
    for _ in range(ROUNDS):
        cluster.load("submit", 512, jobs)
        time.sleep(2)
        listed.append(cluster.load("spawn", 1, 5, "gqueue"))
        cancelled.append(cluster.load("cancel", "wait"))
    targets = ("", "") if state else ("50 ms", "100 ms")
    table.add(f"gqueue of {jobs:,} jobs (process){state}", f"{median_of('p50_ms', listed):.0f} ms",
              targets[0], "166 ms")
    table.add(f"cancelling {jobs:,} jobs{state}", f"{median_of('ms', cancelled):.0f} ms",
              targets[1], "3.6 s")


def idle_cluster(build):
    """A controller with four nodes that run nothing, and a drained one for jobs that must wait."""
    def edit(text):
        text = re.sub(r"cpus: 2, cpu_ids: '[^']*', memory: \S+,", "cpus: 256, memory: 64G,", text)
        first = re.search(r"\{name: node1,", text)
        return (text[:first.start()] + "{name: node1, features: [parked]," + text[first.end():]
                ).replace("allow_root_jobs: false", "allow_root_jobs: true")

    c = Cluster(build, "none", 5, edit)
    drain = subprocess.run([f"{c.bin}/gctl", "drain", "node1", "--reason", "bench"], env=c.env,
                           capture_output=True, text=True, check=False)
    if drain.returncode != 0:
        c.close()
        sys.exit(drain.stderr)
    return c


def bench_listing(build, table, scale):
    note("a controller with a queue of ten thousand")
    c = idle_cluster(build)
    try:
        list_and_cancel(c, table, 10000 // scale, "")
    finally:
        c.close()


def bench_tenants(build, table, scale):
    """Measures jobs per second with quota, borrowing, fair share and preemption. A hundred tenants
    with a quota of ten cores each share four nodes, and the waiting jobs are theirs as well."""
    note("a controller with a hundred tenants")
    tenants = 100
    documents = ["apiVersion: gantry/v1\nkind: Cohort\nname: all\n"]
    documents += [f"apiVersion: gantry/v1\nkind: PriorityClass\nname: {name}\nvalue: {value}\n{more}"
                  for name, value, more in (("production", 1000, "preempts: true\n"),
                                            ("normal", 500, "default: true\n"))]
    documents += [f"apiVersion: gantry/v1\nkind: Tenant\nname: t{i}\ncohort: all\n"
                  "quota:\n  cpu: 10\nprojects:\n  a: {shares: 2}\n  b: {shares: 1}\n"
                  "roles:\n  user: {users: [root]}\n" for i in range(1, tenants + 1)]
    c = idle_cluster(build)
    try:
        path = f"{c.top}/tenants.yaml"
        with open(path, "w", encoding="utf-8") as f:
            f.write("---\n".join(documents))
        done = subprocess.run([f"{c.bin}/gtenant", "apply", "--yes", "-f", path], env=c.env,
                              capture_output=True, text=True, check=False)
        if done.returncode != 0:
            sys.exit(done.stderr)
        pending = 0
        for want in (1000, 100000):
            want //= scale
            c.load("submit", 512, want - pending, f"tenants={tenants}")
            pending = want
            time.sleep(2)
            runs = [c.load("pipe", 20000 // scale, f"tenants={tenants}") for _ in range(ROUNDS)]
            table.add(f"jobs of {tenants} tenants through the pipe, {want:,} pending",
                      f"{median_of('per_second', runs):,.0f}/s", "5,000/s")
    finally:
        c.close()


def bench_controller(build, table, scale):
    note("a controller and nodes that run nothing")
    c = idle_cluster(build)
    try:
        pid, argv = c.controller()
        for outstanding, target, slurm in ((1, "", ""), (16, "", ""), (128, "50,000/s, p99 5 ms",
                                                                      "1,160/s, not durable"),
                                           (512, "", "")):
            count = {1: 2000, 16: 20000}.get(outstanding, 60000) // scale
            runs = [c.load("submit", outstanding, count) for _ in range(ROUNDS)]
            table.add(f"durable submits, {outstanding} outstanding",
                      f"{median_of('per_second', runs):,.0f}/s, p50 {median_of('p50_ms', runs):.2f} "
                      f"ms, p99 {median_of('p99_ms', runs):.2f} ms", target, slurm)
        table.add("array of 1,000,000 tasks, one submit",
                  f"{median_of('ms', [c.load('array', 1000000) for _ in range(ROUNDS)]):.2f} ms",
                  "5 ms")
        c.load("cancel", "array")
        c.load("cancel", "wait")
        time.sleep(1)
        runs = [c.load("spawn", 1, 300 // scale, "gbatch", "--mem=16M", "-C", "parked", "-J", "wait",
                       "--wrap", "true") for _ in range(ROUNDS)]
        table.add("one gbatch process", f"{median_of('p50_ms', runs):.2f} ms", "3 ms", "5.6 ms")
        runs = [c.load("spawn", 4, 1200 // scale, "gbatch", "--mem=16M", "-C", "parked", "-J",
                       "wait", "--wrap", "true") for _ in range(ROUNDS)]
        table.add("gbatch, four in parallel", f"{median_of('per_second', runs):,.0f}/s", "1,000/s",
                  "421/s")
        c.load("cancel", "wait")
        pipes = {}
        pending = 0
        for want in (1000, 100000, 1000000):
            want //= scale
            # This includes ended jobs, which the controller remembers for a while.
            before = rss(pid)
            c.load("submit", 512, want - pending)
            each = (rss(pid) - before) / (want - pending)
            pending = want
            time.sleep(2)  # In this time, the latest journal entries are folded.
            runs = [c.load("pipe", 20000 // scale) for _ in range(ROUNDS)]
            pipes[want] = median_of("per_second", runs)
            table.add(f"jobs through the whole pipe, {want:,} pending", f"{pipes[want]:,.0f}/s",
                      "5,000/s")
            if want == 100000 // scale:
                listed = [c.load("list") for _ in range(ROUNDS)]
                table.add(f"listing {listed[0]['rows']:,} jobs, ended ones too (request)",
                          f"{median_of('ms', listed):.0f} ms")
                runs = [c.load("spawn", 1, 3, "gqueue") for _ in range(ROUNDS)]
                table.add(f"gqueue of {pending:,} jobs (process)",
                          f"{median_of('p50_ms', runs):.0f} ms", "400 ms", "2.5 s")
        low, high = min(pipes), max(pipes)
        table.add(f"the same, {high:,} against {low:,}", f"{pipes[high] / pipes[low]:.2f} x", "0.90 x")
        table.add("memory per pending job", f"{each:,.0f} bytes", "2,000",
                  "3.5 KB")
        os.kill(pid, signal.SIGKILL)
        # This waits until the kernel has taken back its memory and locks.
        while os.path.exists(f"/proc/{pid}"):
            time.sleep(0.001)
        log = open(os.path.join(c.top, "ctld.log"), "ab")
        again = subprocess.Popen(argv, env=c.env, stdout=log, stderr=log, start_new_session=True)
        table.add(f"kill -9 to answering, {pending:,} jobs", f"{c.load('answer')['ms']:,.0f} ms",
                  "5,000 ms", "1.1 s with 10,000")
        c.load("cancel", "wait")
        list_and_cancel(c, table, 10000 // scale, f", {pending:,} cancelled a moment ago")
        again.terminate()
        again.wait(timeout=30)
    finally:
        c.close()


class Holder:
    """A job that only sleeps, so that the bare loop can use its mounts and its config.json."""

    def __init__(self, cluster):
        self.c = cluster
        done = subprocess.run([f"{cluster.bin}/gbatch", "--parsable", f"--mem={MEMORY_MIB}M", "-o",
                               "/dev/null", "--wrap", "sleep 600"], env=cluster.env, cwd=cluster.top,
                              capture_output=True, text=True, check=True)
        self.job = done.stdout.strip()
        self.shim = self.wait(lambda: self.find_shim() if self.state() == "RUNNING" else None)

    def state(self):
        done = subprocess.run([f"{self.c.bin}/gqueue", "-h", "-j", self.job, "-o", "%T"],
                              env=self.c.env, capture_output=True, text=True, check=False)
        return done.stdout.strip()

    def find_shim(self):
        pattern = os.path.join(self.c.state, "**", "jobs", f"{self.job}.*", "shim.lock")
        for path in glob.glob(pattern, recursive=True):
            with open(path, encoding="ascii") as f:
                return int(f.read().split()[0])
        return None

    def wait(self, look):
        end = time.monotonic() + 30
        while time.monotonic() < end:
            if (found := look()):
                return found
            time.sleep(0.02)
        sys.exit(f"job {self.job} of the bare loop did not start or end within 30 s")

    def end(self):
        subprocess.run([f"{self.c.bin}/gcancel", self.job], env=self.c.env, check=True)
        self.wait(lambda: self.state() in ("", "CANCELLED"))


def bare_loop(cluster, each):
    """Containers per second of `crun run`, four at a time, with the config.json of a job."""
    holder = Holder(cluster)
    done = subprocess.run([f"{cluster.bin}/bench_bare", str(holder.shim), "4", str(each),
                           str(MEMORY_MIB)], capture_output=True, text=True, check=False)
    holder.end()
    if done.returncode != 0:
        sys.exit(done.stderr)
    return json.loads(done.stdout)["per_second"]


def bench_containers(build, table, scale):
    note("a controller and nodes with containers")
    c = Cluster(build, "crun,runc", 2, lambda t: t.replace("allow_root_jobs: false",
                                                           "allow_root_jobs: true"))
    try:
        starts = c.load("start", 100 // scale)
        table.add("submit to running, container, idle",
                  f"p50 {starts['p50_ms']:.1f} ms, p99 {starts['p99_ms']:.1f} ms",
                  "20 ms, 60 ms", "522 / 983 ms")
        runs = [c.load("spawn", 1, 20 // min(scale, 4), "grun", "-n", "1", "--mem=16M", "true")
                for _ in range(ROUNDS)]
        table.add("grun outside of a job, whole process", f"{median_of('p50_ms', runs):.1f} ms")
        ours, bare = [], []
        for _ in range(ROUNDS):
            bare.append(bare_loop(c, 60 // scale))
            ours.append(c.load("pipe", 240 // scale)["per_second"])
        table.add("true jobs in containers, 4 at a time", f"{statistics.median(ours):.0f}/s",
                  "60/s", "50/s as plain processes")
        table.add("bare crun run, same config.json and limits", f"{statistics.median(bare):.0f}/s")
        ratio = statistics.median(a / b for a, b in zip(ours, bare))
        table.add("ours against bare, median of the rounds", f"{ratio:.2f} x", "0.80 x")
    finally:
        c.close()


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build")
    parser.add_argument("--out", help="write the table to FILE too, and FILE.json")
    parser.add_argument("--quick", action="store_true", help="a tenth of everything")
    parser.add_argument("--only", choices=["controller", "tenants", "containers"])
    args = parser.parse_args()
    if os.getuid() != 0:
        sys.exit("the system bench starts containers with limits: run it as root")
    table = Table()
    scale = 10 if args.quick else 1
    build = os.path.realpath(args.build)
    try:
        if args.only in (None, "controller"):
            bench_listing(build, table, scale)
            bench_controller(build, table, scale)
        if args.only in (None, "tenants"):
            bench_tenants(build, table, scale)
        if args.only in (None, "containers"):
            bench_containers(build, table, scale)
    finally:
        print(table.text())
        if args.out:
            with open(args.out, "w", encoding="utf-8") as f:
                f.write(table.text())
            with open(args.out + ".json", "w", encoding="utf-8") as f:
                json.dump([dict(zip(("what", "measured", "target", "slurm"), r))
                           for r in table.rows], f, indent=1)


if __name__ == "__main__":
    main()
