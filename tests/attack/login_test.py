#!/usr/bin/env python3
"""Attempts of ordinary users and of their jobs to ask for somebody else by the socket of a login
node; README.md lists them. What a stolen key of a node can say is in tests/wire/login_node_test.cc.

usage: login_test.py BIN_DIR [-k CASE] [--keep]
"""
import contextlib
import json
import os
import re
import shlex
import signal
import struct
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "../e2e"))

import cluster  # noqa: E402
from cluster import contains, equal, text  # noqa: E402

# Numbers of messages (common/proto/messages.def).
AUTHENTICATE, ERROR, PING, MAKE_TOKEN, NODE_RELAY, USER_RELAY, SOCKET_HELLO = 3, 5, 7, 48, 106, 118, 161

# What a user's program does: it connects, sends frames, and prints the codes of the answers.
CLIENT = r"""
import json, socket, struct, sys
path, key, frames = sys.argv[1], sys.argv[2], json.loads(sys.argv[3])
def frame(kind, request, body):
    head = struct.pack("<HHQ", 1, kind, request)
    return struct.pack("<I", len(head) + len(body)) + head + body
s = socket.socket(socket.AF_UNIX)
s.settimeout(10)
try:
    s.connect(path)
    hello = b"\x81\x01" + (b"\xd9" + bytes([len(key)]) if len(key) > 31 else bytes([0xa0 + len(key)])) + key.encode()
    data = frame(161, 1, hello)
    for kind, request, body in frames:
        data += frame(kind, request, bytes.fromhex(body))
    try:
        s.sendall(data)
    except BrokenPipeError:  # it was refused before it had said anything; the answer is there
        pass
    got = b""
    for _ in frames or [0]:
        while len(got) < 4 or len(got) < 4 + struct.unpack("<I", got[:4])[0]:
            more = s.recv(65536)
            if not more:
                raise EOFError("closed")
            got += more
        size = struct.unpack("<I", got[:4])[0]
        kind = struct.unpack("<H", got[6:8])[0]
        print(kind, got[16:4 + size].hex(), flush=True)
        got = got[4 + size:]
except Exception as e:
    print("failed", type(e).__name__, e)
"""


def socket_of(c):
    found = re.search(r"^socket = (\S+)", text(f"{c.state}/client.conf"), re.M)
    return found.group(1)


def key_of(c):
    return re.search(r"^public_key = (\S+)", text(f"{c.state}/client.conf"), re.M).group(1)


def raw(c, frames, user=None, key=None):
    """Lines "KIND BODY" of what is answered to these frames of a user."""
    user = user or c.users[0]
    done = subprocess.run(["python3", "-c", CLIENT, socket_of(c), key or key_of(c), json.dumps(frames)],
                          user=user, group=user, extra_groups=[], capture_output=True, text=True,
                          timeout=60, check=False)
    return done.stdout.splitlines()


@contextlib.contextmanager
def without_keys(c):
    """While this holds no user can show a key, so that only the socket serves."""
    keys = [f"{c.state}/users/{user}.key" for user in c.users]
    try:
        for key in keys:
            os.chmod(key, 0)
        yield
    finally:
        for key in keys:
            os.chmod(key, 0o600)


def served(c, user):
    done = c.as_user(["gqueue", "-h"], user=user, timeout=30)
    return (done.returncode, done.stderr)


def case_the_socket_serves_and_the_way_around_too(c):
    with without_keys(c):
        job = c.submit("-H", script="true\n")
        done = c.as_user(["gqueue", "-h", "-o", "%i %u"])
        contains(done.stdout, f"{job} {c.user}")
        equal(c.as_user(["gcancel", str(job)]).returncode, 0, "to cancel by the socket")
        # What lasts and tokens are asked for over CURVE, which needs the key.
        done = c.as_user(["slurm/scontrol", "token"])
        equal(done.returncode != 0, True, "a token without a key")
    equal(c.as_user(["slurm/scontrol", "token"]).returncode, 0, "a token with a key")
    argv = c.kill(c.daemon("node1"))
    try:
        equal(served(c, c.user), (0, ""), "without the daemon")
    finally:
        c.spawn(argv)
    with without_keys(c):
        cluster.wait_for("the socket again", lambda: served(c, c.user)[0] == 0)


def case_a_daemon_that_hangs(c):
    pid = c.daemon("node1")
    os.kill(pid, signal.SIGSTOP)
    try:
        begin = time.monotonic()
        job = c.submit("-H", "-J", "hangs", script="true\n")
        equal(time.monotonic() - begin < 15, True, "a submit while the daemon hangs")
    finally:
        os.kill(pid, signal.SIGCONT)
    cluster.wait_for("the socket again", lambda: served(c, c.user)[0] == 0)
    lines = c.as_user(["gqueue", "-h", "-o", "%i %j"]).stdout.split("\n")
    equal([line for line in lines if line.endswith("hangs")], [f"{job} hangs"], "jobs of one submit")
    c.as_user(["gcancel", str(job)])


def case_another_users_job(c):
    one, two = c.users[:2]
    with without_keys(c):
        job = c.submit("-H", script="true\n", user=one)
        done = c.as_user(["gcancel", str(job)], user=two)
        equal(done.returncode != 0, True, "to cancel another user's job")
        contains(done.stderr, str(job))
        equal(c.as_user(["gcancel", str(job)], user=one).returncode, 0, "one's own")


def case_messages_of_nodes_and_credentials(c):
    for kind in (AUTHENTICATE, MAKE_TOKEN, NODE_RELAY, USER_RELAY):
        # An empty map, and a relay for root by the user: {1: 0, 2: 1, 3: PING, 4: 1, 5: ""}.
        for body in ("80", "8501000201030704010500c400"):
            lines = raw(c, [(kind, 9, body)])
            equal(lines[0].split()[0], str(ERROR), f"the answer to {kind}: {lines}")
    equal(served(c, c.user), (0, ""))


