#!/usr/bin/env python3
"""Measures what all layers between tenants together cost a job's start, on clusters of one node on this machine
that are asked in turn: one with a network, secrets, an identity token, a storage root and a dataset for each
job, a restricted profile and limits, in the sandboxes standard and hardened; one whose jobs have a network and
limits and none of the rest; one whose node runs nothing.

What "ms later than bare crun" is made of: the time from gbatch to the job's first command, less the same on the
node that runs nothing (the command, the controller, the plan), less the time from `crun run` to the first
command, with the mounts and the config.json of one of these jobs. The jobs start one after the other. Then
jobs that end at once, submitted together, as many at a time as the machine has cores, for containers a second.

usage: starts.py BUILD_DIR [--jobs N] [--rounds N] [--together N]
"""
import argparse
import json
import os
import pwd
import re
import shutil
import statistics
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "system"))
import run as system  # noqa: E402  pylint: disable=wrong-import-position

USER = "nobody"
TOP = f"/srv/gantry-bench-{os.getpid()}"
DOCUMENTS = f"""
apiVersion: gantry/v1
kind: Tenant
name: red
storage: {{path: {TOP}/tenants/red}}
quota: {{cpu: 1000}}
security: {{enforce: restricted}}
roles: {{tenant-admin: {{users: [{USER}]}}}}
---
apiVersion: gantry/v1
kind: Tenant
name: plain
quota: {{cpu: 1000}}
roles: {{tenant-admin: {{users: [{USER}]}}}}
---
apiVersion: gantry/v1
kind: Dataset
name: set
tenant: red
path: {TOP}/sets/set
"""
WHOLE = ("-p", "red", "--secret=hub", "--identity=vault", "--dataset=set")
SETTINGS = {"standard": (True, (*WHOLE, "--sandbox=standard")), "hardened": (True, (*WHOLE, "--sandbox=hardened")),
            "off": (False, ("-p", "plain",))}
# The first command of a job, which says when it was.
SCRIPT = "#!/bin/bash\necho $EPOCHREALTIME > began.$SLURM_JOB_ID.new\n" \
         "mv began.$SLURM_JOB_ID.new began.$SLURM_JOB_ID\n"


class Site(system.Cluster):
    """A cluster of one node, and a directory where its jobs write."""

    def __init__(self, build, layers, runtime="crun"):
        def edit(text):
            if runtime == "none":
                text = re.sub(r"cpus: 2, cpu_ids: '[^']*', memory: \S+,", "cpus: 256, memory: 64G,", text)
            if runtime == "none":
                text = text.replace("job_networks: true", "job_networks: false")
            if layers:
                text = text.replace("\nnoded:\n", f"\nnoded:\n  storage: [{TOP}]\n", 1)
            return text
        super().__init__(build, runtime, 1, edit)
        self.who = pwd.getpwnam(USER)
        self.out = f"{self.top}/out"
        os.mkdir(self.out)
        os.chown(self.out, self.who.pw_uid, self.who.pw_gid)
        self.root("gtenant", "apply", "-y", "-f", "-", text=DOCUMENTS if layers else DOCUMENTS.split("---")[1])
        if layers:
            self.root("gtenant", "secret", "set", "red/hub", text="content-of-a-secret")

    def root(self, *command, text=""):
        done = subprocess.run([f"{self.bin}/{command[0]}", *command[1:]], env=self.env, input=text, capture_output=True,
                              text=True, check=False)
        if done.returncode != 0:
            sys.exit(f"{' '.join(command)}: {done.stdout}{done.stderr}")
        return done.stdout

    def submit(self, *options, script):
        began = time.time()
        done = subprocess.run([f"{self.bin}/gbatch", "--parsable", "-n1", "--mem=16M", "-o", "/dev/null", *options],
                              env=dict(self.env, HOME=self.out), cwd=self.out, input=script, capture_output=True, text=True,
                              user=self.who.pw_uid, group=self.who.pw_gid, extra_groups=[], check=False)
        if done.returncode != 0:
            sys.exit(f"gbatch {' '.join(options)}: {done.stderr}")
        return began, int(done.stdout)

    def wait(self, what, look):
        end = time.monotonic() + 30
        while not look():
            if time.monotonic() > end:
                print(self.root("gqueue"), file=sys.stderr)
                raise SystemExit(f"{what}: nothing within 30 s")
            time.sleep(0.002)

    def first_command(self, options, then=""):
        """Milliseconds from gbatch to the first command of the job, which then does this."""
        began, job = self.submit(*options, script=SCRIPT + then)
        path = f"{self.out}/began.{job}"
        self.wait(f"job {job}", lambda: os.path.exists(path))
        with open(path, encoding="ascii") as f:
            took = (float(f.read()) - began) * 1e3
        if not then:
            self.wait(f"the end of job {job}", lambda: not self.root("gqueue", "-h", "-j", str(job)).strip())
        return took, job

    def nothing(self):
        """The same on a node that runs nothing, by the time that the node says."""
        began, job = self.submit("-p", "plain", script=SCRIPT)
        row = {}
        while not row.get("started"):
            rows = json.loads(self.root("gacct", "--json", "-a", "-j", str(job)))["rows"]
            row = rows[0]["row"] if rows else {}
        return row["started"] / 1e3 - began * 1e3

    def together(self, options, jobs):
        """Containers a second."""
        began = time.monotonic()
        done = subprocess.run([f"{self.bin}/gbatch", "--parsable", "--wait", "-n1", "--mem=16M", "-o", "/dev/null", *options,
                               f"--array=1-{jobs}", "--wrap=true"], env=dict(self.env, HOME=self.out), cwd=self.out,
                              capture_output=True, text=True, user=self.who.pw_uid, group=self.who.pw_gid, extra_groups=[],
                              check=False)
        if done.returncode != 0:
            sys.exit(f"{jobs} jobs together: {done.stdout}{done.stderr}")
        return jobs / (time.monotonic() - began)


