"""A day of requests to three services: a curve that rises to noon and falls, for each of them, and a spike of
one of them at noon. Requests come when they come, whether earlier ones were answered or not.

usage: traffic.py GATE SECONDS TOKENS REPORT
GATE is HOST:PORT; TOKENS a directory with a token for each tenant; the report is a JSON file.
"""
import asyncio
import json
import math
import random
import subprocess
import sys
import time

gate, day, tokens, report = sys.argv[1], float(sys.argv[2]), sys.argv[3], sys.argv[4]
host, port = gate.rsplit(":", 1)


class Service:
    def __init__(self, name, tenant, promise, night, noon, spike=0):
        self.name, self.promise, self.night, self.noon, self.spike = name, promise, night, noon, spike
        with open(f"{tokens}/{tenant}", encoding="ascii") as f:
            token = f.read().strip()
        self.request = (f"GET / HTTP/1.1\r\nHost: {name}.{tenant}\r\nAuthorization: Bearer {token}\r\n\r\n").encode()
        self.idle, self.times, self.statuses, self.failures, self.recent = [], [], {}, [], []

    def rate(self, at):
        """Requests a second; `at` is 0 at the first midnight and 1 at the next."""
        curve = self.night + (self.noon - self.night) * (1 - math.cos(2 * math.pi * at)) / 2
        return self.spike if self.spike and 0.5 <= at < 0.62 else curve

    async def ask(self):
        since = time.monotonic()
        try:
            reused = bool(self.idle)
            reader, writer = self.idle.pop() if reused else await asyncio.open_connection(host, int(port))
            writer.write(self.request)
            try:
                head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), 60)
            except (asyncio.IncompleteReadError, ConnectionError):
                # The other side has closed an idle connection just now: clients ask again on a new one.
                if not reused:
                    raise
                reader, writer = await asyncio.open_connection(host, int(port))
                writer.write(self.request)
                head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), 60)
            status = int(head.split(b" ", 2)[1])
            fields = dict(line.lower().split(b": ", 1) for line in head.split(b"\r\n")[1:-2])
            body = await reader.readexactly(int(fields.get(b"content-length", b"0")))
            if fields.get(b"connection") == b"close":
                writer.close()
            else:
                self.idle.append((reader, writer))
        except (OSError, asyncio.IncompleteReadError, asyncio.TimeoutError) as error:
            status, body = 0, repr(error).encode()
        took = time.monotonic() - since
        self.statuses[status] = self.statuses.get(status, 0) + 1
        if status == 200:
            self.times.append(took)
            self.recent.append(took)
        elif status != 429:
            self.failures.append(f"{status} {body[:100].decode(errors='replace')}")

    async def send(self, began):
        running = set()
        while (at := (time.monotonic() - began) / day) < 1:
            await asyncio.sleep(random.expovariate(self.rate(at)))
            task = asyncio.ensure_future(self.ask())
            running.add(task)
            task.add_done_callback(running.discard)
        await asyncio.gather(*running)


def percentile(times, of):
    return sorted(times)[min(len(times) - 1, int(len(times) * of / 100))] if times else 0


async def output(*command):
    child = await asyncio.create_subprocess_exec(*command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    return (await child.communicate())[0].decode()


async def watch(services, began):
    """A line every twelfth of the day."""
    for line in range(1, 13):
        await asyncio.sleep(max(0, began + line * day / 12 - time.monotonic()))
        try:
            rows = {row["name"]: row for row in json.loads(await output("gctl", "service", "list", "--json"))["rows"]}
        except (ValueError, KeyError):
            rows = {}
        parts = []
        for s in services:
            row = rows.get(s.name, {})
            parts.append(f"{s.name} {s.rate(min(line / 12, 0.999)):4.0f}/s on {row.get('ready', '?')}, {percentile(s.recent, 95) * 1000:4.0f} ms")
            s.recent = []
        states = (await output("gqueue", "-h", "-n", "train", "-o", "%T")).split()
        print(f"{line * 2:3}:00  {'; '.join(parts)}; training {' '.join(states).lower() or 'over'}", flush=True)


async def main():
    services = [Service("score", "fraud", 0.1, 8, 40, spike=80), Service("recommend", "shop", 0.3, 3, 18),
                Service("summarise", "shop", 1.0, 0.5, 3)]
    began = time.monotonic()
    await asyncio.gather(watch(services, began), *(s.send(began) for s in services))
    out = []
    for s in services:
        kept = sum(1 for t in s.times if t <= s.promise)
        requests = sum(s.statuses.values())
        out.append({"name": s.name, "requests": requests, "kept": kept, "refused": s.statuses.get(429, 0),
                    "failed": len(s.failures), "p50": percentile(s.times, 50), "p95": percentile(s.times, 95),
                    "promise": s.promise, "failures": s.failures[:5]})
    with open(report, "w", encoding="ascii") as f:
        json.dump(out, f)
    print(f"{'SERVICE':<10}{'REQUESTS':>9}{'IN TIME':>9}{'PROMISE':>16}{'P50':>9}{'P95':>9}{'REFUSED':>9}{'FAILED':>8}")
    for r in out:
        promise = f"95 % in {r['promise'] * 1000:.0f} ms"
        print(f"{r['name']:<10}{r['requests']:>9}{100 * r['kept'] / max(1, r['requests']):>7.1f} %{promise:>16}"
              f"{r['p50'] * 1000:>6.0f} ms{r['p95'] * 1000:>6.0f} ms{r['refused']:>9}{r['failed']:>8}")
    for r in out:
        for failure in r["failures"]:
            print(f"  {r['name']}: {failure}")


asyncio.run(main())
