#!/usr/bin/env python3
"""Services on a real cluster, with a gate and HAProxy: requests are answered while versions are rolled out, and while
replicas, node daemons, the gate and the controller are killed; from zero and back; and nothing is left.

With GANTRY_LONG set there are ten services, 100 rollouts and 30 kills; else a few of each.

usage: services_test.py BIN_DIR [-k CASE] [--keep]
"""
import collections
import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time

import cluster
from cluster import contains, equal, wait_for

LONG = "GANTRY_LONG" in os.environ
SERVICES = 10 if LONG else 3
ROLLOUTS = 100 if LONG else 6
KILLS = 30 if LONG else 8
SERVER = '''
import os, sys, http.server, socket
class Answers(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def setup(self):
        super().setup()
        self.request.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    def log_message(self, *_): pass
    def do_GET(self):
        body = (sys.argv[1] + " " + os.environ["SLURM_JOB_ID"]).encode()
        self.send_response(200)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
class Server(http.server.ThreadingHTTPServer):
    request_queue_size = 128
Server(("127.0.0.1", int(os.environ["PORT"])), Answers).serve_forever()
'''


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def document(name, text="one", least=1, most=2, more=""):
    return f"""apiVersion: gantry/v1
kind: Service
name: {name}
tenant: fraud
hosts: [{name}.example]
access: open
promise: {{target: 1s, percentile: 95}}
concurrency: 32
wait: 30s
repeat: true
ready: {{path: /, interval: 1s}}
startup: 40s
drain: 10s
versions:
  v1:
    command: exec python3 {SERVER_PATH} {text}
    directory: {TOP}
    shapes:
      small: {{cpus: 1, memory: 64Mi}}
scale: {{least: {least}, most: {most}, idle: 2s, down_after: 2s}}
{more}"""


TOP = SERVER_PATH = ""  # set by case_0


def apply(c, text, status=0):
    done = c.as_user(["gtenant", "apply", "-y", "-f", "-"], input=text)
    equal(done.returncode, status, f"gtenant apply: {done.stdout}{done.stderr}")
    return done.stdout + done.stderr


def row(c, name):
    done = c.as_user(["gctl", "service", "show", "--json", name])
    equal(done.returncode, 0, done.stderr)
    return json.loads(done.stdout)["rows"][0]


def ask(port, host, path="/", timeout=60):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=timeout)
    try:
        connection.request("GET", path, headers={"Host": host})
        answer = connection.getresponse()
        return answer.status, answer.read().decode()
    finally:
        connection.close()


class Load(threading.Thread):
    """Requests without a pause to some services, on connections that are kept; every answer but 200 is noted."""

    def __init__(self, port, hosts):
        super().__init__(daemon=True)
        self.port, self.hosts, self.going = port, hosts, True
        self.answers = collections.Counter()
        self.bad = []

    def run(self):
        connection, at = None, 0
        while self.going:
            at += 1
            host = self.hosts[at % len(self.hosts)]
            try:
                if connection is None:
                    connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
                connection.request("GET", "/", headers={"Host": host})
                answer = connection.getresponse()
                text = answer.read().decode()
                if answer.status != 200:
                    self.bad.append((time.time(), host, answer.status, text[:80]))
                self.answers[text.split()[0] if text else ""] += 1
            except OSError as error:
                self.bad.append((time.time(), host, repr(error)))
                connection = None
            except http.client.HTTPException as error:
                self.bad.append((time.time(), host, repr(error)))
                connection = None


class Loads:
    def __init__(self, c, hosts, count=4):
        self.threads = [Load(c.gate_port, hosts[i % len(hosts):] + hosts[:i % len(hosts)]) for i in range(count)]
        for thread in self.threads:
            thread.start()

    def stop(self):
        for thread in self.threads:
            thread.going = False
        for thread in self.threads:
            thread.join(70)
        return sum(sum(t.answers.values()) for t in self.threads), [b for t in self.threads for b in t.bad]


def start_gate(c):
    log = open(f"{c.top}/gate.log", "ab")  # the gate keeps it
    c.gate = subprocess.Popen([f"{c.bin}/gantry-gate", "--config", f"{c.state}/gantry.yaml"], env=c.env, stdin=subprocess.DEVNULL,
                              stdout=log, stderr=log, start_new_session=True)
    c.children.append(c.gate)
    c.daemons[c.gate.pid] = [b"gantry-gate"]


