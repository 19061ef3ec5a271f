#!/usr/bin/env python3
"""Replays variations of the Philly trace under mean quotas and under EASY, and prints a table.

A variation has permuted run times, another window of the trace, arrivals closer together, more jobs
of 8 to 32 GPUs, or another cluster and other quotas.

The window of a seed begins on a random day of the trace. Only windows are drawn that have 1,000
jobs or more, and at least as much work as the seed's cluster can do while these jobs arrive. The
work of a job is its GPUs times its run time, but a run longer than the time in which the jobs
arrive counts as that time. In emptier windows no job waits, so they show nothing about quotas.

usage: variations.py BUILD_DIR [--seeds N] [--first SEED] [--limit SECONDS] [--shipped-only]
(skips if the trace is not there)
"""
import argparse
import collections
import csv
import datetime
import gzip
import json
import pathlib
import random
import subprocess
import sys


LEAST_JOBS = 1000
# The shipped value of controller.oldest_first_after. A job that has waited for so long goes before
# all other jobs of its class. It may still have to wait for nodes, so the longest wait exceeds this
# in some variations.
OLDEST_FIRST_AFTER_H = 72


def read_jobs(trace):
    """Returns for each job its submit time in days after the first one, its run time in days, and
    its GPUs."""
    day = datetime.timedelta(days=1)
    with gzip.open(trace, "rt") as text:
        rows = [(datetime.datetime.fromisoformat(row["timestamp"]), float(row["duration"]) / 86400,
                 int(row["num_gpus"])) for row in csv.DictReader(text)]
    first = min(row[0] for row in rows)
    return [((submit - first) / day, run, gpus) for submit, run, gpus in rows]


def full_windows(jobs, length, arrivals, gpus):
    """Returns the days at which a window begins that fills a cluster of `gpus` GPUs (see above)."""
    span = length * arrivals  # the days in which the jobs of a window arrive
    count, work = collections.Counter(), collections.Counter()
    for submit, run, of_job in jobs:
        for start in range(max(0, int(submit) - length + 1), int(submit) + 1):
            count[start] += 1
            work[start] += min(run, span) * of_job
    return sorted(start for start in count
                  if count[start] >= LEAST_JOBS and work[start] >= gpus * span)


def variation(seed, jobs):
    """Returns the cluster, the words of --vary, and the draw of quotas for a seed. `jobs` comes
    from read_jobs()."""
    draw = random.Random(seed)
    starts = []
    while not starts:  # A few clusters are filled by no window.
        nodes = draw.choice([80, 90, 150])
        length = draw.choice([5, 10, 15])  # days
        # The jobs bring about as much work as the cluster has room for.
        arrivals = draw.choice([0.3, 0.5, 0.8]) * (90 / nodes)
        starts = full_windows(jobs, length, arrivals, 8 * nodes)
    start = draw.choice(starts)
    words = [f"seed={seed}", f"from={start}d", f"length={length}d", f"arrivals={arrivals:.2f}"]
    words.append(f"large={draw.choice([0.02, 0.05, 0.1])}")
    if draw.random() < 0.5:
        words.append("permute")
    return f"{nodes}x8gpu", ",".join(words), seed


def replay(program, trace, cluster, vary, draw, limit, with_easy):
    command = [program, "--quiet", "--json", "--trace", trace, "--cluster", cluster, "--vary", vary,
               "--policy", f"tenants=mean,draw={draw}"]
    if with_easy:
        command += ["--policy2", "reservations=1"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=limit, check=False)
    if done.returncode != 0:
        raise RuntimeError(done.stderr.strip())
    return json.loads(done.stdout)["policies"]


def main():
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("build")
    options.add_argument("--seeds", type=int, default=50)
    options.add_argument("--first", type=int, default=1)
    options.add_argument("--limit", type=int, default=600, help="seconds for a replay")
    options.add_argument("--shipped-only", action="store_true",
                         help="replay without EASY, in half of the time")
    args = options.parse_args()
    trace = pathlib.Path(__file__).resolve().parents[3] / "shared/traces/philly.csv.gz"
    if not trace.exists():
        print(f"skipped: no {trace}")
        return 0
    jobs = read_jobs(trace)
    program = str(pathlib.Path(args.build) / "bin/gantry-replay")
    print("| seed | cluster | variation | jobs | slowdown | EASY | longest wait, h | EASY "
          "| oldest first after, h | waited beyond it, h | violated, s "
          "| no place, s | lost GPU-h |")
    print("|---" * 13 + "|")
    violated = passed = late = 0
    for seed in range(args.first, args.first + args.seeds):
        cluster, vary, draw = variation(seed, jobs)
        try:
            policies = replay(program, str(trace), cluster, vary, draw, args.limit,
                              not args.shipped_only)
        except subprocess.TimeoutExpired:
            print(f"| {seed} | {cluster} | {vary} | not done in {args.limit} s |", flush=True)
            late += 1
            continue
        ours = policies[0]
        easy = [f"{policies[1]['mean_bounded_slowdown']:.2f}",
                f"{policies[1]['max_wait_s'] / 3600:.1f}"] if len(policies) > 1 else ["-", "-"]
        longest = ours["max_wait_s"] / 3600
        beyond = max(0.0, longest - OLDEST_FIRST_AFTER_H)
        violated += ours["quota_violation_s"] > 0
        passed += beyond > 0
        print(f"| {seed} | {cluster} | {vary} | {ours['jobs']} | {ours['mean_bounded_slowdown']:.2f} "
              f"| {easy[0]} | {longest:.1f} | {easy[1]} | {OLDEST_FIRST_AFTER_H} | {beyond:.1f} "
              f"| {ours['quota_violation_s']:.2f} | {ours['quota_no_place_s']:.0f} "
              f"| {ours['lost_unit_s'] / 3600:.1f} |", flush=True)
    print(f"\n{args.seeds} variations: {violated} with violated quota, {passed} with a wait beyond "
          f"{OLDEST_FIRST_AFTER_H} h, {late} not done in time")
    return 0


if __name__ == "__main__":
    sys.exit(main())
