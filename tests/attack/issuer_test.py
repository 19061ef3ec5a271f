#!/usr/bin/env python3
"""Tokens of another issuer on a real cluster: what a token of the site's sign-on gives, and forged, borrowed and old ones.
Keys and signatures are openssl's. README.md lists the attempts.

usage: issuer_test.py BIN_DIR [-k CASE] [--keep]
"""
import base64
import hashlib
import hmac
import json
import os
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../e2e"))

import cluster  # noqa: E402
from cluster import contains, equal, wait_for  # noqa: E402

ISSUER = "https://login.example/realms/site"
AUDIENCE = "gantry-test"
TENANT = """
apiVersion: gantry/v1
kind: Tenant
name: red
roles:
  user: {{users: [{user}]}}
  tenant-admin: {{groups: ["oidc:leads", {group}]}}
"""


def b64(octets):
    return base64.urlsafe_b64encode(octets).rstrip(b"=").decode()


def openssl(*words, text=None):
    done = subprocess.run(["openssl", *words], input=text, capture_output=True, check=False)
    equal(done.returncode, 0, f"openssl {words[0]}: {done.stderr.decode()}")
    return done.stdout


class Key:
    """A key pair in a file, as an issuer has it."""

    def __init__(self, path, kid, algorithm):
        self.path, self.kid, self.algorithm = path, kid, algorithm
        kind = ["EC", "-pkeyopt", "ec_paramgen_curve:P-256"] if algorithm == "ES256" else \
            ["RSA", "-pkeyopt", "rsa_keygen_bits:2048"]
        openssl("genpkey", "-algorithm", *kind, "-out", path)

    def public(self):
        if self.algorithm == "ES256":
            point = openssl("pkey", "-in", self.path, "-pubout", "-outform", "DER")[-64:]
            return {"kty": "EC", "crv": "P-256", "kid": self.kid, "x": b64(point[:32]), "y": b64(point[32:])}
        modulus = openssl("rsa", "-in", self.path, "-modulus", "-noout").decode().strip().split("=")[1]
        return {"kty": "RSA", "kid": self.kid, "use": "sig", "alg": "RS256", "n": b64(bytes.fromhex(modulus)),
                "e": "AQAB"}

    def sign(self, covered):
        der = openssl("dgst", "-sha256", "-sign", self.path, text=covered)
        if self.algorithm == "RS256":
            return der
        at, halves = 3, []  # SEQUENCE, length, INTEGER, and then twice: length, number
        for _ in range(2):
            size = der[at]
            halves.append(der[at + 1:at + 1 + size].lstrip(b"\0").rjust(32, b"\0"))
            at += size + 2
        return halves[0] + halves[1]


def claims_of(user, **other):
    now = int(time.time())
    claims = {"iss": ISSUER, "aud": ["account", AUDIENCE], "iat": now, "exp": now + 600, "preferred_username": user,
              "groups": []}
    claims.update(other)
    return {name: value for name, value in claims.items() if value is not None}


def token(key, claims, header=None, sign=None):
    head = {"alg": key.algorithm, "typ": "JWT", "kid": key.kid, **(header or {})}
    head = {name: value for name, value in head.items() if value is not None}
    covered = b64(json.dumps(head).encode()) + "." + b64(json.dumps(claims).encode())
    return covered + "." + b64((sign or key.sign)(covered.encode()))


def publish(c, *keys):
    """Puts the file of the issuer's keys in its place, as one does: completely or not at all."""
    with open(f"{c.keys}.new", "w", encoding="ascii") as f:
        json.dump({"keys": [key.public() for key in keys]}, f)
    os.chmod(f"{c.keys}.new", 0o644)
    os.rename(f"{c.keys}.new", c.keys)


