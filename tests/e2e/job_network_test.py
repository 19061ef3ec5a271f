#!/usr/bin/env python3
"""Jobs with a network of their own: their nodes reach each other without an option about networks,
nobody else reaches them, they reach nobody else, and nothing is left of them.

usage: job_network_test.py BIN_DIR [-k CASE] [--keep]
"""
import glob
import os
import re
import shutil
import subprocess
import sys

import cluster
from cluster import contains, equal, wait_for

LISTEN = """
import socket, sys, time
s = socket.socket(socket.AF_INET6)
s.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
s.bind(("::", 5005)); s.listen(64)
open(sys.argv[1], "w").close()
while True:
    one, who = s.accept(); one.sendall(b"hello"); one.close()
"""
TRY = """
import socket, sys
for target in sys.argv[1:]:
    host, port = target.rsplit("/", 1)
    try:
        with socket.create_connection((host, int(port)), 3) as s:
            print(target, "answers", s.recv(5).decode(errors="replace"), flush=True)
    except OSError as e:
        print(target, "is closed", type(e).__name__, flush=True)
"""
ADDRESSES = "ip -o address show dev eth0 | grep -v fe80 | awk '{sub(\"/.*\", \"\", $4); print $4}'"


def program(c, name, text):
    path = f"{c.out}/{name}.py"
    with open(path, "w", encoding="utf-8") as f:
        f.write(text)
    os.chmod(path, 0o644)
    return path


def listening(c, *options, user=None):
    """A job of two nodes that answers at port 5005 on each; the job and its addresses."""
    listen = program(c, "listen", LISTEN)
    ready = f"{c.out}/ready-{os.urandom(4).hex()}"
    with open(f"{c.out}/show.sh", "w", encoding="utf-8") as f:
        f.write(ADDRESSES + "\n")
    job = c.submit("-N", "2", "--ntasks-per-node=1", *options, user=user, script=(
        f"grun sh {c.out}/show.sh\n"
        f"grun sh -c 'exec python3 {listen} {ready}.$SLURM_PROCID'\n"))
    wait_for("both parts to listen",
             lambda: all(os.path.exists(f"{ready}.{rank}") for rank in (0, 1)), 60)
    found = re.findall(r"^(100\.\S+|fd\S+)$", c.output(job), re.M)
    equal(len(found), 4, f"addresses in\n{c.output(job)}")
    return job, found


def answers(c, targets, *options, user=None):
    """What a job of one node hears from each of the targets."""
    ask = program(c, "ask", TRY)
    job = c.submit("-n", "1", *options, user=user, script=f"python3 {ask} {' '.join(targets)}\n")
    c.ended(job, "completed")
    return dict(re.findall(r"^(\S+) (answers hello|answers|is closed)", c.output(job), re.M))


def case_ranks_reduce(c):
    """Six ranks on three nodes find rank 0 by the name of its node and add up a number."""
    shutil.copy(os.path.join(os.path.dirname(os.path.abspath(__file__)), "rank.py"), c.out)
    os.chmod(f"{c.out}/rank.py", 0o644)
    job = c.submit(script="#SBATCH -N 3 --ntasks-per-node=2 -t 3:00\n"
                          f"grun python3 {c.out}/rank.py\necho status $?\n")
    c.ended(job, "completed")
    lines = sorted(re.findall(r"^rank .*$", c.output(job), re.M))
    equal(lines, [f"rank {r} of 6 on node{r // 2 + 1} node {r // 2} local {r % 2} total 21"
                  for r in range(6)], "what the ranks say")
    contains(c.output(job), "status 0")


def case_links(c):
    """A job sees the links of its own namespace, also in /sys; with --network=none only loopback."""
    for option, wanted in (("--network=job", ["eth0", "lo"]), ("--network=none", ["lo"])):
        job = c.submit("-n", "1", option, script="ls /sys/class/net\nls /proc/sys/net/ipv4/conf "
                                                 "| grep -v -e all -e default\n")
        c.ended(job, "completed")
        equal(c.output(job).split(), wanted + wanted, option)


