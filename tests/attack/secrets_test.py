#!/usr/bin/env python3
"""Secrets of tenants and identity tokens of jobs on a real cluster: what a job gets, who can name it, where
the content must never be, and what is left when the job has ended. README.md lists the attempts.

Tokens are checked by python3-jwt against the keys that the controller publishes; without that package the
case says so.

usage: secrets_test.py BIN_DIR [-k CASE] [--keep]
"""
import base64
import hashlib
import json
import os
import socket
import sys
import urllib.error
import urllib.request

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../e2e"))

import cluster  # noqa: E402
from cluster import contains, equal, wait_for  # noqa: E402

sys.path.append("/usr/lib/python3/dist-packages")  # Debian's, for another Python of the same release
try:
    import jwt
except ImportError:
    jwt = None

CONTENT = "hunter2-planted-and-nowhere-else-5f1c9a0d"
SECOND = "second-version-planted-77e0c1"
ISSUER = "https://gantry.example/cluster"
AWS = "sts.amazonaws.com"
VAULT = "https://vault.example:8200/v1"
VAULT_FILE = "/run/secrets/identity-https___vault.example_8200_v1"
TMPFS = 0x01021994

# Says what it finds, but never a content: its hash is enough.
LOOK = r"""
import hashlib, os, stat, sys
top = "/run/secrets"
def said(path):
    st = os.lstat(path)
    return f"{stat.S_IMODE(st.st_mode):o} {st.st_uid == os.getuid()} {st.st_gid == os.getgid()}"
print(sys.argv[1], "dir", said(top), flush=True)
for name in sorted(os.listdir(top)):
    with open(f"{top}/{name}", "rb") as f:
        print(sys.argv[1], name, said(f"{top}/{name}"), hashlib.sha256(f.read()).hexdigest())
def tried(what, action):
    try:
        action()
        print(sys.argv[1], "could", what)
    except OSError as error:
        print(sys.argv[1], "could not", what, error.errno)
tried("write", lambda: open(f"{top}/hub", "w"))
tried("make", lambda: open(f"{top}/new", "w"))
tried("change", lambda: os.chmod(f"{top}/hub", 0o644))
tried("remove", lambda: os.unlink(f"{top}/hub"))
tried("list the node's", lambda: os.listdir(sys.argv[2]))
print(sys.argv[1], "done", flush=True)
"""
SCRIPT = """#!/bin/sh
python3 look.py script "{state}"
grun --overlap -n1 python3 look.py step "{state}" 2>/dev/null || grun -n1 python3 look.py step "{state}"
env | sort | grep -E '^(GANTRY_SECRETS_DIR|GANTRY_IDENTITY_TOKEN_FILE|AWS_WEB_IDENTITY_TOKEN_FILE)='
echo ready
while [ ! -e stop-$SLURM_JOB_ID ]; do sleep 0.1; done
python3 look.py late "{state}"
"""


def digest(text):
    return hashlib.sha256(text.encode()).hexdigest()


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def run(c, *command, user=None, status=0, text=None):
    options = {"input": text} if text is not None else {}
    done = (c.as_user(list(command), user=user, **options) if user else
            c.root(list(command), **options))
    equal(done.returncode == 0, status == 0, f"{' '.join(command)}: {done.stdout}{done.stderr}")
    return done.stdout + done.stderr


def get(c, path):
    with urllib.request.urlopen(f"http://127.0.0.1:{c.http}{path}", timeout=20) as answer:
        return answer.read().decode()


def noded_state(c, job):
    """The state directory of the node daemon that runs the job, and the directory of its secrets."""
    for top, dirs, _ in os.walk(c.state):
        if os.path.basename(top) == "secrets":
            for name in dirs:
                if name.split(".")[0] == str(job):
                    return os.path.dirname(top), f"{top}/{name}"
            dirs.clear()
    return None, None


def start(c, *options, tenant="red", user=None):
    user = user or c.red
    script = SCRIPT.format(state=c.state)
    done = c.as_user(["gbatch", "--parsable", "-n1", "-p", tenant, "--mem=60M", "-o", "%j.out", *options],
                     user=user, input=script)
    equal(done.returncode, 0, f"gbatch: {done.stdout}{done.stderr}")
    job = int(done.stdout)
    c.said(job, "ready")
    return job


def finish(c, job, outcome="completed"):
    with open(f"{c.out}/stop-{job}", "w", encoding="ascii"):
        pass
    c.ended(job, outcome)


