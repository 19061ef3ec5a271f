"""Runs probe.py where there are no walls, so that each of its attempts is known to bite: once as root of the
machine with the node's device files in /dev, and once as root in the victim's own namespaces."""
import json
import os
import subprocess

from cluster import text

HERE = os.path.dirname(os.path.abspath(__file__))
# Writes "1" into files that root may write: without walls this would take devices from the machine and change
# its kernel's settings. walls.py writes to the same settings what they hold.
NOT_AS_ROOT = {"reset-or-remove-a-pci-device", "set-a-kernel-parameter"}
# The kernel has looked at what it was given, which means nothing: no wall was in the way.
LOOKED_AT = {"EFAULT", "EINVAL", "ENOEXEC", "ESTALE", "EBADF"}
# With the node's devices in /dev; all of it is gone with the namespace of mounts.
MACHINE = r"""
set -e
new=$(mktemp -d)
mount -t tmpfs none "$new"
cp -a /dev/null /dev/zero /dev/full /dev/random /dev/urandom "$new"
for name in /dev/mem /dev/kmem /dev/port; do [ ! -e $name ] || cp -a $name "$new"; done
cp -a "$1"/nvidia* "$new"
mkdir "$new/shm" "$new/mqueue"
mount -t tmpfs none "$new/shm"
mount --move "$new" /dev
rmdir "$new"
shift
exec "$@"
"""


def outcomes(done):
    rows = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    return {row["attempt"]: row["came"] for row in rows}


def run(c, facts, name, spoof, command):
    path = f"{c.out}/facts-{name}"
    with open(path, "w", encoding="utf-8") as f:
        json.dump(facts, f)
    return outcomes(subprocess.run(
        [*command, "/usr/bin/python3", "-B", f"{HERE}/probe.py" if name == "machine" else
         f"{c.out}/probe.py", path, ",".join(NOT_AS_ROOT)], cwd=c.out, env={**os.environ, **spoof},
        capture_output=True, text=True, check=True))


def tried_without_walls(c, victim, spoof):
    """Attempt -> what came of it, the better of the two runs."""
    facts = dict(victim, own_minors=[])
    machine = run(c, facts, "machine", dict(spoof, CUDA_MPS_PIPE_DIRECTORY=victim["mps"]), [
        "unshare", "--mount", "--propagation", "private", "sh", "-c", MACHINE, "sh", victim["host_dev"]])
    pid = victim["pid"]
    inner = [line.split()[-1] for line in text(f"/proc/{pid}/status").splitlines()
             if line.startswith("NSpid:")][0]
    beside = run(c, dict(facts, pid=int(inner)), "beside", spoof, [
        "nsenter", "--target", str(pid), "--mount", "--ipc", "--pid", f"--wdns={c.out}"])
    return {name: came if through(came) else beside.get(name, came) for name, came in machine.items()}


def through(came):
    return came.startswith("reached") or came in LOOKED_AT
