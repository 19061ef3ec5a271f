#!/usr/bin/env python3
"""Sandboxes that are stronger than the usual walls of a job: what `hardened` stops, and that usual
programs still run in it; gvisor where it is installed; vm with a stand-in for its runtime; the program
that looks at images; `gantry check`, which tries it all itself. README.md lists the attempts.

usage: sandbox_test.py BIN_DIR [-k CASE] [--keep]
"""
import json
import os
import re
import shutil
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "../e2e"))

import cluster  # noqa: E402
from cluster import contains, equal  # noqa: E402
from walls_test import outcomes, told  # noqa: E402

# Attempts that concern the kernel of gvisor, which is the job's own: who gets through has gained nothing that lies
# outside. Its /proc does not tell of no_new_privs, its log and its /dev/net/tun are made up.
OF_ITS_OWN_KERNEL = {"make-a-user-namespace", "run-with-the-rights-of-a-set-uid-program", "have-the-highest-priority",
                     "read-the-log-of-the-kernel", "open-devices-that-reach-the-kernel"}

USUAL = r"""
import ctypes, hashlib, json, mmap, multiprocessing, os, resource, signal, socket, sqlite3, ssl, subprocess, tempfile, threading, zlib
def double(x):
    return 2 * x
if __name__ == "__main__":
    with multiprocessing.Pool(2) as pool:
        assert pool.map(double, [1, 2]) == [2, 4]
    assert subprocess.check_output(["sh", "-c", "echo a | tr a b"], text=True) == "b\n"
    threads = [threading.Thread(target=hashlib.sha256, args=(b"x",)) for _ in range(4)]
    [t.start() for t in threads]; [t.join() for t in threads]
    server = socket.create_server(("127.0.0.1", 0))
    with socket.create_connection(server.getsockname()) as c:
        c.sendall(b"x")
        assert server.accept()[0].recv(1) == b"x"
    assert socket.getaddrinfo("localhost", 80)
    a, b = socket.socketpair(); a.send(b"y"); assert b.recv(1) == b"y"
    socket.socket(socket.AF_INET, socket.SOCK_DGRAM).close()
    with tempfile.TemporaryDirectory() as d:
        db = sqlite3.connect(d + "/x.db"); db.execute("create table t(x)"); db.commit(); db.close()
        with open(d + "/m", "wb+") as f:
            f.truncate(4096); m = mmap.mmap(f.fileno(), 4096); m[0] = 1
    shared = multiprocessing.shared_memory.SharedMemory(create=True, size=4096); shared.close(); shared.unlink()
    assert os.cpu_count() >= 1 and len(os.sched_getaffinity(0)) >= 1
    with open("/proc/cpuinfo") as f: assert f.read(1)
    with open("/proc/meminfo") as f: assert f.read(1)
    os.makedirs("made", exist_ok=True)
    with open("made/run.sh", "w") as f: f.write("#!/bin/sh\necho from the working directory\n")
    os.chmod("made/run.sh", 0o755)
    assert "working directory" in subprocess.check_output(["./made/run.sh"], text=True)
    signal.setitimer(signal.ITIMER_REAL, 0)
    print("all of it")
"""


def bites(c, level, how):
    job = c.submit(f"--sandbox={level}", script=how.format(f"hardened.py {told(c)}"))
    c.ended(job, "completed")
    return {a: row["came"] for a, row in outcomes(c.output(job)).items()}


def case_hardened_stops_what_standard_allows(c):
    for name in ("hardened.py", "walls.py"):
        shutil.copy(f"{HERE}/{name}", f"{c.out}/{name}")
    how = ("exec /usr/bin/python3 {}\n", "grun -n1 /usr/bin/python3 {}\n")
    usual = bites(c, "standard", how[0])
    equal({a: came for a, came in usual.items() if came != "reached" and came not in ("ENOENT", "empty", "ENOSYS")}, {},
          "attempts that do not bite in the standard sandbox")
    equal(len([a for a, came in usual.items() if came == "reached"]) >= 18, True, f"{usual}")
    for one in how:
        hard = bites(c, "hardened", one)
        equal(set(hard), set(usual), "attempts")
        equal({a: came for a, came in hard.items() if came == "reached"}, {}, "reached in a hardened job")


def case_hardened_has_the_usual_walls(c):
    path = told(c)
    for how in ("exec /usr/bin/python3 walls.py {}", "grun -n1 /usr/bin/python3 walls.py {}"):
        job = c.submit("--sandbox=hardened", script=how.format(path) + "\n")
        c.ended(job, "completed")
        came = outcomes(c.output(job))
        equal(len(came) >= 58, True, f"{len(came)} attempts")
        equal({a: row["came"] for a, row in came.items() if row["came"] == "reached"}, {}, "reached in a hardened job")


