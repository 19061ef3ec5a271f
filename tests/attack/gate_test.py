#!/usr/bin/env python3
"""Attacks on a gate and on the doors of replicas: others' tokens and false ones, names of hosts, paths, headers,
bodies, slow clients and floods. Each must reach nothing; beside each stands the same request without the trick,
which does reach its replica. Then the layer is taken away, and it must get through: the document wants no token,
or has no limit, or the octets go straight to the replica's server. README.md lists the attempts.

usage: gate_test.py BIN_DIR [-k CASE]
"""
import base64
import concurrent.futures
import json
import os
import re
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
sys.path.insert(0, os.path.join(HERE, "../gate"))
import http2  # noqa: E402
from site_of_a_gate import HAPROXY, Load, Site, service, wait_for  # noqa: E402

ISSUER = "https://gantry.example"


def b64(octets):
    return base64.urlsafe_b64encode(octets).rstrip(b"=").decode()


def openssl(*words, given=b""):
    return subprocess.run(["openssl", *words], input=given, check=True, capture_output=True).stdout


class Key:
    """An EC key, and tokens that it signs, made by openssl."""

    def __init__(self, kid):
        self.kid, self.dir = kid, tempfile.TemporaryDirectory(prefix="gantry-gate-key-")
        self.file = f"{self.dir.name}/key.pem"
        openssl("ecparam", "-name", "prime256v1", "-genkey", "-noout", "-out", self.file)
        self.public = openssl("ec", "-in", self.file, "-pubout")
        der = openssl("ec", "-in", self.file, "-pubout", "-outform", "DER")
        self.jwk = {"kty": "EC", "crv": "P-256", "kid": kid, "alg": "ES256", "use": "sig",
                    "x": b64(der[-64:-32]), "y": b64(der[-32:])}

    def sign(self, text):
        der = openssl("dgst", "-sha256", "-sign", self.file, given=text)
        numbers, at = [], 2
        for _ in range(2):
            length = der[at + 1]
            numbers.append(int.from_bytes(der[at + 2:at + 2 + length], "big").to_bytes(32, "big"))
            at += 2 + length
        return b"".join(numbers)

    def token(self, header=None, sign=True, **claims):
        now = int(time.time())
        body = {"iss": ISSUER, "aud": "gantry-services", "iat": now, "nbf": now, "exp": now + 600, "sub": "x",
                "tenant": "fraud", "user": "ann", **claims}
        body = {k: v for k, v in body.items() if v is not None}
        head = {"alg": "ES256", "typ": "JWT", "kid": self.kid, **(header or {})}
        text = f"{b64(json.dumps(head).encode())}.{b64(json.dumps(body).encode())}"
        return f"{text}.{b64(self.sign(text.encode())) if sign else ''}"


def equal(got, wanted, what=""):
    assert got == wanted, f"{what}: {got!r} is not {wanted!r}"


def at_once(ask, tries):
    """[(one, ask(one))]; eight at a time, because most of them wait for an answer that does not come."""
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        return list(zip(tries, pool.map(ask, tries)))


def bearer(token):
    return {"Authorization": f"Bearer {token}"}


def begin(site, key, *services):
    site.issuer, site.keys = ISSUER, json.dumps({"keys": [key.jwk]})
    site.put(*services)
    site.start()
    wait_for(lambda: site.haproxy() != 0 and
             list(site.servers().values()).count("no check") == sum(len(s["replicas"]) for s in services))


