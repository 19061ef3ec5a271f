#!/usr/bin/env python3
"""One sbatch after another, and four at once, here and in a real Slurm in the same run.

usage: beside_slurm.py BUILD_DIR [--slurm-root DIR] [--rounds N] [--count N]

Rounds of the three alternate, so that whatever else the machine does meets all of them: Gantry by
the socket of its login node, Gantry by CURVE and a key for each command, and Slurm. Slurm is
started only if slurmctld, slurmd and munged are installed here, or below --slurm-root (a Debian
with the packages slurm-wlm and munge, for example of debootstrap). It gets a slurm.conf of its own,
keeps its state in a directory of this run, and is ended again. Every job is held (-H), so that no
scheduler and no node takes part. The commands are started by a loop of sh.

Processor time is that of all threads of the daemons, by /proc. The table has medians; it never
passes or fails.
"""
import argparse
import os
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import run  # noqa: E402


def cpu_ns(pids):
    """Nanoseconds that the threads of these processes have run."""
    total = 0
    for pid in pids:
        for thread in os.listdir(f"/proc/{pid}/task"):
            try:
                with open(f"/proc/{pid}/task/{thread}/schedstat", encoding="ascii") as f:
                    total += int(f.read().split()[0])
            except OSError:
                pass
    return total


ROOT_JOBS = lambda text: text.replace("allow_root_jobs: false", "allow_root_jobs: true")
LOOP = 'i=0; while [ $i -lt {each} ]; do {command} >/dev/null || exit 1; i=$((i+1)); done'


def submit(wrap, env, command, count, parallel):
    """Seconds that `count` commands take, `parallel` of them at a time."""
    each = count // parallel
    begin = time.monotonic()
    loops = [subprocess.Popen(wrap(["sh", "-c", LOOP.format(each=each, command=command)]), env=env,
                              cwd="/", stdin=subprocess.DEVNULL) for _ in range(parallel)]
    for loop in loops:
        if loop.wait() != 0:
            sys.exit(f"{command}: a command has failed")
    return time.monotonic() - begin


class Side:
    """One of those that are compared. `daemons` are name -> pids, the controller first."""

    def __init__(self, name, env, command, daemons, wrap=lambda argv: argv):
        self.name, self.env, self.command, self.wrap, self.daemons = name, env, command, wrap, daemons
        self.rates = {1: [], 4: []}
        self.cpu = {daemon: [] for daemon in daemons}

    def round(self, count):
        for parallel, rates in self.rates.items():
            before = {name: cpu_ns(pids) for name, pids in self.daemons.items()}
            rates.append(count / submit(self.wrap, self.env, self.command, count, parallel))
            if parallel == 1:
                for name, pids in self.daemons.items():
                    self.cpu[name].append((cpu_ns(pids) - before[name]) / count / 1e6)

    def row(self):
        rates = [f"{statistics.median(r):,.0f}/s" for r in self.rates.values()]
        return [self.name, *rates, ", ".join(f"{name} {statistics.median(ms):.2f} ms"
                                             for name, ms in self.cpu.items())]


