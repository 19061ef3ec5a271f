#!/usr/bin/env python3
"""Packets between nodes by another transport than VXLAN, and links of the site's own CNI plugins:
jobs of several nodes are as with VXLAN, a node that lacks the transport says so, and nothing is
left on the machine. The test runs in a network namespace of its own, which stands for the machine.

usage: transport_test.py BIN_DIR [-k CASE] [--keep]
"""
import contextlib
import glob
import os
import re
import subprocess
import sys

import cluster
import job_network_test as jobs
import launchers_test as launchers
from cluster import contains, equal, text, wait_for
from reconfigure_test import change, put, reconfigure

INSIDE = "GANTRY_TRANSPORT_TEST"
CONFLIST = """{"cniVersion": "1.0.0", "name": "site", "plugins": [
  {"type": "bridge", "bridge": "site%d", "isGateway": true, "ipam": {"type": "host-local",
   "dataDir": "%s/ipam", "ranges": [[{"subnet": "10.88.0.0/%d"}]]}},
  {"type": "tuning", "sysctl": {"net.core.somaxconn": "517"}}]}"""


def sh(command):
    return subprocess.run(command, shell=True, capture_output=True, text=True, check=False).stdout


def nodes(c):
    return c.root(["ginfo", "-h", "-N", "-o", "%N %T"]).stdout


def starts(c):
    """How often node daemons have started, by their logs."""
    return sum(text(path).count("node daemon started")
               for path in glob.glob(f"{c.state}/log/*.log") + [f"{c.top}/daemons.log"])


def read_again(c):
    before = starts(c)
    equal(reconfigure(c, "gctl", "reconfigure").returncode, 0)
    wait_for("the node daemons", lambda: starts(c) >= before + c.nodes)
    wait_for("the nodes", lambda: "down" not in nodes(c) and "unk" not in nodes(c))


@contextlib.contextmanager
def configured(c, find, replace):
    """Daemons that started with this configuration."""
    before = change(c, find, replace)
    try:
        read_again(c)
        yield
    finally:
        put(c, before)
        read_again(c)


def by(c, transport):
    return configured(c, "^(  job_networks: true)", rf"\1\n  job_network_transport: {transport}")


def off(c, node):
    return re.search(r"IsolationOff=(.*)", c.root(["gctl", "show", "node", node]).stdout).group(1)


def case_routed(c):
    """Ranks reduce, nobody else reaches them, a killed daemon changes nothing."""
    with by(c, "routed"):
        jobs.case_ranks_reduce(c)
        contains(sh("ip -6 route"), "fd67:616e:7472:")
        equal(len(re.findall(r"gantryr\d+@", sh("ip -o link"))), 3, sh("ip -o link"))
        jobs.case_nobody_else(c)
        jobs.case_machine(c)
        jobs.case_killed_daemon(c)


def case_launchers(c):
    """MPICH and dask over routed packets, in a tenant's queue."""
    with by(c, "routed"):
        launchers.case_mpich(c)
        launchers.case_dask(c)


def case_other_addresses(c):
    """A site whose network has the usual addresses takes others."""
    with configured(c, "^(  job_networks: true)",
                    r"\1\n  job_network_transport: routed\n  job_network_prefix: fd12:3456:789a::/48"
                    r"\n  job_network_block: 10.64.0.0/10"):
        show = jobs.program(c, "show", jobs.ADDRESSES + "\n")
        job = c.submit("-N", "2", "--ntasks-per-node=1", script=f"grun sh {show}\n")
        c.ended(job, "completed")
        found = c.output(job).split()
        equal(sum(one.startswith("fd12:3456:789a:") for one in found), 2, found)
        equal(sum(one.startswith("10.64.") for one in found), 2, found)


def case_wireguard(c):
    """Where the kernel has it jobs talk; otherwise each node says that it has none."""
    has = subprocess.run(["ip", "link", "add", "wg9", "type", "wireguard"], capture_output=True,
                         check=False).returncode == 0
    sh("ip link delete wg9")
    with by(c, "wireguard"):
        if has:
            jobs.case_ranks_reduce(c)
            equal(oct(os.stat(glob.glob(f"{c.state}/nodes/node1/*/wireguard.key")[0]).st_mode)[-3:],
                  "600")
            return
        contains(off(c, "node2"), "networks of jobs: the link nodes by WireGuard could not be made")
        refused = c.as_user(["gbatch", "--network=job", "--wrap", "true"])
        equal(refused.returncode != 0, True)
        contains(refused.stderr, "WireGuard")
        job = c.submit("-n", "1", script="ls /sys/class/net\n")
        c.ended(job, "completed")
        equal(c.output(job).split(), ["lo"])


