#!/usr/bin/env python3
"""Messages on their way: recorded and sent again, changed, shown by another user, old; and what the time of
an answer tells. Each attack is tried where a layer stops it, and where that layer is missing. README.md lists
the attempts. Replays against nodes, steps and credentials are unit tests; docs/security.md names them.

usage: messages_test.py BIN_DIR [-k CASE] [--keep]
"""
import json
import os
import pwd
import re
import socket
import subprocess
import sys
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "../e2e"))

import cluster  # noqa: E402
from cluster import contains, equal, wait_for  # noqa: E402
from login_test import key_of, raw, socket_of  # noqa: E402

SHOW_JOB, CANCEL_JOBS, HOLD_JOBS, REMOVE_SECRET, LIST_SECRETS = 24, 26, 27, 201, 202


class Between:
    """Passes one connection on to the controller; records what the client says, and may change a byte of it."""

    def __init__(self, port, change=-1):
        self.port, self.change, self.said = port, change, b""
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.own = self.listener.getsockname()[1]
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        client, _ = self.listener.accept()
        server = socket.create_connection(("127.0.0.1", self.port))
        threading.Thread(target=self.back, args=(server, client), daemon=True).start()
        try:
            while piece := client.recv(65536):
                at = self.change - len(self.said)
                self.said += piece
                if 0 <= at < len(piece):
                    piece = piece[:at] + bytes([piece[at] ^ 1]) + piece[at + 1:]
                server.sendall(piece)
            server.shutdown(socket.SHUT_WR)
        except OSError:
            pass

    @staticmethod
    def back(server, client):
        try:
            while piece := server.recv(65536):
                client.sendall(piece)
            client.shutdown(socket.SHUT_WR)
        except OSError:
            pass


def address_of(c):
    found = re.search(r"^controller = ([\w.]+):(\d+)", cluster.text(f"{c.state}/client.conf"), re.M)
    return found.group(1), int(found.group(2))


def by_way_of(c, between):
    """A client.conf that leads through this, and not by the login node's socket."""
    path = f"{c.out}/between.conf"
    lines = [line for line in cluster.text(f"{c.state}/client.conf").splitlines()
             if not line.startswith(("controller", "socket"))]
    with open(path, "w", encoding="utf-8") as f:
        f.write("\n".join([*lines, f"controller = 127.0.0.1:{between.own}", "socket = none"]) + "\n")
    return {"GANTRY_CONF": path}


def held(c, job):
    return "Held" in c.queue_line(job, "%r")


def case_a_recorded_connection(c):
    """A hold that was recorded, and sent again after the job was released."""
    job = c.submit("--begin=now+1hour", script="true\n")
    _, port = address_of(c)
    between = Between(port)
    done = c.as_user(["gctl", "hold", str(job)], env=by_way_of(c, between))
    equal((done.returncode, held(c, job)), (0, True), f"the connection that is recorded: {done.stderr}")
    equal(len(between.said) > 300, True, f"{len(between.said)} bytes recorded")
    c.as_user(["gctl", "release", str(job)])
    equal(held(c, job), False, "released")
    for size in (len(between.said), len(between.said) - 1):
        for pieces in (1, 20):
            with socket.create_connection(("127.0.0.1", port)) as s:
                s.settimeout(1)
                try:
                    step = size // pieces + 1
                    for at in range(0, size, step):
                        s.sendall(between.said[at:min(at + step, size)])
                        if pieces > 1:
                            s.recv(4096)
                    while s.recv(4096):
                        pass
                except OSError:
                    pass
            equal(held(c, job), False, "held by what was recorded")
    # Without the layer, on a socket that encrypts nothing, the same message holds it as often as it is sent.
    frame = (HOLD_JOBS, 9, f"810191810{1}ce{job:08x}")
    for _ in range(2):
        raw(c, [frame])
        equal(held(c, job), True, "the same message in clear")
        c.as_user(["gctl", "release", str(job)])
    c.as_user(["gcancel", str(job)])


def case_a_message_in_clear_of_another_user(c):
    """What stops a replay there is that the kernel says who sends it."""
    one, two = c.users[:2]
    job = c.submit("--begin=now+1hour", script="true\n", user=one)
    raw(c, [(HOLD_JOBS, 9, f"8101918101ce{job:08x}")], user=two)
    equal(held(c, job), False, "held by another user")
    raw(c, [(HOLD_JOBS, 9, f"8101918101ce{job:08x}")], user=one)
    equal(held(c, job), True, "held by its own")
    c.as_user(["gcancel", str(job)], user=one)


