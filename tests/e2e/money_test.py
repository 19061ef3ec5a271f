#!/usr/bin/env python3
"""Prices and the ledger with real daemons: the announced and the real cost of a job, who sees the
bill, that neither a change of prices nor a killed controller changes what was charged, invoices and
metrics. kill_test.py shows that the bill stays exact across kill -9 anywhere.

usage: money_test.py BIN_DIR [-k CASE] [--keep]
"""
import json
import os
import shutil
import subprocess
import sys

import cluster
from cluster import contains, equal, wait_for

ALL_TIME = ("2020-01", "2199-12")


def book(name, rest):
    return f"apiVersion: gantry/v1\nkind: PriceBook\nname: {name}\ncurrency: EUR\n{rest}"


def run(c, *command, status=0, user=None):
    done = c.as_user(list(command), user=user) if user else c.root(list(command))
    equal(done.returncode, status, f"{' '.join(command)}: {done.stdout}{done.stderr}")
    return done.stdout + done.stderr


def prices(c, name, rest):
    path = f"{c.top}/{name}.yaml"
    with open(path, "w", encoding="ascii") as file:
        file.write(book(name, rest))
    return run(c, "gtenant", "price", "apply", "-y", "-f", path)


def ledger(c, *options, user=None):
    return json.loads(run(c, "greport", *ALL_TIME, "--json", *options, user=user))["rows"]


def charged(c, user=None):
    return sum(row["cost"] for row in ledger(c, user=user))


def cost_of(c, job):
    return c.account(job)["row"]["cost"]


def done(c, user=None):
    job = c.submit("--time=10:00", script="sleep 1\n", user=user)
    c.ended(job, "completed")
    return job


def case_0_hours_without_prices(c):
    job = done(c)
    equal(c.account(job)["row"]["cost"], None, "a cost without prices")
    contains(run(c, "greport", *ALL_TIME), "CORE-HOURS")
    equal("COST" in run(c, "greport", *ALL_TIME), False, "a column for cost")
    equal(sum(row["runs"] for row in ledger(c)), 1, "runs")


def case_1_what_a_job_costs(c):
    contains(prices(c, "base", "cpu: 3600.00\nmemory: 0\n"), "+ PriceBook base")
    contains(run(c, "gtenant", "price", "list"), "3600.00 EUR, core-hour")
    said = c.as_user(["gbatch", "--test-only", "--mem=40M", "--time=10:00", "--wrap=true"]).stderr
    contains(said, "cost: 3600.0000 EUR an hour, 600.0000 if it starts then and runs to its limit, "
             "at most 600.0000 in all")
    job = c.submit("--time=10:00", script="sleep 60\n")
    c.running(job)
    row = run(c, "gqueue", "-h", "-o", "%X", "-j", str(job)).strip()
    equal(row, "3600.0000", "cost per hour")
    wait_for("the cost to grow", lambda: float(
        run(c, "gqueue", "-h", "-o", "%x", "-j", str(job)).strip()) > 0)
    run(c, "gcancel", str(job))
    c.ended(job, "cancelled")
    equal(cost_of(c, job) > 0, True, "its cost")
    equal(charged(c), cost_of(c, job), "the ledger")
    # A core costs one per second, so the cost is the time for which it was held.
    equal(cost_of(c, job) < 120_000_000, True, "two minutes at most")


def case_2_who_sees_what(c):
    mine = done(c, c.users[0])
    other = done(c, c.users[1])
    equal(charged(c, c.users[1]), cost_of(c, other), "what the other user sees")
    equal({row["tenant"] for row in ledger(c, user=c.users[1])}, {"batch"}, "queues")
    equal({row["user"] for row in ledger(c, "-b", "user")}, set(c.users), "what root sees")
    equal(cost_of(c, mine) > 0, True, "its cost")


def case_3_prices_change_and_the_past_does_not(c):
    before = charged(c)
    contains(prices(c, "base", "cpu: 9999.00\n"), "cpu  3600.00 -> 9999.00")
    equal(charged(c), before, "the ledger after a change of prices")
    c.kill_and_restart(c.daemon("ctld"))
    wait_for("the controller", lambda: c.root(["gctl", "ping"]).returncode == 0)
    equal(charged(c), before, "the ledger after a restart")
    job = done(c)
    equal(charged(c), before + cost_of(c, job), "the ledger and one more job")
    contains(run(c, "gtenant", "price", "apply", "-y", "-f", f"{c.top}/none.yaml", status=1),
             "cannot read")


def case_4_bills_and_metrics(c):
    for name in ("bill.html", "bill.pdf"):
        path = f"{c.top}/{name}"
        contains(run(c, "greport", "this-month", "-t", "batch", "--invoice", path), "invoice batch-")
        with open(path, "rb") as file:
            first = file.read()
        equal(first.startswith((b"<!DOCTYPE html>", b"%PDF-1.4")), True, name)
        run(c, "greport", "this-month", "-t", "batch", "--invoice", path)
        with open(path, "rb") as file:
            equal(file.read() == first, True, f"{name} made again")
    metrics = run(c, "greport", "--metrics")
    contains(metrics, 'gantry_cpu_seconds_total{tenant="batch",job_type="batch"} ')
    if shutil.which("promtool"):
        checked = subprocess.run(["promtool", "check", "metrics"], input=metrics, text=True,
                                 capture_output=True, check=False, env=os.environ)
        equal(checked.returncode, 0, f"promtool: {checked.stdout}{checked.stderr}")
    csv = run(c, "greport", *ALL_TIME, "--csv")
    contains(csv, "period,tenant,gpu_hours,cpu_hours")
    contains(run(c, "greport", "2026-13", status=1), "are no periods of the ledger")


if __name__ == "__main__":
    sys.exit(cluster.main(__doc__, globals(), name="money", nodes=2, users=2))