def case_no_forwarding(c):
    """A machine that forwards nothing makes no routed networks."""
    sh("sysctl -qw net.ipv6.conf.all.forwarding=0")
    try:
        with by(c, "routed"):
            contains(off(c, "node1"), "net.ipv6.conf.all.forwarding is 0")
    finally:
        sh("sysctl -qw net.ipv6.conf.all.forwarding=1")


def case_site_links(c):
    """Plugins give each job a link beside eth0; it is shown, checked, and goes with the job, also
    where the daemon was killed meanwhile. What they refuse is why the job does not start."""
    if not os.path.exists("/usr/lib/cni/bridge"):
        cluster.pass_over("there are no CNI plugins in /usr/lib/cni")
        return
    path = f"{c.top}/site.conflist"
    with open(path, "w", encoding="utf-8") as f:
        f.write(CONFLIST % (0, c.top, 24))
    leases = lambda: glob.glob(f"{c.top}/ipam/site/10.*")
    with configured(c, "^noded:", f"noded:\n  cni: {path}"):
        job, _ = jobs.listening(c, "-w", "node1,node2")
        equal(len(leases()), 2)
        shown = c.as_user(["gctl", "network", "show", str(job)]).stdout
        contains(shown, "net1, by the site's plugins: 10.88.0.")
        assert "not as it was made" not in shown, shown
        link = c.as_user(["grun", f"--jobid={job}", "--overlap", "-n", "1", "-w", "node1", "sh", "-c",
                          "ls /sys/class/net; cat /proc/sys/net/core/somaxconn"]).stdout.split()
        equal(link, ["eth0", "lo", "net1", "517"])
        for node in ("node1", "node2"):
            c.kill_and_restart(c.daemon(node))
        wait_for("the nodes", lambda: "down" not in nodes(c))
        equal(len(leases()), 2)
        space = glob.glob(f"{c.state}/nodes/node1/run/network/{job}.*/net")[0]
        sh(f"nsenter --net={space} ip link delete net1")
        contains(c.as_user(["gctl", "network", "show", "-w", "node1", str(job)]).stdout,
                 "net1 is not as it was made: the CNI plugin bridge of")
        c.root(["gcancel", str(job)])
        wait_for("no address to be given", lambda: not leases(), 60)
        # A network of one address: the second job of the two is refused by the plugin.
        with open(path, "w", encoding="utf-8") as f:
            f.write(CONFLIST % (1, c.top, 30))
        read_again(c)
        first = c.submit("-n", "1", "-w", "node1", script="sleep 60\n")
        wait_for("its address", lambda: len(leases()) == 1)
        second = c.submit("-n", "1", "-w", "node2", "--no-requeue", script="true\n")
        wait_for("the plugin's sentence", lambda: "no IP addresses available" in
                 c.root(["gctl", "why", str(second)]).stdout, 60)
        c.root(["gcancel", str(first), str(second)])
        wait_for("no address to be given", lambda: not leases(), 60)


def case_z_nothing_is_left(c):
    """Last: after a change back to VXLAN the machine has no link, route or table of jobs."""
    wait_for("no link", lambda: "gantry" not in sh("ip -o link"), 30)
    equal(sh("nft list tables"), "")
    assert "fd67" not in sh("ip -6 route"), sh("ip -6 route")
    assert "100.64" not in sh("ip route"), sh("ip route")


if __name__ == "__main__":
    if why := jobs.missing() or cluster.cannot_run():
        print(f"passed over: {why}")
        sys.exit(77)
    if INSIDE not in os.environ:
        os.environ[INSIDE] = "1"
        os.execvp("unshare", ["unshare", "-n", sys.executable, "-B"] + sys.argv)
    sh("ip link set lo up; sysctl -qw net.ipv4.ip_forward=1 net.ipv6.conf.all.forwarding=1")
    sys.exit(cluster.main(__doc__, globals(), "transport", nodes=4, users=2))
