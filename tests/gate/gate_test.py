#!/usr/bin/env python3
"""A gate with a real HAProxy and real doors: what clients see while replicas come, go, are drained and
killed, while services change, and while the gate or HAProxy is killed.

usage: gate_test.py BIN_DIR [-k CASE]
"""
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from site_of_a_gate import HAPROXY, Load, Site, probe, service, wait_for  # noqa: E402


def equal(got, wanted, what=""):
    assert got == wanted, f"{what}: {got!r} is not {wanted!r}"


def case_request_reaches_replica(site):
    a = site.replica(1)
    site.put(service(replicas=[a]))
    site.start()
    site.wait_until_it_answers()
    status, body, _ = site.get(path="/x?y=1", headers={"X-Forwarded-For": "6.6.6.6", "X-Gantry-User": "root"})
    equal(status, 200)
    assert b'"j1"' in body and b"/x?y=1" in body, body
    assert b"6.6.6.6" not in body and b"root" not in body, body
    equal(site.get(host="other.example")[0], 404, "unknown host")


def case_ready_within_a_third_of_a_second(site):
    a, b = site.replica(1), site.replica(2, ready=False)
    site.put(service(replicas=[a]))
    site.start()
    site.wait_until_it_answers()
    site.put(service(replicas=[a, b]))
    wait_for(lambda: "fraud:api:v1/j2.1" in site.servers() and b.probes >= 2)
    for _ in range(20):
        site.get()
    equal(b.requests, 0, "requests before the probe is answered")
    b.ready = True
    since = time.monotonic()
    while b.requests == 0:
        site.get()
    took = time.monotonic() - since
    assert took < 0.3, f"the first request came {took:.3f} s after the probe's answer"


def case_rollout_under_load(site):
    old = [site.replica(1), site.replica(2)]
    site.put(service(replicas=old))
    site.start()
    site.wait_until_it_answers()
    load = Load(site, clients=6, path="/?ms=5").more(50)
    here = list(old)
    for n in range(3):  # one comes, then one is drained and goes
        new = site.replica(10 + n, version="v2")
        here.append(new)
        site.put(service(replicas=here, versions={"v1": 50, "v2": 50}))
        wait_for(lambda: new.requests > 0)
        if n == 2:
            break
        gone = old[n]
        gone.draining = True
        site.put(service(replicas=here, versions={"v1": 50, "v2": 50}))
        wait_for(lambda: site.servers().get(f"fraud:api:v1/j{gone.job}.1") in ("DRAIN", None))
        wait_for(lambda: gone.running == 0)
        load.more(50)
        before = gone.requests
        load.more(50)
        equal(gone.requests, before, "requests of a drained replica")
        here.remove(gone)
        gone.end()
        site.put(service(replicas=here, versions={"v1": 50, "v2": 50}))
        wait_for(lambda: f"fraud:api:v1/j{gone.job}.1" not in site.servers())
    site.put(service(replicas=here, versions={"v2": 100}))
    load.more(100)
    load.stop()
    equal(load.failed, 0, f"failed requests of {load.counts}, {load.errors[:3]}")
    assert load.counts[200] > 200, load.counts


def case_canary_gets_its_part(site):
    a, b = site.replica(1), site.replica(2, version="v2")
    site.put(service(replicas=[a, b], versions={"v1": 90, "v2": 10}))
    site.start()
    wait_for(lambda: list(site.servers().values()).count("no check") == 2)
    load = Load(site, clients=4).more(100)
    before = load.replicas.get("j2", 0), load.counts[200]
    wait_for(lambda: load.counts[200] > 1600, 30)
    load.stop()
    part = (load.replicas["j2"] - before[0]) / (load.counts[200] - before[1])
    assert 0.07 < part < 0.13, f"a version with 10 % gets {part:.3f}"


