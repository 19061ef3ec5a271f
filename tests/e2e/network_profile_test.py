#!/usr/bin/env python3
"""Network profiles of tenants with real jobs: what a profile names answers and nothing else does,
name servers, jobs of one tenant and of two, NetworkPolicies, `gctl network`; MPI and sockets over
several nodes in a tenant's queue without an option about networks; and nothing is left of it.

All of it runs in a network namespace of its own that stands for the machine, and a second one that
stands for the world behind it.

usage: network_profile_test.py BIN_DIR [-k CASE] [--keep]
"""
import os
import re
import shutil
import subprocess
import sys

import cluster
import job_network_test
import mpi_test
from cluster import contains, equal, wait_for
from job_network_test import answers, program

OUTSIDE, PUBLIC, OTHER = "10.77.0.2", "1.2.3.4", "fd77::2"
WORLD = r"""
import os, socket, struct, threading
def serve(address, port):
    six = ":" in address
    s = socket.socket(socket.AF_INET6 if six else socket.AF_INET)
    s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    s.bind((address, port)); s.listen(64)
    while True:
        one, who = s.accept(); one.sendall(b"hello"); one.close()
def names(address):
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.bind((address, 53))
    while True:
        question, who = s.recvfrom(512)
        end = question.index(b"\0", 12) + 5
        kind = struct.unpack(">H", question[end - 4:end - 2])[0]
        found = kind == 1 and question[12:].startswith(b"\x05store\x07example\0")
        head = question[:2] + struct.pack(">HHHHH", 0x8580, 1, int(found), 0, 0)
        answer = b"\xc0\x0c\0\1\0\1\0\0\0\x3c\0\4" + socket.inet_aton("10.77.0.2") if found else b""
        s.sendto(head + question[12:end] + answer, who)
def proxy(address):
    s = socket.socket()
    s.bind((address, 3128)); s.listen(64)
    while True:
        one, who = s.accept()
        line = one.recv(4096).split(b"\r\n")[0]
        allowed = line.startswith((b"GET http://store.example/", b"CONNECT store.example:443 "))
        one.sendall(b"HTTP/1.1 200 OK\r\n\r\nfetched" if allowed else b"HTTP/1.1 403 Forbidden\r\n\r\n")
        one.close()
threading.Thread(target=proxy, args=("10.77.0.2",), daemon=True).start()
for address in ("10.77.0.2", "1.2.3.4", "fd77::2"):
    for port in (5005, 5006):
        threading.Thread(target=serve, args=(address, port), daemon=True).start()
threading.Thread(target=names, args=("10.77.0.2",), daemon=True).start()
print("ready", flush=True)
import sys; sys.stdin.read()
"""
DOCUMENTS = """
apiVersion: gantry/v1
kind: NetworkService
name: store
to: [10.77.0.2 tcp/5005]
---
apiVersion: gantry/v1
kind: NetworkProfile
name: web
resolvers: true
internet: true
---
apiVersion: gantry/v1
kind: NetworkProfile
name: together
same_tenant: true
---
apiVersion: gantry/v1
kind: NetworkProfile
name: ranges
to: [10.77.0.0/24 tcp/5006, "fd77::/64 tcp/5005"]
---
apiVersion: gantry/v1
kind: NetworkProfile
name: unused
internet: true
---
apiVersion: gantry/v1
kind: NetworkProfile
name: packages
proxy: 10.77.0.2 tcp/3128
---
apiVersion: gantry/v1
kind: Tenant
name: fraud
network: {profiles: [web, together, ranges, packages], services: [store]}
roles: {user: {users: [USER1]}}
---
apiVersion: gantry/v1
kind: Tenant
name: vision
network: {default: own, profiles: [together]}
roles: {user: {users: [USER2]}}
"""
TARGETS = [f"{host}/{port}" for host in (OUTSIDE, PUBLIC, OTHER) for port in (5005, 5006)]


def apply(c, text, status=0):
    text = text.replace("USER1", c.users[0]).replace("USER2", c.users[1])
    done = c.root(["gtenant", "apply", "-y", "-f", "-"], input=text)
    equal(done.returncode, status, done.stdout + done.stderr)
    return done.stdout + done.stderr


