#!/usr/bin/env python3
"""Measures what a gate adds to a request: nginx alone, and the same nginx as a replica behind a door and a gate
whose HAProxy has one thread. Requests come at a fixed rate, whether earlier ones were answered or not.

usage: gate.py BUILD_DIR [--rate N] [--rounds N] [--seconds N] [--out FILE]
It needs Debian's package nginx-light, which nothing else here does.
"""
import argparse
import os
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "..", "tests", "gate"))
from site_of_a_gate import HAPROXY, Replica, Site, free_port, service  # noqa: E402  pylint: disable=wrong-import-position

CLIENTS = 50


class Nginx:
    """A server that answers each request with a line."""

    def __init__(self, port):
        self.dir = tempfile.mkdtemp(prefix="gantry-bench-gate-")
        with open(f"{self.dir}/nginx.conf", "w", encoding="ascii") as f:
            f.write(f"daemon off; worker_processes 1; pid {self.dir}/pid; error_log {self.dir}/errors;\n"
                    "events { worker_connections 1024; }\n"
                    f"http {{ access_log off; keepalive_requests 1000000000; client_body_temp_path {self.dir}/b;\n"
                    + "".join(f"{kind}_temp_path {self.dir}/{kind[0]};\n" for kind in ("proxy", "fastcgi", "uwsgi", "scgi"))
                    + f"server {{ listen 127.0.0.1:{port}; location / {{ return 200 'answered\\n'; }} }} }}\n")
        self.process = subprocess.Popen(["/usr/sbin/nginx", "-p", self.dir, "-e", f"{self.dir}/errors", "-c", f"{self.dir}/nginx.conf"])

    def end(self):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait()
        shutil.rmtree(self.dir)


def cpu_of(pid):
    """Seconds of processor time that a process has had."""
    with open(f"/proc/{pid}/stat", encoding="ascii") as f:
        fields = f.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def load(build, port, host, args):
    """Answers a second, median and 99th percentile in ms, and how many were not 200."""
    done = subprocess.run([f"{build}/bin/bench_http_load", str(port), host, str(args.rate), str(args.seconds), str(CLIENTS)],
                          check=True, capture_output=True, text=True)
    rate, median, last, bad = (float(word) for word in done.stdout.split())
    return median / 1000, last / 1000, rate, int(bad)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build")
    parser.add_argument("--rate", type=int, default=5000, help="requests a second")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=int, default=5)
    parser.add_argument("--out")
    args = parser.parse_args()
    for need, package in (("/usr/sbin/nginx", "nginx-light"), (HAPROXY, "haproxy")):
        if not os.path.exists(need):
            print(f"not measured: {need} is missing; apt-get install {package}")
            return
    lines = []
    with Site(f"{os.path.abspath(args.build)}/bin") as site:
        replica = Replica(site.bin, 1, listens=False)
        site.replicas.append(replica)
        nginx = Nginx(replica.inside)
        try:
            route = {"path": "", "interval": 10_000_000, "timeout": 1_000_000, "failures": 2}
            site.put(service(replicas=[replica], concurrency=64, queue=1000, wait=5_000_000, ready=route))
            site.start()
            site.wait_until_it_answers()
            places = {"nginx": (replica.inside, "x"), "door, gate": (site.port, "api.example")}
            got = {name: [] for name in places}
            used = []
            for _ in range(args.rounds):
                for name, (port, host) in places.items():
                    before, since = cpu_of(site.haproxy()), time.monotonic()
                    got[name].append(load(os.path.abspath(args.build), port, host, args))
                    if name != "nginx":
                        used.append((cpu_of(site.haproxy()) - before) / (time.monotonic() - since))
        finally:
            nginx.end()
    lines.append(f"{'':<12}{'requests/s':>11}{'median ms':>11}{'p99 ms':>9}{'not 200':>9}")
    for name, rounds in got.items():
        mid = [statistics.median(column) for column in zip(*rounds)]
        lines.append(f"{name:<12}{mid[2]:>11.0f}{mid[0]:>11.3f}{mid[1]:>9.3f}{sum(r[3] for r in rounds):>9}")
    added = [b[0] - a[0] for a, b in zip(*got.values())]
    lines.append(f"added at the median: {statistics.median(added):.3f} ms ({min(added):.3f} to {max(added):.3f} in {args.rounds} rounds); "
                 f"HAProxy uses {statistics.median(used) * 100:.0f} % of a core")
    print("\n".join(lines))
    if args.out:
        with open(args.out, "w", encoding="ascii") as f:
            f.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
