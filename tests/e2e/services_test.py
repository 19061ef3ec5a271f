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
import re
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
RATE = 1200  # requests a second of a load, if the machine can
SERVER = '''
import asyncio, os, sys
body = (sys.argv[1] + " " + os.environ["SLURM_JOB_ID"]).encode()
answer = b"HTTP/1.1 200 OK\\r\\ncontent-length: %d\\r\\n\\r\\n%s" % (len(body), body)
async def serve(reader, writer):
    try:
        while await reader.readuntil(b"\\r\\n\\r\\n"):
            writer.write(answer)
            await writer.drain()
    except (asyncio.IncompleteReadError, ConnectionError):
        pass
    finally:
        writer.close()
async def main():
    server = await asyncio.start_server(serve, "127.0.0.1", int(os.environ["PORT"]), backlog=128)
    await server.serve_forever()
asyncio.run(main())
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
    """Requests at a rate to some services, on a connection that is kept; every answer but 200 is noted."""

    def __init__(self, port, hosts, rate):
        super().__init__(daemon=True)
        self.port, self.hosts, self.rate, self.going = port, hosts, rate, True
        self.answers = collections.Counter()
        self.bad = []

    def ask(self, connection, host):
        connection.sendall(b"GET / HTTP/1.1\r\nHost: %s\r\n\r\n" % host.encode())
        got = b""
        while b"\r\n\r\n" not in got:
            piece = connection.recv(65536)
            if not piece:
                raise OSError("the connection was closed")
            got += piece
        head, body = got.split(b"\r\n\r\n", 1)
        fields = dict(line.lower().split(b": ", 1) for line in head.split(b"\r\n")[1:])
        while len(body) < int(fields[b"content-length"]):
            body += connection.recv(65536)
        status, text = int(head.split(b" ", 2)[1]), body.decode()
        if status != 200:
            self.bad.append((time.time(), host, status, text[:80]))
        self.answers[text.split()[0] if text else ""] += 1
        return fields.get(b"connection") != b"close"

    def run(self):
        connection, began, at = None, time.monotonic(), 0
        while self.going:
            at += 1
            host = self.hosts[at % len(self.hosts)]
            time.sleep(max(0, began + at / self.rate - time.monotonic()))
            try:
                if connection is None:
                    connection = socket.create_connection(("127.0.0.1", self.port), 60)
                    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                if not self.ask(connection, host):
                    connection = None
            except OSError as error:
                self.bad.append((time.time(), host, repr(error)))
                connection = None


class Loads:
    def __init__(self, c, hosts, count=4):
        self.threads = [Load(c.gate_port, hosts[i % len(hosts):] + hosts[:i % len(hosts)], RATE / count) for i in range(count)]
        self.began = time.monotonic()
        for thread in self.threads:
            thread.start()

    def stop(self):
        for thread in self.threads:
            thread.going = False
        for thread in self.threads:
            thread.join(70)
        took = time.monotonic() - self.began
        count = sum(sum(t.answers.values()) for t in self.threads)
        print(f"    {count} requests in {took:.0f} s, {count / took:.0f} a second", flush=True)
        return count, [b for t in self.threads for b in t.bad]


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
    TOP, SERVER_PATH = c.out, f"{c.out}/answers.py"
    with open(SERVER_PATH, "w", encoding="ascii") as f:
        f.write(SERVER)
    c.gate_port = free_port()
    config = f"{c.state}/gantry.yaml"
    text = cluster.text(config)
    text += f"\ngate:\n  name: g1\n  listen: [127.0.0.1:{c.gate_port}]\n  state_dir: {c.state}/gate\n"
    c.http = free_port()
    tokens = f"{c.state}/metrics.tokens"
    with open(tokens, "w", encoding="ascii", opener=lambda path, flags: os.open(path, flags, 0o600)) as f:
        f.write("fraud reads-what-is-of-fraud\n* reads-what-is-of-all\n")
    text = text.replace("\ncontroller:\n", f"\ncontroller:\n  service_port: {20000 + os.getpid() % 20000}\n"
                        f"  identity_issuer: https://gantry.example\n  metrics_port: {c.http}\n  metrics_tokens: {tokens}\n", 1)
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


def token(c, *options, user=None):
    return c.as_user(["gctl", "token", *options], user=user)


def case_1b_tokens_of_people(c):
    apply(c, document("closed").replace("access: open", "access: tenant"))
    wait_for("a ready replica", lambda: row(c, "closed")["ready"] == 1)

    def status(text):
        connection = http.client.HTTPConnection("127.0.0.1", c.gate_port, timeout=60)
        connection.request("GET", "/", headers={"Host": "closed.example", "Authorization": f"Bearer {text}"})
        return connection.getresponse().status
    equal(ask(c.gate_port, "closed.example")[0], 401, "without a token")
    for audience in ("closed", "gantry-services"):
        equal(status(token(c, "--audience", audience).stdout.strip()), 200, audience)
    equal(status(token(c, "--audience", "hello").stdout.strip()), 401, "another service's")
    short = token(c, "--audience", "closed", "-t", "0:00:02").stdout.strip()
    equal(status(short), 200, "before its end")
    wait_for("its end", lambda: status(short) == 401, 10)
    made = json.loads(token(c, "--audience", "closed", "--json").stdout)
    equal((made["user"], made["tenant"]), (c.user, "fraud"))
    rest = token(c, "-t", "5").stdout.strip().removeprefix("GANTRY_TOKEN=")
    equal(status(rest), 401, "a token for commands is none for services")
    done = subprocess.run(["gqueue"], env=dict(c.env, GANTRY_TOKEN=made["token"]), capture_output=True, text=True, check=False)
    equal(done.returncode, 1, "an identity token gives no right at the controller")
    contains(token(c, "--audience", "closed", user=c.users[1]).stderr, "may submit to no tenant")
    contains(token(c, "--audience", "closed", "--tenant", "fraud", user=c.users[1]).stderr, "may not submit to tenant fraud")
    contains(token(c, "--audience", "nothing").stderr, "there is no service nothing that tenant fraud may call")
    contains(token(c, "--audience", "closed", "--user", c.users[1]).stderr, "for oneself")
    contains(token(c, "--tenant", "fraud").stderr, "--tenant belongs to --audience")


def case_1c_metrics(c):
    def read(token):
        asked = http.client.HTTPConnection("127.0.0.1", c.http, timeout=20)
        asked.request("GET", "/metrics", headers={"Authorization": f"Bearer {token}"})
        return asked.getresponse().read().decode()
    wait_for("the sample of the requests",
             lambda: 'gantry_service_requests_total{tenant="fraud",service="hello"} 0\n' not in read("reads-what-is-of-all"))
    text = read("reads-what-is-of-fraud")
    checked = subprocess.run(["promtool", "check", "metrics"], input=text, capture_output=True, text=True, check=False)
    equal((checked.returncode, checked.stdout + checked.stderr), (0, ""), "promtool")
    contains(text, 'gantry_service_replicas{tenant="fraud",service="hello",state="ready"} 1')
    contains(text, 'gantry_service_target_seconds{tenant="fraud",service="hello"} 1')
    contains(text, 'gantry_service_response_seconds_bucket{tenant="fraud",service="hello",le="+Inf"}')
    equal("gantry_gate_silent_seconds" in text, False, "gates are the site's")
    contains(read("reads-what-is-of-all"), 'gantry_gate_silent_seconds{gate="g1"}')
    board = json.loads(cluster.text(f"{os.path.dirname(os.path.abspath(__file__))}/../../docs/examples/grafana/services.json"))
    known = {line.split()[2] for line in read("reads-what-is-of-all").splitlines() if line.startswith("# TYPE")}
    known |= {f"{name}{part}" for name in known for part in ("_bucket", "_count", "_sum")}
    asked = {word for panel in board["panels"] for target in panel["targets"] for word in re.findall(r"gantry_\w+", target["expr"])}
    equal(c.as_user(["gtenant", "delete", "-y", "Service", "closed"]).returncode, 0)
    equal(asked - known - {"gantry_service_cost_per_hour", "gantry_service_cost_per_1000_requests"}, set(), "the board's metrics")


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


STANDIN = '''
"""Stands in for a model server: it has its flags and the paths of its probes, and nothing else."""
import argparse, http.server, sys
flags = argparse.ArgumentParser()
for flag in sys.argv[2].split(","):
    flags.add_argument(flag, required=True)
