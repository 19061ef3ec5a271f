#!/usr/bin/env python3
"""controller.policy_hook on a real cluster: a program of the site, and a service on a socket, that is asked
about each submit. What it says counts; what it cannot say in time refuses or is passed over, as configured;
and meanwhile the controller answers everybody else.

usage: policy_hook_test.py BIN_DIR [-k CASE] [--keep]
"""
import json
import os
import socket
import sys
import threading
import time

import cluster
from cluster import contains, equal, text, wait_for
from reconfigure_test import change, reconfigure

PROGRAM = """#!/usr/bin/env python3
import json, sys, time
asked = json.load(sys.stdin)
job = asked["jobs"][0]
with open("{asked}", "w") as f:
    json.dump(asked, f)
name = job.get("name", "")
if name == "slow":
    time.sleep(30)
if name == "broken":
    sys.exit(3)
if name == "babble":
    print("this is no JSON")
elif name == "flood":
    while True:
        print("x" * 4096)
elif name == "forbidden":
    print(json.dumps({{"action": "deny", "message": "ask the platform team first"}}))
elif name == "told":
    print(json.dumps({{"action": "warn", "message": "night jobs are cheaper"}}))
elif name == "changed":
    print(json.dumps({{"action": "allow", "set": {{"comment": "seen by the hook", "labels.team": "vision", "time": "7"}}}}))
elif name == "wrong-field":
    print(json.dumps({{"action": "allow", "set": {{"priority": "1"}}}}))
elif name == "wrong-place":
    print(json.dumps({{"action": "allow", "set": {{"partition": "nowhere"}}}}))
else:
    print(json.dumps({{"action": "allow"}}))
"""
SERVICE = """
apiVersion: gantry/v1
kind: Tenant
name: red
roles: {{user: {{users: [{user}]}}}}
---
apiVersion: gantry/v1
kind: Service
name: {name}
tenant: red
hosts: [{name}.example]
promise: {{target: 1s}}
concurrency: 4
ready: {{path: /}}
versions:
  v1:
    command: exec true
    image: {image}
    shapes:
      small: {{cpus: 1, memory: 64Mi}}
      large: {{cpus: 2, memory: 64Mi}}
scale: {{least: 0, most: 1}}
"""
REFUSED = "the site's policy hook gave no answer"


def submit(c, name, *options, user=None):
    return c.as_user(["gbatch", "--parsable", "-J", name, "--mem=40M", "-o", "/dev/null", *options, "--wrap=true"],
                     user=user)


def job_of(c, done):
    equal(done.returncode, 0, done.stdout + done.stderr)
    return int(done.stdout)


def case_0_set_up(c):
    c.asked = f"{c.top}/asked.json"
    c.hook = f"{c.top}/hook"
    with open(c.hook, "w", encoding="ascii") as f:
        f.write(PROGRAM.format(asked=c.asked))
    os.chmod(c.hook, 0o755)
    change(c, "^controller:$", f"controller:\n  policy_hook: {c.hook}\n  policy_hook_timeout: 2s")
    done = reconfigure(c)
    equal(done.returncode, 0, done.stdout + done.stderr)


def case_1_what_it_reads_and_says(c):
    job = job_of(c, submit(c, "plain", "--labels=team=nlp"))
    asked = json.loads(text(c.asked))
    equal((asked["user"], asked["jobs"][0]["name"], asked["jobs"][0]["labels"]), (c.user, "plain", {"team": "nlp"}))
    equal("script" in asked["jobs"][0] or "environment" in asked["jobs"][0], False, "scripts are not told")
    c.ended(job, "completed")
    done = submit(c, "forbidden")
    equal(done.returncode != 0, True, done.stdout)
    contains(done.stderr, "ask the platform team first")
    done = submit(c, "told")
    contains(done.stderr, "night jobs are cheaper")
    c.ended(job_of(c, done), "completed")


def case_2_what_it_sets_is_checked_as_the_users_own(c):
    job = job_of(c, submit(c, "changed", "--labels=team=nlp"))
    shown = json.loads(c.root(["gctl", "show", "job", str(job), "--json"], check=True).stdout)
    spec = shown["jobs"][0]["spec"] if "jobs" in shown else shown["spec"]
    equal((spec["comment"], spec["labels"]), ("seen by the hook", {"team": "vision"}))
    contains(c.root(["slurm/scontrol", "show", "job", str(job)]).stdout, "TimeLimit=00:07:00")
    c.ended(job, "completed")
    contains(submit(c, "wrong-field").stderr, REFUSED)
    contains(submit(c, "wrong-place").stderr, "nowhere")