def case_another_controllers_key(c):
    lines = raw(c, [(PING, 9, "80")], key="x" * 40)
    equal(lines[0].split()[0], str(ERROR), lines)
    contains(bytes.fromhex(lines[0].split()[1]).decode(errors="replace"), "another controller")


def case_a_job_by_the_path(c):
    """The directory is not in the container, and a process of a job is refused where it is."""
    run = os.path.dirname(socket_of(c))
    def script(path):
        words = [CLIENT, path, key_of(c), f'[[{PING}, 9, "80"]]']
        return "python3 -c " + " ".join(shlex.quote(word) for word in words) + "\n"
    hidden = c.submit(script=script(socket_of(c)))
    c.ended(hidden)
    contains(c.output(hidden), "failed FileNotFoundError", "what the job saw")
    equal(raw(c, [(PING, 9, "80")])[0].split()[0] != str(ERROR), True, "the same program outside of a job")
    mounted = c.submit(f"--container-mounts={run}:/mnt", script=script("/mnt/cli.sock"))
    entry = c.ended(mounted)
    said = c.output(mounted)
    if entry["row"]["started"] is not None:  # a site may refuse the mount instead
        equal(said.split()[:1], [str(ERROR)], f"what the job was told: {said}")
        contains(bytes.fromhex(said.split()[1]).decode(errors="replace"), "may be a job")


def case_bytes_that_are_no_message(c):
    program = ("import os, socket, sys\ns = socket.socket(socket.AF_UNIX)\ns.connect(sys.argv[1])\n"
               "try:\n  s.sendall(bytes.fromhex(sys.argv[2]))\n  s.settimeout(5)\n"
               "  while s.recv(65536): pass\nexcept OSError: pass\n")
    for data in ("ffffffff", "00000000", "0c000000" + "00" * 12, struct.pack("<I", 13).hex() + "01" * 13,
                 os.urandom(4096).hex()):
        subprocess.run(["python3", "-c", program, socket_of(c), data], user=c.user, group=c.user,
                       extra_groups=[], timeout=60, check=False)
    equal(served(c, c.user), (0, ""), "after them")


def case_a_flood_of_one_user(c):
    """One user holds all connections that one may have, and asks without reading; another is
    served."""
    one, two = c.users[:2]
    program = ("import socket, struct, sys, time\n"
               "def f(k, r, b):\n  h = struct.pack('<HHQ', 1, k, r)\n"
               "  return struct.pack('<I', len(h) + len(b)) + h + b\n"
               "key = sys.argv[2].encode()\nall = []\n"
               "hello = f(161, 1, b'\\x81\\x01\\xd9' + bytes([len(key)]) + key)\n"
               "for i in range(300):\n  s = socket.socket(socket.AF_UNIX)\n  s.setblocking(False)\n"
               "  try:\n    s.connect(sys.argv[1])\n    all.append(s)\n    s.send(hello)\n"
               "  except OSError: pass\n"
               "print(len(all), flush=True)\nend = time.time() + 8\nr = 10\n"
               "while time.time() < end:\n  for s in all:\n    r += 1\n"
               "    try: s.send(f(7, r, b'\\x80') * 20)\n    except OSError: pass\n")
    flood = subprocess.Popen(["python3", "-c", program, socket_of(c), key_of(c)], user=one, group=one,
                             extra_groups=[], stdout=subprocess.PIPE, text=True)
    try:
        flood.stdout.readline()
        slowest = 0.0
        with without_keys(c):
            while flood.poll() is None:
                begin = time.monotonic()
                equal(served(c, two), (0, ""), "the other user")
                slowest = max(slowest, time.monotonic() - begin)
        equal(slowest < 10, True, f"the slowest answer of {slowest:.1f} s")
    finally:
        flood.kill()
        flood.wait()
    equal("lost" in c.root(["ginfo", "-h"]).stdout, False, "a node was lost")


def case_the_limit_is_of_each_user(c):
    """Not the machine stops the flood, but the limit: two users hold more than one may."""
    program = ("import socket, sys, time\nall = []\nfor i in range(300):\n  s = socket.socket(socket.AF_UNIX)\n"
               "  s.connect(sys.argv[1])\n  s.setblocking(False)\n  all.append(s)\ntime.sleep(1)\nopen = 0\n"
               "for s in all:\n  try:\n    while s.recv(65536): pass\n  except BlockingIOError: open += 1\n  except OSError: pass\n"
               "print(open, flush=True)\nsys.stdin.readline()\n")
    both = [subprocess.Popen(["python3", "-c", program, socket_of(c)], user=user, group=user, extra_groups=[], text=True,
                             stdin=subprocess.PIPE, stdout=subprocess.PIPE) for user in c.users[:2]]
    held = [int(one.stdout.readline()) for one in both]
    for one in both:
        one.communicate("\n")
    equal((max(held) <= 256, sum(held) > 300), (True, True), f"connections that two users hold: {held}")


def case_the_table_names_every_attempt(c):
    with open(f"{HERE}/README.md", encoding="utf-8") as f:
        named = set(re.findall(r"^\| `login/([a-z-]+)`", f.read(), re.M))
    cases = {n[5:].replace("_", "-") for n in globals() if n.startswith("case_")}
    equal(named, cases - {"the-table-names-every-attempt"}, "README.md")


if __name__ == "__main__":
    sys.exit(cluster.main(__doc__, globals(), "login", nodes=2, users=2))
