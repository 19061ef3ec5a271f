#!/usr/bin/env python3
"""Tokens that enroll a node once, on a real cluster: used twice, for another node, guessed, taken back, and
what a stolen key of a node gives once it was taken back. Each refusal is one and the same sentence.
README.md lists the attempts.

usage: enroll_test.py BIN_DIR [-k CASE] [--keep]
"""
import os
import signal
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../e2e"))

import cluster  # noqa: E402
from cluster import alive, contains, equal, wait_for  # noqa: E402

REFUSED = ("this enrolment token does not count here: it was used, was taken back, has expired, or is for "
           "another node or cluster; an administrator makes another one with gctl enroll --token")


def token_for(c, node, *options):
    return c.root(["gctl", "enroll", "--token", node, *options], check=True).stdout.strip()


def token_file(c, token, name="token"):
    path = f"{c.top}/{name}"
    with open(path, "w", encoding="ascii") as f:
        f.write(token + "\n")
    os.chmod(path, 0o600)
    return path


def stop_node(c, node):
    """Stops the daemon, and returns its arguments."""
    pid = c.daemon(node)
    argv = c.daemons.pop(pid)
    os.kill(pid, signal.SIGTERM)
    wait_for(f"the end of {node}'s daemon", lambda: not alive(pid))
    return argv


def tried(c, argv, token, node=None, key="another.key"):
    """What a daemon with a new key says that shows this token, as this node."""
    words = [a.decode() for a in argv]
    words[words.index("--key") + 1] = f"{c.top}/{key}"
    if node:
        words[words.index("--name") + 1] = node
    done = subprocess.run(words + ["--enroll", token_file(c, token, "stolen")], env=c.env, text=True,
                          capture_output=True, timeout=60, check=False)
    equal(done.returncode != 0, True, f"a daemon that was refused ended well: {done.stdout}{done.stderr}")
    return done.stdout + done.stderr


def state_of(c, node):
    return c.root(["ginfo", "-h", "-N", "-n", node, "-o", "%T"]).stdout.strip()


def up(c, node):
    wait_for(f"{node} is up", lambda: "idle" in state_of(c, node))


def case_a_node_enrolls_itself_and_nobody_else(c):
    argv = stop_node(c, "node2")
    words = [a.decode() for a in argv]
    key = words[words.index("--key") + 1]
    c.root(["gctl", "enroll", "--revoke-key", "node2"], check=True)
    os.rename(key, f"{c.top}/old.key")
    token = token_for(c, "node2")

    # Guessed, shortened, in other letters, and for another node: one sentence, and it is not used up.
    for guess in ("0" * 64, token[:-1], token[:-1] + ("0" if token[-1] != "0" else "1"), token.upper(), ""):
        contains(tried(c, argv, guess, key=f"guess-{len(guess)}-{guess[-1:]}.key"), REFUSED)
    contains(tried(c, argv, token, node="node1"), REFUSED)

    # The node's own first start: it makes its key, and the file of the token is gone.
    path = token_file(c, token)
    c.spawn(argv + [b"--enroll", path.encode()])
    up(c, "node2")
    equal(os.path.exists(path), False, "the token's file")
    equal(os.stat(key).st_mode & 0o777, 0o600, "the mode of the key")
    listed = c.root(["gctl", "enroll", "--list"], check=True).stdout
    equal("token " in listed, False, listed)

    # Used twice: by somebody else, and by the node itself with another key.
    said = tried(c, argv, token, key="second.key")
    contains(said, REFUSED)
    up(c, "node2")
    job = c.submit("-w", "node2", "--wrap=true")
    c.ended(job, "completed")


def case_a_token_that_was_taken_back(c):
    argv = [a for pid, a in c.daemons.items() if b"node2" in a][0]
    token = token_for(c, "node2", "--valid", "5")
    listed = c.root(["gctl", "enroll", "--list"], check=True).stdout
    ident = listed.split()[1]
    equal(ident in token, False, "the id tells nothing of the token")
    c.root(["gctl", "enroll", "--revoke", ident], check=True)
    contains(tried(c, argv, token, key="third.key"), REFUSED)
    done = c.root(["gctl", "enroll", "--revoke", ident])
    contains(done.stderr, "there is no token")


def case_only_administrators(c):
    for words in (["--token", "node2"], ["--list"], ["--revoke", "node2"], ["--revoke-key", "node2"]):
        done = c.as_user(["gctl", "enroll", *words])
        equal(done.returncode != 0, True, done.stdout)
        contains(done.stderr, "administrator")


def case_the_store_has_no_token(c):
    token = token_for(c, "node2")
    for top, _, names in os.walk(c.state):
        for name in names:
            path = f"{top}/{name}"
            if os.path.isfile(path):
                equal(token.encode() in cluster.read(path), False, f"the token is in {path}")
    c.root(["gctl", "enroll", "--revoke", "node2"], check=True)


def case_a_stolen_key_is_taken_back(c):
    """The daemon that has the key is not heard any more, also after a restart of the controller, for which
    the file with the cluster's first keys lies there still."""
    c.root(["gctl", "enroll", "--revoke-key", "node2"], check=True)
    wait_for("node2 is down", lambda: "down" in state_of(c, "node2"))
    c.kill_and_restart(c.daemon("ctld"))
    wait_for("the controller", lambda: c.root(["gctl", "ping"]).returncode == 0)
    argv = stop_node(c, "node2")
    c.spawn(argv)
    job = c.submit("-w", "node1", "--wrap=true")  # meanwhile the others go on
    c.ended(job, "completed")
    contains(state_of(c, "node2"), "down")
    stop_node(c, "node2")
    # The machine was cleaned; it gets another token and another key.
    words = [a.decode() for a in argv]
    os.unlink(words[words.index("--key") + 1])
    plain = argv[:argv.index(b"--enroll")] if b"--enroll" in argv else argv
    c.spawn(plain + [b"--enroll", token_file(c, token_for(c, "node2")).encode()])
    up(c, "node2")


def case_what_the_log_says(c):
    lines = c.root(["gctl", "audit", "show", "--dir", f"{c.state}/ctld/audit", "-n", "1000"],
                   check=True).stdout
    contains(lines, "ChangeEnrollment (admin")
    contains(lines, "EnrollNode")
    contains(lines, "UseEnrollToken")
    contains(lines, "claims=node1")


if __name__ == "__main__":
    sys.exit(cluster.main(__doc__, globals(), "enroll", nodes=2))