def planted_in(c, words):
    """Every place outside of the tmpfs where one of these texts is, plain or as base64."""
    wanted = []
    for word in words:
        raw = word.encode()
        wanted.append(raw)
        for shift in range(3):  # base64 of it at each place in a longer text
            encoded = base64.b64encode(b"x" * shift + raw)
            wanted.append(encoded[(0, 2, 3)[shift]:-4])
    found = []

    def look(place, content):
        found.extend(place for one in wanted if one in content)

    for top, dirs, files in os.walk(c.top):
        if os.path.basename(top) == "secrets" and os.path.ismount(top):
            dirs.clear()
            continue
        for name in files:
            path = f"{top}/{name}"
            if os.path.isfile(path) and not os.path.islink(path):
                look(path, cluster.read(path))
    for pid in cluster.processes():
        for part in ("environ", "cmdline"):
            look(f"/proc/{pid}/{part}", cluster.read(f"/proc/{pid}/{part}"))
    return found


def case_0_set_up(c):
    c.red, c.blue = c.users[:2]
    c.http = free_port()
    config = f"{c.state}/gantry.yaml"
    text = cluster.text(config)
    with open(config, "w", encoding="ascii") as file:
        file.write(text.replace("\ncontroller:\n",
                                f"\ncontroller:\n  metrics_port: {c.http}\n"
                                f"  identity_issuer: {ISSUER}\n", 1))
    c.kill_and_restart(c.daemon("ctld"))
    wait_for("the controller", lambda: c.root(["ginfo"]).returncode == 0)
    for tenant, user in (("red", c.red), ("blue", c.blue)):
        run(c, "gtenant", "create", tenant, "--user", user, "--admin", user, "--cpus", "64", "--yes")
    with open(f"{c.out}/look.py", "w", encoding="ascii") as file:
        file.write(LOOK)
    key = f"{c.state}/ctld/secrets.key"
    equal(os.stat(key).st_mode & 0o777, 0o600, "mode of the key")


def case_1_a_search_that_finds(c):
    """The search of the other cases finds what was planted, plain and at each place in base64."""
    path = f"{c.top}/decoy"
    for text in (CONTENT.encode(), *(base64.b64encode(b"y" * n + CONTENT.encode() + b"end") for n in range(3))):
        with open(path, "wb") as file:
            file.write(text)
        equal(set(planted_in(c, [CONTENT])), {path}, "places with the decoy")
    os.unlink(path)


def case_1_commands(c):
    contains(run(c, "gtenant", "secret", "set", "red/hub", user=c.red, text=CONTENT),
             "secret red/hub: version 1; kept: 1")
    contains(run(c, "gtenant", "secret", "set", "red/hub", CONTENT, user=c.red, status=2), "extra argument")
    contains(run(c, "gtenant", "secret", "set", "red/big", user=c.red, text="x" * 65537, status=1),
             "more than 65536 bytes")
    contains(run(c, "gtenant", "secret", "set", "red/none", user=c.red, text="", status=1), "empty")
    contains(run(c, "gtenant", "secret", "list", user=c.red), "hub")
    shown = run(c, "gtenant", "secret", "show", "red/hub", "--json", user=c.red)
    equal("sealed" in shown or "content" in shown, False, shown)


def case_2_others_cannot_name_it(c):
    done = run(c, "gbatch", "-p", "blue", "--secret=hub", "--wrap=true", user=c.blue, status=1)
    missing = run(c, "gbatch", "-p", "blue", "--secret=nub", "--wrap=true", user=c.blue, status=1)
    equal(done.replace("hub", "nub"), missing, "an existing secret of others, and none")
    equal("hub" in run(c, "gtenant", "secret", "list", user=c.blue), False)
    for words in (("list", "red"), ("show", "red/hub"), ("rm", "red/hub")):
        done = run(c, "gtenant", "secret", *words, user=c.blue, status=1)
        other = run(c, "gtenant", "secret", *(w.replace("red", "rad") for w in words), user=c.blue,
                    status=1)
        equal(done.replace("red", "rad"), other, " ".join(words))
    done = run(c, "gtenant", "secret", "set", "red/hub", user=c.blue, text="mine", status=1)
    contains(done, "there is no tenant red")
    for file in ("../x", "a/b", ".x", "-x", "identity-x"):
        contains(run(c, "gbatch", "-p", "red", f"--secret=hub:{file}", "--wrap=true", user=c.red,
                     status=1), "no name for the file")


