#!/usr/bin/env python3
"""Faults of the machine: a full disk, a full store, 10,000 idle connections, a clock that is set by
an hour, daemons that are stopped for a while.

usage: faults_test.py BIN_DIR [-k CASE] [--keep]
"""
import contextlib
import json
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import time

import cluster
from cluster import alive, contains, equal, text, wait_for

IDLE = 10_000  # number of connections
IDLE_CLIENT = """
import resource, socket, sys
port, count = int(sys.argv[1]), int(sys.argv[2])
hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, count + 100), hard))
greeting = bytes([255, 0, 0, 0, 0, 0, 0, 0, 1, 127, 3, 1]) + b"CURVE".ljust(20, b"\\0") + bytes(32)
held = []
for _ in range(count):
    s = socket.create_connection(("127.0.0.1", port), timeout=60)
    s.sendall(greeting)
    held.append(s)
print("connected", flush=True)
sys.stdin.read()
"""
CLOCK = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/time.h>
#include <time.h>
/* Adds the seconds that stand in the file $TEST_CLOCK to the real time of day. */
static long shift(void) {
  long s = 0;
  const char* name = getenv("TEST_CLOCK");
  FILE* f = name ? fopen(name, "re") : NULL;
  if (f) { if (fscanf(f, "%ld", &s) != 1) s = 0; fclose(f); }
  return s;
}
int clock_gettime(clockid_t id, struct timespec* t) {
  static int (*real)(clockid_t, struct timespec*);
  if (!real) real = (int (*)(clockid_t, struct timespec*))dlsym(RTLD_NEXT, "clock_gettime");
  int r = real(id, t);
  if (r == 0 && id == CLOCK_REALTIME) t->tv_sec += shift();
  return r;
}
int gettimeofday(struct timeval* t, void* zone) {
  struct timespec s;
  (void)zone;
  int r = clock_gettime(CLOCK_REALTIME, &s);
  t->tv_sec = s.tv_sec;
  t->tv_usec = s.tv_nsec / 1000;
  return r;
}
time_t time(time_t* t) {
  struct timespec s;
  clock_gettime(CLOCK_REALTIME, &s);
  if (t) *t = s.tv_sec;
  return s.tv_sec;
}
"""


def answers(c):
    return c.root(["gctl", "ping"]).returncode == 0


def case_idle_connections(c):
    """While ten thousand clients greet and then send nothing, submits still work."""
    port = re.search(r"port: (\d+)", text(f"{c.state}/gantry.yaml")).group(1)
    ctld = c.daemon("ctld")
    # This is the only way for this process to set the file limit of a running daemon.
    resource.prlimit(ctld, resource.RLIMIT_NOFILE, (20_000, 20_000))
    clients = [subprocess.Popen([sys.executable, "-c", IDLE_CLIENT, port, str(IDLE // 4)],
                                stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
               for _ in range(4)]
    try:
        for client in clients:
            equal(client.stdout.readline(), "connected\n", "idle clients")
        jobs = [c.submit("--wrap=true") for _ in range(20)]
        for job in jobs:
            c.ended(job, "completed")
        assert alive(ctld), "the controller has died"
    finally:
        for client in clients:
            client.stdin.close()
            client.wait(timeout=30)
            client.stdout.close()
    wait_for("an answer", lambda: answers(c))


def submit_until_it_ends(c, ctld, most=400):
    """Submits large scripts, no two alike, until the controller ends; returns the acknowledged
    jobs."""
    acknowledged = []
    for number in range(most):
        script = f"#!/bin/bash\n# {number} {'x' * 60_000}\ntrue\n"
        done = c.as_user(["gbatch", "--parsable", "-H", "--mem=40M"], input=script)
        if done.returncode == 0:
            acknowledged.append(int(done.stdout))
        elif not alive(ctld):
            break
    wait_for("the end of the controller", lambda: not alive(ctld), 30)
    c.daemons.pop(ctld)
    return acknowledged


def last_words(c):
    return text(f"{c.top}/daemons.log") + text(f"{c.state}/log/ctld.log")


def check_waiting(c, jobs):
    rows = json.loads(c.as_user(["gqueue", "--json", "-t", "PENDING"]).stdout)["rows"]
    equal(sorted(set(jobs) - {row["job"] for row in rows}), [], "acknowledged jobs that are lost")


def case_full_store(c):
    """The store's map grows from its first size to the largest that is allowed. Then the controller
    ends and names the option to raise; with a larger map it has every acknowledged job."""
    path = f"{c.state}/gantry.yaml"
    before = text(path)

    def start_with(argv, most):
        with open(path, "w", encoding="utf-8") as f:
            f.write(before.replace(
                "controller:\n", f"controller:\n  store_map: 1M\n  store_map_max: {most}\n"))
        pid = c.spawn(argv).pid
        wait_for("the controller", lambda: answers(c))
        return pid

    argv = c.kill(c.daemon("ctld"))
    try:
        ctld = start_with(argv, "8M")
        acknowledged = [c.submit("-H", "--wrap=true") for _ in range(5)]
        acknowledged += submit_until_it_ends(c, ctld)
        contains(last_words(c), f"{c.state}/ctld/data.mdb has reached the largest map size of 8 MiB: "
                 "raise controller.store_map_max")
        assert len(acknowledged) > 50, f"only {len(acknowledged)} jobs: the map did not grow"
        ctld = start_with(argv, "1G")
        check_waiting(c, acknowledged)
        acknowledged += [c.submit("-H", "--wrap=true") for _ in range(5)]
        c.kill_and_restart(ctld)
        wait_for("the controller", lambda: answers(c))
        check_waiting(c, acknowledged)
    finally:
        c.as_user(["gcancel", "--me"])
        with open(path, "w", encoding="utf-8") as f:
            f.write(before)
    c.kill_and_restart(c.daemon("ctld"))
    wait_for("the controller", lambda: answers(c))


def case_full_disk(c):
    """The disk is full: the controller ends and names the directory; with room again it has every
    acknowledged job."""
    place = f"{c.state}/ctld"
    kept = f"{c.top}/ctld-kept"
    argv = c.kill(c.daemon("ctld"))
    shutil.copytree(place, kept)
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=24m,mode=0700", "tmpfs", place], check=True)
    try:
        subprocess.run(["cp", "-a", "--sparse=always", f"{kept}/.", place], check=True)
        ctld = c.spawn(argv).pid
        wait_for("the controller", lambda: answers(c))
        acknowledged = [c.submit("-H", "--wrap=true") for _ in range(5)]
        with contextlib.suppress(OSError), open(f"{place}/filler", "wb", buffering=0) as filler:
            while True:
                filler.write(bytes(4096))
        acknowledged += submit_until_it_ends(c, ctld)
        assert re.search(f"the file system of {place}.* is full", last_words(c)), last_words(c)[-500:]
        os.unlink(f"{place}/filler")
        c.spawn(argv)
        wait_for("the controller", lambda: answers(c))
        check_waiting(c, acknowledged)
        c.as_user(["gcancel", "--me"])
        c.kill(c.daemon("ctld"))
        shutil.rmtree(kept)
        subprocess.run(["cp", "-a", "--sparse=always", f"{place}/.", kept], check=True)
    finally:
        subprocess.run(["umount", place], check=True)
    subprocess.run(["cp", "-a", "--sparse=always", f"{kept}/.", place], check=True)
    c.spawn(argv)
    wait_for("the controller", lambda: answers(c))


def case_clock_steps(c):
    """The clock of controller and nodes is set by an hour, forward and back: a running job keeps
    its time limit, a waiting job starts, and no job starts before its begin time."""
    if not shutil.which("cc"):
        raise AssertionError("there is no C compiler for the clock that can be set")
    clock, source = f"{c.top}/clock", f"{c.top}/clock.c"
    with open(source, "w", encoding="utf-8") as f:
        f.write(CLOCK)
    subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", f"{c.top}/clock.so", source, "-ldl"],
                   check=True)

    def set_clock(seconds):
        with open(f"{clock}.new", "w", encoding="utf-8") as f:
            f.write(str(seconds))
        os.rename(f"{clock}.new", clock)
    set_clock(0)
    env = dict(c.env, LD_PRELOAD=f"{c.top}/clock.so", TEST_CLOCK=clock)
    for pid in list(c.daemons):
        c.spawn(c.kill(pid), env=env)
    wait_for("the nodes", lambda: c.root(["gqueue", "-h"]).returncode == 0)
    for step in (3600, -3600):
        runs = c.submit("-t", "5:00", script="echo up; sleep 3; echo done\n")
        held = c.submit("-H", "--wrap=true")
        later = c.submit("-b", "now+30minutes", "--wrap=true")
        c.said(runs, "up")
        set_clock(step)
        c.as_user(["gctl", "release", held])
        c.ended(held, "completed")
        c.ended(runs, "completed", 0)
        contains(c.queue_line(later), "BeginTime", "a job that begins later")
        c.as_user(["gcancel", later])
        after = c.submit("-t", "0:01", "--wrap=sleep 60")
        entry = c.ended(after, "timeout", patience=30)
        seconds = (entry["row"]["ended"] - entry["row"]["started"]) / 1e6
        assert 0.5 <= seconds < 20, f"a job with a second ran for {seconds}"
        set_clock(0)
        time.sleep(0.2)


def case_a_stopped_daemon_does_not_stretch_jobs(c):
    """The controller's process, or the node daemon's, is stopped while a job ends: the job's times
    are those that its machine measured, and a limit that passed meanwhile does not count."""
    for name in ("ctld", None):
        job = c.submit("-t", "0:08", script="echo up; sleep 3; echo done\n")
        c.said(job, "up")
        c.running(job)
        pid = c.daemon(name or c.queue_line(job, "%N"))
        os.kill(pid, signal.SIGSTOP)
        try:
            c.said(job, "done")
            time.sleep(7)  # meanwhile the job's limit passes, which may not count
        finally:
            on = time.time()
            os.kill(pid, signal.SIGCONT)
        row = c.ended(job, "completed", 0)["row"]
        seconds = (row["ended"] - row["started"]) / 1e6
        assert 2.9 <= seconds < 6, f"a job of 3 s ran for {seconds} while {name or 'its node'} stood"
        late = on - row["ended"] / 1e6
        assert late > 5, f"it ended {late} s before {name or 'its node'} went on"


if __name__ == "__main__":
    sys.exit(cluster.main(__doc__, globals(), "faults", nodes=2))
