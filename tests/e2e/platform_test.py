#!/usr/bin/env python3
"""Two tenants of a platform, each made by one file with all that a tenant has, used, and taken away without
a trace. The files are those of docs/examples/platform, with users and directories of this machine.

usage: platform_test.py BIN_DIR [-k CASE] [--keep]
"""
import contextlib
import os
import re
import shutil
import socket
import subprocess
import sys

import cluster
from cluster import contains, equal, wait_for

EXAMPLES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../docs/examples/platform")
TOP = f"/srv/gantry-platform-{os.getpid()}"
TENANTS = ("fraud", "risk")
SETS = {"fraud": "transactions", "risk": "scores"}
CONTENT = "planted-content-of-a-secret"


def gtenant(c, *words, status=0, user=None, text=None):
    options = {"input": text} if text is not None else {}
    done = c.as_user(["gtenant", *words], user=user, **options) if user else c.root(["gtenant", *words], **options)
    equal(done.returncode, status, f"gtenant {' '.join(words)}: {done.stdout}{done.stderr}")
    return done.stdout + done.stderr


def document(c, tenant):
    """The example, with a user of ours as its admin and our directories, and without a way out of the
    machine, which tests do not have."""
    text = cluster.text(f"{EXAMPLES}/{tenant}.yaml").replace("/srv/data", TOP)
    text = re.sub(r"tenant-admin: \{users: \[\w+\]\}", f"tenant-admin: {{users: [{c.people[tenant]}]}}", text)
    text = re.sub(r"^(to|resolvers): .*\n", "", text, flags=re.M)
    path = f"{c.top}/{tenant}.yaml"
    with open(path, "w", encoding="utf-8") as f:
        f.write(text)
    return path


def export(c):
    return gtenant(c, "export").split("\n", 1)[1]  # without the number of the revision


def case_0_set_up(c):
    c.people = dict(zip(TENANTS, c.users))
    config = f"{c.state}/gantry.yaml"
    text = cluster.text(config)
    text = text.replace("\nnoded:\n", f"\nnoded:\n  storage: [{TOP}]\n", 1)
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    text = text.replace("\ncontroller:\n", f"\ncontroller:\n  metrics_port: {port}\n"
                        "  identity_issuer: https://gantry.example\n", 1)
    with open(config, "w", encoding="ascii") as f:
        f.write(text)
    for tenant in TENANTS:
        for place in (f"tenants/{tenant}", f"sets/{SETS[tenant]}"):
            os.makedirs(f"{TOP}/{place}")
            os.chmod(f"{TOP}/{place}", 0o777)
        with open(f"{TOP}/sets/{SETS[tenant]}/rows", "w", encoding="ascii") as f:
            f.write(f"rows of {tenant}\n")
    c.kill_and_restart(c.daemon("ctld"))
    for node in c.of_program("gantry-noded"):
        c.kill_and_restart(node)
    wait_for("the nodes", lambda: c.root(["ginfo", "-h", "-o", "%T"]).stdout.split() == ["idle"])
    gtenant(c, "apply", "-y", "-f", "-", text="apiVersion: gantry/v1\nkind: PriceBook\nname: site\ncurrency: EUR\ncpu: 0.02\n")
    c.before = export(c)
    equal(traces(c), [], "traces before there is a tenant")


def case_1_one_file_each(c):
    for tenant in TENANTS:
        path = document(c, tenant)
        contains(gtenant(c, "apply", "-y", "-f", path), "Applied as revision")
        contains(gtenant(c, "apply", "-y", "-f", path), "0 to create, 0 to change")
        contains(gtenant(c, "secret", "set", f"{tenant}/hub-token", user=c.people[tenant], text=CONTENT), "version 1")


