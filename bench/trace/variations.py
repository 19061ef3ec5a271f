#!/usr/bin/env python3
"""Variations of the Philly trace (permuted run times, other windows, arrivals closer together, more jobs
of 8 to 32 GPUs, other clusters and quotas) under mean quotas and under EASY, in a table.

usage: variations.py BUILD_DIR [--seeds N] [--limit SECONDS]     (skips where the trace is not there)
"""
import argparse
import json
import pathlib
import random
import subprocess
import sys


def variation(seed):
    """The cluster, --vary and the quota's draw of a seed."""
    draw = random.Random(seed)
    nodes = draw.choice([80, 90, 150])
    length = draw.choice([5, 10, 15])
    words = [f"seed={seed}", f"from={draw.randint(0, 60)}d", f"length={length}d"]
    # About as much work as the cluster has room for.
    words.append(f"arrivals={draw.choice([0.3, 0.5, 0.8]) * (90 / nodes):.2f}")
    words.append(f"large={draw.choice([0.02, 0.05, 0.1])}")
    if draw.random() < 0.5:
        words.append("permute")
    return f"{nodes}x8gpu", ",".join(words), seed


def replay(program, trace, cluster, vary, draw, limit):
    command = [program, "--quiet", "--json", "--trace", trace, "--cluster", cluster, "--vary", vary,
               "--policy", f"tenants=mean,draw={draw}", "--policy2", "reservations=1"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=limit, check=False)
    if done.returncode != 0:
        raise RuntimeError(done.stderr.strip())
    return json.loads(done.stdout)["policies"]


def main():
    options = argparse.ArgumentParser()
    options.add_argument("build")
    options.add_argument("--seeds", type=int, default=50)
    options.add_argument("--first", type=int, default=1)
    options.add_argument("--limit", type=int, default=600, help="seconds for a replay")
    args = options.parse_args()
    trace = pathlib.Path(__file__).resolve().parents[3] / "shared/traces/philly.csv.gz"
    if not trace.exists():
        print(f"skipped: no {trace}")
        return 0
    program = str(pathlib.Path(args.build) / "bin/gantry-replay")
    print("| seed | cluster | variation | jobs | slowdown | EASY | longest wait, h | EASY | violated, s "
          "| no place, s | lost GPU-h |")
    print("|---|---|---|---|---|---|---|---|---|---|---|")
    violated = late = 0
    for seed in range(args.first, args.first + args.seeds):
        cluster, vary, draw = variation(seed)
        try:
            ours, easy = replay(program, str(trace), cluster, vary, draw, args.limit)
        except subprocess.TimeoutExpired:
            print(f"| {seed} | {cluster} | {vary} | not done in {args.limit} s |", flush=True)
            late += 1
            continue
        violated += ours["quota_violation_s"] > 0
        print(f"| {seed} | {cluster} | {vary} | {ours['jobs']} | {ours['mean_bounded_slowdown']:.2f} "
              f"| {easy['mean_bounded_slowdown']:.2f} | {ours['max_wait_s'] / 3600:.1f} "
              f"| {easy['max_wait_s'] / 3600:.1f} | {ours['quota_violation_s']:.0f} "
              f"| {ours['quota_no_place_s']:.0f} | {ours['lost_unit_s'] / 3600:.1f} |", flush=True)
    print(f"\n{args.seeds} variations: {violated} with violated quota, {late} not done in time")
    return 0


if __name__ == "__main__":
    sys.exit(main())