def case_tokens(site):
    key, other = Key("k1"), Key("k1")
    a, b = site.replica(1), site.replica(2)
    begin(site, key, service(replicas=[a], access="tenant", callers=["risk"]),
          service("any", tenant="risk", replicas=[b], access="tokens"))
    good = key.token()
    equal(site.get(headers=bearer(good))[0], 200, "the owner's token")
    equal(site.get(headers=bearer(key.token(tenant="risk")))[0], 200, "a caller's token")
    equal(site.get(headers=bearer(key.token(aud="api")))[0], 200, "the service's name as audience")
    equal(site.get("any.example", headers=bearer(key.token(tenant="market")))[0], 200, "any token")
    now, reached = int(time.time()), a.requests
    hmac_text = good.split(".")[0]
    tries = {
        "no token": ({}, 401),
        "another tenant's token": (bearer(key.token(tenant="market")), 403),
        "no tenant in it": (bearer(key.token(tenant=None)), 403),
        "a tenant that begins alike": (bearer(key.token(tenant="fraud2")), 403),
        "a tenant with the separator": (bearer(key.token(tenant="fraud:api")), 403),
        "expired": (bearer(key.token(exp=now - 1)), 401),
        "no end": (bearer(key.token(exp=None)), 401),
        "end as text": (bearer(key.token(exp="never")), 401),
        "not valid yet": (bearer(key.token(nbf=now + 300)), 401),
        "another issuer": (bearer(key.token(iss="https://evil.example")), 401),
        "no issuer": (bearer(key.token(iss=None)), 401),
        "another audience": (bearer(key.token(aud="sts.amazonaws.com")), 401),
        "another service's audience": (bearer(key.token(aud="any")), 401),
        "no audience": (bearer(key.token(aud=None)), 401),
        "alg none": (bearer(key.token(header={"alg": "none"}, sign=False)), 401),
        "alg none, signed": (bearer(key.token(header={"alg": "none"})), 401),
        "alg HS256": (bearer(key.token(header={"alg": "HS256"})), 401),
        "no signature": (bearer(key.token(sign=False)), 401),
        "another key under this id": (bearer(other.token()), 401),
        "an unknown key id": (bearer(key.token(header={"kid": "k2"})), 401),
        "a path as key id": (bearer(key.token(header={"kid": "../keys/k1"})), 401),
        "no key id": (bearer(key.token(header={"kid": None})), 401),
        "claims changed": (bearer(".".join([good.split(".")[0], key.token(tenant="x").split(".")[1],
                                            good.split(".")[2]])), 401),
        "a good token with more behind it": (bearer(good + "A"), 401),
        "two parts": (bearer(".".join(good.split(".")[:2])), 401),
        "garbage": (bearer("a.b.c"), 401),
        "Basic": ({"Authorization": "Basic " + base64.b64encode(b"ann:pw").decode()}, 401),
        "in another header": ({"X-Authorization": f"Bearer {good}"}, 401),
        "header alone": (bearer(hmac_text), 401),
    }
    for what, (headers, status) in tries.items():
        equal(site.get(headers=headers)[0], status, what)
        # Once more, as a good signature is remembered.
        equal(site.get(headers=headers)[0], status, what + ", again")
    equal(a.requests, reached, "requests of refused tokens in the replica")
    # Two headers: neither the first nor the last is taken.
    for tokens in ((good, key.token(tenant="market")), (key.token(tenant="market"), good)):
        said = site.raw(b"GET / HTTP/1.1\r\nHost: api.example\r\n" +
                        b"".join(b"Authorization: Bearer %s\r\n" % t.encode() for t in tokens) + b"\r\n")
        assert b" 400 " in said.split(b"\r\n")[0], said[:80]
    # The replica gets the caller's name from the gate, and not its token.
    status, body, _ = site.get(headers={**bearer(good), "X-Gantry-Tenant": "root", "x_gantry_user": "root"})
    seen = dict(json.loads(body)["headers"])
    equal((seen.get("x-gantry-tenant"), seen.get("x-gantry-user"), seen.get("authorization")),
          ("fraud", "ann", None))
    assert "x_gantry_user" not in seen, seen
    # Without the layer each is let in.
    site.put(service(replicas=[a], access="open"))
    wait_for(lambda: site.get()[0] == 200)
    for what, (headers, _) in tries.items():
        equal(site.get(headers=headers)[0], 200, what + ", where the document wants no token")


def case_key_taken_back(site):
    first, second = Key("k1"), Key("k2")
    a = site.replica(1)
    begin(site, first, service(replicas=[a], access="tenant"))
    token = first.token()
    equal(site.get(headers=bearer(token))[0], 200)
    site.keys = json.dumps({"keys": [second.jwk]})
    site.put(service(replicas=[a], access="tenant"))
    wait_for(lambda: site.get(headers=bearer(second.token()))[0] == 200)
    equal(site.get(headers=bearer(token))[0], 401, "a token of a key that is gone, found good before")