def asks(c, made, *command, text=""):
    """A command of somebody who has nothing but the token: nobody's uid, no key, no munge credential."""
    return subprocess.run([f"{c.bin}/{command[0]}", *command[1:]], cwd=c.out, capture_output=True, text=True, user=65534,
                          group=65534, extra_groups=[], check=False, timeout=60, input=text,
                          env=dict(c.env, HOME=c.out, GANTRY_TOKEN=made))


def counts(c, made):
    done = asks(c, made, "gqueue", "-h")
    return "" if done.returncode == 0 else done.stdout + done.stderr


def refused(c, made, why):
    said = counts(c, made)
    equal(said != "", True, f"a token that must be refused ({why}) counts")
    contains(said, why)


def case_0_the_issuer_is_made_known(c):
    c.keys = f"{c.top}/issuer.json"
    c.first, c.rsa = Key(f"{c.top}/first.pem", "first", "ES256"), Key(f"{c.top}/rsa.pem", "rsa", "RS256")
    c.second = Key(f"{c.top}/second.pem", "first", "ES256")  # says that it is the first
    publish(c, c.first, c.rsa)
    before = counts(c, token(c.first, claims_of(c.user)))
    contains(before, "it takes no others (controller.oidc_issuer)")
    with open(f"{c.top}/red.yaml", "w", encoding="ascii") as f:
        f.write(TENANT.format(user=c.user, group=c.users[1]))
    c.root(["gtenant", "apply", "--yes", "-f", f"{c.top}/red.yaml"], check=True)
    conf = f"{c.state}/gantry.yaml"
    plain = cluster.text(conf)
    lines = f"controller:\n  oidc_issuer: {ISSUER}\n  oidc_audience: {AUDIENCE}\n  oidc_keys: {c.keys}\n"
    # A file that others may write is refused, and the controller goes on as it was.
    os.chmod(c.keys, 0o666)
    with open(conf, "w", encoding="utf-8") as f:
        f.write(plain.replace("controller:\n", lines, 1))
    c.root(["gctl", "reconfigure"])
    contains(counts(c, token(c.first, claims_of(c.user))), "it takes no others")
    os.chmod(c.keys, 0o644)
    c.root(["gctl", "reconfigure"], check=True)
    wait_for("the issuer counts", lambda: counts(c, token(c.first, claims_of(c.user))) == "")


def case_a_token_is_its_user_until_it_ends(c):
    for key in (c.first, c.rsa):
        done = asks(c, token(key, claims_of(c.user)), "gbatch", "--parsable", "-p", "red", "--mem=40M", "-o", "/dev/null",
                    "--wrap=true")
        equal(done.returncode, 0, done.stdout + done.stderr)
        job = int(done.stdout)
        c.ended(job, "completed")
        contains(c.root(["gctl", "show", "job", str(job)]).stdout, c.user)
    # It makes no token that lasts longer, and registers no key.
    done = asks(c, token(c.first, claims_of(c.user, exp=int(time.time()) + 60)), "gctl", "token", "-t", "1:00:00")
    equal(done.returncode != 0, True, done.stdout)
    contains(done.stderr, "for no longer")


def case_groups_have_roles(c):
    job = c.submit("-H", "-p", "red", "--wrap=true")
    who = c.users[2]

    def may_change(made):
        return asks(c, made, "gctl", "update", f"job={job}", "comment=changed").returncode == 0

    for groups in ([], ["others"], "Leads", {"leads": True}):
        equal(may_change(token(c.first, claims_of(who, groups=groups))), False, f"{groups} change a job")
    for groups in (["others", "leads"], ["/leads"], "leads"):
        equal(may_change(token(c.first, claims_of(who, groups=groups))), True, f"{groups} change a job")
    # A group of the machine that has a role is no group of a token, whatever the token says.
    equal(may_change(token(c.first, claims_of(who, groups=[c.users[1]]))), False)
    equal(may_change(token(c.first, claims_of(c.users[1]))), True, "who is in that group")
    c.root(["gcancel", "-Q", str(job)])