def open_of(c, *options, user=None, targets=None):
    """The targets that answer a job."""
    got = answers(c, targets or TARGETS, *options, user=user)
    return [target for target, how in got.items() if how == "answers hello"]


def case_a_profiles(c):
    apply(c, DOCUMENTS)
    equal(open_of(c, "-p", "fraud"), [f"{OUTSIDE}/5005"], "basic with its service")
    equal(open_of(c, "-p", "fraud", "--network=job,own"), [], "own")
    equal(open_of(c, "-p", "fraud", "--network=job,web"), [f"{PUBLIC}/5005", f"{PUBLIC}/5006"],
          "the internet")
    equal(open_of(c, "-p", "fraud", "--network=job,ranges"), [f"{OUTSIDE}/5006", f"{OTHER}/5005"],
          "ranges")
    equal(open_of(c, "-p", "vision", user=c.users[1]), [], "a tenant with nothing")


def case_b_who_may(c):
    for partition, profile, user, why in (
            ("fraud", "unused", c.users[0], "its document names basic, web, together, ranges, packages, own"),
            ("vision", "web", c.users[1], "its document names own, together"),
            ("fraud", "nosuch; drop", c.users[0], "may not have the network profile")):
        done = c.as_user(["gbatch", "-p", partition, f"--network=job,{profile}", "--wrap=true"],
                         user=user)
        assert done.returncode != 0, profile
        contains(done.stderr, why)
    done = c.as_user(["gbatch", "-p", "fraud", "--network=none,web", "--wrap=true"])
    contains(done.stderr, "is not job, job,PROFILE, none or host")
    done = c.as_user(["gtenant", "apply", "-y", "-f", "-"],
                     input="apiVersion: gantry/v1\nkind: NetworkProfile\nname: mine\n")
    contains(done.stderr, "may not change NetworkProfile mine")


def case_c_names(c):
    """A job with resolvers finds a name; one without has nobody to ask."""
    look = program(c, "look", "import socket\ntry:\n  print('found', socket.gethostbyname("
                   "'store.example'))\nexcept OSError as e:\n  print('unknown', type(e).__name__)\n")
    script = f"grep ^nameserver /etc/resolv.conf\nRES_OPTIONS='timeout:1 attempts:1' python3 {look}\n"
    job = c.submit("-n", "1", "-p", "fraud", script=script)
    c.ended(job, "completed")
    equal(c.output(job), f"nameserver {OUTSIDE}\nfound {OUTSIDE}\n")
    job = c.submit("-n", "1", "-p", "fraud", "--network=job,own", script=script)
    c.ended(job, "completed")
    contains(c.output(job), "unknown")


def listening(c, *options, user=None):
    """A job of one node that answers at port 5005; the job and its IPv6 address."""
    listen = program(c, "listen", job_network_test.LISTEN)
    ready = f"{c.out}/ready-{os.urandom(4).hex()}"
    job = c.submit("-n", "1", *options, user=user, script=(
        f"ip -o -6 address show dev eth0 | grep -v fe80 | awk '{{print $4}}'\n"
        f"exec python3 {listen} {ready}\n"))
    wait_for("the job to listen", lambda: os.path.exists(ready), 60)
    return job, re.search(r"^(fd\S+)/128$", c.output(job), re.M).group(1)


def case_d_same_tenant(c):
    jobs = {}
    # A node has two cores: node1 stays free for those who ask.
    for name, options, user in (
            ("together", ("-p", "fraud", "--network=job,together", "-w", "node2"), 0),
            ("alone", ("-p", "fraud", "--network=job,own", "-w", "node2"), 0),
            ("vision", ("-p", "vision", "--network=job,together", "-w", "node3"), 1)):
        jobs[name] = listening(c, *options, user=c.users[user])
    targets = {f"{address}/5005": name for name, (_, address) in jobs.items()}
    try:
        for node in ("node1", "node3"):
            got = open_of(c, "-p", "fraud", "--network=job,together", "-w", node, targets=list(targets))
            equal([targets[t] for t in got], ["together"], node)
        got = open_of(c, "-p", "vision", "--network=job,together", targets=list(targets),
                      user=c.users[1])
        equal([targets[t] for t in got], ["vision"])
    finally:
        for job, _ in jobs.values():
            c.root(["gcancel", str(job)])
            c.ended(job)