def case_hosts(site):
    """No name leads to a service that is not its own, nor past the access of the one."""
    key = Key("k1")
    a, b = site.replica(1), site.replica(2)
    begin(site, key, service("open", replicas=[a]), service("shut", tenant="risk", replicas=[b], access="tenant"))
    reached = b.requests
    same = [b"open.example", b"OPEN.EXAMPLE", b"open.example:8080", b"open.example.", b"Open.example.:99"]
    for host in same:
        said = site.raw(b"GET / HTTP/1.1\r\nHost: " + host + b"\r\nConnection: close\r\n\r\n")
        assert b" 200 " in said.split(b"\r\n")[0] and b'"j1"' in said, (host, said[:80])
    shut = [
        b"GET / HTTP/1.1\r\nHost: shut.example\r\n",
        b"GET / HTTP/1.1\r\nHost: SHUT.example.\r\n",
        b"GET / HTTP/1.1\r\nHost: open.example\r\nHost: shut.example\r\n",
        b"GET / HTTP/1.1\r\nHost: shut.example\r\nHost: open.example\r\n",
        b"GET http://shut.example/ HTTP/1.1\r\nHost: open.example\r\n",
        b"GET http://shut.example/ HTTP/1.1\r\nHost: shut.example\r\n",
        b"GET http://open.example@shut.example/ HTTP/1.1\r\nHost: shut.example\r\n",
        b"GET / HTTP/1.1\r\nHost: open.example, shut.example\r\n",
        b"GET / HTTP/1.1\r\nHost: open.example#shut.example\r\n",
        b"GET / HTTP/1.1\r\nHost: open.example\r\nX-Forwarded-Host: shut.example\r\n",
        b"GET / HTTP/1.1\r\nHost: open.example\r\nForwarded: host=shut.example\r\n",
        b"GET / HTTP/1.1\r\nHost: open.example\r\nX-Original-URL: http://shut.example/\r\n",
        b"GET / HTTP/1.1\r\nX: y\r\n",
        b"GET / HTTP/1.0\r\n",
        b"GET / HTTP/1.1\r\nHost:\r\n",
        b"GET / HTTP/1.1\r\nHost: shut.example%00.open.example\r\n",
        b"CONNECT shut.example:80 HTTP/1.1\r\nHost: shut.example:80\r\n",
        b"TRACE / HTTP/1.1\r\nHost: open.example\r\n",
    ]
    for request, said in at_once(lambda request: site.raw(request + b"Connection: close\r\n\r\n"), shut):
        assert b'"j2"' not in said, (request, said[:80])
    equal(b.requests, reached, "requests in the service that wants a token")
    equal(site.get("shut.example", headers=bearer(key.token(tenant="risk")))[0], 200, "with a token")
    # Without the layer those that name it as they should get there; the others are no requests of HTTP.
    site.put(service("open", replicas=[a]), service("shut", tenant="risk", replicas=[b]))
    wait_for(lambda: site.get("shut.example")[0] == 200)
    there = [r for r in shut if b'"j2"' in site.raw(r + b"Connection: close\r\n\r\n")]
    assert shut[0] in there and shut[1] in there, there