def case_a_submit_that_is_sent_twice(c):
    """One submit that comes twice in clear is one job: each has a random number of its own."""
    lines = c.as_user(["gqueue", "-h", "-o", "%i"]).stdout.split()
    equal(lines, [], "an empty queue")
    # Root listens, or the command would not speak to it; the user asks.
    path = f"{c.out}/caught.sock"
    program = ("import os, socket, sys, threading\n"
               "l = socket.socket(socket.AF_UNIX); l.bind(sys.argv[1]); l.listen()\n"
               "os.chmod(sys.argv[1], 0o777); os.setresgid(*[int(sys.argv[3])] * 3); os.setresuid(*[int(sys.argv[3])] * 3)\n"
               "print('ready', flush=True)\n"
               "a, _ = l.accept(); b = socket.socket(socket.AF_UNIX); b.connect(sys.argv[2]); said = b''\n"
               "def back():\n  while p := b.recv(65536): a.sendall(p)\n"
               "threading.Thread(target=back, daemon=True).start()\n"
               "while p := a.recv(65536):\n  said += p; b.sendall(p)\n"
               "print(said.hex(), flush=True)\n")
    catcher = subprocess.Popen(["/usr/bin/python3", "-c", program, path, socket_of(c), str(pwd.getpwnam(c.user).pw_uid)],
                               cwd=c.out, stdout=subprocess.PIPE, text=True)
    try:
        catcher.stdout.readline()
        conf = f"{c.out}/caught.conf"
        text = re.sub(r"^socket = .*$", f"socket = {path}", cluster.text(f"{c.state}/client.conf"), flags=re.M)
        with open(conf, "w", encoding="utf-8") as f:
            f.write(text)
        done = c.as_user(["gbatch", "-H", "--wrap=true", "-J", "caught"], env={"GANTRY_CONF": conf})
        equal(done.returncode, 0, done.stderr)
        said = catcher.stdout.readline().strip()
    finally:
        catcher.kill()
        catcher.wait()
    equal("caught".encode().hex() in said, True, "the submit in what was caught")
    jobs = c.as_user(["gqueue", "-h", "-o", "%i"]).stdout.split()
    equal(len(jobs), 1, "jobs of the submit")
    again = ("import socket, sys\ns = socket.socket(socket.AF_UNIX); s.settimeout(3); s.connect(sys.argv[1])\n"
             "s.sendall(bytes.fromhex(sys.argv[2]))\nprint(len(s.recv(65536)), flush=True)\n"
             "try:\n  while s.recv(65536): pass\nexcept OSError: pass\n")
    for _ in range(3):
        done = subprocess.run(["python3", "-c", again, socket_of(c), said], user=c.user, group=c.user, extra_groups=[],
                              capture_output=True, text=True, check=True)
        equal(int(done.stdout) > 0, True, "an answer")
    equal(c.as_user(["gqueue", "-h", "-o", "%i"]).stdout.split(), jobs, "jobs after three more times")
    # Without that number in it, each is a job of its own.
    c.as_user(["gbatch", "-H", "--wrap=true", "-J", "caught"])
    equal(len(c.as_user(["gqueue", "-h", "-o", "%i"]).stdout.split()), 2, "jobs of two submits")
    c.as_user(["gcancel", f"--user={c.user}"])


def case_bytes_changed_on_the_way(c):
    job = c.submit("--begin=now+1hour", script="true\n")
    _, port = address_of(c)
    whole = Between(port)
    equal(c.as_user(["gctl", "hold", str(job)], env=by_way_of(c, whole)).returncode, 0)
    equal(held(c, job), True, "unchanged it gets there")
    c.as_user(["gctl", "release", str(job)])
    size = len(whole.said)
    # Of the greeting: the word HELLO, the key, the number, the box; between them is padding that means nothing.
    for at in [70, 150, 180, 200, 260, *range(size - 60, size, 7)]:
        between = Between(port, at)
        done = c.as_user(["gctl", "hold", str(job)], env=by_way_of(c, between))
        equal((done.returncode != 0, held(c, job)), (True, False), f"byte {at} of {size} changed: {done.stdout}")
    c.as_user(["gcancel", str(job)])