def case_e_show_and_probe(c):
    job = c.submit("-n", "1", "-p", "fraud", script=f"echo up\nsleep 120\n")
    c.said(job, "up")
    shown = c.as_user(["gctl", "network", "show", str(job)])
    for text in ("profile basic", f"resolver      {OUTSIDE} udp/53 tcp/53",
                 "to            10.77.0.2/32 tcp/5005", "refused 0 packets"):
        contains(shown.stdout, text, shown.stderr)
    done = c.as_user(["gctl", "network", "probe", str(job), f"{OUTSIDE}:5005"])
    equal(done.returncode, 0, done.stdout + done.stderr)
    contains(done.stdout, "is open")
    contains(done.stdout, "profile basic: the profile has 10.77.0.2/32 tcp/5005")
    for target, why in ((f"{OUTSIDE}:5006", "refused"), ("169.254.169.254:80", "no job reaches"),
                        (f"[{OTHER}]:5005", "refused")):
        done = c.root(["gctl", "network", "probe", str(job), target])
        equal(done.returncode, 1, done.stdout + done.stderr)
        contains(done.stdout, why)
    contains(c.as_user(["gctl", "network", "show", str(job)]).stdout, "refused 3 packets")
    for user, target, why in ((c.users[1], f"{OUTSIDE}:5005", "there is no job"),
                              (c.users[0], "10.77.0.2", "is not HOST:PORT"),
                              (c.users[0], "store.example:80", "neither an address nor a node")):
        done = c.as_user(["gctl", "network", "probe", str(job), target], user=user)
        assert done.returncode != 0, target
        contains(done.stdout + done.stderr, why)
    c.root(["gcancel", str(job)])
    c.ended(job)
    shown = c.as_user(["gctl", "network", "show", "fraud"])
    for text in ("profile basic (default)", "10.77.0.2/32 tcp/5005 (store)", "profile web",
                 "the internet"):
        contains(shown.stdout, text, shown.stderr)
    contains(c.as_user(["gctl", "network", "show", "fraud"], user=c.users[1]).stderr,
             "there is no tenant fraud that you see")


POLICY = """
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: deny, namespace: vision}
spec: {podSelector: {}, policyTypes: [Ingress, Egress]}
---
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: store, namespace: vision}
spec:
  podSelector: {}
  policyTypes: [Egress]
  egress:
    - to: [{ipBlock: {cidr: 10.77.0.0/24, except: [10.77.0.1/32]}}]
      ports: [{protocol: TCP, port: 5005}]
"""


def case_f_policies(c):
    apply(c, POLICY)
    equal(open_of(c, "-p", "vision", user=c.users[1]), [f"{OUTSIDE}/5005"])
    refused = apply(c, POLICY.replace("podSelector: {}\n", "podSelector: {matchLabels: {a: b}}\n"),
                    status=1)
    contains(refused, "spec.podSelector: jobs have no labels to select by")
    equal(open_of(c, "-p", "vision", user=c.users[1]), [f"{OUTSIDE}/5005"], "after the refusal")


RING = """
import os, socket, time
rank, size = int(os.environ["SLURM_PROCID"]), int(os.environ["SLURM_NTASKS"])
nodes = os.environ["RING"].split()
here = socket.create_server(("", 29000 + rank), family=socket.AF_INET)
right = (rank + 1) % size
for _ in range(600):
    try:
        to = socket.create_connection((nodes[right], 29000 + right)); break
    except OSError: time.sleep(0.05)
back, _ = here.accept()
token = 0
for round in range(50):
    if rank == 0: to.sendall(b"%6d" % token)
    token = int(back.recv(6, socket.MSG_WAITALL)) + 1
    if rank != 0: to.sendall(b"%6d" % token)
if rank == 0: print("token", token, flush=True)
"""