def case_http2(site):
    """The same by HTTP/2, where the name of the host is no header: nothing leads to a service that is not its own."""
    key = Key("k1")
    a, b = site.replica(1), site.replica(2)
    begin(site, key, service("open", replicas=[a]), service("shut", tenant="risk", replicas=[b], access="tenant"))
    plain = http2.request(1, *http2.get(b"open.example"))
    status, body, _ = http2.talk(site.port, plain)
    assert status == {1: 200} and b'"j1"' in body, (status, body)
    reached, get, ask = b.requests, http2.get, http2.request
    pseudo = get(b"open.example")
    shut = {
        "its authority": [ask(1, *get(b"shut.example"))],
        "in capitals, with a dot and a port": [ask(1, *get(b"SHUT.example.:443"))],
        "another host": [ask(1, *get(b"open.example", b"/", (b"host", b"shut.example")))],
        "another authority": [ask(1, *get(b"shut.example", b"/", (b"host", b"open.example")))],
        "two authorities": [ask(1, *pseudo, (b":authority", b"shut.example"))],
        "two authorities, the other way": [ask(1, *get(b"shut.example"), (b":authority", b"open.example"))],
        "a host and no authority": [ask(1, pseudo[0], pseudo[1], pseudo[3], (b"host", b"shut.example"))],
        "two hosts": [ask(1, pseudo[0], pseudo[1], pseudo[3], (b"host", b"open.example"), (b"host", b"shut.example"))],
        "no host at all": [ask(1, pseudo[0], pseudo[1], pseudo[3])],
        "a user before the host": [ask(1, *get(b"open.example@shut.example"))],
        "an absolute path": [ask(1, *get(b"open.example", b"http://shut.example/"))],
        "a path of another host": [ask(1, *get(b"open.example", b"//shut.example/"))],
        "a line in the authority": [ask(1, *get(b"open.example\r\nHost: shut.example"))],
        "a line in the path": [ask(1, *get(b"open.example", b"/ HTTP/1.1\r\nHost: shut.example\r\nX: "))],
        "a line in the method": [ask(1, (b":method", b"GET / HTTP/1.1\r\nHost: shut.example\r\nX: y\r\n\r\nGET"), *pseudo[1:])],
        "a line in a value": [ask(1, *get(b"open.example", b"/", (b"x", b"y\r\nX-Gantry-Tenant: root")))],
        "a line in a name": [ask(1, *get(b"open.example", b"/", (b"x: y\r\nx-gantry-tenant", b"root")))],
        "a name with a colon": [ask(1, *get(b"open.example", b"/", (b"x-gantry-tenant:", b"root")))],
        "a name in capitals": [ask(1, *get(b"open.example", b"/", (b"X-Gantry-Tenant", b"root")))],
        "the gate's own header": [ask(1, *get(b"open.example", b"/", (b"x-gantry-tenant", b"root")))],
        "the scheme of another": [ask(1, pseudo[0], (b":scheme", b"http://shut.example/?"), *pseudo[2:])],
        "a late pseudo-header": [ask(1, *pseudo[:2], pseudo[3], (b"x", b"y"), (b":authority", b"shut.example"))],
        "the authority as a trailer": [ask(1, (b":method", b"POST"), *pseudo[1:], end=False),
                                       ask(1, (b":authority", b"shut.example"))],
        "a tunnel": [ask(1, (b":method", b"CONNECT"), (b":authority", b"shut.example:80"), end=False)],
        "a tunnel of another protocol": [ask(1, (b":method", b"CONNECT"), (b":protocol", b"websocket"), *pseudo[1:], end=False)],
        "a length that is none": [ask(1, (b":method", b"POST"), *pseudo[1:], (b"content-length", b"0"), end=False),
                                  http2.frame(http2.DATA, http2.END_STREAM, 1,
                                              b"GET /hidden HTTP/1.1\r\nHost: shut.example\r\n\r\n")],
        "chunks": [ask(1, (b":method", b"POST"), *pseudo[1:], (b"transfer-encoding", b"chunked"), end=False),
                   http2.frame(http2.DATA, http2.END_STREAM, 1, b"0\r\n\r\nGET /hidden HTTP/1.1\r\nHost: shut.example\r\n\r\n")],
        "a stream of the server": [ask(2, *get(b"shut.example"))],
        "headers cut into pieces": [http2.frame(http2.HEADERS, http2.END_STREAM, 1, http2.block(*pseudo[:3])),
                                    http2.frame(http2.CONTINUATION, http2.END_HEADERS, 1,
                                                http2.block(pseudo[3], (b":authority", b"shut.example")))],
    }
    for what, (_, body, _) in at_once(lambda what: http2.talk(site.port, *shut[what], timeout=0.5), shut):
        assert b'"j2"' not in body, (what, body)
    equal(b.requests, reached, "requests in the service that wants a token")
    for method, path, headers in a.seen:
        seen = {k.lower(): v for k, v in headers.items()}
        assert "hidden" not in path and seen.get("x-gantry-tenant") != "root", (method, path, headers)
    good = (b"authorization", b"Bearer " + key.token(tenant="risk").encode())
    equal(http2.talk(site.port, ask(1, *get(b"shut.example", b"/", good)))[0], {1: 200}, "with a token")
    # Floods that cost the sender little: requests that are taken back at once, headers without an end, pings.
    floods = {
        "requests that are taken back": [frame for n in range(1, 4001, 2) for frame in (
            ask(n, *pseudo), http2.frame(http2.RESET, 0, n, struct.pack(">I", 8)))],
        "headers without an end": [http2.frame(http2.HEADERS, 0, 1, http2.block(*pseudo))] + [
            http2.frame(http2.CONTINUATION, 0, 1, http2.header(b"x%d" % n, b"y" * 1000)) for n in range(4000)],
        "pings": [http2.frame(http2.PING, 0, 0, b"12345678")] * 20000,
        "settings": [http2.frame(http2.SETTINGS, 0, 0)] * 20000,
    }
    for what, frames in floods.items():
        other = threading.Thread(target=http2.talk, args=(site.port, *frames))
        other.start()
        since = time.monotonic()
        equal(site.get("open.example")[0], 200, f"beside a flood of {what}")
        assert time.monotonic() - since < 5, what
        other.join()
    equal(a.running, 0, "requests that are left in the replica")
    # Without the layer the service's name by itself leads there.
    site.put(service("open", replicas=[a]), service("shut", tenant="risk", replicas=[b]))
    wait_for(lambda: site.get("shut.example")[0] == 200)
    for what in ("its authority", "in capitals, with a dot and a port"):
        equal(b'"j2"' in http2.talk(site.port, *shut[what])[1], True, f"{what}, where no token is wanted")


