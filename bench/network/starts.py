#!/usr/bin/env python3
"""Measures what a network of its own costs a job: two clusters of one node on this machine, one with
networks of jobs and one without, asked in turn.

usage: starts.py BUILD_DIR [--rounds N] [--together JOBS]
"""
import argparse
import os
import statistics
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "system"))
import run as system  # noqa: E402  pylint: disable=wrong-import-position

ONE_BY_ONE = 10


def cluster(build, networks):
    def edit(text):
        text = text.replace("job_networks: true", f"job_networks: {str(networks).lower()}")
        return text.replace("allow_root_jobs: false", "allow_root_jobs: true")
    return system.Cluster(build, "crun", 1, edit)


def run(c, *command):
    began = time.monotonic()
    done = subprocess.run([f"{c.bin}/slurm/{command[0]}", *command[1:]], cwd=c.top, check=False,
                          capture_output=True, text=True,
                          env=dict(c.env, PATH=f"{c.bin}/slurm:{c.env['PATH']}"))
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}: {done.stdout}{done.stderr}")
    return time.monotonic() - began


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--together", type=int, default=60, metavar="JOBS",
                        help="above noded.ready_networks most have no network in advance")
    args = parser.parse_args()
    clusters = {networks: cluster(os.path.abspath(args.build), networks)
                for networks in (False, True)}
    alone = {networks: [] for networks in clusters}
    many = {networks: [] for networks in clusters}
    try:
        for _ in range(args.rounds):
            for networks, c in clusters.items():
                alone[networks] += [run(c, "srun", "-n1", "--mem=20M", "true")
                                    for _ in range(ONE_BY_ONE)]
                many[networks].append(args.together / run(
                    c, "sbatch", "--wait", "-n1", "--mem=20M", f"--array=1-{args.together}", "-o",
                    "/dev/null", "--wrap=true"))
    finally:
        for c in clusters.values():
            c.close()
    without, within = (statistics.median(alone[n]) * 1e3 for n in (False, True))
    print(f"{'medians':<44}{'loopback':>12}{'network':>12}{'':>12}")
    print(f"{'a job of its own by srun, ms':<44}{without:>12.1f}{within:>12.1f}"
          f"{within - without:>+9.1f} ms")
    without, within = (statistics.median(many[n]) for n in (False, True))
    print(f"{f'jobs a second, {args.together} together':<44}{without:>12.1f}{within:>12.1f}"
          f"{within / without:>9.2f} of")


if __name__ == "__main__":
    main()
