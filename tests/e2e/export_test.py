#!/usr/bin/env python3
"""Data that other programs read from the controller: metrics over HTTP with a token for each
tenant, a real Prometheus that scrapes them, the file of usage events and the webhook, across kill
-9; also a budget for which a real job waits. Everything is on loopback. promtool and prometheus are
Debian's; the cases that need them report it if they are missing.

usage: export_test.py BIN_DIR [-k CASE] [--keep]
"""
import http.server
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import urllib.error
import urllib.parse
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
---
apiVersion: gantry/v1
kind: PriceBook
name: base
currency: EUR
cpu: 3600
---
apiVersion: gantry/v1
kind: Budget
name: fraud-month
tenant: fraud
amount: 1000
"""
TOKENS = {"fraud": "token-of-fraud-0001", "search": "token-of-search-001",
          "*": "token-of-all-000001"}
HOOK = []  # bodies that the webhook received
REFUSED = [2]  # how many requests the webhook answers with 503 before it accepts one


class Hook(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if REFUSED[0] > 0:
            REFUSED[0] -= 1
            self.send_response(503)
        else:
            HOOK.append(body)
            self.send_response(204)
        self.end_headers()

    def log_message(self, *_):
        pass


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def get(c, path, token=None):
    request = urllib.request.Request(f"http://127.0.0.1:{c.http}{path}")
    if token:
        request.add_header("Authorization", f"Bearer {token}")
    try:
        with urllib.request.urlopen(request, timeout=20) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def run(c, *command, user=None, status=0):
    done = c.as_user(list(command), user=user) if user else c.root(list(command))
    equal(done.returncode, status, f"{' '.join(command)}: {done.stdout}{done.stderr}")
    return done.stdout + done.stderr


def restart(c):
    c.kill_and_restart(c.daemon("ctld"))
    wait_for("the controller", lambda: c.root(["ginfo"]).returncode == 0)


def lines(c):
    with open(c.usage, encoding="ascii") as file:
        return [json.loads(line) for line in file]


def tenants_of(metrics):
    return {part.split('"')[1] for line in metrics.splitlines() if "{" in line and line[0] != "#"
            for part in line.split("{", 1)[1].split(",") if part.startswith("tenant=")}


def case_0_set_up(c):
    """Adds the exports to the cluster's configuration, applies the documents, restarts the
    controller."""
    c.http, c.usage = free_port(), f"{c.top}/usage.jsonl"
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Hook)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    tokens = f"{c.top}/tokens"
    with open(os.open(tokens, os.O_WRONLY | os.O_CREAT, 0o600), "w", encoding="ascii") as file:
        file.write("".join(f"{tenant} {token}\n" for tenant, token in TOKENS.items()))
    config = f"{c.state}/gantry.yaml"
    text = cluster.text(config)
    contains(text, "\ncontroller:\n", "gantry.yaml")
    with open(config, "w", encoding="ascii") as file:
        file.write(text.replace(
            "\ncontroller:\n",
            f"\ncontroller:\n  metrics_port: {c.http}\n  metrics_tokens: {tokens}\n"
            f"  metrics_labels: [team]\n  usage_events: {c.usage}\n"
            f"  usage_webhook: http://127.0.0.1:{server.server_port}/usage\n", 1))
    restart(c)
    path = f"{c.top}/documents.yaml"
    with open(path, "w", encoding="ascii") as file:
        file.write(DOCUMENTS % (c.users[0], c.users[1]))
    contains(run(c, "gtenant", "apply", "-y", "-f", path), "+ Budget fraud-month")


def case_1_tokens(c):
    wait_for("the metrics", lambda: get(c, "/metrics", TOKENS["*"])[0] == 200)
    job = c.submit("-p", "fraud", "--time=0:10", script="true\n")
    c.ended(job, "completed")
    other = c.submit("-p", "search", "--time=0:10", script="true\n", user=c.users[1])
    c.ended(other, "completed")
    equal(get(c, "/metrics")[0], 401, "without a token")
    equal(get(c, "/metrics", "token-of-nobody-01")[0], 401, "with a wrong one")
    equal(get(c, "/nothing", TOKENS["*"])[0], 404, "elsewhere")
    equal(tenants_of(get(c, "/metrics", TOKENS["fraud"])[1]), {"fraud"}, "fraud's series")
    equal(tenants_of(get(c, "/metrics", TOKENS["search"])[1]), {"search"}, "search's series")
    everything = get(c, "/metrics", TOKENS["*"])[1]
    equal({"fraud", "search"} <= tenants_of(everything), True, "all series")
    contains(everything, 'gantry_job_runs_total{tenant="fraud",job_type="batch"} 1')
    contains(everything, 'gantry_budget_amount{tenant="fraud",budget="fraud-month",currency="EUR"}')


def case_2_promtool(c):
    if not shutil.which("promtool"):
        cluster.pass_over("there is no promtool: ./dev setup")
        return
    done = subprocess.run(["promtool", "check", "metrics"], check=False, capture_output=True,
                          text=True, input=get(c, "/metrics", TOKENS["*"])[1], timeout=60)
    equal((done.returncode, done.stdout, done.stderr), (0, "", ""), "promtool check metrics")


def case_3_prometheus(c):
    if not shutil.which("prometheus"):
        cluster.pass_over("there is no prometheus: ./dev setup")
        return
    port, folder = free_port(), f"{c.top}/prometheus"
    os.mkdir(folder)
    with open(f"{folder}/prometheus.yml", "w", encoding="ascii") as file:
        file.write(f"""\