def case_2_each_has_what_its_file_says(c):
    for tenant, other in (TENANTS, TENANTS[::-1]):
        user = c.people[tenant]
        number = c.submit("-n1", "-p", tenant, "-A", "retraining", f"--dataset={SETS[tenant]}:rw", "--secret=hub-token",
                          "--identity=vault", script=f"""
cat {TOP}/sets/{SETS[tenant]}/rows
ls {TOP}/tenants {TOP}/sets
sha256sum < /run/secrets/hub-token
test -s /run/secrets/identity-vault && echo token
""", user=user)
        c.ended(number, "completed")
        out = c.output(number)
        contains(out, f"rows of {tenant}")
        equal(other in out.replace(f"rows of {tenant}", ""), False, f"the other tenant in {out}")
        contains(out, "token")
        shown = c.root(["gctl", "show", "job", str(number)]).stdout
        contains(shown, "project-code=none", "the label that jobs get")
        contains(c.root(["gctl", "who-can", "edit-secrets", tenant]).stdout, user)
        equal(c.people[other] in c.root(["gctl", "who-can", "submit", tenant]).stdout, False, "the other's admin")
        contains(c.root(["gctl", "network", "show", tenant]).stdout, f"{tenant}-training")
        contains(gtenant(c, "quota", tenant), "64")
        contains(gtenant(c, "budget", "list"), f"{tenant}-month")
        done = c.as_user(["gbatch", "-p", tenant, "-t", "9:00:00", "-H", "--mem=40M", "-o", "%j.out", "--wrap=true"], user=user)
        equal(done.returncode, 0, done.stderr)
        contains(done.stderr, "let it write checkpoints")
        for words in (["-p", other], ["-p", tenant, f"--dataset={SETS[other]}"], ["-p", tenant, "-c65"],
                      ["-p", tenant, "--network=host"], ["-p", tenant, "--container-image=docker.io/library/debian"]):
            done = c.as_user(["gbatch", *words, "--mem=40M", "--wrap=true"], user=user)
            equal(done.returncode, 1, f"{words}: {done.stdout}")
        # The search of the next case finds what there is of a job that runs.
        number = c.submit("-n1", "-p", tenant, f"--dataset={SETS[tenant]}", script="echo ready; sleep 300\n", user=user)
        c.said(number, "ready")
        seen = " ".join(traces(c))
        for what in (f"{c.state}/nodes/", f"job_{number}.1", "node/net: ", tenant):
            contains(seen, what, "traces of a job that runs")
        c.root(["gcancel", str(number)], check=True)
        c.ended(number)


def traces(c):
    """Where a tenant's name or the content of its secret is on this machine, outside of what is kept on purpose:
    the controller's journal and history (accounting and bills outlive a tenant) and the audit log."""
    found = []
    words = [word.encode() for word in (*TENANTS, *SETS.values(), CONTENT)]
    for top, dirs, files in os.walk(c.state):
        dirs[:] = [name for name in dirs if f"{top}/{name}" not in (f"{c.state}/ctld/audit", f"{c.state}/ctld/store")]
        for name in (*dirs, *files):
            path = f"{top}/{name}"
            text = cluster.read(path) if os.path.isfile(path) and not path.endswith((".log", ".mdb")) else b""
            found += [f"{path}: {word.decode()}" for word in words if word in text + name.encode()]
    for top, dirs, _ in os.walk("/sys/fs/cgroup"):
        found += [f"{top}/{name}" for name in dirs if c.cgroup_root() in top and re.match("job_", name)]
    found += [line for line in cluster.text("/proc/self/mountinfo").splitlines()
              if c.state in line and ("/bundle" in line or TOP in line)]
    for pid in cluster.processes():
        for part in ("cmdline", "environ"):
            seen = cluster.read(f"/proc/{pid}/{part}")
            found += [f"/proc/{pid}/{part}: {word.decode()}" for word in words
                      if word in seen and c.state.encode() in seen and pid != os.getpid()]
    for space in spaces(c):
        # Whatever belongs to a job is named by its link: j and a number.
        rules = subprocess.run(["nsenter", f"--net={space}", "nft", "list", "ruleset"], capture_output=True, text=True,
                               check=True).stdout
        found += [f"{space}: {line.strip()}" for line in rules.splitlines() if re.search(r"\bj\d+\b|_j\d+", line)]
    return found


def spaces(c):
    """The network namespaces of the node's own side."""
    return [f"{top}/net" for top, _, files in os.walk(c.state) if os.path.basename(top) == "node" and "net" in files]