def case_killed_replica(site):
    """Others take over at once; what was lost with it is one failed request for each client at most."""
    a, b, c = site.replica(1), site.replica(2), site.replica(3)
    site.put(service(replicas=[a, b, c]))
    site.start()
    wait_for(lambda: list(site.servers().values()).count("no check") == 3)
    load = Load(site, clients=6, path="/?ms=5").more(50)
    b.end()
    wait_for(lambda: site.servers()["fraud:api:v1/j2.1"] == "MAINT")
    load.more(100)
    load.stop()
    assert set(load.counts) <= {200, 502}, load.counts
    assert load.failed <= 6, (load.counts, load.errors[:3])


def case_repeat_hides_a_killed_replica(site):
    a, b, c = site.replica(1), site.replica(2), site.replica(3)
    site.put(service(replicas=[a, b, c], repeat=True))
    site.start()
    wait_for(lambda: list(site.servers().values()).count("no check") == 3)
    load = Load(site, clients=6, path="/?ms=20").more(50)
    b.end()
    wait_for(lambda: site.servers()["fraud:api:v1/j2.1"] == "MAINT")
    load.more(100)
    load.stop()
    equal(load.failed, 0, f"failed of {load.counts}, {load.errors[:3]}")


def case_killed_gate_loses_nothing(site):
    a, b = site.replica(1), site.replica(2)
    site.put(service(replicas=[a, b]))
    site.start()
    wait_for(lambda: list(site.servers().values()).count("no check") == 2)
    load = Load(site, clients=4, path="/?ms=5").more(50)
    pid = site.haproxy()
    for n in range(3):
        site.kill_gate()
        load.more(50)
        site.start()
        wait_for(lambda n=n: site.said().count("took over HAProxy") == n + 1)
        load.more(50)
        equal(site.haproxy(), pid, "HAProxy's process")
    load.stop()
    equal(load.failed, 0, f"failed of {load.counts}, {load.errors[:3]}")
    assert load.counts[200] > 100, load.counts
    c = site.replica(3)  # and the new gate works on
    site.put(service(replicas=[a, b, c]))
    wait_for(lambda: site.servers().get("fraud:api:v1/j3.1") == "no check")


def case_killed_haproxy_is_started_again(site):
    a = site.replica(1)
    site.put(service(replicas=[a]))
    site.start()
    site.wait_until_it_answers()
    for _ in range(2):
        os.kill(site.haproxy(), signal.SIGKILL)
        since = time.monotonic()
        wait_for(site.answers, 5, 0.01)
        took = time.monotonic() - since
        assert took < 1, f"it took {took:.2f} s"


def case_new_services_under_load(site):
    """Another backend takes another process; no request is lost by that."""
    a, b = site.replica(1), site.replica(2)
    site.put(service(replicas=[a]))
    site.start()
    site.wait_until_it_answers()
    load = Load(site, clients=6, path="/?ms=5")
    pids = {site.haproxy()}
    services = [service(replicas=[a])]
    for n in range(3):
        services.append(service(f"s{n}", replicas=[b]))
        site.put(*services)
        site.wait_until_it_answers(f"s{n}.example")
        pids.add(site.haproxy())
    load.stop()
    equal(load.failed, 0, f"failed of {load.counts}, {load.errors[:3]}")
    assert len(pids) > 1, pids


def case_drain_waits_for_long_requests(site):
    """Also for those in a HAProxy that was replaced."""
    a, b = site.replica(1), site.replica(2)
    site.put(service(replicas=[a]))
    site.start()
    site.wait_until_it_answers()
    got = []
    asking = threading.Thread(target=lambda: got.append(site.get(path="/?ms=2500")))
    asking.start()
    wait_for(lambda: a.running == 1)
    pid = site.haproxy()
    site.put(service(replicas=[a]), service("other", replicas=[b]))
    wait_for(lambda: site.haproxy() not in (0, pid))
    a.draining = True
    site.put(service(replicas=[a, b]), service("other", replicas=[b]))
    for _ in range(20):
        equal(site.get()[0], 200)
    asking.join()
    equal(got[0][0], 200, "the long request")