def case_forged(c):
    claims = claims_of(c.user)
    whole = token(c.first, claims)
    equal(counts(c, whole), "", "unchanged, it counts")
    refused(c, token(c.first, claims, {"alg": "none", "kid": None}, lambda covered: b""), "is not signed by HS256")
    refused(c, token(c.first, claims, {"alg": "none"}, lambda covered: b""), "the token's header")
    pem = openssl("pkey", "-in", c.first.path, "-pubout")
    for secret in (pem, cluster.read(c.keys), json.dumps(c.first.public()).encode()):
        refused(c, token(c.first, claims, {"alg": "HS256", "kid": None},
                         lambda covered, secret=secret: hmac.new(secret, covered, hashlib.sha256).digest()),
                "is not signed by this controller")
    refused(c, token(c.second, claims), "signature is wrong")
    refused(c, token(c.second, claims, {"kid": None}), "signature is wrong")
    refused(c, token(c.second, claims, {"jwk": c.second.public(), "kid": "second"}), 'has no key "second"')
    refused(c, token(c.rsa, claims, {"kid": "first"}), 'has no key "first" for RS256')
    refused(c, token(c.first, claims, {"alg": "RS256", "kid": "rsa"}), "signature is wrong")
    refused(c, token(c.first, claims, {"crit": ["exp"]}), "crit")
    head, _, signature = whole.split(".")
    other = b64(json.dumps(claims_of(c.users[1])).encode())
    refused(c, f"{head}.{other}.{signature}", "signature is wrong")
    for zeros in (b"", b"\0" * 64, b"\0" * 63 + b"\1"):
        refused(c, token(c.first, claims, None, lambda covered, zeros=zeros: zeros), "signature is wrong")


def case_true_but_not_for_us(c):
    now = int(time.time())
    refused(c, token(c.first, claims_of(c.user, iss=ISSUER + "/")), "is of issuer")
    refused(c, token(c.first, claims_of(c.user, aud="another")), "is not for audience")
    refused(c, token(c.first, claims_of(c.user, aud=None)), "is not for audience")
    refused(c, token(c.first, claims_of(c.user, iat=now - 100, exp=now - 10)), "no longer valid")
    refused(c, token(c.first, claims_of(c.user, iat=now + 3600, exp=now + 7200)), "from the future")
    refused(c, token(c.first, claims_of(c.user, nbf=now + 3600)), "from the future")
    refused(c, token(c.first, claims_of(c.user, exp=None)), "lacks")
    # Made so long ago that no token of the controller itself would count, although its end is far.
    refused(c, token(c.first, claims_of(c.user, iat=now - 31 * 86400, exp=now + 86400)), "no longer valid")
    refused(c, token(c.first, claims_of("root")), "does not speak for root")
    refused(c, token(c.first, claims_of("no-such-user")), "no user")
    refused(c, token(c.first, claims_of(None)), "no login name")
    refused(c, token(c.first, claims_of({"name": c.user})), "no login name")


def case_keys_are_changed(c):
    old = token(c.first, claims_of(c.user))
    third = Key(f"{c.top}/third.pem", "third", "ES256")
    publish(c, third, c.rsa)
    refused(c, old, 'has no key "first"')
    equal(counts(c, token(third, claims_of(c.user))), "", "the new key counts at once")
    with open(f"{c.keys}.new", "w", encoding="ascii") as f:
        f.write("{")
    os.rename(f"{c.keys}.new", c.keys)
    equal(counts(c, token(third, claims_of(c.user))), "", "a damaged file changes nothing")
    os.chmod(c.keys, 0o666)
    publish(c, c.first)
    os.chmod(c.keys, 0o666)
    refused(c, old, 'has no key "first"')  # others may write the file, so it is not believed
    publish(c, c.first)
    equal(counts(c, old), "", "the first key is back")


if __name__ == "__main__":
    sys.exit(cluster.main(__doc__, globals(), "issuer", nodes=1, users=3))
