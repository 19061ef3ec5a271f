#!/usr/bin/env python3
"""Measures steps and clients that poll, and prints a table with the targets beside the figures.

usage: run.py BUILD_DIR [--out FILE] [--quick] [--only steps|polling]

Steps: a shell loop runs srun in an allocation and inside a batch job's container, one at a time and
eight at a time. A step of a thousand tasks runs on ten nodes that run nothing. A step writes a
gigabyte of output, and the largest resident sizes of the daemons are shown. The same output is also
measured inside a job, where a relay copies it.

Polling: durable submits are measured with and without a thousand clients that each ask once a
second, and so is the time that these clients wait for their answers.
"""
import argparse
import json
import os
import re
import statistics
import subprocess
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "system"))
import run as system  # noqa: E402  pylint: disable=wrong-import-position

ROUNDS = 3
CLIENTS = 1000

LOOP = """
each() { i=0; while [ $i -lt $2 ]; do srun -n1 --overlap true || echo failed; i=$((i + 1)); done; }
measure() {
  begin=$(date +%s%N); w=0
  while [ $w -lt $1 ]; do each $1 $(($2 / $1)) & w=$((w + 1)); done; wait
  echo "$1 $(($2 / $1 * $1)) $(($(date +%s%N) - begin))"
}
"""


def slurm_env(cluster):
    return dict(cluster.env, PATH=f"{cluster.bin}/slurm:{cluster.env['PATH']}")


def shell(cluster, script, *allocation):
    done = subprocess.run(["salloc", "-Q", *allocation, "sh", "-c", script], env=slurm_env(cluster),
                          cwd=cluster.top, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"salloc: {done.stdout}{done.stderr}")
    return done.stdout


def batch(cluster, script):
    out = f"{cluster.top}/batch.out"
    done = subprocess.run(["sbatch", "--wait", "-n2", "-N1", "--mem=400M", "-o", out], text=True,
                          input="#!/bin/sh\n" + script, env=slurm_env(cluster), cwd=cluster.top,
                          capture_output=True, check=False)
    with open(out, encoding="utf-8") as f:
        text = f.read()
    if done.returncode != 0:
        sys.exit(f"sbatch: {done.stdout}{done.stderr}{text}")
    return text


def add_rates(table, where, text, target):
    if "failed" in text:
        sys.exit(f"steps failed: {text}")
    for width, count, ns in re.findall(r"^(\d+) (\d+) (\d+)$", text, re.M):
        table.add(f"steps {where}, {width} at a time, {count} in one job",
                  f"{int(count) * 1e9 / int(ns):.0f}/s", target if width != "1" else "")


class Peak(threading.Thread):
    """Collects the largest resident size of one cluster's daemons and shims, by program."""

    def __init__(self, state):
        super().__init__(daemon=True)
        self.state, self.sizes, self.going = state.encode(), {}, True

    def look(self):
        for entry in os.listdir("/proc"):
            if not entry.isdigit():
                continue
            try:
                with open(f"/proc/{entry}/cmdline", "rb") as f:
                    argv = f.read().split(b"\0")
                with open(f"/proc/{entry}/status", encoding="ascii") as f:
                    status = f.read()
            except (OSError, UnicodeDecodeError):
                continue
            name = os.path.basename(argv[0].decode(errors="replace"))
            size = re.search(r"VmHWM:\s+(\d+)", status)
            if name.startswith("gantry-") and self.state in b"\0".join(argv) and size:
                self.sizes[name] = max(self.sizes.get(name, 0), int(size.group(1)) * 1024)

    def run(self):
        while self.going:
            self.look()
            time.sleep(0.1)

    def end(self):
        self.going = False
        self.join()
        return self.sizes


def output(cluster, table, size):
    peak = Peak(cluster.state)
    peak.start()
    begin = time.monotonic()
    with subprocess.Popen(["srun", "-n1", "--mem=100M", "head", "-c", str(size), "/dev/zero"],
                          env=slurm_env(cluster), cwd=cluster.top, stdout=subprocess.PIPE) as srun:
        got = 0
        while (chunk := srun.stdout.read(1 << 20)):
            got += len(chunk)
    seconds = time.monotonic() - begin
    table.add(f"{size >> 20} MiB of output through srun",
              f"{got / seconds / 1e6:.0f} MB/s, {'whole' if got == size else 'LOSSES'}", "whole")
    for name, largest in sorted(peak.end().items()):
        table.add(f"  resident at most, {name}", f"{largest / 1e6:.1f} MB", "50 MB")


