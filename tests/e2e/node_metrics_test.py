#!/usr/bin/env python3
"""Metrics of a node over HTTP: with a token of a tenant its own running jobs and nothing of the
node, with that of all everything; what a job did with its processor and its network is counted.

usage: node_metrics_test.py BIN_DIR [-k CASE] [--keep]
"""
import os
import re
import shutil
import socket
import subprocess
import sys
import urllib.error
import urllib.request

import cluster
from cluster import contains, equal, wait_for

DOCUMENTS = """\
apiVersion: gantry/v1
kind: Tenant
name: fraud
roles: {user: {users: [%s]}}
---
apiVersion: gantry/v1
kind: Tenant
name: search
roles: {user: {users: [%s]}}
"""
TOKENS = {"fraud": "token-of-fraud-0001", "search": "token-of-search-001",
          "*": "token-of-all-000001"}
# Works for a moment, is refused by its network, and stays.
BUSY = """
import os, socket, time
until = time.process_time() + 0.5
while time.process_time() < until:
    pass
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
for _ in range(5):
    try:
        s.sendto(b"x", ("10.255.255.1", 9))
    except OSError:
        pass
print("done", flush=True)
time.sleep(300)
"""


def free_ports():
    """A port whose follower is free too."""
    while True:
        with socket.socket() as one, socket.socket() as two:
            one.bind(("127.0.0.1", 0))
            port = one.getsockname()[1]
            try:
                two.bind(("127.0.0.1", port + 1))
            except OSError:
                continue
            return port


def get(port, token=None, path="/metrics"):
    request = urllib.request.Request(f"http://127.0.0.1:{port}{path}")
    if token:
        request.add_header("Authorization", f"Bearer {token}")
    try:
        with urllib.request.urlopen(request, timeout=20) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()
    except urllib.error.URLError as error:
        return 0, str(error)


def value(text, name, **labels):
    """The value of the only series of this name with these labels; None if there is none."""
    found = []
    for line in text.splitlines():
        series = re.fullmatch(r"(\w+)\{(.*)\} (\S+)", line)
        if series and series.group(1) == name and all(
                f'{key}="{wanted}"' in series.group(2).split(",") for key, wanted in labels.items()):
            found.append(float(series.group(3)))
    assert len(found) < 2, f"{name}{labels}: {found}"
    return found[0] if found else None


def restart_nodes(c):
    for node in ("node1", "node2"):
        c.kill_and_restart(c.daemon(node))
    wait_for("the nodes", lambda: c.root(["ginfo", "-h", "-o", "%T"]).stdout.count("down") == 0)


def case_0_set_up(c):
    c.port, tokens = free_ports(), f"{c.top}/node.tokens"
    with open(os.open(tokens, os.O_WRONLY | os.O_CREAT, 0o600), "w", encoding="ascii") as file:
        file.write("".join(f"{tenant} {token}\n" for tenant, token in TOKENS.items()))
    config = f"{c.state}/gantry.yaml"
    text = cluster.text(config)
    contains(text, "\nnoded:\n", "gantry.yaml")
    with open(config, "w", encoding="ascii") as file:
        file.write(text.replace("\nnoded:\n", f"\nnoded:\n  metrics_port: {c.port}\n"
                                              f"  metrics_tokens: {tokens}\n", 1))
    restart_nodes(c)
    path = f"{c.top}/documents.yaml"
    with open(path, "w", encoding="ascii") as file:
        file.write(DOCUMENTS % (c.users[0], c.users[1]))
    done = c.root(["gtenant", "apply", "-y", "-f", path])
    equal(done.returncode, 0, done.stdout + done.stderr)


def case_1_tokens(c):
    for port in (c.port, c.port + 1):
        wait_for("the metrics", lambda p=port: get(p, TOKENS["*"])[0] == 200)
    equal(get(c.port)[0], 401, "without a token")
    equal(get(c.port, "token-of-nobody-01")[0], 401, "with a wrong one")
    equal(get(c.port, TOKENS["*"], "/usage")[0], 404, "elsewhere")
    contains(get(c.port, TOKENS["*"])[1], 'gantry_node_cpus{node="node1"}')
    contains(get(c.port + 1, TOKENS["*"])[1], 'gantry_node_cpus{node="node2"}')
    equal(get(c.port, TOKENS["fraud"]), (200, ""), "a tenant without a job")


def case_2_jobs(c):
    busy = f"{c.out}/busy.py"
    with open(busy, "w", encoding="utf-8") as file:
        file.write(BUSY)
    os.chmod(busy, 0o644)
    jobs = {}
    for tenant, user in zip(("fraud", "search"), c.users):
        jobs[tenant] = c.submit("-p", tenant, "-w", "node1", "--time=5:00", user=user,
                                script=f"python3 {busy}\n")
    for job in jobs.values():
        wait_for("it to be done with its work", lambda j=job: "done" in c.output(j))
    for tenant, user in zip(("fraud", "search"), c.users):
        labels = {"job": jobs[tenant], "tenant": tenant, "user": user, "node": "node1"}
        wait_for("what it has used", lambda t=tenant, l=labels: (value(
            get(c.port, TOKENS[t])[1], "gantry_job_cpu_seconds_total", **l) or 0) > 0.4)
        text = get(c.port, TOKENS[tenant])[1]
        assert value(text, "gantry_job_memory_bytes", **labels) > 0, text
        equal(value(text, "gantry_job_memory_limit_bytes", **labels), 40 * 2**20, "its limit")
        assert "gantry_node_" not in text, text
        equal(set(re.findall(r'tenant="(\w*)"', text)), {tenant}, "tenants that it is told of")
        if "gantry_job_network_bytes_total" in text:
            assert value(text, "gantry_job_network_bytes_total", direction="sent", **labels) > 0
            assert value(text, "gantry_job_network_refused_packets_total", **labels) >= 5, text
    text = get(c.port, TOKENS["*"])[1]
    equal(set(re.findall(r'tenant="(\w*)"', text)), {"fraud", "search"}, "tenants of all")
    equal(value(text, "gantry_node_jobs"), 2, "jobs of node1")
    if "gantry_job_network_bytes_total" in text:
        assert value(text, "gantry_node_network_dropped_packets_total", cause="denied") >= 10, text
    equal(value(get(c.port + 1, TOKENS["*"])[1], "gantry_node_jobs"), 0, "jobs of node2")
    # A daemon that was killed knows whose its jobs are.
    restart_nodes(c)
    wait_for("its jobs", lambda: value(get(c.port, TOKENS["fraud"])[1],
                                       "gantry_job_cpu_seconds_total", job=jobs["fraud"]))
    for job in jobs.values():
        c.root(["gcancel", str(job)])
        c.ended(job)
    wait_for("nothing to be told", lambda: get(c.port, TOKENS["fraud"])[1] == "")


def case_3_promtool(c):
    if not shutil.which("promtool"):
        cluster.pass_over("there is no promtool: ./dev setup")
        return
    done = subprocess.run(["promtool", "check", "metrics"], check=False, capture_output=True,
                          text=True, input=get(c.port, TOKENS["*"])[1], timeout=60)
    equal((done.returncode, done.stdout, done.stderr), (0, "", ""), "promtool check metrics")


if __name__ == "__main__":
    sys.exit(cluster.main(__doc__, globals(), name="nodemetrics", nodes=2, users=2))