def case_3_and_is_taken_away_without_a_trace(c):
    for tenant in TENANTS:
        gtenant(c, "offboard", tenant, "--cancel", "--yes", "--archive", f"{c.top}/archive")
    equal(export(c), c.before, "the documents")
    for words in (["gtenant", "list"], ["gtenant", "secret", "list"], ["gtenant", "access"], ["gqueue", "-h"],
                  ["gctl", "show", "partition"], ["gtenant", "budget", "list"], ["gtenant", "quota"]):
        out = c.root(words).stdout
        for tenant in TENANTS:
            equal(tenant in out, False, f"{' '.join(words)}: {out}")
    c.kill_and_restart(c.daemon("ctld"))
    wait_for("the controller", lambda: c.root(["gctl", "ping"]).returncode == 0)
    equal(export(c), c.before, "the documents after a restart")
    with contextlib.suppress(AssertionError):
        wait_for("no traces", lambda: not traces(c), 10)
    equal(traces(c), [], "traces")
    for tenant in TENANTS:
        equal(os.listdir(f"{TOP}/tenants/{tenant}"), [], "files of ours in the tenant's own directory")


def case_4_the_archive_brings_it_back(c):
    path = next(f"{c.top}/archive/{name}" for name in sorted(os.listdir(f"{c.top}/archive"))
                if name.startswith("fraud") and name.endswith(".yaml"))
    gtenant(c, "apply", "-y", "-f", path)
    out = export(c)
    for name in ("fraud-training", "transactions", "fraud-long-jobs-checkpoint", "fraud-month"):
        contains(out, name)
    gtenant(c, "offboard", "fraud", "--yes", "--archive", f"{c.top}/archive")
    equal(export(c), c.before, "the documents")


def case_5_kinds_of_kubernetes_are_taken_or_named(c):
    head = "apiVersion: {}\nkind: {}\nmetadata: {{name: x, namespace: fraud}}\n"
    for version, kind, said in (("v1", "ServiceAccount", "--identity=AUDIENCE"), ("v1", "Secret", "gtenant secret set"),
                                ("v1", "PersistentVolumeClaim", "storage.path"), ("kyverno.io/v1", "ClusterPolicy", "kind Policy"),
                                ("kyverno.io/v1", "Policy", "kind Policy"), ("v1", "PersistentVolume", "storage.path"),
                                ("constraints.gatekeeper.sh/v1", "K8sX", "mean nothing to Gantry")):
        contains(gtenant(c, "apply", "-y", "-f", "-", text=head.format(version, kind)), said)
    equal(export(c), c.before, "the documents after what was refused")
    # Honoured: the level of Pod Security, a quota, a network policy; named: what of them is not.
    objects = """
apiVersion: v1
kind: Namespace
metadata: {name: shop, labels: {pod-security.kubernetes.io/enforce: restricted, pod-security.kubernetes.io/warn: baseline}}
---
apiVersion: v1
kind: ResourceQuota
metadata: {name: q, namespace: shop}
spec: {hard: {requests.cpu: "4", persistentvolumeclaims: "3", requests.storage: 10Gi, count/jobs.batch: "7"}}
---
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: deny, namespace: shop}
spec: {podSelector: {}, policyTypes: [Ingress, Egress]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: r, namespace: shop}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: edit}
subjects: [{kind: ServiceAccount, name: default, namespace: shop}]
"""
    said = gtenant(c, "apply", "-y", "-f", "-", text=objects)
    for what in ("there is no quota of storage", "persistentvolumeclaims", "default is no user or group"):
        contains(said, what)
    out = export(c)
    for what in ("enforce: restricted", "warn: baseline", "queued_jobs: 7", "kind: NetworkProfile"):
        contains(out, what)
    unknown = objects.replace("enforce: restricted", "enforce: secret")
    contains(gtenant(c, "apply", "-y", "-f", "-", text=unknown, status=1), "secret")
    gtenant(c, "offboard", "shop", "--yes", "--archive", f"{c.top}/archive")


if __name__ == "__main__":
    try:
        status = cluster.main(__doc__, globals(), "platform", nodes=1, users=2)
    finally:
        shutil.rmtree(TOP, ignore_errors=True)
    sys.exit(status)