def case_usual_programs_run_hardened(c):
    with open(f"{c.out}/usual.py", "w", encoding="utf-8") as f:
        f.write(USUAL.replace("multiprocessing, os", "multiprocessing, multiprocessing.shared_memory, os"))
    job = c.submit("--sandbox=hardened", "-n2", "--mem=400M", "-o", "%j.out", defaults=(), script="""
set -e
/usr/bin/python3 usual.py
seq 3 | while read x; do echo line $x; done | sort -r | head -1
date > here; cp here there; ls -l there; cat /etc/hosts > /dev/null
grun -n2 /usr/bin/python3 -c 'import os; print("task", os.environ["SLURM_PROCID"])' | sort
id -un; df /tmp > /dev/null; ps -e | grep -c . > /dev/null
""")
    c.ended(job, "completed")
    for needle in ("all of it", "line 3", "task 0", "task 1", c.user):
        contains(c.output(job), needle)
    detail = c.root(["scontrol", "show", "job", str(job)], check=True).stdout if os.path.exists(f"{c.bin}/scontrol") else \
        c.root(["gctl", "show", "job", str(job)], check=True).stdout
    contains(detail, "Sandbox=hardened")
    contains(c.root(["gacct", "-n", "-P", "-j", str(job), "-o", "JobID,Sandbox"], check=True).stdout, "hardened")


def sandboxes(c, node="node1"):
    shown = c.root(["gctl", "show", "node", node], check=True).stdout
    return re.search(r"Sandboxes=(\S+)", shown).group(1).split(",")


def configured(c, lines):
    """Runs the daemons with these lines in the part `noded` of gantry.yaml."""
    c.root(["gantry", "down", "--state", c.state], check=True)
    path = f"{c.state}/gantry.yaml"
    with open(path, encoding="utf-8") as f:
        sound = f.read()
    with open(path, "w", encoding="utf-8") as f:
        f.write(sound.replace("noded:\n", "noded:\n" + lines, 1))
    c.root(["gantry", "up", "--restarts", "0", "--state", c.state], check=True, timeout=120)
    c.find_daemons()
    return sound


def restored(c, sound):
    c.root(["gantry", "down", "--state", c.state], check=True)
    with open(f"{c.state}/gantry.yaml", "w", encoding="utf-8") as f:
        f.write(sound)
    c.root(["gantry", "up", "--restarts", "0", "--state", c.state], check=True, timeout=120)
    c.find_daemons()


def program(path, text):
    with open(path, "w", encoding="utf-8") as f:
        f.write(text)
    os.chmod(path, 0o755)
    return path


def case_vm_by_a_stand_in(c):
    """A runtime that starts no other kernel is found out; one that does is used by its command line."""
    has_kernel = "gvisor" in sandboxes(c)
    runtime = "exec runsc --ignore-cgroups --network=none" if has_kernel else "exec runc"
    path = program(f"{c.top}/vm-runtime", f'#!/bin/sh\necho "$@" >> {c.top}/vm.log\n{runtime} "$@"\n')
    sound = configured(c, f"  vm_runtime: {path}\n")
    try:
        done = c.as_user(["gbatch", "--parsable", "--sandbox=vm", "-o", "%j.out", "--wrap=cat /proc/version; exit 4"])
        with open(f"{c.top}/vm.log", encoding="utf-8") as f:
            asked = f.read()
        contains(asked, " run --bundle ")
        if not has_kernel:
            contains(done.stderr, "it has the kernel of the node")
            return
        equal(done.returncode, 0, done.stderr)
        c.ended(int(done.stdout), "failed", code=4)
        equal(os.uname().release in c.output(int(done.stdout)), False, "the job's kernel is the node's")
    finally:
        restored(c, sound)


def case_images_are_looked_at(c):
    image = f"{c.out}/image"
    os.makedirs(f"{image}/bin", exist_ok=True)
    if not shutil.which("mksquashfs") or not shutil.which("unsquashfs"):
        cluster.pass_over("there is no squashfs-tools")
        return
    os.makedirs(f"{image}/etc", exist_ok=True)
    with open(f"{image}/etc/wanted", "w", encoding="utf-8") as f:
        f.write("yes\n")
    for name in ("good", "bad"):
        with open(f"{image}/etc/name", "w", encoding="utf-8") as f:
            f.write(name)
        shutil.rmtree(f"{c.out}/{name}.sqsh", ignore_errors=True)
        subprocess.run(["mksquashfs", image, f"{c.out}/{name}.sqsh", "-noappend", "-quiet"], check=True,
                       capture_output=True)
        os.chmod(f"{c.out}/{name}.sqsh", 0o644)
    log = f"{c.top}/looked"
    with open(log, "w", encoding="utf-8"):
        pass
    os.chmod(log, 0o666)
    path = program(f"{c.top}/look", f"""#!/bin/sh
echo "$(id -u) $1 $2 $3" >&2
grep -q good etc/name && grep -q yes etc/wanted && touch etc/x 2>/dev/null && exit 9
grep -q good etc/name && exit 0
echo "the image has a hole, see ticket 7"
exit 1
""")
    sound = configured(c, f"  image_check: [{path}, --strict]\n")
    try:
        bad = c.submit(f"--container-image={c.out}/bad.sqsh", script="true\n")
        entry = c.ended(bad, "failed")
        contains(entry["cause"], "the image has a hole, see ticket 7")
        good = c.submit(f"--container-image={c.out}/good.sqsh", script="true\n")
        entry = c.ended(good)
        equal("refused" in entry["cause"], False, entry["cause"])
        directory = c.submit(f"--container-image={image}", script="true\n")
        contains(c.ended(directory, "failed")["cause"], "noded.image_check")
    finally:
        restored(c, sound)