def case_3_a_job_gets_it(c):
    job = start(c, "--secret=hub", "--secret=hub@1:token", f"--identity={AWS},{VAULT}")
    out = c.output(job)
    for who in ("script", "step"):
        contains(out, f"{who} dir 500 True True")
        contains(out, f"{who} hub 400 True True {digest(CONTENT)}")
        contains(out, f"{who} token 400 True True {digest(CONTENT)}")
        contains(out, f"{who} identity-{AWS} 400 True True")
        for what in ("write", "make", "change", "remove", "list the node's"):
            contains(out, f"{who} could not {what}")
    contains(out, "GANTRY_SECRETS_DIR=/run/secrets")
    contains(out, f"AWS_WEB_IDENTITY_TOKEN_FILE=/run/secrets/identity-{AWS}")
    state, path = noded_state(c, job)
    equal(os.path.ismount(f"{state}/secrets"), True, "a file system of its own")
    types = [line.split(" - ")[1].split()[0] for line in cluster.text("/proc/self/mountinfo").splitlines()
             if line.split()[4] == f"{state}/secrets"]
    equal(set(types), {"tmpfs"}, "its type")
    equal(os.stat(f"{state}/secrets").st_mode & 0o777, 0o700)
    # Without the mount that is read-only, and as root, the same directory is written, changed and listed.
    with open(f"{path}/new", "w", encoding="ascii"):
        pass
    os.chmod(f"{path}/new", 0o644)
    equal("new" in os.listdir(path), True, "what root makes there")
    os.unlink(f"{path}/new")
    tokens = [cluster.text(f"{path}/{name}") for name in os.listdir(path) if name.startswith("identity-")]
    equal(len(tokens), 2)
    parts = [t.split(".")[2] for t in tokens]  # the signatures
    shown = [run(c, "gctl", "show", "job", str(job)), run(c, "gctl", "show", "job", str(job), "--json"),
             run(c, "gtenant", "secret", "show", "red/hub", "--json"), run(c, "gtenant", "export"),
             run(c, "gctl", "audit", "show", "--dir", f"{c.state}/ctld/audit", "--json", "-n", "1000")]
    for text in shown:
        for word in (CONTENT, base64.b64encode(CONTENT.encode()).decode()[:-4], *parts):
            equal(word in text, False, "a content in what is shown")
    contains(shown[0], "Secrets=hub,hub@1:token")
    equal(planted_in(c, [CONTENT, *parts]), [], "places with the content")
    contains(run(c, "gtenant", "secret", "show", "red/hub", user=c.red), f"by job {job}")
    finish(c, job)
    equal(os.path.exists(path), False, "the files after the end")
    contains(c.output(job), f"late hub 400 True True {digest(CONTENT)}")


def case_4_tokens_are_accepted(c):
    about = json.loads(get(c, "/.well-known/openid-configuration"))
    equal(about["issuer"], ISSUER)
    equal(about["jwks_uri"], f"{ISSUER}/.well-known/jwks.json")
    keys = json.loads(get(c, "/.well-known/jwks.json"))["keys"]
    equal({k["alg"] for k in keys}, {"ES256"})
    equal(any("d" in k for k in keys), False, "a private key is published")
    if jwt is None:
        cluster.pass_over("there is no python3-jwt: ./dev setup")
        return
    job = start(c, f"--identity={AWS},{VAULT}")
    state, path = noded_state(c, job)
    token = cluster.text(f"{path}/identity-{AWS}")
    by_id = {k["kid"]: jwt.PyJWK(k).key for k in keys}
    key = by_id[jwt.get_unverified_header(token)["kid"]]
    claims = jwt.decode(token, key, algorithms=["ES256"], audience=AWS, issuer=ISSUER,
                        options={"require": ["exp", "iat", "nbf", "jti", "sub", "aud", "iss"]})
    equal(claims["sub"].startswith("tenant:red:project:"), True, claims["sub"])
    equal(claims["sub"].endswith(f":user:{c.red}"), True, claims["sub"])
    equal((claims["tenant"], claims["user"], claims["job"], claims["attempt"]),
          ("red", c.red, str(job), "1"))
    equal(claims["exp"] - claims["iat"], 3600)
    for wrong in ({"audience": VAULT, "issuer": ISSUER}, {"audience": AWS, "issuer": "https://x"}):
        try:
            jwt.decode(token, key, algorithms=["ES256"], **wrong)
            raise AssertionError(f"taken with {wrong}")
        except jwt.InvalidTokenError:
            pass
    # A daemon that starts again does not know when the tokens end, and asks for new ones at once.
    node = os.path.basename(os.path.dirname(state))
    c.kill_and_restart(c.daemon(node))
    wait_for("a new token", lambda: cluster.text(f"{path}/identity-{AWS}") not in ("", token))
    fresh = cluster.text(f"{path}/identity-{AWS}")
    again = jwt.decode(fresh, key, algorithms=["ES256"], audience=AWS, issuer=ISSUER)
    equal(again["jti"] != claims["jti"], True, "another token")
    equal(os.stat(f"{path}/identity-{AWS}").st_mode & 0o777, 0o400)
    finish(c, job)
    out = c.output(job)
    contains(out, f"late identity-{AWS} 400 True True {digest(fresh)}")
    equal(os.path.exists(path), False, "the tokens after the end")