def case_paths(site):
    key = Key("k1")
    a, b = site.replica(1), site.replica(2)
    begin(site, key, service("pub", replicas=[a], hosts=["x.example"], path="/pub"),
          service("adm", replicas=[b], hosts=["x.example"], path="/adm", access="tenant"))
    equal(site.get("x.example", "/pub/1")[0], 200)
    equal(site.get("x.example", "/pub")[0], 200)
    equal(site.get("x.example", "/pubx")[0], 404, "a longer word")
    equal(site.get("x.example", "/")[0], 404)
    equal(site.get("x.example", "/adm/1")[0], 401)
    reached, public = b.requests, a.requests
    for path in ("/pub/../adm/1", "/pub/%2e%2e/adm", "/pub/..%2fadm", "/pub/%2e%2e%2fadm", "/pub/./x", "/pub/\\..\\adm",
                 "/pub/%5c..%5cadm", "/pub/%00", "/pub/a%0d%0aX:y", "/pub/.."):
        equal(site.get("x.example", path)[0], 400, path)
    for path in ("//adm/1", "/%61dm/1", "/ADM/1", "/pub%2f..%2fadm", "/adm%2f1", "/x/../adm/1", "/;/adm/1"):
        assert site.get("x.example", path)[0] in (400, 401, 404), path
    equal((b.requests, a.requests), (reached, public), "requests that came through")
    said = site.raw(b"GET /pub/" + b"a" * 40000 + b" HTTP/1.1\r\nHost: x.example\r\n\r\n")
    assert b" 400 " in said.split(b"\r\n")[0] or b" 414 " in said, said[:80]
    # Without the gate the server takes each of them.
    for path, said in at_once(lambda path: straight(b, f"GET {path} HTTP/1.1\r\nHost: x\r\n\r\n".encode()),
                              ("/pub/../adm/1", "/pub/%2e%2e/adm", "/pub/..%2fadm", "//adm/1")):
        assert b" 200 " in said, path
    equal(b.requests, reached + 4, "requests that came without the gate")


def straight(replica, octets, timeout=1.0):
    """Sends octets to the server behind the door, as if there were neither gate nor door."""
    out = b""
    with socket.create_connection(("127.0.0.1", replica.inside), timeout) as s:
        try:
            s.sendall(octets)
            while piece := s.recv(65536):
                out += piece
        except OSError:
            pass
    return out