scrape_configs:
  - job_name: gantry
    scrape_interval: 1s
    authorization: {{credentials: {TOKENS["fraud"]}}}
    static_configs: [{{targets: ["127.0.0.1:{c.http}"]}}]
""")
    with open(f"{folder}/log", "wb") as log:
        daemon = subprocess.Popen(
            ["prometheus", f"--config.file={folder}/prometheus.yml",
             f"--storage.tsdb.path={folder}/data", f"--web.listen-address=127.0.0.1:{port}"],
            stdout=log, stderr=log)

    def asked(query):
        url = f"http://127.0.0.1:{port}/api/v1/query?{urllib.parse.urlencode({'query': query})}"
        try:
            with urllib.request.urlopen(url, timeout=20) as answer:
                return json.load(answer)["data"]["result"]
        except OSError:
            return []
    try:
        runs = wait_for("a scrape", lambda: asked("gantry_job_runs_total"))
        equal([(r["metric"]["tenant"], r["value"][1]) for r in runs], [("fraud", "1")], "runs")
        equal(asked("up")[0]["value"][1], "1", "up")
        equal(asked('count({tenant!="fraud",tenant!=""})'), [], "series of other tenants")
    finally:
        daemon.send_signal(signal.SIGTERM)
        daemon.wait(timeout=60)


def case_4_usage_events(c):
    known = lines(c)
    equal([e["kind"] for e in known], ["start", "end", "start", "end"], "events")
    first = known[1]
    equal((first["tenant"], first["user"], first["outcome"], first["currency"]),
          ("fraud", c.users[0], "completed", "EUR"), "the end of the first")
    equal(float(first["cost"]) > 0, True, "its cost")
    equal(known[0]["rate"], "3600.0000", "the first's cost per hour")
    # The controller is killed while a job runs: afterwards every event is there once, with its old
    # number.
    job = c.submit("-p", "fraud", "--time=0:30", script="sleep 3\n")
    c.running(job)
    wait_for("its start", lambda: len(lines(c)) == 5)
    restart(c)
    c.ended(job, "completed")
    wait_for("its end", lambda: len(lines(c)) == 6)
    now = lines(c)
    equal(now[:4], known, "what was there")
    equal(sorted({e["seq"] for e in now}), [e["seq"] for e in now], "ascending numbers, each once")
    status, page = get(c, f"/usage?after={known[1]['seq']}", TOKENS["*"])
    equal((status, [json.loads(line)["seq"] for line in page.splitlines()]),
          (200, [e["seq"] for e in now[2:]]), "a page")
    mine = [json.loads(line) for line in get(c, "/usage", TOKENS["search"])[1].splitlines()]
    equal({e["tenant"] for e in mine}, {"search"}, "search's events")
    equal(len(mine), 2, "events of search")
    equal(get(c, "/usage?after=x", TOKENS["*"])[0], 400, "no number")


def case_5_webhook(c):
    def got():
        return [json.loads(line)["seq"] for body in HOOK for line in body.decode().splitlines()]
    wait_for("all of it", lambda: set(got()) == {e["seq"] for e in lines(c)})
    equal(REFUSED[0], 0, "refusals that it got over")


def case_6_a_job_waits_for_its_budget(c):
    said = c.as_user(["gbatch", "-p", "fraud", "--time=20:00", "--mem=40M", "-o", "/dev/null",
                      "--wrap=true"])
    contains(said.stderr, "it may cost up to 1200.00 EUR, and budget fraud-month is 1000.00 EUR in")
    job = int(said.stdout.split()[-1])
    wait_for("the reason", lambda: "(Budget)" in c.queue_line(job, "%R") or
             "Budget" in c.queue_line(job, "%r"))
    contains(run(c, "gctl", "why", str(job)), "Budget fraud-month has ")
    contains(run(c, "gtenant", "budget", "list"), "fraud-month")
    contains(run(c, "gtenant", "request", "ask", "fraud", "--budget", "fraud-month", "--amount",
                 "500"), "asked")
    run(c, "gtenant", "request", "approve", "1")
    c.ended(job, "completed")
    refused = c.as_user(["gbatch", "-p", "fraud", "--time=UNLIMITED", "--mem=40M", "--wrap=true"])
    equal(refused.returncode != 0, True, "a job without a limit")
    contains(refused.stderr, "has no time limit (-t), and budget fraud-month")


def case_7_labels(c):
    """Jobs by a label of theirs: only keys that the site has named, at most 50 values, own tenants alone."""
    go = f"{c.out}/labels-go"
    body = f"while [ ! -e {go} ]; do sleep 0.1; done\n"
    jobs = [c.submit("-p", "search", "--time=0:10", "--labels=team=vision,secret=x", script=body, user=c.users[1])
            for _ in range(2)]
    for job in jobs:
        c.running(job)
    wanted = 'gantry_label_jobs{tenant="search",key="team",value="vision"} 2'
    wait_for("the labels", lambda: wanted in get(c, "/metrics", TOKENS["*"])[1])
    everything = get(c, "/metrics", TOKENS["*"])[1]
    contains(everything, 'gantry_label_cpus{tenant="search",key="team",value="vision"} 2')
    equal("secret" in everything, False, "a key that is not named")
    equal("gantry_label" in get(c, "/metrics", TOKENS["fraud"])[1], False, "another tenant's labels")
    with open(go, "w", encoding="ascii"):
        pass
    for job in jobs:
        c.ended(job, "completed")


if __name__ == "__main__":
    sys.exit(cluster.main(__doc__, globals(), name="export", nodes=1, users=2))