def case_5_versions(c):
    job = start(c, "--secret=hub")
    _, path = noded_state(c, job)
    contains(run(c, "gtenant", "secret", "set", "red/hub", "--keep=1", user=c.red, text=SECOND), "version 2")
    equal(cluster.text(f"{path}/hub"), CONTENT, "a job that runs has what it began with")
    contains(run(c, "gbatch", "-p", "red", "--secret=hub@1", "--wrap=true", user=c.red, status=1),
             "has no secret hub@1")
    run(c, "gctl", "requeue", str(job), user=c.red)
    wait_for("the second attempt", lambda: digest(SECOND) in c.output(job))
    equal(os.path.exists(path), False, "the files of the first attempt")
    finish(c, job)
    equal(planted_in(c, [CONTENT, SECOND]), [], "places with the content")


def case_6_removed_while_it_waits(c):
    job = int(run(c, "gbatch", "--parsable", "-p", "red", "-H", "--secret=hub", "--wrap=true", "-o", "%j.out",
                  user=c.red))
    contains(run(c, "gtenant", "secret", "rm", "red/hub", user=c.red), "removed")
    run(c, "gctl", "release", str(job), user=c.red)
    wait_for("the reason", lambda: "SecretMissing" in c.root(["gqueue", "-j", str(job), "-o", "%r"]).stdout)
    contains(run(c, "gctl", "why", str(job), user=c.red), "no secret hub any more")
    contains(run(c, "gtenant", "secret", "set", "red/hub", user=c.red, text=CONTENT), "version 3")
    c.ended(job, "completed")


def case_7_a_killed_shim_and_a_killed_controller(c):
    job = start(c, "--secret=hub", "--no-requeue")
    _, path = noded_state(c, job)
    c.kill_and_restart(c.daemon("ctld"))
    wait_for("the controller", lambda: c.root(["ginfo"]).returncode == 0)
    for pid in c.shims(job=job):
        os.kill(pid, 9)
    c.ended(job)
    wait_for("the files to be gone", lambda: not os.path.exists(path))
    equal(planted_in(c, [CONTENT]), [], "places with the content")


def case_8_sealed_values_that_were_moved(c):
    """A secret whose sealed form is another's does not open; nothing of it reaches a job."""
    job = start(c, "--secret=hub")
    finish(c, job)
    for path in (f"{c.state}/ctld/secrets.key",):
        os.rename(path, f"{path}.away")
    c.kill_and_restart(c.daemon("ctld"))
    wait_for("the controller", lambda: c.root(["ginfo"]).returncode == 0)
    done = c.as_user(["gbatch", "--parsable", "-p", "red", "--secret=hub", "--wrap=cat /run/secrets/hub", "-o",
                      "%j.out"], user=c.red)
    job = int(done.stdout)
    c.ended(job, "failed")
    contains(run(c, "gctl", "show", "job", str(job)), "was sealed with another key")
    os.rename(f"{c.state}/ctld/secrets.key.away", f"{c.state}/ctld/secrets.key")
    c.kill_and_restart(c.daemon("ctld"))
    wait_for("the controller", lambda: c.root(["ginfo"]).returncode == 0)
    finish(c, start(c, "--secret=hub"))


def case_9_the_tenant_goes(c):
    run(c, "gtenant", "offboard", "red", "--cancel", "--yes", "--archive", c.top)
    equal("red" in run(c, "gtenant", "secret", "list"), False)


if __name__ == "__main__":
    sys.exit(cluster.main(__doc__, globals(), "secrets", nodes=2, users=2))
