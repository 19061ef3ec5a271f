#!/usr/bin/env python3
"""The month on paper: works out what every line of month.txt costs, apart from the product.

It knows nothing of Gantry's code. It walks over each attempt in steps of at most an hour (all that
can change a price here happens at a full hour of UTC, or at the one change below), asks the time
zone database for the local clock, and multiplies fractions. README.md is what it prints:

  python3 tests/acct/paper.py > tests/acct/README.md
"""

import sys
from collections import defaultdict
from datetime import datetime, timedelta, timezone
from fractions import Fraction as F
from math import ceil, floor
from pathlib import Path
from zoneinfo import ZoneInfo

HERE = Path(__file__).parent
UTC = timezone.utc
PRAGUE = ZoneInfo("Europe/Prague")
ZONES = {"search": ZoneInfo("America/New_York")}
TIERS = {"lab": "research"}

# Book, by the local date from which it counts; then the change that was applied in between.
NOVEMBER = datetime(2026, 11, 1, tzinfo=PRAGUE).astimezone(UTC)
CHANGE = datetime(2026, 11, 10, 12, 34, 56, 789012, UTC)
BASE = {
    "gpu": {"a100": F("2.5"), "v100": F("1.8"), "t4": F("0.6"), "default": F(1),
            "a100:1g.5gb": F("0.4"), "t4:shared": F("0.15")},
    "cpu": F("0.02"), "memory": F("0.003"), "scratch": F("0.0001"),
    "plans": {"spot": F("0.4"), "committed": F("0.7"), "study": F("0.9")},
    "night": F("0.5"),
    "credit": {"preempted": "lost", "node_fail": "lost", "launch_failed": "all"},
}
LATER = {
    "gpu": {"a100": F("2.2"), "t4": F("0.6"), "default": F("1.1")},
    "cpu": F("0.025"), "memory": F("0.003"), "scratch": F("0.0001"),
    "plans": {"spot": F("0.35"), "committed": F("0.65")},
    "night": None,
    "credit": {"preempted": "none", "node_fail": "all", "launch_failed": "all"},
}
CHANGED = dict(LATER, gpu=dict(LATER["gpu"], a100=F("2.05")))

# Node: pool, cores, memory in MiB, scratch in MiB, GPU model, GPUs.
NODES = {
    "g1": ("a", 64, 524288, 1048576, "a100", 8),
    "g2": ("a", 64, 524288, 1048576, "a100", 8),
    "t1": ("b", 32, 131072, 0, "t4", 4),
    "m1": ("b", 32, 131072, 0, "a100", 2),
    "c1": ("", 64, 262144, 0, "", 0),
    "x1": ("", 16, 65536, 0, "l4", 2),
}
PROFILES = {"19": ("1g.5gb", 142), "9": ("3g.20gb", 428)}


def book_at(t):
    return BASE if t < NOVEMBER else LATER if t < CHANGE else CHANGED


def half_up(x):
    return floor(x + F(1, 2))


def price(book, item, unit):
    """Millionths per hour of one unit."""
    if item in ("cpu", "memory", "scratch"):
        return book[item] * 1000000
    key = item[4:]
    if key in book["gpu"]:
        return book["gpu"][key] * 1000000
    model, _, part = key.partition(":")
    whole = book["gpu"].get(model, book["gpu"]["default"]) * 1000000
    return F(half_up(whole * unit / 1000)) if part else whole


def plan_of(book, tenant, project, cls):
    fits = []
    if cls == "best-effort":
        fits.append("spot")
    if tenant == "search":
        fits.append("committed")
    if (tenant, project) == ("fraud", "research") and "study" in book["plans"]:
        fits.append("study")
    return min(fits, key=lambda p: book["plans"][p]) if fits else ""


def moment(text):
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def things(node, cores, memory, scratch, gpus):
    """(pool, item, unit, amount in thousandths or MiB) of what is held on a node."""
    pool, all_cores, all_memory, all_scratch, model, count = NODES[node]
    if cores == "all":
        out = [("cpu", 1000, all_cores * 1000), ("memory", 1024, all_memory),
               ("scratch", 1024, all_scratch)]
        out += [(f"gpu:{model}", 1000, 1000)] * count
    else:
        out = [("cpu", 1000, int(cores) * 1000), ("memory", 1024, ceil(F(int(memory), 1024))),
               ("scratch", 1024, ceil(F(int(scratch), 1024)))]
        for gpu in [] if gpus == "-" else gpus.split(","):
            if gpu[0] == "w":
                out.append((f"gpu:{model}", 1000, 1000))
            elif gpu[0] == "m":
                name, part = PROFILES[gpu.split(":")[1]]
                out.append((f"gpu:{model}:{name}", part, part))
            else:
                part = int(gpu.split(":")[1])
                out.append((f"gpu:{model}:shared", part, part))
    return [(pool, item, unit, amount) for item, unit, amount in out if amount]


def steps(start, end):
    """[start, end) cut at full hours and at the change of prices."""
    at = start
    while at < end:
        hour = at.replace(minute=0, second=0, microsecond=0) + timedelta(hours=1)
        stop = min(end, hour)
        if at < CHANGE < stop:
            stop = CHANGE
        yield at, stop
        at = stop


def is_night(local):
    """Fridays and Saturdays from 22 to 6."""
    evening = local.hour >= 22 and local.weekday() in (4, 5)
    morning = local.hour < 6 and local.weekday() in (5, 6)
    return evening or morning


def microseconds(length):
    return (length.days * 86400 + length.seconds) * 1000000 + length.microseconds