# The same job also measures a plain pipe, which shows how fast the machine copies at that time.
def output_inside(cluster, table, size):
    script = f"""
take() {{ begin=$(date +%s%N); got=$("$@" | wc -c); echo "$got $(($(date +%s%N) - begin))"; }}
piped() {{ head -c {size} /dev/zero | cat; }}
for i in 1 2 3; do take srun -n1 --overlap head -c {size} /dev/zero; take piped; done
"""
    lines = [tuple(map(int, line.split())) for line in batch(cluster, script).split("\n") if line]
    for name, some in (("through srun inside its container", lines[0::2]),
                       ("  the same through `cat` there", lines[1::2])):
        whole = len(some) == 3 and all(got == size for got, _ in some)
        speed = statistics.median(got / ns * 1e3 for got, ns in some)
        table.add(f"{size >> 20} MiB of output {name}",
                  f"{speed:.0f} MB/s, {'whole' if whole else 'LOSSES'}", "whole")


def bench_steps(build, table, scale):
    system.note("nodes with containers")
    c = system.Cluster(build, "crun,runc", 2, lambda t: t.replace("allow_root_jobs: false",
                                                                  "allow_root_jobs: true"))
    try:
        count = 1000 // scale
        loop = LOOP + f"measure 1 {count // 4}\nmeasure 8 {count}\n"
        add_rates(table, "from outside", shell(c, loop, "-n2", "-N1", "--mem=200M"), "100/s")
        add_rates(table, "inside its container", batch(c, loop), "100/s")
        output(c, table, (1 << 30) // scale)
        output_inside(c, table, (1 << 30) // scale)
    finally:
        c.close()
    system.note("nodes that run nothing")
    c = system.Cluster(build, "none", 10, lambda t: re.sub(
        r"cpus: 2, cpu_ids: '[^']*', memory: \S+,", "cpus: 256, memory: 64G,", t).replace(
            "allow_root_jobs: false", "allow_root_jobs: true"))
    try:
        script = "for i in 1 2 3 4 5; do b=$(date +%s%N); srun true || echo failed; " \
                 "echo ms $((($(date +%s%N) - b) / 1000)); done"
        text = shell(c, script, "-N10", "-n1000", "--mem=1G")
        times = [int(us) / 1000 for us in re.findall(r"^ms (\d+)$", text, re.M)]
        if "failed" in text or len(times) != 5:
            sys.exit(text)
        table.add("a step of 1,000 tasks on 10 nodes, srun from start to end",
                  f"{statistics.median(times):.0f} ms", "1,000 ms")
    finally:
        c.close()


def poll(cluster, seconds, jobs):
    return subprocess.Popen([f"{cluster.bin}/bench_poll", str(CLIENTS), str(seconds), "1", str(jobs)],
                            env=cluster.env, cwd=cluster.top, stdout=subprocess.PIPE, text=True)


def bench_polling(build, table, scale):
    system.note("a controller with a thousand clients that poll")
    c = system.idle_cluster(build)
    try:
        jobs = CLIENTS * 10
        c.load("submit", 512, jobs)
        alone, beside, waits = [], [], []
        count = 60000 // scale
        for _ in range(2 * ROUNDS - 1):
            alone.append(c.load("submit", 128, count))
            with poll(c, 10 if scale == 1 else 3, jobs) as polling:
                if polling.stdout.readline() != "ready\n":
                    sys.exit("bench_poll did not start")
                time.sleep(0.5)
                beside.append(c.load("submit", 128, count))
                waits.append(json.loads(polling.stdout.read()))
        before = system.median_of("per_second", alone)
        during = system.median_of("per_second", beside)
        table.add("durable submits, 128 outstanding", f"{before:,.0f}/s")
        # Each ratio is of two runs next to each other in time.
        ratio = statistics.median(b["per_second"] / a["per_second"]
                                  for a, b in zip(alone, beside))
        table.add(f"  beside {CLIENTS:,} clients at 1 Hz",
                  f"{during:,.0f}/s, {ratio:.2f} x", "0.90 x")
        for what, target in (("squeue", "p99 50 ms"), ("sacct", "")):
            table.add(f"  {what} of 10 jobs, of {CLIENTS // 2} such clients",
                      f"p50 {system.median_of(what + '_p50_ms', waits):.1f} ms, "
                      f"p99 {system.median_of(what + '_p99_ms', waits):.1f} ms", target)
    finally:
        c.close()


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build")
    parser.add_argument("--out", help="write the table to FILE too")
    parser.add_argument("--quick", action="store_true", help="a tenth of everything")
    parser.add_argument("--only", choices=["steps", "polling"])
    args = parser.parse_args()
    if os.getuid() != 0:
        sys.exit("this bench starts containers with limits: run it as root")
    table = system.Table()
    scale = 10 if args.quick else 1
    build = os.path.realpath(args.build)
    try:
        if args.only != "polling":
            bench_steps(build, table, scale)
        if args.only != "steps":
            bench_polling(build, table, scale)
    finally:
        print(table.text())
        if args.out:
            with open(args.out, "w", encoding="utf-8") as f:
                f.write(table.text())


if __name__ == "__main__":
    main()