def case_g_ring(c):
    """A ring of sockets over three nodes, and ranks that meet at MASTER_ADDR, without an option
    about networks."""
    ring = program(c, "ring", RING)
    job = c.submit("-p", "fraud", "-N", "3", "--ntasks-per-node=1", "-t", "3:00", script=(
        f"PATH={c.bin}/slurm:$PATH\n"
        "export RING=\"$(scontrol show hostnames $SLURM_JOB_NODELIST | tr '\\n' ' ')\"\n"
        f"grun python3 {ring}\necho status $?\n"))
    c.ended(job, "completed")
    contains(c.output(job), "status 0")
    contains(c.output(job), "token ")
    job_network_test.case_ranks_reduce(_InQueue(c, "fraud"))


class _InQueue:
    """The cluster, with jobs that go to a queue."""

    def __init__(self, c, queue):
        self.c, self.queue = c, queue

    def __getattr__(self, name):
        return getattr(self.c, name)

    def submit(self, *options, **more):
        return self.c.submit("-p", self.queue, *options, **more)


def case_h_mpi(c):
    """Open MPI over two nodes in a tenant's queue, without an option about networks."""
    if not mpi_test.COMPILER:
        cluster.pass_over("there is no mpicc.openmpi (libopenmpi-dev)")
        return
    out = mpi_test.run(_InQueue(c, "fraud"), ("-N2", "-n4"), f"srun --mpi=pmix {mpi_test.hello(c)}")
    equal(mpi_test.lines_of(4, out), [0, 1, 2, 3], out)
    equal(len(set(re.findall(r" on (\S+),", out))), 2, out)


FETCH = """
import urllib.request
for name in ("store.example", "other.example"):
    try:
        print(name, urllib.request.urlopen(f"http://{name}/x", timeout=5).read().decode())
    except OSError as e:
        print(name, getattr(e, "code", e))
"""


def case_j_names_of_hosts(c):
    """A proxy decides by the names of hosts; the job finds it in its environment, in place of one
    that came from where the job was submitted, and reaches nothing else."""
    fetch = program(c, "fetch", FETCH)
    job = c.submit("-n", "1", "-p", "fraud", "--network=job,packages",
                   "--export=http_proxy=http://10.0.0.1:1",
                   script=f"echo $HTTPS_PROXY $no_proxy\npython3 {fetch}\n")
    c.ended(job, "completed")
    out = c.output(job)
    assert re.match(r"http://10\.77\.0\.2:3128 localhost,127\.0\.0\.1,::1,node\d\n", out), out
    contains(out, "store.example fetched\nother.example 403\n")
    equal(open_of(c, "-p", "fraud", "--network=job,packages"), [], "beside the proxy")


def case_i_rate(c):
    done = c.as_user(["gbatch", "-p", "fraud", "--net=fast", "--wrap=true"])
    contains(done.stderr, "is not a rate of bits per second")
    done = c.as_user(["gbatch", "-p", "fraud", "--net=10M", "--network=none", "--wrap=true"])
    contains(done.stderr, "only the traffic of a job with a network of its own")
    job = c.submit("-n", "1", "-p", "fraud", "--net=20M", script="ip -s link show eth0; sleep 100\n")
    c.said(job, "eth0")
    spaces = subprocess.run(["find", c.state, "-path", f"*/network/{job}.*/net"],
                            capture_output=True, text=True, check=True).stdout.split()
    shaped = subprocess.run(["nsenter", f"--net={spaces[0]}", "tc", "qdisc", "show", "dev", "eth0"],
                            capture_output=True, text=True, check=False)
    contains(shaped.stdout, "rate 20600Kbit")
    c.root(["gcancel", str(job)])
    c.ended(job)


def left():
    """What a way out leaves on the machine, which is this test's namespace."""
    links = subprocess.run(["ip", "-o", "link"], capture_output=True, text=True,
                           check=True).stdout
    tables = subprocess.run(["nft", "list", "tables"], capture_output=True, text=True,
                            check=True).stdout
    return re.findall(r"gantry\d+", links) + tables.split()