def case_0_set_up(c):
    global TOP, SERVER_PATH
    if not os.path.exists("/usr/sbin/haproxy"):
        print("HAProxy is not installed")
        sys.exit(cluster.SKIPPED)
    TOP, SERVER_PATH = c.out, f"{c.out}/serve.py"
    with open(SERVER_PATH, "w", encoding="ascii") as f:
        f.write(SERVER)
    c.gate_port = free_port()
    config = f"{c.state}/gantry.yaml"
    text = cluster.text(config)
    text += f"\ngate:\n  name: g1\n  listen: [127.0.0.1:{c.gate_port}]\n  state_dir: {c.state}/gate\n"
    text = text.replace("\ncontroller:\n", f"\ncontroller:\n  service_port: {20000 + os.getpid() % 20000}\n", 1)
    with open(config, "w", encoding="ascii") as f:
        f.write(text)
    c.kill_and_restart(c.daemon("ctld"))
    wait_for("the controller", lambda: c.root(["gctl", "ping"]).returncode == 0)
    start_gate(c)
    done = c.root(["gtenant", "apply", "-y", "-f", "-"], input=f"""apiVersion: gantry/v1
kind: Tenant
name: fraud
quota: {{cpu: 64, memory: 64Gi}}
roles:
  tenant-admin: {{users: [{c.user}]}}
""")
    equal(done.returncode, 0, done.stderr)


def case_1_a_document_is_answered(c):
    apply(c, document("hello"))
    wait_for("a ready replica", lambda: row(c, "hello")["ready"] == 1)
    status, text = ask(c.gate_port, "hello.example")
    equal((status, text.split()[0]), (200, "one"))
    equal(ask(c.gate_port, "nobody.example")[0], 404, "a host that no service has")
    shown = c.as_user(["gctl", "service", "show", "hello"]).stdout
    contains(shown, "replicas  1 wanted, 1 ready")
    contains(c.as_user(["gctl", "service", "why", "hello"]).stdout, "1 of 1 replicas are ready: ")
    contains(c.as_user(["gctl", "service", "list"]).stdout, "hello")
    job = text.split()[1]
    contains(c.as_user(["gctl", "show", "job", job]).stdout, "service=hello")
    contains(c.as_user(["gtenant", "apply", "-y", "-f", "-"], input=document("hello")).stdout, "0 to create, 0 to change")


def case_2_bad_documents_and_strangers(c):
    for wrong, said in ((document("x").replace("1s, percentile", "0s, percentile"), "promise.target"),
                        (document("x").replace("fraud", "nobody"), "nobody"),
                        (document("x").replace("least: 1, most: 2", "least: 3, most: 2"), "scale.least"),
                        (document("x").replace("x.example", "hello.example"), "same host"),
                        (document("x").replace("cpus: 1", "cpus: 0"), "cpus"),
                        (document("x").replace("drain: 10s", "dran: 10s"), "drain")):
        contains(apply(c, wrong, status=1), said)
    other = c.users[1]
    done = c.as_user(["gtenant", "apply", "-y", "-f", "-"], user=other, input=document("mine"))
    equal(done.returncode, 1, done.stdout)
    equal(c.as_user(["gctl", "service", "show", "hello"], user=other).returncode, 1)
    contains(c.as_user(["gctl", "service", "pause", "hello"], user=other).stderr, "there is no service hello")
    equal(c.as_user(["gctl", "service", "rollback", "hello"]).returncode, 1)


def case_3_from_zero_and_back(c):
    apply(c, document("sleepy", least=0))
    equal(row(c, "sleepy")["wanted"], 0)
    wait_for("the gate to know it", lambda: ask(c.gate_port, "sleepy.example")[0] == 200)
    wait_for("zero", lambda: not row(c, "sleepy").get("replicas"))
    began = time.monotonic()
    status, text = ask(c.gate_port, "sleepy.example")
    took = time.monotonic() - began
    equal((status, text.split()[0]), (200, "one"))
    print(f"    the first answer from zero came after {took:.2f} s", flush=True)
    wait_for("zero again", lambda: row(c, "sleepy")["wanted"] == 0)
    wait_for("no replica", lambda: not row(c, "sleepy").get("replicas"))