def case_nobody_else(c):
    """Another user's job, and another job of the same user, reach none of its addresses; its own
    part on the other node does."""
    job, addresses = listening(c, "-w", "node1,node2")
    targets = [f"{address}/5005" for address in addresses]
    for user in c.users:
        for node in ("node2", "node3"):
            got = answers(c, targets, "-w", node, user=user)
            equal(got, dict.fromkeys(targets, "is closed"), f"{user} on {node}")
    ask = program(c, "ask", TRY)
    step = c.as_user(["grun", f"--jobid={job}", "--overlap", "-N", "1", "-n", "1", "-w", "node1",
                      "python3", ask] + targets)
    equal(dict(re.findall(r"^(\S+) (answers hello|is closed)", step.stdout, re.M)),
          dict.fromkeys(targets, "answers hello"), step.stderr)
    c.root(["gcancel", str(job)])


def case_machine(c):
    """A job reaches neither daemon nor machine: not by loopback, nor by the machine's addresses."""
    ports = {line.split(":")[-1] for line in re.findall(
        r"127\.0\.0\.1:\d+", open(f"{c.state}/gantry.yaml", encoding="utf-8").read())}
    controller = re.search(r"^  port: (\d+)", open(f"{c.state}/gantry.yaml",
                                                   encoding="utf-8").read(), re.M).group(1)
    ports.add(controller)
    hosts = ["127.0.0.1", "169.254.169.254", "fe80::1%eth0"] + subprocess.run(
        ["hostname", "-I"], capture_output=True, text=True, check=False).stdout.split()
    targets = [f"{host}/{port}" for host in hosts for port in sorted(ports)]
    got = answers(c, targets)
    equal(got, dict.fromkeys(targets, "is closed"))


def case_killed_daemon(c):
    """The parts of a job still reach each other after the daemons of both nodes were killed, and
    nothing of the job is left when it has ended."""
    job, addresses = listening(c, "-w", "node1,node2")
    for node in ("node1", "node2"):
        c.kill_and_restart(c.daemon(node))
    wait_for("the nodes", lambda: c.root(["ginfo", "-h", "-o", "%T"]).stdout.count("down") == 0)
    ask = program(c, "ask", TRY)
    targets = [f"{address}/5005" for address in addresses]

    def all_answer():
        step = c.as_user(["grun", f"--jobid={job}", "--overlap", "-N", "1", "-n", "1", "-w",
                          "node2", "python3", ask] + targets)
        return step.stdout.count("answers hello") == len(targets)
    wait_for("all parts to answer", all_answer, 60)
    c.root(["gcancel", str(job)])
    wait_for("nothing to be left", lambda: not [
        path for path in glob.glob(f"{c.state}/nodes/*/run/network/*")
        if not path.endswith("/node")], 30)


def case_z_why(c):
    """Last, because it breaks the network between two nodes: `gctl why` of a running job says what its network refused, and whom it does not reach."""
    job, addresses = listening(c, "-w", "node1,node2")
    why = c.as_user(["gctl", "why", str(job)]).stdout
    assert "its network refused" not in why and "does not reach" not in why, why
    ask = program(c, "ask", TRY)
    c.as_user(["grun", f"--jobid={job}", "--overlap", "-N", "1", "-n", "1", "-w", "node1",
               "python3", ask, "100.127.0.1/80"])
    contains(c.as_user(["gctl", "why", str(job)]).stdout, "On node1 its network refused ")
    space = f"--net={c.state}/nodes/node2/run/network/node/net"
    subprocess.run(["nsenter", space, "ip", "link", "set", "nodes", "down"], check=True)
    contains(c.as_user(["gctl", "why", str(job)]).stdout, "node1 does not reach its part on node2: ")
    c.root(["gcancel", str(job)])
    c.ended(job)


def missing():
    """What this machine lacks for several nodes with networks of jobs; "" = nothing."""
    made = subprocess.run(["unshare", "-n", "ip", "link", "add", "v", "type", "vxlan", "id", "1",
                           "dstport", "4791"], capture_output=True, text=True, check=False)
    if made.returncode != 0:
        return f"no VXLAN: {made.stderr.strip()}"
    version = tuple(int(n) for n in re.findall(r"\d+", os.uname().release)[:2])
    return "" if version >= (6, 3) else "several nodes of one machine need Linux 6.3"


if __name__ == "__main__":
    if why := missing():
        print(f"passed over: {why}")
        sys.exit(77)
    sys.exit(cluster.main(__doc__, globals(), "network", nodes=3, users=2))
