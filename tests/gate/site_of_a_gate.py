"""A gate with HAProxy, a table of services in a file, and replicas that are servers in this process behind
doors of gantry-shim. No controller, no node daemon, no root."""
import http.client
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.parse
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

HAPROXY = "/usr/sbin/haproxy"


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def wait_for(what, seconds=10, pause=0.02):
    end = time.monotonic() + seconds
    while True:
        found = what()
        if found:
            return found
        if time.monotonic() > end:
            raise AssertionError(f"not within {seconds} s: {what.__doc__ or what}")
        time.sleep(pause)


class Answers(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def setup(self):
        super().setup()
        self.request.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def log_message(self, *_):
        pass

    def do_GET(self):
        replica = self.server.replica
        length = int(self.headers.get("content-length") or 0)
        body = self.rfile.read(length) if length else b""
        url = urllib.parse.urlparse(self.path)
        asked = dict(urllib.parse.parse_qsl(url.query))
        status = 200
        if url.path == "/ready":
            replica.probes += 1
            status = 200 if replica.ready else 503
        else:
            with replica.lock:
                replica.requests += 1
                replica.running += 1
                replica.most = max(replica.most, replica.running)
                replica.seen.append((self.command, self.path, dict(self.headers.items())))
                del replica.seen[:-100]
            time.sleep(replica.pause + float(asked.get("ms", 0)) / 1000)
            with replica.lock:
                replica.running -= 1
            status = int(asked.get("status", 200))
        text = json.dumps({"replica": replica.name, "path": self.path, "body": len(body),
                           "headers": [[k.lower(), v] for k, v in self.headers.items()]}).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    do_POST = do_PUT = do_DELETE = do_GET


class Listener(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 1024

    def handle_error(self, *_):
        pass


class Replica:
    """A server, and the door in front of it."""

    def __init__(self, bin_dir, job, version="v1", password="5ec2e7", ready=True, listens=True):
        self.job, self.version, self.password, self.ready = job, version, password, ready
        self.name, self.pause, self.port, self.inside = f"j{job}", 0.0, free_port(), free_port()
        self.lock, self.seen = threading.Lock(), []
        self.requests = self.running = self.most = self.probes = 0
        self.draining, self.server = False, None
        self.door = subprocess.Popen([f"{bin_dir}/gantry-shim", "door", "127.0.0.1", str(self.port),
                                      str(self.inside)], stdin=subprocess.PIPE)
        self.door.stdin.write(password.encode() + b"\n")
        self.door.stdin.close()
        if listens:
            self.listen()

    def listen(self):
        self.server = Listener(("127.0.0.1", self.inside), Answers)
        self.server.replica = self
        threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()

    def row(self):
        return {"key": {"job": self.job, "attempt": 1}, "version": self.version, "address": "127.0.0.1",
                "port": self.port, "password": self.password, "draining": self.draining}

    def end(self):
        if self.door.poll() is None:
            self.door.kill()
        self.door.wait()
        if self.server:
            self.server.shutdown()
            self.server.server_close()
            self.server = None


MS = 1000  # microseconds


def probe(path="", interval_ms=200, timeout_ms=500, failures=2):
    return {"path": path, "interval": interval_ms * MS, "timeout": timeout_ms * MS, "failures": failures}


def service(name="api", tenant="fraud", replicas=(), versions=None, target_ms=5000, hold_ms=5000, **route):
    whole = {"hosts": [f"{name}.example"], "path": "", "access": "open", "callers": [],
             "balance": "least-loaded", "key_header": "", "concurrency": 0, "queue": 0, "wait": 0,
             "requests": 0, "repeat": False, "ready": probe("/ready"), "live": probe("")}
    whole.update(route)
    names = versions or {r.version: 100 for r in replicas} or {"v1": 100}
    return {"tenant": tenant, "name": name, "route": whole, "target": target_ms * MS, "drain": 5000 * MS,
            "hold": hold_ms * MS, "versions": [{"name": n, "weight": w} for n, w in names.items()],
            "replicas": [r.row() for r in replicas]}


class Site:
    def __init__(self, bin_dir, tls=None, user="none", threads=1):
        self.bin, self.dir = bin_dir, tempfile.mkdtemp(prefix="gantry-gate-")
        self.port, self.revision, self.gate = free_port(), 0, None
        self.tls_port = free_port() if tls else 0
        self.table, self.log = f"{self.dir}/table.json", f"{self.dir}/gate.log"
        self.replicas, self.issuer, self.keys = [], "https://gantry.example", ""
        self.tenants, self.gates = [], 1
        lines = ["cluster: test", "nodes: [{name: n1, cpus: 1, memory: 1G}]", "gate:",
                 f"  listen: ['127.0.0.1:{self.port}']", f"  state_dir: {self.dir}/state",
                 f"  user: {user}", f"  threads: {threads}"]
        if tls:
            lines += [f"  listen_tls: ['127.0.0.1:{self.tls_port}']", f"  certificate: {tls}"]
        with open(f"{self.dir}/gantry.yaml", "w") as f:
            f.write("\n".join(lines) + "\n")

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        if kind is not None and os.path.exists(self.log):
            with open(self.log) as f:
                print("gate.log:\n" + f.read()[-3000:], file=sys.stderr)
        self.stop()
        for replica in self.replicas:
            replica.end()
        shutil.rmtree(self.dir, ignore_errors=True)

    def start(self):
        self.gate = subprocess.Popen([f"{self.bin}/gantry-gate", "--config", f"{self.dir}/gantry.yaml",
                                      "--table", self.table, "--log", self.log, "--log-level", "debug"])

    def stop(self):
        if self.gate is None:
            return
        pid = self.haproxy()
        self.gate.send_signal(signal.SIGTERM)
        try:
            self.gate.wait(10)
        except subprocess.TimeoutExpired:
            self.gate.kill()
            self.gate.wait()
        if pid:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        self.gate = None

    def kill_gate(self):
        self.gate.kill()
        self.gate.wait()

    def replica(self, job, **how):
        self.replicas.append(Replica(self.bin, job, **how))
        return self.replicas[-1]

    def put(self, *services):
        """Writes the table as the controller would give it."""
        self.revision += 1
        table = {"revision": self.revision, "unchanged": False, "services": list(services),
                 "tenants": self.tenants, "issuer": self.issuer, "keys": self.keys, "gates": self.gates}
        with open(self.table + ".new", "w") as f:
            json.dump(table, f)
        os.rename(self.table + ".new", self.table)

    def said(self):
        """What the gate has logged."""
        with open(self.log, encoding="utf-8") as f:
            return f.read()

    def admin(self, command):
        """Asks HAProxy; nothing, if it is not there."""
        with socket.socket(socket.AF_UNIX) as s:
            s.settimeout(5)
            try:
                s.connect(f"{self.dir}/state/admin.sock")
            except OSError:
                return ""
            s.sendall(command.encode() + b"\n")
            out = b""
            while True:
                piece = s.recv(65536)
                if not piece:
                    return out.decode()
                out += piece

    def haproxy(self):
        for line in self.admin("show info").splitlines():
            if line.startswith("Pid: "):
                return int(line[5:])
        return 0

    def servers(self):
        """{backend/server: status}"""
        out, names = {}, None
        for line in self.admin("show stat -1 4 -1").splitlines():
            if line.startswith("# "):
                names = line[2:].split(",")
            elif line and names:
                row = dict(zip(names, line.split(",")))
                out[f"{row['pxname']}/{row['svname']}"] = row["status"]
        return out

    def get(self, host="api.example", path="/", method="GET", body=None, headers=None, timeout=20):
        c = http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout)
        try:
            c.request(method, path, body, {"Host": host, **(headers or {})})
            answer = c.getresponse()
            return answer.status, answer.read(), dict(answer.getheaders())
        finally:
            c.close()

    def answers(self, host="api.example", path="/", **how):
        """True once a request is answered with 200."""
        try:
            return self.get(host, path, **how)[0] == 200
        except OSError:
            return False

    def wait_until_it_answers(self, host="api.example", seconds=10):
        wait_for(lambda: self.answers(host), seconds)

    def raw(self, octets, timeout=0.5):
        """Sends octets as they are; returns all that comes back until nothing more does."""
        out = b""
        with socket.create_connection(("127.0.0.1", self.port), timeout) as s:
            try:
                s.sendall(octets)
                while True:
                    piece = s.recv(65536)
                    if not piece:
                        return out
                    out += piece
            except OSError:
                return out


class Load:
    """Clients that ask again and again, each on a connection of its own; counts what they get."""

    def __init__(self, site, clients=4, host="api.example", path="/", pause=0.0, headers=None):
        self.site, self.host, self.path, self.pause = site, host, path, pause
        self.headers = {"Host": host, **(headers or {})}
        self.counts, self.errors, self.replicas = {}, [], {}
        self.lock, self.over = threading.Lock(), threading.Event()
        self.threads = [threading.Thread(target=self.run, daemon=True) for _ in range(clients)]
        for t in self.threads:
            t.start()

    def run(self):
        c = http.client.HTTPConnection("127.0.0.1", self.site.port, timeout=20)
        while not self.over.is_set():
            try:
                c.request("GET", self.path, headers=self.headers)
                answer = c.getresponse()
                body = answer.read()
                with self.lock:
                    self.counts[answer.status] = self.counts.get(answer.status, 0) + 1
                    if answer.status == 200:
                        name = json.loads(body)["replica"]
                        self.replicas[name] = self.replicas.get(name, 0) + 1
            except (OSError, http.client.HTTPException, ValueError) as error:
                with self.lock:
                    self.errors.append(repr(error))
                c.close()
            time.sleep(self.pause)
        c.close()

    def more(self, count, status=200):
        """Waits until so many more requests have been answered with this status."""
        wanted = self.counts.get(status, 0) + count
        wait_for(lambda: self.counts.get(status, 0) >= wanted, 20)
        return self

    def stop(self):
        self.over.set()
        for t in self.threads:
            t.join()
        return self

    @property
    def failed(self):
        return sum(n for status, n in self.counts.items() if status != 200) + len(self.errors)