def case_vm_is_refused_by_its_name(c):
    done = c.as_user(["gbatch", "--sandbox=vm", "--wrap=true"])
    equal(done.returncode != 0, True, "vm was accepted")
    contains(done.stderr, "has the sandbox vm")
    contains(done.stderr, "noded.vm_runtime")


def case_gvisor(c):
    if "gvisor" not in sandboxes(c):
        done = c.as_user(["gbatch", "--sandbox=gvisor", "--wrap=true"])
        contains(done.stderr, "has the sandbox gvisor")
        cluster.pass_over(f"there is no gvisor here: {done.stderr.strip()}")
        return
    path = told(c)
    job = c.submit("--sandbox=gvisor", "--mem=400M", "-o", "%j.out", defaults=(), script=f"""
cat /proc/version
echo error >&2
pwd; /usr/bin/id -u; echo made > made-inside
/usr/bin/python3 walls.py {path}
exit 3
""")
    c.ended(job, "failed", code=3)
    said = c.output(job)
    for needle in ("error", c.out):
        contains(said, needle)
    equal(os.stat(f"{c.out}/made-inside").st_uid, os.stat(f"{c.out}/{job}.out").st_uid, "owner of a file")
    came = outcomes(said)
    equal(len(came) >= 58, True, f"{len(came)} attempts")
    equal({a: row["came"] for a, row in came.items() if row["came"] == "reached" and a not in OF_ITS_OWN_KERNEL}, {},
          "reached in gvisor")
    # A signal, a cancel, a time limit.
    job = c.submit("--sandbox=gvisor", "--mem=200M", "-o", "%j.out", defaults=(), script="""
trap 'echo heard; exit 0' USR1
echo ready
while :; do sleep 0.2; done
""")
    c.said(job, "ready")
    c.root(["gcancel", "--signal=USR1", "--batch", str(job)], check=True)
    c.ended(job, "completed")
    contains(c.output(job), "heard")
    job = c.submit("--sandbox=gvisor", "--mem=200M", "-o", "%j.out", defaults=(), script="echo ready; sleep 100\n")
    c.said(job, "ready")
    c.root(["gcancel", str(job)], check=True)
    c.ended(job, "cancelled")
    for refused in (["gbatch", "--gpus=1", "--wrap=true"], ["grun", "true"], ["galloc", "true"]):
        done = c.as_user([refused[0], "--sandbox=gvisor", *refused[1:]])
        equal(done.returncode != 0, True, f"gvisor with {refused} was accepted")
        contains(done.stderr, "cannot have this in the sandbox gvisor")


def case_gantry_check_tries_it(c):
    for more in ((), ("--sandbox=hardened",)):
        done = c.as_user(["gantry", "check", "--walls", "--json", *more])
        equal(done.returncode, 0, f"{done.stdout}{done.stderr}")
        rows = json.loads(done.stdout)["findings"]
        on = [r for r in rows if r["state"] == "on"]
        equal(len(on) >= (20 if not more else 28), True, f"{len(on)} layers are on")
        equal({r["node"] for r in rows}, {"node1", "node2"}, "nodes")
    done = c.as_user(["gantry", "check", "--walls", "node1"])
    contains(done.stdout, "system call filter")
    # Without walls attempts get through, so each is known to bite.
    inside = json.loads(subprocess.run(["unshare", "--mount", "--propagation", "private", f"{c.bin}/gantry", "check", "--inside", "--sandbox=hardened"], check=True,
                                       capture_output=True, text=True).stdout)["findings"]
    open_ones = [r["attempt"] for r in inside if r["state"] == "OFF"]
    equal(len(open_ones) >= 15, True, f"{open_ones}")


def case_the_table_names_every_attempt(_):
    with open(f"{HERE}/README.md", encoding="utf-8") as f:
        named = set(re.findall(r"^\| `hardened/([a-z0-9-]+)`", f.read(), re.M))
    with open(f"{HERE}/hardened.py", encoding="utf-8") as f:
        there = {n.replace("_", "-") for n in re.findall(r"^@attempt\ndef (\w+)", f.read(), re.M)}
    equal(named, there, "README.md")


if __name__ == "__main__":
    sys.exit(cluster.main(__doc__, globals(), "sandbox", nodes=2))