paths, (given, _) = sys.argv[1].split(","), flags.parse_known_args(sys.argv[3:])
class Answers(http.server.BaseHTTPRequestHandler):
    def log_message(self, *_): pass
    def do_GET(self):
        self.send_response(200 if self.path in paths else 404)
        self.send_header("content-length", "0")
        self.end_headers()
values = vars(given)
port = int(values.get("port") or values.get("http_port"))
http.server.ThreadingHTTPServer((values.get("host") or values.get("http_address"), port), Answers).serve_forever()
'''
SERVERS = {  # name of the service: its example, what is asked of it, its stand-in: program, paths, flags
    "vision": ("triton", "/v2/health/ready", "tritonserver", "/v2/health/ready,/v2/health/live",
               "--model-repository,--http-port,--http-address,--exit-on-error"),
    "chat": ("vllm", "/health", "vllm/entrypoints/openai/api_server.py", "/health", "--host,--port,--model,--max-num-seqs"),
    "rank": ("ray", "/-/healthz", "serve", "/-/healthz", "--host,--port"),
    "hello": ("http", "/", None, None, None),
}


def example(name):
    """An example's document, open to all, without image and GPUs, which this cluster does not have."""
    folder = f"{os.path.dirname(os.path.abspath(__file__))}/../../docs/examples/services"
    text = cluster.text(f"{folder}/{name}.yaml")
    text = re.sub(r"\n    (image|environment):.*", "", text)
    text = re.sub(r"\n      (one|two|small|large|slice|whole): .*", "", text)
    text = re.sub(r"least: 0", "least: 1", text)
    text = re.sub(r"\n    directory:.*", "", text)
    return text.replace("\n    shapes:", f"""
    directory: {TOP}
    environment: {{PATH: "{TOP}/standins:/usr/bin:/bin", PYTHONPATH: {TOP}/standins, BATCH_MOST: "16", BATCH_WAIT_MS: "50"}}
    shapes:
      small: {{cpus: 1, memory: 600Mi}}""").replace("\nversions:", "\naccess: open\nversions:" if "access: open" not in text else "\nversions:")


def case_3b_examples_of_model_servers(c):
    top = f"{c.out}/standins"
    os.makedirs(f"{top}/vllm/entrypoints/openai")
    with open(f"{top}/standin.py", "w", encoding="ascii") as f:
        f.write(STANDIN)
    with open(f"{top}/ray", "w", encoding="ascii") as f:
        f.write("#!/bin/sh\nexec true\n")
    os.chmod(f"{top}/ray", 0o755)
    for _, _, program, paths, flags in SERVERS.values():
        if program is None:
            continue
        with open(f"{top}/{program}", "w", encoding="ascii") as f:
            if program.endswith(".py"):
                f.write(f"import os, sys\nos.execv('/usr/bin/python3', ['python3', '{top}/standin.py', '{paths}', '{flags}', *sys.argv[1:]])\n")
            else:
                f.write(f"#!/bin/sh\nexec python3 {top}/standin.py '{paths}' '{flags}' \"$@\"\n")
        os.chmod(f"{top}/{program}", 0o755)
    equal(c.as_user(["gtenant", "delete", "-y", "Service", "hello"]).returncode, 0)
    for name, (file, path, *_) in SERVERS.items():
        apply(c, example(file))
        try:
            wait_for(f"{name} to be ready", lambda name=name: row(c, name)["ready"] == 1 and not row(c, name).get("rollout"), 60)
        except AssertionError:
            print(c.as_user(["gctl", "service", "show", name]).stdout, flush=True)
            raise
        equal(ask(c.gate_port, f"{name}.fraud", path)[0], 200, f"{name}{path}")
        equal(c.as_user(["gtenant", "delete", "-y", "Service", name]).returncode, 0)
    apply(c, document("hello"))


def case_3c_pytorch_answers_in_batches(c):
    if subprocess.run(["/usr/bin/python3", "-c", "import torch"], capture_output=True, check=False).returncode != 0:
        cluster.pass_over("python3-torch is not installed")
        return
    folder = f"{os.path.dirname(os.path.abspath(__file__))}/../../docs/examples/services"
    with open(f"{TOP}/serve.py", "w", encoding="ascii") as f:
        f.write(cluster.text(f"{folder}/digits/serve.py"))
    apply(c, example("pytorch"))
    wait_for("the model to be ready", lambda: row(c, "digits")["ready"] == 1, 90)
    got = []

    def post(body):
        connection = http.client.HTTPConnection("127.0.0.1", c.gate_port, timeout=60)
        connection.request("POST", "/predict", json.dumps(body), {"Host": "digits.fraud"})
        answer = connection.getresponse()
        got.append((answer.status, json.loads(answer.read())))
    asking = [threading.Thread(target=post, args=([i] * 64,)) for i in range(8)]
    for thread in asking:
        thread.start()
    for thread in asking:
        thread.join()
    equal({status for status, _ in got}, {200}, got)
    equal(max(said["batch"] for _, said in got) > 1, True, f"several requests in one run of the model: {got}")
    post([1, 2])
    equal(got[-1][0], 400)
    equal(c.as_user(["gtenant", "delete", "-y", "Service", "digits"]).returncode, 0)


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