def case_another_users_key(c):
    one, two = c.users[:2]
    key = f"{c.state}/users/{one}.key"
    done = subprocess.run(["cat", key], user=two, group=two, extra_groups=[], capture_output=True, text=True, check=False)
    equal((done.returncode != 0, done.stdout), (True, ""), "the key of another user")
    job = c.submit("-H", script="true\n", user=one)
    conf = f"{c.out}/stolen.conf"
    with open(conf, "w", encoding="utf-8") as f:
        text = cluster.text(f"{c.state}/client.conf")
        f.write(re.sub(r"^socket = .*$", "socket = none", re.sub(r"^key_file = .*$", f"key_file = {c.out}/stolen.key",
                                                               text, flags=re.M), flags=re.M) + "auth = key\n")
    cancel = ["gcancel", str(job)]
    stolen = f"{c.out}/stolen.key"
    with open(stolen, "wb") as f:
        f.write(b"")
    equal(c.as_user(cancel, user=two, env={"GANTRY_CONF": conf}).returncode != 0, True, "without it")
    # Without the mode of the file, whoever has it is that user.
    with open(stolen, "wb") as f:
        f.write(cluster.read(key))
    os.chown(stolen, os.stat(key).st_uid, -1)
    subprocess.run(["chown", two, stolen], check=True)
    os.chmod(stolen, 0o600)
    done = c.as_user(cancel, user=two, env={"GANTRY_CONF": conf})
    equal(done.returncode, 0, f"with it: {done.stderr}")
    # An administrator takes it back: the key is nobody's from then on.
    c.root(["gctl", "key", "remove", one])
    os.unlink(stolen)


def token_of(c, user, *options):
    done = c.as_user(["slurm/scontrol", "token", *options], user=user)
    equal(done.returncode, 0, done.stderr)
    return done.stdout.strip().split("=", 1)[1]


def with_token(c, token, *command, user=None):
    conf = f"{c.out}/token.conf"
    with open(conf, "w", encoding="utf-8") as f:
        f.write(re.sub(r"^(socket|key_file|auth) = .*\n", "", cluster.text(f"{c.state}/client.conf"), flags=re.M) +
                "socket = none\n")
    return c.as_user(list(command), user=user, env={"GANTRY_CONF": conf, "GANTRY_TOKEN": token})


def case_tokens_that_do_not_count(c):
    one, two = c.users[:2]
    token = token_of(c, two)
    equal(with_token(c, token, "gqueue", "-h", user=two).returncode, 0, "the token as it is")
    head, body, mac = token.split(".")
    tries = {
        "another user in it": ".".join([head, token_of(c, one).split(".")[1], mac]),
        "without its end": ".".join([head, body]), "without a signature": ".".join([head, body, ""]),
        "another signature": ".".join([head, body, mac[:-2] + ("AA" if mac[-2:] != "AA" else "BB")]),
        "cut": token[:-5], "more behind it": token + "A", "nothing": ".."}
    for what, bad in tries.items():
        done = with_token(c, bad, "gqueue", "-h", user=two)
        equal(done.returncode != 0, True, f"{what}: {done.stdout}")
    short = token_of(c, two, "lifespan=2")
    equal(with_token(c, short, "gqueue", "-h", user=two).returncode, 0, "before its end")
    wait_for("the end of a token", lambda: with_token(c, short, "gqueue", "-h", user=two).returncode != 0, 10)


def msgpack(value):
    if isinstance(value, bool):
        return b"\xc3" if value else b"\xc2"
    if isinstance(value, int):
        return b"\xce" + value.to_bytes(4, "big")
    if isinstance(value, str):
        return b"\xd9" + bytes([len(value)]) + value.encode()
    if isinstance(value, list):
        return bytes([0x90 + len(value)]) + b"".join(map(msgpack, value))
    return bytes([0x80 + len(value)]) + b"".join(bytes([k]) + msgpack(v) for k, v in value.items())


# Asks two questions in turn, many times, over one connection. Prints the answers of the first round and the
# times of all, in microseconds.
ASK = r"""
import json, random, socket, struct, sys, time
path, key, kind, bodies, times = sys.argv[1], sys.argv[2], int(sys.argv[3]), json.loads(sys.argv[4]), int(sys.argv[5])
def frame(kind, request, body):
    head = struct.pack("<HHQ", 1, kind, request)
    return struct.pack("<I", len(head) + len(body)) + head + body
s = socket.socket(socket.AF_UNIX)
s.connect(path)
s.settimeout(20)
s.sendall(frame(161, 1, b"\x81\x01\xd9" + bytes([len(key)]) + key.encode()))
def answer():
    got = b""
    while len(got) < 4 or len(got) < 4 + struct.unpack("<I", got[:4])[0]:
        piece = s.recv(65536)
        if not piece: raise EOFError
        got += piece
    return struct.unpack("<H", got[6:8])[0], got[16:]
took, said, request = [[], []], [None, None], 1
for i in range(times):
    for which in random.sample((0, 1), 2):
        request += 1
        data = frame(kind, request, bytes.fromhex(bodies[which]))
        began = time.perf_counter_ns()
        s.sendall(data)
        code, body = answer()
        took[which].append((time.perf_counter_ns() - began) / 1e3)
        said[which] = [code, body.hex()]
        time.sleep(0.004)  # below the rate that one user may ask
print(json.dumps([said, took]))
"""