def case_smuggling(site):
    key = Key("k1")
    a, b = site.replica(1), site.replica(2)
    begin(site, key, service("open", replicas=[a]), service("shut", replicas=[b], access="tenant"))
    hidden = b"GET /hidden HTTP/1.1\r\nHost: open.example\r\nX-Gantry-Tenant: root\r\n\r\n"
    head = b"POST / HTTP/1.1\r\nHost: open.example\r\n"
    tries = [
        head + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + hidden,
        head + b"Content-Length: 5\r\nContent-Length: 6\r\n\r\nabcde" + hidden,
        head + b"Content-Length: 5, 6\r\n\r\nabcde" + hidden,
        head + b"Content-Length: +5\r\n\r\nabcde",
        head + b"Content-Length: -1\r\n\r\n" + hidden,
        head + b"Content-Length: 0x5\r\n\r\nabcde",
        head + b"Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n" + hidden,
        head + b"Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n" + hidden,
        head + b"Transfer-Encoding: chunked\r\n\r\nZZ\r\n" + hidden,
        head + b"X: a\r\n Transfer-Encoding: chunked\r\n\r\n",
        head + b"X: a\x00b\r\n\r\n",
        head + b"X\n: a\r\n\r\n",
        b"GET / HTTP/9.9\r\nHost: open.example\r\n\r\n",
        b"GET  / HTTP/1.1\r\nHost: open.example\r\n\r\n",
    ]
    at_once(site.raw, tries)
    for method, path, headers in a.seen:
        seen = {k.lower(): v for k, v in headers.items()}
        assert seen.get("x-gantry-tenant") != "root", (method, path, headers)
        assert not ("content-length" in seen and "transfer-encoding" in seen), headers
    equal(b.requests, 0, "requests in the other service")
    equal(site.get("open.example", method="POST", body=b"abcde")[0], 200, "a plain body")
    # Without the gate the hidden request is a request: the server goes by the length.
    before = len([1 for _, path, headers in a.seen if path == "/hidden" and headers.get("X-Gantry-Tenant") == "root"])
    equal(before, 0, "hidden requests")
    for octets in tries[:1] + tries[6:8]:
        straight(a, octets)
    assert [1 for _, path, headers in a.seen if path == "/hidden" and headers.get("X-Gantry-Tenant") == "root"], a.seen[-5:]


def case_flood_of_one_caller(site):
    key = Key("k1")
    a = site.replica(1)
    begin(site, key, service(replicas=[a], access="tokens", requests=20))
    flood = Load(site, clients=4, headers=bearer(key.token(tenant="risk")))
    flood.more(100, 429)
    calm = [site.get(headers=bearer(key.token(tenant="fraud")))[0] for _ in range(10)]
    flood.more(100, 429).stop()
    equal(calm, [200] * 10, "another caller beside the flood")
    assert 20 <= flood.counts.get(200, 0) <= 20 * 5, flood.counts
    assert flood.counts.get(429, 0) > 100, flood.counts
    site.put(service(replicas=[a], access="tokens"))  # without the layer nothing is refused
    wait_for(lambda: [site.get(headers=bearer(key.token(tenant="risk")))[0] for _ in range(40)] == [200] * 40)
    flood = Load(site, clients=4, headers=bearer(key.token(tenant="risk")))
    flood.more(20 * 5 + 1).stop()
    assert flood.counts.get(429, 0) == 0 and flood.counts[200] > 20 * 5, flood.counts


def case_tenant_limit(site):
    key = Key("k1")
    a = site.replica(1)
    site.tenants = [{"name": "fraud", "requests": 10}]
    begin(site, key, service(replicas=[a]))
    flood = Load(site, clients=2).more(100, 429).stop()
    assert flood.counts.get(429, 0) > 50 and 10 <= flood.counts.get(200, 0) <= 50, flood.counts
    site.tenants = []  # without the layer nothing is refused
    site.put(service(replicas=[a]))
    wait_for(lambda: [site.get()[0] for _ in range(40)] == [200] * 40)