def names():
    return [f"model{i}" for i in range(SERVICES)]


def case_4_rollouts_lose_no_request(c):
    apply(c, "---\n".join(document(name, most=1) for name in names()))
    for name in names():
        wait_for(f"{name} to be ready", lambda name=name: row(c, name)["ready"] == 1)
    load = Loads(c, [f"{name}.example" for name in names()])
    kinds = ("rolling", "blue-green", "canary")
    for i in range(ROLLOUTS):
        name = names()[i % SERVICES]
        kind = kinds[i % len(kinds)]
        apply(c, document(name, text=f"text{i}", most=1, more=f"rollout: {{kind: {kind}, step: 50, pause: 1s}}\n"))
        wait_for(f"the end of rollout {i} ({kind}) of {name}",
                 lambda name=name: not row(c, name).get("rollout") and row(c, name)["ready"] >= 1)
        text = wait_for("the new text", lambda name=name, i=i: ask(c.gate_port, f"{name}.example")[1].split()[0] == f"text{i}")
        equal(text, True)
    count, bad = load.stop()
    print(f"    {ROLLOUTS} rollouts under {count} requests", flush=True)
    equal(bad, [], "requests that failed")


def kill(c, what):
    if what == "replica":
        pids = [pid for pid, argv in cluster.processes().items() if SERVER_PATH.encode() in argv and cluster.program(argv).startswith("python")]
        environment = cluster.read(f"/proc/{pids[0]}/environ").split(b"\0")
        job = next(int(e.split(b"=")[1]) for e in environment if e.startswith(b"SLURM_JOB_ID="))
        os.kill(pids[0], signal.SIGKILL)
        wait_for("its job to be replaced", lambda: not any(r["job"] == job for name in ["hello", *names()] for r in row(c, name).get("replicas", [])))
    elif what == "node":
        c.kill_and_restart(c.daemon("node1"))
    elif what == "controller":
        c.kill_and_restart(c.daemon("ctld"))
        wait_for("the controller", lambda: c.root(["gctl", "ping"]).returncode == 0)
    elif what == "gate":
        pid = c.gate.pid
        os.kill(pid, signal.SIGKILL)
        c.gate.wait()
        c.daemons.pop(pid)
        start_gate(c)


def case_5_kills_lose_no_request(c):
    least = 2
    for name in names():
        apply(c, document(name, least=least, most=2))
    for name in names():
        wait_for(f"{name} to be ready", lambda name=name: row(c, name)["ready"] >= least and not row(c, name).get("rollout"))
    load = Loads(c, [f"{name}.example" for name in names()])
    for i in range(KILLS):
        what = ("replica", "gate", "controller", "node")[i % 4]
        kill(c, what)
        for name in names():
            wait_for(f"{name} to be ready after the kill of a {what}", lambda name=name: row(c, name)["ready"] >= least)
    count, bad = load.stop()
    print(f"    {KILLS} kills under {count} requests", flush=True)
    equal(bad, [], "requests that failed")


def case_6_nothing_is_left(c):
    for name in ["hello", "sleepy", *names()]:
        done = c.as_user(["gtenant", "delete", "-y", "Service", name])
        equal(done.returncode, 0, done.stdout + done.stderr)
    wait_for("no service", lambda: "no services" in c.as_user(["gctl", "service", "list"]).stdout)
    wait_for("no job", lambda: not c.root(["gqueue", "-h"]).stdout.strip())
    os.kill(c.gate.pid, signal.SIGTERM)
    c.gate.wait(timeout=30)
    c.daemons.pop(c.gate.pid)
    wait_for("no HAProxy of ours", lambda: not [p for p, argv in cluster.processes().items() if f"{c.state}/gate".encode() in b"\0".join(argv)])
    equal(ask_fails(c), True, "the gate's port is closed")


def ask_fails(c):
    try:
        ask(c.gate_port, "hello.example", timeout=2)
        return False
    except OSError:
        return True


if __name__ == "__main__":
    sys.exit(cluster.main(__doc__, globals(), "services", nodes=12 if LONG else 4, users=2))