def case_from_zero(site):
    """Requests wait for the first replica, and those whose time is over get 503."""
    site.put(service(hold_ms=4000))
    site.start()
    wait_for(lambda: site.haproxy() != 0)
    got = []
    asking = [threading.Thread(target=lambda: got.append(site.get()[0])) for _ in range(5)]
    for t in asking:
        t.start()
    wait_for(lambda: "fraud:api 5" in site.admin("show held"))
    a = site.replica(1, ready=False)
    site.put(service(replicas=[a], hold_ms=4000))
    wait_for(lambda: a.probes >= 2)
    equal(got, [], "answers before it is ready")
    a.ready = True
    since = time.monotonic()
    for t in asking:
        t.join()
    equal(got, [200] * 5)
    assert time.monotonic() - since < 0.5, "they wait longer than the probe"
    site.put(service("none", hold_ms=300))
    wait_for(lambda: site.get("none.example")[0] == 503)
    since = time.monotonic()
    status, _, headers = site.get("none.example")
    equal((status, headers.get("retry-after")), (503, "2"))
    assert 0.25 < time.monotonic() - since < 1


def case_queue_and_wait(site):
    a = site.replica(1)
    site.put(service(replicas=[a], concurrency=2, queue=3, wait=400_000))
    site.start()
    site.wait_until_it_answers()
    got = []

    def ask():
        since = time.monotonic()
        status, _, headers = site.get(path="/?ms=1000")
        got.append((status, headers.get("retry-after"), round(time.monotonic() - since, 1)))

    asking = [threading.Thread(target=ask) for _ in range(8)]
    for t in asking:
        t.start()
        time.sleep(0.02)
    for t in asking:
        t.join()
    equal(a.most, 2, "requests in the replica at a time")
    statuses = sorted(status for status, _, _ in got)
    equal(statuses, [200] * 2 + [429] * 6, got)
    assert all(retry == "1" for status, retry, _ in got if status == 429), got
    at_once = [took for status, _, took in got if status == 429 and took < 0.2]
    equal(len(at_once), 3, "refused because the queue is full")


def case_key_goes_to_one_replica(site):
    replicas = [site.replica(n) for n in range(1, 5)]
    site.put(service(replicas=replicas, balance="key", key_header="X-Session"))
    site.start()
    wait_for(lambda: list(site.servers().values()).count("no check") == 4)
    where = {}
    for key in range(40):
        names = {site.get(headers={"X-Session": f"k{key}"})[1].split(b'"')[3] for _ in range(3)}
        equal(len(names), 1, f"replicas of key {key}")
        where[key] = names.pop()
    assert len(set(where.values())) == 4, where
    site.put(service(replicas=replicas[:3], balance="key", key_header="X-Session"))
    wait_for(lambda: len(site.servers()) == 3)
    moved = sum(1 for key in where if where[key] != b"j4" and
                site.get(headers={"X-Session": f"k{key}"})[1].split(b'"')[3] != where[key])
    assert moved <= 6, f"{moved} of 40 keys have moved"


def case_slow_replica_gets_less(site):
    a, b = site.replica(1), site.replica(2)
    b.pause = 0.04
    a.pause = 0.005
    site.put(service(replicas=[a, b], balance="latency"))
    site.start()
    wait_for(lambda: list(site.servers().values()).count("no check") == 2)
    load = Load(site, clients=4)

    def slow_gets_less():
        """a gets more than three times what b gets"""
        before = a.requests, b.requests
        load.more(200)
        first, second = a.requests - before[0], b.requests - before[1]
        return second > 0 and first > 3 * second
    wait_for(slow_gets_less, 20)
    assert slow_gets_less(), "and it stays so"
    load.stop()


def case_unready_and_back(site):
    a, b = site.replica(1), site.replica(2)
    site.put(service(replicas=[a, b]))
    site.start()
    wait_for(lambda: list(site.servers().values()).count("no check") == 2)
    b.ready = False
    wait_for(lambda: site.servers()["fraud:api:v1/j2.1"] == "MAINT")
    before = b.requests
    for _ in range(20):
        equal(site.get()[0], 200)
    equal(b.requests, before)
    b.ready = True
    wait_for(lambda: site.servers()["fraud:api:v1/j2.1"] == "no check")