def case_slow_clients(site):
    """Those who send a head or a body slowly hold no place in a replica."""
    key = Key("k1")
    a = site.replica(1)
    begin(site, key, service(replicas=[a], concurrency=2))
    slow = []
    for octets in (b"GET / HTTP/1.1\r\nHost: api.exa",
                   b"POST / HTTP/1.1\r\nHost: api.example\r\nContent-Length: 100\r\n\r\nabc") * 10:
        s = socket.create_connection(("127.0.0.1", site.port))
        s.sendall(octets)
        slow.append(s)
    for _ in range(5):
        equal(site.get()[0], 200, "beside slow clients")
    equal(a.running, 0, "slow requests in the replica")
    idle = threading.active_count()
    slow[0].settimeout(15)
    assert b" 408 " in slow[0].recv(1000) + b" ", "a slow head is given up"
    for s in slow:
        s.close()
    # Without the gate each holds a thread of the server.
    held = [socket.create_connection(("127.0.0.1", a.inside)) for _ in range(20)]
    for s in held:
        s.sendall(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\nabc")
    wait_for(lambda: threading.active_count() >= idle + 15)
    for s in held:
        s.close()


def header(password, command=1, family=0):
    value = b"\x05" + struct.pack(">H", len(password)) + password
    return (b"\r\n\r\n\0\r\nQUIT\n" + bytes([0x20 | command, family]) + struct.pack(">H", len(value)) + value)


def case_doors(site):
    a = site.replica(1)
    request = b"GET /through HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"

    def knock(octets, wait=4):
        with socket.create_connection(("127.0.0.1", a.port), wait) as s:
            out = b""
            try:
                s.sendall(octets)
                while True:
                    piece = s.recv(65536)
                    if not piece:
                        return out
                    out += piece
            except ConnectionError:
                return out

    wait_for(lambda: b" 200 " in knock(header(b"5ec2e7") + request))
    reached = a.requests
    long = b"\r\n\r\n\0\r\nQUIT\n\x21\x00\xff\xff"
    tries = [request, b"", b"\r\n\r\n\0\r\nQUIT\n", header(b"5ec2e8") + request, header(b"5ec2e") + request,
             header(b"5ec2e77") + request, header(b"") + request, header(b"5ec2e7")[:-1], long + b"A" * 70000,
             header(b"5ec2e7", 2) + request, header(b"5ec2e7", family=0x11) + request,
             header(b"5ec2e7", family=0xff) + request, b"PROXY TCP4 1.1.1.1 2.2.2.2 1 2\r\n" + request,
             header(b"5ec2e7").replace(b"\x05\x00\x06", b"\x05\x00\xff") + request,
             header(b"5ec2e7").replace(b"\x05\x00\x06", b"\x04\x00\x06") + request]
    def timed(octets):
        since = time.monotonic()
        return knock(octets), time.monotonic() - since
    for octets, (said, took) in at_once(timed, tries):
        equal(said, b"", f"what {octets[:40]!r} gets")
        assert took < 3, "who has no password is sent away in time"
    # Who asks only whether somebody is there sends nothing on.
    equal(knock(header(b"5ec2e7", 0)), b"")
    equal(a.requests, reached, "requests without the password")
    # Without the door nothing asks for it.
    assert b" 200 " in straight(a, request), "the server behind the door"
    # Many who say nothing keep nobody out.
    crowd = [socket.create_connection(("127.0.0.1", a.port)) for _ in range(400)]
    assert b" 200 " in knock(header(b"5ec2e7") + request), "the gate beside a crowd"
    for s in crowd:
        s.close()


def case_the_table_names_every_attempt(_):
    with open(f"{HERE}/README.md", encoding="utf-8") as f:
        named = set(re.findall(r"^\| `gate/([a-z0-9-]+)`", f.read(), re.M))
    equal(named, {n.replace("_", "-") for n in CASES} - {"the-table-names-every-attempt"}, "README.md")


CASES = {name[5:]: f for name, f in sorted(globals().items()) if name.startswith("case_")}


def main():
    if not os.path.exists(HAPROXY):
        print(f"{HAPROXY} is missing")
        return 77
    only = sys.argv[3] if len(sys.argv) > 3 and sys.argv[2] == "-k" else ""
    for name, case in CASES.items():
        if only and only != name:
            continue
        since = time.monotonic()
        with Site(sys.argv[1]) as site:
            case(site)
        print(f"{name}: {time.monotonic() - since:.1f} s", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