class Slurm:
    """munged, slurmctld and slurmd on loopback, of this machine or below `root`."""

    def __init__(self, root):
        self.root = root
        self.top = tempfile.mkdtemp(prefix="gantry-bench-slurm.")
        os.chmod(self.top, 0o755)
        self.inside = self.top
        self.pids = {}
        if root:
            for kind, source, target in (("--bind", self.top, "mnt"), ("--bind", "/dev", "dev"),
                                         ("-tproc", "proc", "proc")):
                words = ["mount", kind] + [source, os.path.join(root, target)]
                subprocess.run(words, check=True)
            self.inside = "/mnt"
        self.env = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "SLURM_CONF": f"{self.inside}/slurm.conf"}
        self.start()

    def wrap(self, argv):
        return ["chroot", self.root, *argv] if self.root else argv

    def daemon(self, name, *argv):
        log = open(f"{self.top}/{name}.log", "ab")
        self.pids[name] = subprocess.Popen(self.wrap([name, *argv]), env=self.env, stdout=log,
                                           stderr=log, stdin=subprocess.DEVNULL)

    def start(self):
        os.makedirs(f"{self.top}/state")
        os.makedirs(f"{self.top}/spool")
        host = socket.gethostname().split(".")[0]
        munge = f"{self.inside}/munge.socket"
        with open(f"{self.top}/munge.key", "wb") as f:
            os.fchmod(f.fileno(), 0o600)
            f.write(os.urandom(128))
        with open(f"{self.top}/slurm.conf", "w", encoding="ascii") as f:
            f.write(f"""ClusterName=bench
SlurmctldHost={host}(127.0.0.1)
SlurmUser=root
SlurmctldPort=16817
SlurmdPort=16818
AuthType=auth/munge
AuthInfo=socket={munge}
CredType=cred/munge
StateSaveLocation={self.inside}/state
SlurmdSpoolDir={self.inside}/spool
SlurmctldPidFile={self.inside}/ctld.pid
SlurmdPidFile={self.inside}/d.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
MaxJobCount=200000
ReturnToService=2
NodeName={host} NodeAddr=127.0.0.1 CPUs={os.cpu_count()} State=UNKNOWN
PartitionName=batch Nodes={host} Default=YES MaxTime=INFINITE State=UP
""")
        subprocess.run(["chown", "-R", "0:0", self.top], check=True)
        self.daemon("munged", "-F", "-f", f"--key-file={self.inside}/munge.key", f"--socket={munge}",
                    f"--pid-file={self.inside}/munge.pid", f"--seed-file={self.inside}/munge.seed",
                    f"--log-file={self.inside}/munge.log")
        time.sleep(1)
        self.daemon("slurmctld", "-D")
        self.daemon("slurmd", "-D")
        end = time.monotonic() + 30
        while subprocess.run(self.wrap(["sbatch", "-H", "-o", "/dev/null", "--wrap", "true"]), env=self.env,
                             capture_output=True, cwd="/", check=False).returncode != 0:
            if time.monotonic() > end:
                with open(f"{self.top}/slurmctld.log", encoding="utf-8", errors="replace") as f:
                    text = f.read()[-2000:]
                self.close()
                sys.exit(f"Slurm does not take a job:\n{text}")
            time.sleep(0.2)

    def version(self):
        done = subprocess.run(self.wrap(["sbatch", "--version"]), env=self.env, capture_output=True,
                              text=True, check=False)
        return done.stdout.strip()

    def close(self):
        for process in reversed(self.pids.values()):
            process.terminate()
            try:
                process.wait(timeout=20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        if self.root:
            for target in ("proc", "dev", "mnt"):
                subprocess.run(["umount", "-l", os.path.join(self.root, target)], check=False)
        shutil.rmtree(self.top, ignore_errors=True)


def gantry_sides(cluster):
    ctld, _ = cluster.controller()
    nodes = [int(e) for e in os.listdir("/proc") if e.isdigit() and is_node(int(e), cluster.state)]
    command = "sbatch -H -o /dev/null --wrap true"
    env = dict(cluster.env, PATH=f"{cluster.bin}/slurm:{cluster.env['PATH']}")
    with open(f"{cluster.state}/client.conf", encoding="ascii") as f:
        lines = [line for line in f.read().splitlines() if not line.startswith("socket")]
    own = f"{cluster.top}/client.conf"
    with open(own, "w", encoding="ascii") as f:
        f.write("\n".join(lines) + "\nsocket = none\n")
    daemons = {"controller": [ctld], "node daemon": nodes}
    return [Side("here, by the login node's socket", env, command, daemons),
            Side("here, by CURVE and a key", dict(env, GANTRY_CONF=own), command, daemons)]


def is_node(pid, state):
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as f:
            argv = f.read()
    except OSError:
        return False
    return argv.split(b"\0")[0].endswith(b"gantry-noded") and state.encode() in argv


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build")
    parser.add_argument("--slurm-root", default="")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--count", type=int, default=400, help="commands of a round")
    args = parser.parse_args()
    if os.getuid() != 0:
        sys.exit("this bench starts daemons of two batch systems: run it as root")
    installed = bool(args.slurm_root) or all(map(shutil.which, ("slurmctld", "slurmd", "munged")))
    if args.slurm_root and os.environ.get("GANTRY_BENCH_MOUNTS") != "own":
        # What is mounted below that root is seen by this run only.
        os.environ["GANTRY_BENCH_MOUNTS"] = "own"
        os.execvp("unshare", ["unshare", "-m", "--propagation", "private", sys.executable, *sys.argv])
    cluster = run.Cluster(os.path.realpath(args.build), "none", 1, ROOT_JOBS)
    slurm = None
    try:
        sides = gantry_sides(cluster)
        if installed:
            slurm = Slurm(args.slurm_root)
            sides.append(Side(slurm.version(), slurm.env, "sbatch -H -o /dev/null --wrap true",
                              {"controller": [slurm.pids["slurmctld"].pid],
                               "munged": [slurm.pids["munged"].pid]}, slurm.wrap))
        for number in range(args.rounds):
            run.note(f"round {number + 1} of {args.rounds}")
            for side in sides:
                side.round(args.count)
        rows = [["", "one after another", "four at once", "processor time of one"],
                *(side.row() for side in sides)]
        widths = [max(len(row[i]) for row in rows) for i in range(4)]
        for row in rows:
            print("  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip())
    finally:
        if slurm:
            slurm.close()
        cluster.close()


if __name__ == "__main__":
    main()
