#!/usr/bin/env python3
"""--stage-in and --stage-out with a real server that speaks S3 (s3rver, from npm): copies before and after
the script, what is refused by name, and that the keys are nowhere but with the program that copies.

usage: staging_test.py BIN_DIR [-k CASE] [--keep]
"""
import base64
import os
import shutil
import socket
import subprocess
import sys
import urllib.request

import cluster
from cluster import contains, equal, wait_for

KEYS = "S3RVER:S3RVER"  # the only ones that this server knows
TENANTS = ("red", "blue")


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def serve(c):
    """Starts the server with one bucket, and waits until it answers."""
    folder = f"{c.top}/s3"
    os.makedirs(folder)
    subprocess.run(["npm", "install", "--silent", "--no-audit", "--no-fund", "--prefix", folder, "s3rver@3"],
                   check=True, capture_output=True, timeout=180)
    c.port = free_port()
    log = open(f"{c.top}/s3.log", "w", encoding="utf-8")  # pylint: disable=consider-using-with
    c.server = subprocess.Popen([f"{folder}/node_modules/.bin/s3rver", "-d", f"{folder}/data", "-a", "127.0.0.1", "-p",
                                 str(c.port), "--configure-bucket", "lake"], stdout=log, stderr=log)

    def answers():
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{c.port}/", timeout=2):
                return True
        except OSError:
            return False
    wait_for("the server", answers)


def rclone(c, *words, text=None):
    env = dict(os.environ, AWS_CA_BUNDLE="", RCLONE_CONFIG="", RCLONE_CONFIG_S_TYPE="s3", RCLONE_CONFIG_S_PROVIDER="Other",
               RCLONE_CONFIG_S_ENDPOINT=f"http://127.0.0.1:{c.port}", RCLONE_CONFIG_S_ACCESS_KEY_ID="S3RVER",
               RCLONE_CONFIG_S_SECRET_ACCESS_KEY="S3RVER", RCLONE_CONFIG_S_FORCE_PATH_STYLE="true")
    done = subprocess.run(["rclone", *words], env=env, capture_output=True, text=True, input=text, timeout=60, check=False)
    equal(done.returncode, 0, f"rclone {' '.join(words)}: {done.stderr}")
    return done.stdout


def case_0_set_up(c):
    c.people = dict(zip(TENANTS, c.users))
    serve(c)
    documents = "".join(f"""---
apiVersion: gantry/v1
kind: Tenant
name: {tenant}
quota: {{cpu: 8}}
roles: {{tenant-admin: {{users: [{c.people[tenant]}]}}}}
storage:
  endpoint: http://127.0.0.1:{c.port}
  region: us-east-1
  bucket: lake
  prefix: teams/{tenant}/
  credentials: lake-keys
""" for tenant in TENANTS)
    c.root(["gtenant", "apply", "-y", "-f", "-"], check=True, input=documents)
    for tenant in TENANTS:
        rclone(c, "rcat", f"s:lake/teams/{tenant}/in/one.txt", text=f"one of {tenant}\n")
        rclone(c, "rcat", f"s:lake/teams/{tenant}/in/more/two.txt", text=f"two of {tenant}\n")


def submit(c, *options, script="true\n", tenant="red", status=0):
    done = c.as_user(["gbatch", "--parsable", "-n1", "-p", tenant, "--mem=64M", "-o", "%j.out", *options],
                     user=c.people[tenant], input="#!/bin/bash\n" + script)
    equal(done.returncode, status, f"{options}: {done.stdout}{done.stderr}")
    return int(done.stdout) if status == 0 else done.stderr


def case_1_without_keys(c):
    contains(submit(c, "--stage-in=in/one.txt:one.txt", status=1), "tenant red has no secret lake-keys")
    for tenant in TENANTS:
        done = c.as_user(["gtenant", "secret", "set", f"{tenant}/lake-keys"], user=c.people[tenant], input=KEYS)
        equal(done.returncode, 0, done.stderr)


def case_2_files_come_and_go(c):
    job = submit(c, "--stage-in=in/one.txt:one-%s.txt" % os.getpid(), "--stage-in=s3://lake/teams/red/in/:all",
                 "--stage-out=result:out/run-1/", "--stage-out=note.txt:out/note.txt",
                 script=f"""
cat one-{os.getpid()}.txt all/more/two.txt
stat -c %U all/one.txt
mkdir -p result/deep && echo made > result/deep/file && echo noted > note.txt
""")
    c.ended(job, "completed")
    out = c.output(job)
    contains(out, "one of red\ntwo of red\n")
    contains(out, c.people["red"], "the owner of what came")
    equal(rclone(c, "cat", "s:lake/teams/red/out/run-1/deep/file"), "made\n")
    equal(rclone(c, "cat", "s:lake/teams/red/out/note.txt"), "noted\n")
    shown = c.root(["gctl", "show", "job", str(job)]).stdout
    contains(shown, f"StageIn=in/:{c.out}/all")
    contains(shown, f"StageOut={c.out}/note.txt:out/note.txt")