def told_apart(one, two):
    """How well a time tells the two apart: the probability that one of the first is longer than one of the second
    (Mann and Whitney); 0.5 tells nothing."""
    wins = sum((x > y) + 0.5 * (x == y) for x in one for y in two)
    return wins / (len(one) * len(two))


def asked(c, user, kind, first, second, times):
    done = subprocess.run(["python3", "-c", ASK, socket_of(c), key_of(c), str(kind),
                           json.dumps([msgpack(first).hex(), msgpack(second).hex()]), str(times)],
                          user=user, group=user, extra_groups=[], capture_output=True, text=True, check=True, timeout=300)
    said, took = json.loads(done.stdout)
    return said, told_apart(*took)


def case_the_time_of_an_answer(c):
    """An answer about something of another tenant, and about nothing: the same words, and no time that tells them
    apart. For somebody who may see it, the same clock does."""
    red, blue = c.users[:2]
    for tenant, user in (("red", red), ("blue", blue)):
        c.root(["gtenant", "create", tenant, "--user", user, "--admin", user, "--cpus", "64", "--yes"], check=True)
    secret = c.as_user(["gtenant", "secret", "set", "red/hub"], user=red, input="x" * 60000)
    equal(secret.returncode, 0, secret.stderr)
    script = "true\n" + "# a long comment\n" * 3000
    job = c.submit("-H", "-p", "red", script=script, user=red)
    none = 10 ** len(str(job)) - 1  # of as many digits
    equal(none > job, True, f"job {job}")
    pairs = {
        "a job": (SHOW_JOB, {1: {1: job}}, {1: {1: none}}),
        "the script of a job": (SHOW_JOB, {1: {1: job}, 2: True}, {1: {1: none}, 2: True}),
        "a secret": (LIST_SECRETS, {1: ["red"], 2: "hub"}, {1: ["red"], 2: "hob"}),
        "a tenant": (LIST_SECRETS, {1: ["red"]}, {1: ["rod"]}),
        "a secret to remove": (REMOVE_SECRET, {1: "red", 2: "hub"}, {1: "red", 2: "hob"}),
        "a job to cancel": (CANCEL_JOBS, {1: {1: [{1: job}]}}, {1: {1: [{1: none}]}}),
    }
    told = {}
    for what, (kind, first, second) in pairs.items():
        said, apart = asked(c, blue, kind, first, second, 400)
        words = [bytes.fromhex(text).replace(str(job).encode(), b"N").replace(str(none).encode(), b"N")
                 .replace(job.to_bytes(2, "big"), b"n").replace(none.to_bytes(2, "big"), b"n")
                 .replace(b"rod", b"red").replace(b"hob", b"hub") for _, text in said]
        if what != "a job to cancel":  # a job that one may not cancel may be seen by its number
            equal((said[0][0], words[0]), (said[1][0], words[1]), f"the answers about {what}")
        if abs(apart - 0.5) > 0.1:  # once more: another program may have had the processor
            apart = min((asked(c, blue, kind, first, second, 800)[1] for _ in range(2)), key=lambda x: abs(x - 0.5))
        told[what] = apart
    print("  " + ", ".join(f"{what}: {apart:.3f}" for what, apart in told.items()))
    equal({what: apart for what, apart in told.items() if abs(apart - 0.5) > 0.1 and what != "a job to cancel"}, {},
          "told apart by time")
    # The clock is good enough: for its owner the two differ.
    _, apart = asked(c, red, SHOW_JOB, {1: {1: job}, 2: True}, {1: {1: none}, 2: True}, 400)
    print(f"  for its owner, the script of a job: {apart:.3f}")
    equal(apart > 0.7, True, f"the owner's own job: {apart:.3f}")
    c.root(["gcancel", str(job)])


def case_the_table_names_every_attempt(c):
    with open(f"{HERE}/README.md", encoding="utf-8") as f:
        named = set(re.findall(r"^\| `messages/([a-z-]+)`", f.read(), re.M))
    cases = {n[5:].replace("_", "-") for n in globals() if n.startswith("case_")}
    equal(named, cases - {"the-table-names-every-attempt"}, "README.md")


if __name__ == "__main__":
    sys.exit(cluster.main(__doc__, globals(), "messages", nodes=1, users=2))