def case_3_no_sound_answer_refuses(c):
    for name in ("broken", "babble", "flood"):
        done = submit(c, name)
        equal(done.returncode != 0, True, name)
        contains(done.stderr, REFUSED, name)


def case_4_nobody_waits_for_a_slow_one(c):
    start = time.monotonic()
    slow = [c.popen(["gbatch", "--parsable", "-J", "slow", "--wrap=true"], user=c.users[0]) for _ in range(6)]
    answered = []
    while time.monotonic() - start < 1.5:
        began = time.monotonic()
        c.root(["gctl", "ping"], check=True)
        answered.append(time.monotonic() - began)
    job = job_of(c, submit(c, "plain", user=c.users[1]))  # another user's has a thread of its own
    for one in slow:
        said, _ = one.communicate(timeout=30)
        contains(said, REFUSED)
    equal(max(answered) < 1, True, f"gctl ping took {max(answered):.2f} s")
    c.ended(job, "completed")
    # What was started is gone.
    wait_for("no hook runs", lambda: not [argv for argv in cluster.processes().values()
                                          if c.hook.encode() in argv])


def case_4_replicas_of_services(c):
    """Otherwise a service would be a way around the hook: the controller submits its replicas itself."""
    def apply(name, *words):
        path = f"{c.top}/{name}.yaml"
        with open(path, "w", encoding="ascii") as f:
            f.write(SERVICE.format(name=name, user=c.user, image="registry.example/model:1"))
        return c.root(["gtenant", *(words or ("apply", "--yes")), "-f", path])

    done = apply("plain")
    equal(done.returncode, 0, done.stdout + done.stderr)
    asked = json.loads(text(c.asked))
    equal([(job["name"], job["cpus_per_task"] if "cpus_per_task" in job else job["shape"]["cpus_per_task"],
            job["container"]["image"]) for job in asked["jobs"]],
          [("plain", 1, "registry.example/model:1"), ("plain", 2, "registry.example/model:1")])
    equal((asked["user"], "command" in json.dumps(asked)), ("root", False))
    for words in ((), ("diff",)):
        done = apply("forbidden", *words)
        equal(done.returncode != 0, True, done.stdout)
        contains(done.stderr, "ask the platform team first")
    contains(apply("told").stdout, "night jobs are cheaper")
    done = apply("changed")
    equal(done.returncode != 0, True, done.stdout)
    contains(done.stderr, 'wants comment of replicas to be "seen by the hook"')
    contains(apply("broken").stderr, REFUSED)
    listed = c.root(["gctl", "service", "list"]).stdout
    equal([name for name in ("plain", "told", "forbidden", "changed", "broken") if name in listed], ["plain", "told"])


def case_5_passed_over_if_the_site_says_so(c):
    change(c, "policy_hook_timeout: 2s", "policy_hook_timeout: 1s\n  policy_hook_failure: accept")
    equal(reconfigure(c).returncode, 0)
    for name in ("slow", "broken"):
        c.ended(job_of(c, submit(c, name)), "completed")


def case_6_a_service_on_a_socket(c):
    path = f"{c.top}/hook.sock"
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(path)
    listener.listen(16)
    seen = []

    def serve():
        while True:
            try:
                one, _ = listener.accept()
            except OSError:
                return
            with one:
                asked = b""
                while piece := one.recv(65536):
                    asked += piece
                name = json.loads(asked)["jobs"][0]["name"]
                seen.append(name)
                action = "deny" if name == "forbidden" else "allow"
                one.sendall(json.dumps({"action": action}).encode())

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    change(c, f"policy_hook: {c.hook}", f"policy_hook: {path}")
    equal(reconfigure(c).returncode, 0)
    c.ended(job_of(c, submit(c, "plain")), "completed")
    contains(submit(c, "forbidden").stderr, "the site's policy hook refuses this job")
    equal(seen, ["plain", "forbidden"])
    listener.close()


if __name__ == "__main__":
    sys.exit(cluster.main(__doc__, globals(), "hook", nodes=1, users=2))