def case_2b_a_copy_counts_to_its_job(c):
    """Its memory and its time are the job's: a job that copies has more of both than one that does not."""
    used = []
    for options in ((), ("--stage-in=in/one.txt:counted.txt",)):
        entry = c.ended(submit(c, *options), "completed")["usage"]
        used.append((entry["memory_peak_bytes"], entry["cpu_user_us"] + entry["cpu_system_us"]))
    print(f"  {used[0][0] >> 20} MiB and {used[0][1] / 1e3:.0f} ms without a copy, {used[1][0] >> 20} MiB and {used[1][1] / 1e3:.0f} ms with one")
    equal((used[1][0] > used[0][0] + (8 << 20), used[1][1] > used[0][1] + 10_000), (True, True), f"usage: {used}")
    # Below what a copy takes the job is ended for its memory, and is not tried again elsewhere.
    small = c.as_user(["gbatch", "--parsable", "-n1", "-p", "red", "--mem=4M", "--stage-in=in/one.txt:small.txt", "--wrap=true",
                       "-o", "%j.out"], user=c.people["red"])
    equal(small.returncode, 0, small.stderr)
    entry = c.ended(int(small.stdout))
    contains(entry["cause"], "memory limit of 4M reached", "why")


def case_3_a_script_that_fails_still_brings_out(c):
    job = submit(c, "--stage-out=why.txt:out/why.txt", script="echo because > why.txt; exit 3\n")
    c.ended(job, "failed", code=3)
    equal(rclone(c, "cat", "s:lake/teams/red/out/why.txt"), "because\n")


def case_4_what_is_not_there(c):
    job = submit(c, "--stage-in=in/nothing.txt:x")
    entry = c.ended(job, "failed")
    contains(entry["cause"], "stage-in of in/nothing.txt")
    contains(entry["cause"], "there is no such key")
    job = submit(c, "--stage-out=nothing.txt:out/nothing.txt", script="echo ran\n")
    c.ended(job, "failed", code=1)
    contains(c.output(job), "stage-out of")
    job = submit(c, "--stage-in=in/one.txt:/etc/one.txt")
    contains(c.ended(job)["cause"] + c.queue_line(job), "/etc/one.txt", "a place that is root's")
    equal(os.path.exists("/etc/one.txt"), False)


def case_5_outside_of_the_prefix(c):
    for key in ("s3://lake/teams/blue/in/one.txt", "s3://lake/teams/redder/x", "s3://other/teams/red/x", "s3://lake/"):
        contains(submit(c, f"--stage-in={key}:x", status=1), "is outside of tenant red's part of the object store")
        contains(submit(c, f"--stage-out=x:{key}", status=1), "is outside of tenant red's part of the object store")
    for key in ("../blue/in/one.txt", "in/../../blue/in/one.txt", "/teams/blue/in/one.txt", "in//one.txt", "./in", "in/.."):
        contains(submit(c, f"--stage-in={key}:x", status=1), "is no key below s3://lake/teams/red/")


def case_6_the_keys_are_nowhere(c):
    """While a job runs that has staged, and will: in no file, environment or command line, and not in the job."""
    rclone(c, "rcat", "s:lake/teams/red/in/big", text="x" * 1000)
    job = submit(c, "--stage-in=in/big:big", "--stage-out=big:out/big", script="""
env; ls -la /run/secrets 2>&1; cat /proc/[0-9]*/environ 2>/dev/null | tr '\\0' '\\n'
echo ready; while [ ! -e go ]; do sleep 0.1; done
""")
    c.said(job, "ready")
    planted = [KEYS.encode(), b"SECRET_ACCESS_KEY=", base64.b64encode(KEYS.encode())]
    found = []
    for top, dirs, files in os.walk(c.top):
        if os.path.basename(top) == "secrets" and os.path.ismount(top):
            dirs.clear()
            continue
        if os.path.basename(top) == "s3":
            dirs.clear()
            continue
        for name in files:
            data = cluster.read(f"{top}/{name}") if os.path.isfile(f"{top}/{name}") else b""
            found += [f"{top}/{name}" for one in planted if one in data]
    for pid in cluster.processes():
        for part in ("environ", "cmdline"):
            found += [f"/proc/{pid}/{part}" for one in planted if one in cluster.read(f"/proc/{pid}/{part}")]
    with open(f"{c.out}/go", "w", encoding="ascii"):
        pass
    c.ended(job, "completed")
    equal(found, [], "places with the keys")
    left = [name for top, _, names in os.walk(c.state) if os.path.basename(top) == "secrets" for name in names]
    equal([n for n in left if n.startswith(".store")], [], "keys after the end")


def case_7_a_server_that_is_gone(c):
    c.server.kill()
    c.server.wait()
    job = submit(c, "--stage-in=in/one.txt:one.txt")
    wait_for("the cause", lambda: c.account(job) and "stage-in" in (c.account(job)["cause"] or ""), 120)
    c.root(["gcancel", "-Q", str(job)])


if __name__ == "__main__":
    if not shutil.which("npm") or not shutil.which("rclone"):
        print("skipped: npm and rclone are needed (./dev test installs them)")
        sys.exit(cluster.SKIPPED)
    sys.exit(cluster.main(__doc__, globals(), "staging", nodes=1, users=2))