class Line:
    """One thing that an attempt holds: its exact cost, and what of it is booked."""

    def __init__(self):
        self.cost = F(0)
        self.held = 0
        self.booked = 0
        self.saved = (0, 0)

    def book(self):
        grown = half_up(self.cost) - self.booked
        self.booked += grown
        return grown


def work_out(rows):
    sums = defaultdict(lambda: [0, 0, 0, 0, 0])  # held, credited, cost, credit, runs
    jobs = defaultdict(lambda: [0, 0])
    for job, tenant, project, user, cls, kind, how, placed, saved, nodes in rows:
        zone = ZONES.get(tenant, PRAGUE)
        placed = moment(placed)
        parts = [n.split("/") for n in nodes.split(";")]
        parts = [(things(*p[:5]), moment(p[5])) for p in parts]
        end = max(until for _, until in parts)
        saved = None if saved == "-" else moment(saved)
        plan = plan_of(book_at(placed), tenant, project, cls)
        lines = defaultdict(Line)

        def key(t, pool, item):
            return (t.astimezone(zone).strftime("%Y-%m"), tenant, project, user, kind, pool, item,
                    plan)

        cuts = sorted({placed, end} | {u for _, u in parts} | ({saved} if saved else set()))
        for a, b in zip(cuts, cuts[1:]):
            for start, stop in steps(a, b):
                book = book_at(start)
                local = start.astimezone(zone)
                factor = book["plans"].get(plan, F(1))
                if book["night"] is not None and is_night(local):
                    factor *= book["night"]
                amounts = defaultdict(int)
                for held, until in parts:
                    for pool, item, unit, amount in held if until > start else []:
                        amounts[pool, item, unit] += amount
                for (pool, item, unit), amount in amounts.items():
                    line = lines[pool, item, unit]
                    length = microseconds(stop - start)
                    line.cost += F(amount, unit) * price(book, item, unit) * factor * F(
                        length, 3600 * 1000000)
                    line.held += amount * length
                    sums[key(start, pool, item)][0] += amount * length
                    sums[key(start, pool, item)][2] += line.book()
            if b == saved:
                for line in lines.values():
                    line.saved = (line.held, line.booked)
        policy = book_at(end)["credit"].get(how, "none")
        for (pool, item, unit), line in lines.items():
            row = sums[key(end, pool, item)]
            row[4] += 1 if item == "cpu" and (pool, item, unit) == next(iter(lines)) else 0
            jobs[job][0] += line.booked
            if policy != "none":
                before = line.saved if policy == "lost" else (0, 0)
                row[1] += line.held - before[0]
                row[3] += line.booked - before[1]
                jobs[job][1] += line.booked - before[1]
    return {k: v for k, v in sums.items() if any(v)}, jobs


def money(n):
    return f"{'-' if n < 0 else ''}{abs(n) // 1000000}.{abs(n) % 1000000:06}"


HEAD = """\
# The month on paper

`month.txt` is what thirty jobs held over six nodes, `prices.yaml` what things cost; on 2026-11-10
at 12:34:56.789012 UTC an A100 in book `november` went from 2.20 to 2.05. `paper.py` works out what
follows without any of Gantry's code: in steps of an hour, with the time zone database of the
machine it runs on, in fractions. `month_test.cc` holds every line below against the ledger.

Two by hand, to check the script itself:

- Job 1: 12.5 hours of 2 A100 at 2.50, of 8 cores at 0.02 and of 64 GiB at 0.003:
  62.500000 + 2.000000 + 2.400000 = 66.900000.
- Job 5: on the night on which clocks go back, 02:30 to 03:30 local time lasts two hours (00:30 to
  02:30 UTC), all of it in the weekend night: 2 h x 32 cores x 0.02 x 0.5 = 0.640000. Its 1,048,577
  KiB are 1025 MiB: 2 h x 1025/1024 GiB x 0.003 x 0.5 = 0.003002929..., booked as 0.003003.

Job 9 crosses the month and the change of prices one microsecond after its start. Jobs 4, 8 and 28
are of a tenant whose months end in New York; job 8 also sees New York's clocks go back. Job 10 and
job 26 have whole nodes. Job 19 lets go of its two nodes at different times. Job 24 lasts a
microsecond.

A line is rounded once, to the nearest millionth: what is booked in a month is the rounded sum up to
its end less what was booked before.

## What each job costs

| job | cost | credit |
|---|---|---|
"""

LEDGER = """
## The ledger

`held` and `credited` are core-seconds, GPU-seconds, or MiB-seconds of memory and scratch; `runs`
counts attempts that ended.

| month | tenant | project | user | type | pool | item | plan | held | credited | cost | credit | runs |
|---|---|---|---|---|---|---|---|---|---|---|---|---|
"""


def main():
    rows = [line.split() for line in (HERE / "month.txt").read_text().splitlines()]
    sums, jobs = work_out([r for r in rows if r and r[0] != "#" and not r[0].startswith("#")])
    out = HEAD
    for job, (cost, credit) in jobs.items():
        out += f"| {job} | {money(cost)} | {money(credit)} |\n"
    out += f"| all | {money(sum(c for c, _ in jobs.values()))} |"
    out += f" {money(sum(c for _, c in jobs.values()))} |\n" + LEDGER
    for key, (held, credited, cost, credit, runs) in sorted(sums.items()):
        places = 1000000 if key[6] in ("memory", "scratch") else 1000000000
        width = len(str(places)) - 1
        seconds = [f"{n // places}.{n % places:0{width}}" for n in (held, credited)]
        out += "| " + " | ".join(key) + f" | {seconds[0]} | {seconds[1]} | {money(cost)} |"
        out += f" {money(credit)} | {runs} |\n"
    sys.stdout.write(out.replace("|  |", "| - |").replace("|  |", "| - |"))


if __name__ == "__main__":
    main()
