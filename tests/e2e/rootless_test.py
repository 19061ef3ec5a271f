#!/usr/bin/env python3
"""A cluster of an ordinary user: `gantry up` without root, containers without root, and down again.

usage: rootless_test.py BIN_DIR [-k CASE] [--keep]

The test needs root only to make that user and to remove it.
"""
import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile

from cluster import (SKIPPED, Programs, alive, arguments, cannot_run, contains, equal, processes,
                     run_cases, text, wait_for)

USER = "gantry-rootless"


class UserCluster:
    """The cluster of an ordinary user. All its commands run as that user and without root's
    environment."""

    def __init__(self, bin_dir):
        self.programs = Programs(bin_dir)
        self.bin = self.programs.path
        self.top = tempfile.mkdtemp(prefix="gantry-rootless.", dir="/var/tmp")
        self.said_at_start = ""

    def make(self):
        subprocess.run(["useradd", "--no-create-home", "--home-dir", self.top, "--shell",
                        "/bin/bash", USER], check=False, capture_output=True)
        shutil.chown(self.top, USER, USER)

    def as_user(self, *command, check=True, timeout=90, stdin=None):
        done = subprocess.run(
            list(map(str, command)), cwd=self.top, input=stdin, capture_output=True, text=True,
            env={"HOME": self.top, "USER": USER, "PATH": f"{self.bin}:/usr/bin:/bin:/usr/sbin"},
            user=USER, group=USER, extra_groups=[], timeout=timeout, check=False)
        if check and done.returncode != 0:
            raise AssertionError(f"{' '.join(map(str, command))}: exit {done.returncode}\n"
                                 f"{done.stdout}{done.stderr}")
        return done

    def submit(self, *options, script=None):
        done = self.as_user("gbatch", "--parsable", "--mem=40M", "-o", "%j.out", *options,
                            stdin=None if script is None else "#!/bin/bash\n" + script)
        return int(done.stdout)

    def entry(self, job):
        rows = json.loads(self.as_user("gacct", "--json", "-j", job).stdout)["rows"]
        return rows[0] if rows else None

    def ended(self, job, outcome, code):
        entry = wait_for(f"the end of job {job}", lambda: next(
            (e for e in [self.entry(job)] if e and e["row"]["phase"] == "ended"), None))
        equal((entry["row"]["outcome"], entry["row"]["exit"]["code"]), (outcome, code),
              f"end of job {job} ({entry['cause']}; {self.output(job)[-300:]!r})")

    def output(self, job):
        return text(f"{self.top}/{job}.out")

    def processes(self):
        return [pid for pid, argv in processes().items()
                if self.top.encode() in b"\0".join(argv) and alive(pid)]

    def clean(self, keep):
        for pid in self.processes():  # there is none unless a case has failed
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        subprocess.run(["userdel", USER], check=False, capture_output=True)
        self.programs.remove()
        if keep:
            print(f"kept: {self.top}")
        else:
            shutil.rmtree(self.top, ignore_errors=True)


def case_up(c):
    """The cluster starts with a real container runtime, and says which protections are off."""
    said = c.as_user("gantry", "up", "--nodes", "2", "--cpus", "1", "--memory", "512M",
                     "--oversubscribe", timeout=120).stdout
    assert re.search(r"Jobs run with (crun|runc) \d", said), said
    contains(said, "Isolation layers that are off here:")
    contains(said, "other users' jobs: the node daemon is not root")
    contains(c.as_user("gantry", "status").stdout, "node2")


def case_confined(c):
    """The job runs as the user, sees only its own processes, and has no network and no
    capabilities."""
    job = c.submit(script="""
        echo user $(id -un) $(id -u)
        echo net $(ls /sys/class/net)
        echo caps $(sed -n 's/^CapEff:.//p' /proc/self/status)
        echo processes $(ls -d /proc/[0-9]* | wc -l)
        : > /tmp/mine && echo tmp $(ls /tmp)
        : > /usr/mine || echo read-only
        exit 3
        """)
    c.ended(job, "failed", 3)
    said = c.output(job)
    uid = c.as_user("id", "-u").stdout.strip()
    for wanted in (f"user {USER} {uid}\n", "net lo\n", "caps 0000000000000000\n", "tmp mine\n",
                   "read-only\n"):
        contains(said, wanted, "output")
    assert int(re.search(r"processes (\d+)", said).group(1)) < 10, said


def case_first_commands(c):
    """gbatch, gqueue and gacct work as the README shows them."""
    done = c.as_user("gbatch", "--wait", "-o", "hostname.out", "--wrap", "hostname")
    job = int(re.search(r"Submitted batch job (\d+)", done.stdout).group(1))
    assert re.fullmatch(r"node[12]\n", text(f"{c.top}/hostname.out")), text(f"{c.top}/hostname.out")
    contains(c.as_user("gacct", "-j", job).stdout, "COMPLETED")
    runs = c.submit("--wrap=echo up; sleep 300")
    wait_for("the job to run", lambda: "up" in c.output(runs))
    assert re.search(rf"\b{runs}\b.* R .*node[12]", c.as_user("gqueue").stdout)
    c.as_user("gcancel", runs)
    c.ended(runs, "cancelled", 0)


def case_signal(c):
    """Without a cgroup, a signal finds the processes of the job, and no others, by its PID
    namespace."""
    job = c.submit(script="trap 'echo got it; exit 7' USR1\necho up\nsleep 300 & wait\n")
    other = c.submit("--wrap=echo up; sleep 300")
    for one in (job, other):
        wait_for("the jobs to run", lambda one=one: "up" in c.output(one))
    c.as_user("gcancel", "--batch", "-s", "USR1", job)
    c.ended(job, "failed", 7)
    contains(c.output(job), "got it")
    c.as_user("gcancel", "-s", "TERM", other)
    c.as_user("gcancel", "-Q", other, check=False)
    wait_for("its end", lambda: c.entry(other)["row"]["phase"] == "ended")


def case_zz_down(c):
    """After `gantry down` no process runs."""
    c.submit("--wrap=sleep 300")
    contains(c.as_user("gantry", "down", "--cancel").stdout, "is down")
    wait_for("all processes to go", lambda: not c.processes(), 15)
    assert c.top not in text("/proc/self/mountinfo"), "a mount is left"


def main():
    args = arguments(__doc__)
    why = cannot_run()
    c = None if why else UserCluster(args.bin_dir)
    failed = 1
    try:
        if c:
            c.make()
            if c.as_user("unshare", "--user", "--map-root-user", "true", check=False).returncode:
                why = "an ordinary user may not make user namespaces here (or this is a chroot)"
        if why:
            print(f"skipped: {why}")
            failed = 0
            return SKIPPED
        cases = [(n[5:], f) for n, f in sorted(globals().items()) if n.startswith("case_")]
        up = cases.pop([n for n, _ in cases].index("up"))
        failed = run_cases([up] + [x for x in cases if args.k in x[0]], c)
    finally:
        if c:
            c.clean(args.keep or failed > 0)
    print("all well" if not failed else f"{failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