def case_z_nothing_is_left(c):
    """A way out is there while the daemons run, also over a kill, and goes with them."""
    assert left(), "no way out was ever made"
    nodes = c.of_program("gantry-noded")
    for pid in nodes:
        c.kill_and_restart(pid)
    wait_for("the nodes", lambda: c.root(["ginfo", "-h", "-o", "%T"]).stdout.count("down") == 0)
    equal(open_of(c, "-p", "fraud"), [f"{OUTSIDE}/5005"], "after the kill")
    for pid in c.of_program("gantry-noded"):
        argv = c.daemons.pop(pid)
        os.kill(pid, 15)
        wait_for("the end of a daemon", lambda: not cluster.alive(pid) or [
            child.poll() for child in c.children] and not cluster.alive(pid))
        c.restart = getattr(c, "restart", []) + [argv]
    wait_for("nothing to be left", lambda: not left(), 20)
    for argv in c.restart:
        c.spawn(argv)


def set_up():
    """Makes the world behind the machine; returns the process that is it."""
    sh = lambda command: subprocess.run(command, shell=True, check=True)
    sh("ip link set lo up; sysctl -qw net.ipv4.ip_forward=1 net.ipv6.conf.all.forwarding=1")
    world = subprocess.Popen(
        ["unshare", "-n", "sh", "-c", "read go; exec python3 -c \"$WORLD\""], text=True,
        env=dict(os.environ, WORLD=WORLD), stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    wait_for("the other namespace", lambda: os.readlink(f"/proc/{world.pid}/ns/net") !=
             os.readlink("/proc/self/ns/net"))
    sh(f"ip link add up0 type veth peer name down0 netns {world.pid}")
    sh("ip address add 10.77.0.1/24 dev up0; ip address add fd77::1/64 dev up0 nodad;"
       " ip link set up0 up; ip route add default via 10.77.0.2")
    into = f"nsenter -t {world.pid} -n "
    for command in ("ip link set lo up", "ip link set down0 up",
                    "ip address add 10.77.0.2/24 dev down0", "ip address add 1.2.3.4/32 dev down0",
                    "ip address add fd77::2/64 dev down0 nodad"):
        sh(into + command)
    world.stdin.write("go\n")
    world.stdin.flush()
    equal(world.stdout.readline(), "ready\n")
    return world


def name_servers(start):
    """The cluster's start, with the name server of the world in its configuration."""
    def begin(c):
        start(c)
        path = f"{c.state}/gantry.yaml"
        with open(path, encoding="utf-8") as f:
            text = f.read()
        with open(path, "w", encoding="utf-8") as f:
            f.write(text.replace("\nnoded:\n", f"\nnoded:\n  resolvers: [{OUTSIDE}]\n", 1))
        for pid in c.of_program("gantry-noded"):
            c.kill_and_restart(pid)
        wait_for("the nodes", lambda: "idle" in c.root(["ginfo", "-h", "-o", "%T"]).stdout)
        return c
    return begin


if __name__ == "__main__":
    if why := cluster.cannot_run() or job_network_test.missing():
        print(f"passed over: {why}")
        sys.exit(cluster.SKIPPED)
    if shutil.which("nft") is None or shutil.which("unshare") is None:
        print("passed over: there is no nft or unshare")
        sys.exit(cluster.SKIPPED)
    if "GANTRY_IN_SPACE" not in os.environ:
        os.environ["GANTRY_IN_SPACE"] = "1"
        os.execvp("unshare", ["unshare", "-n", sys.executable, "-B"] + sys.argv)
    WORLD_PROCESS = set_up()
    cluster.Cluster.start = name_servers(cluster.Cluster.start)
    try:
        STATUS = cluster.main(__doc__, globals(), "netprof", nodes=3, users=2)
    finally:
        WORLD_PROCESS.stdin.close()
        WORLD_PROCESS.wait(timeout=10)
    sys.exit(STATUS)