def certificate(directory, name):
    """A certificate for the name, which signs itself, and its key, in one file."""
    pem = f"{directory}/{name}.pem"
    subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", f"/CN={name}",
                    "-addext", f"subjectAltName=DNS:{name}", "-keyout", f"{pem}.key", "-out", pem],
                   check=True, capture_output=True)
    with open(f"{pem}.key", encoding="ascii") as key, open(pem, "a", encoding="ascii") as both:
        both.write(key.read())
    os.unlink(f"{pem}.key")
    return pem


def curl(site, pem, *options, host="api.example"):
    done = subprocess.run(["curl", "-sS", "--max-time", "10", "--cacert", pem, "--resolve", f"{host}:{site.tls_port}:127.0.0.1",
                           "-o", "/dev/null", "-w", "%{http_code} %{http_version}", *options, f"https://{host}:{site.tls_port}/x"],
                          capture_output=True, text=True, check=False)
    return done.stdout if done.returncode == 0 else f"curl {done.returncode}: {done.stderr}"


def case_tls(site):
    with tempfile.TemporaryDirectory(prefix="gantry-gate-tls-") as directory:
        pem = certificate(directory, "api.example")
        other = certificate(directory, "other.example")
        with Site(site.bin, tls=directory) as secure:
            a = secure.replica(1)
            secure.put(service(replicas=[a]))
            secure.start()
            secure.wait_until_it_answers()
            equal(curl(secure, pem, "--http1.1"), "200 1.1")
            equal(curl(secure, pem, "--http2"), "200 2")
            equal(curl(secure, pem, "--http2", "-H", "Host: unknown.example"), "404 2", "a host that no service has")
            equal(curl(secure, other, host="other.example"), "404 2", "the certificate is that of the asked name")
            assert curl(secure, pem, "--tls-max", "1.1").startswith("curl 35"), "TLS 1.1 is refused"
            assert "curl 60" in curl(secure, other), "another certificate is no proof"
            equal([path for _, path, _ in a.seen if path == "/x"], ["/x", "/x"])


def case_two_gates_share_what_a_replica_answers(site):
    a = site.replica(1)
    with Site(site.bin) as second:
        for one in (site, second):
            one.gates = 2
            one.put(service(replicas=[a], concurrency=4, queue=100, wait=5_000_000))
            one.start()
        for one in (site, second):
            one.wait_until_it_answers()
        loads = [Load(one, clients=6, path="/?ms=20") for one in (site, second)]
        for load in loads:
            load.more(100)
        second.kill_gate()  # its HAProxy goes on
        for load in loads:
            load.more(100).stop()
            equal((load.failed, load.errors), (0, []))
        equal(a.most, 4, "requests in the replica at a time, from both gates")
        site.gates = 1
        site.put(service(replicas=[a], concurrency=4, queue=100, wait=5_000_000))
        a.most = 0
        load = Load(site, clients=6, path="/?ms=20")
        wait_for(lambda: a.most == 4, 5)
        equal(load.stop().failed, 0)
        second.start()  # so that its end finds HAProxy
        wait_for(second.answers, 5)


def case_a_tenant_has_its_limit(site):
    a, b = site.replica(1), site.replica(2)
    site.tenants = [{"name": "fraud", "requests": 5}]
    site.put(service(replicas=[a]), service("more", replicas=[b]), service("other", tenant="ads", replicas=[], hold_ms=300))
    site.start()
    site.wait_until_it_answers()
    time.sleep(1.1)  # what may be asked in a second is refilled within a second
    got = [site.get(host=host) for host in ("api.example", "more.example") * 6]
    statuses = [status for status, _, _ in got]
    equal((statuses[:5], statuses[-2:]), ([200] * 5, [429] * 2), "over both of its services")
    equal(got[-1][2].get("retry-after"), "1")
    equal(site.get(host="other.example")[0], 503, "another tenant's has no replica, and is not limited")


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
