#!/usr/bin/env python3
"""Checks that `gantry down` leaves nothing behind, even for jobs that ended after their daemons.

usage: down_test.py BIN_DIR [--keep]
"""
import os
import signal
import sys

import cluster
from cluster import alive, equal, job_cgroups, wait_for


def cgroups(root):
    """Every directory of the cluster's own cgroups, in every hierarchy."""
    return sorted(top for top, _, _ in os.walk("/sys/fs/cgroup") if f"/{root}" in top)


def case_daemons_go_before_the_job(c):
    root = c.cgroup_root()
    job = c.submit("--wrap=sleep 600")
    c.running(job)
    shim, = c.shims(job=job)
    equal(c.root(["gantry", "down", "--leave", "--state", c.state]).returncode, 0, "down --leave")
    assert alive(shim), "the shim ended with its daemon"
    assert job_cgroups(root), "the job's cgroups are gone, and it runs"
    os.kill(shim, signal.SIGTERM)  # the job ends, and only the shim notices it
    wait_for("the shim's end", lambda: not alive(shim))
    equal(job_cgroups(root), [], "cgroups of the job")
    assert cgroups(root), "the nodes' cgroups are gone already: the test shows nothing"
    equal(c.root(["gantry", "down", "--remove", "--state", c.state]).returncode, 0, "down --remove")
    equal(cgroups(root), [], "cgroups that are left")


if __name__ == "__main__":
    sys.exit(cluster.main(__doc__, globals(), "down", nodes=2))