class Bare:
    """Starts `crun run` with the mounts and the config.json of a job that runs, in a cgroup of its own with the same
    limits. The standard files are pipes, as crun gives them to the user of the container."""

    PROGRAM = r"""
import json, os, sys, time
mnt = "/run/gantry-mnt"
with open(f"{mnt}/bundle/config.json") as f:
    config = json.load(f)
bundle = f"{mnt}/bare-{os.getpid()}"
os.mkdir(bundle, 0o711)
config["process"]["args"] = ["/bin/bash", "-c", "echo $EPOCHREALTIME"]
for one in config["linux"]["namespaces"]:
    if one["type"] in ("user", "network"):
        one.pop("path", None)
config["linux"]["cgroupsPath"] = f"/gantry-bare-{os.getpid()}"
config["linux"]["resources"] = {"memory": {"limit": 64 << 20}, "pids": {"limit": 128}}
with open(f"{bundle}/config.json", "w") as f:
    json.dump(config, f)
for n, _ in enumerate(sys.stdin):
    nothing, feed = os.pipe()
    read, write = os.pipe()
    began = time.time()
    pid = os.posix_spawn("/usr/bin/crun", ["crun", "--root", f"{bundle}/state", "run", "--bundle", bundle, f"c{n}"],
                         os.environ, file_actions=[(os.POSIX_SPAWN_DUP2, nothing, 0), (os.POSIX_SPAWN_DUP2, write, 1)])
    os.close(write)
    said = b""
    while piece := os.read(read, 100):
        said += piece
    os.waitpid(pid, 0)
    for fd in (nothing, feed, read):
        os.close(fd)
    print((float(said) - began) * 1e3, flush=True)
"""

    def __init__(self, site):
        _, self.job = site.first_command(WHOLE, then="exec sleep 100000\n")
        with open(f"{site.state}/nodes/node1/state/jobs/{self.job}.1/shim.lock", encoding="ascii") as f:
            shim = f.read().split()[0]
        self.process = subprocess.Popen(["nsenter", "--target", shim, "--mount", sys.executable, "-c", self.PROGRAM],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def first_command(self):
        """Milliseconds from `crun run` to the first command."""
        self.process.stdin.write("one more\n")
        self.process.stdin.flush()
        return float(self.process.stdout.readline())

    def end(self, site):
        self.process.stdin.close()
        self.process.wait()
        site.root("gcancel", str(self.job))


def quantiles(values):
    ordered = sorted(values)
    return statistics.median(ordered), ordered[int(len(ordered) * 0.95)]


def measure(args, sites, nothing):
    took = {name: [] for name in (*SETTINGS, "crun", "nothing")}
    bare = Bare(sites[True])
    for _ in range(args.jobs):
        for name, (layers, options) in SETTINGS.items():
            took[name].append(sites[layers].first_command(options)[0])
        took["nothing"].append(nothing.nothing())
        took["crun"].append(bare.first_command())
    bare.end(sites[True])
    return took


def rates(args, sites):
    many = {name: [] for name in SETTINGS}
    for _ in range(args.rounds):
        for name, (layers, options) in SETTINGS.items():
            many[name].append(sites[layers].together(options, args.together))
    return many


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build")
    parser.add_argument("--jobs", type=int, default=200, help="of each kind, one after the other")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--together", type=int, default=200, help="jobs that start at once")
    args = parser.parse_args()
    build = os.path.abspath(args.build)
    for name in ("tenants/red", "sets/set"):
        os.makedirs(f"{TOP}/{name}", 0o755)
        shutil.chown(f"{TOP}/{name}", USER)
    clusters = []
    try:
        for settings in ((True,), (False,), (False, "none")):
            clusters.append(Site(build, *settings))
        sites = {True: clusters[0], False: clusters[1]}
        many = rates(args, sites)
        took = measure(args, sites, clusters[-1])
    finally:
        for c in clusters:
            c.close()
        shutil.rmtree(TOP, ignore_errors=True)
    crun, none = (quantiles(took[name])[0] for name in ("crun", "nothing"))
    print(f"{args.jobs} jobs of each kind on one node; load {os.getloadavg()[0]:.1f}; {os.cpu_count()} cores\n")
    print(f"{'ms, medians':<42}{'median':>8}{'p95':>8}{'later than crun':>18}")
    print(f"{'crun run to the first command':<42}{crun:>8.1f}{quantiles(took['crun'])[1]:>8.1f}")
    print(f"{'gbatch to a node that runs nothing':<42}{none:>8.1f}{quantiles(took['nothing'])[1]:>8.1f}")
    for name in SETTINGS:
        middle, high = quantiles(took[name])
        print(f"{'gbatch to the first command, ' + name:<42}{middle:>8.1f}{high:>8.1f}{middle - none - crun:>18.1f}")
    print(f"\n{f'containers a second, {args.together} together':<42}{'median':>8}{'of off':>8}")
    for name in SETTINGS:
        part = statistics.median(a / b for a, b in zip(many[name], many["off"]))
        print(f"{name:<42}{statistics.median(many[name]):>8.1f}{part:>8.2f}")


if __name__ == "__main__":
    main()
