#!/usr/bin/env python3
"""storage.size of a tenant on a real cluster. With --disk the storage is an ext4 file system with quotas of projects on that
empty disk (tests/vm has one): jobs are held to it, and cannot count elsewhere. Without it the node says that nothing is kept.

usage: project_quota_test.py BIN_DIR [-k CASE] [--keep] [--disk DEVICE]
"""
import os
import shutil
import subprocess
import sys

import cluster
from cluster import contains, equal, wait_for

TOP = f"/srv/gantry-quota-{os.getpid()}"
DISK = ""
SIZE = "4Mi"
PROJECT = 4711
# Moves a file, or the directory itself, to project 0, which has no limit: FS_IOC_FSGETXATTR, FS_IOC_FSSETXATTR.
MOVE = """
import fcntl, os, struct, sys
fd = os.open(sys.argv[1], os.O_RDONLY)
marks = bytearray(28)
fcntl.ioctl(fd, 0x801c581f, marks)
flags, extent, extents, project, cow = struct.unpack_from("=5I", marks)
struct.pack_into("=5I", marks, 0, flags & ~0x200, extent, extents, 0, cow)
try:
    fcntl.ioctl(fd, 0x401c5820, bytes(marks))
    print("moved it")
except OSError as error:
    print("could not move it", error.errno)
"""


def put(path, text, mode=0o644):
    with open(path, "w", encoding="ascii") as f:
        f.write(text)
    os.chmod(path, mode)


def run(*words):
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    equal(done.returncode, 0, f"{' '.join(words)}: {done.stdout}{done.stderr}")
    return done.stdout


def apply(c, size=SIZE, files=0):
    more = f", files: {files}" if files else ""
    put(f"{c.top}/documents.yaml", f"""
apiVersion: gantry/v1
kind: Tenant
name: red
storage: {{path: {TOP}/red, project: {PROJECT}, size: {size}{more}}}
roles: {{user: {{users: [{c.users[0]}]}}}}
---
apiVersion: gantry/v1
kind: Tenant
name: blue
storage: {{path: {TOP}/blue}}
roles: {{user: {{users: [{c.users[1]}]}}}}
""")
    c.root(["gtenant", "apply", "-f", f"{c.top}/documents.yaml", "--yes"], check=True)


def job(c, script, tenant="red"):
    number = c.submit("-n1", "-p", tenant, script=script, user=c.users[0 if tenant == "red" else 1])
    c.ended(number)
    return c.output(number)


def write(megabytes, name="data"):
    return f"dd if=/dev/zero of=$GANTRY_TENANT_DIR/{name} bs=1M count={megabytes} conv=fsync status=none && echo wrote\n"


def case_0_set_up(c):
    os.makedirs(TOP)
    if DISK:
        for module in ("ext4", "quota_v2"):
            subprocess.run(["modprobe", module], check=False)
        run("mkfs.ext4", "-q", "-O", "project,quota", DISK)
        run("mount", "-o", "prjquota", DISK, TOP)
    for name in ("red", "blue"):
        os.makedirs(f"{TOP}/{name}")
        os.chmod(f"{TOP}/{name}", 0o777)
    apply(c)
    config = f"{c.state}/gantry.yaml"
    put(config, cluster.text(config).replace("\nnoded:\n", f"\nnoded:\n  storage: [{TOP}]\n", 1))
    for node in c.of_program("gantry-noded"):
        c.kill_and_restart(node)
    wait_for("the nodes", lambda: c.root(["ginfo", "-h", "-o", "%T"]).stdout.split() == ["idle"])
    put(f"{c.out}/move.py", MOVE)


def case_1_the_node_says_whether_it_is_kept(c):
    off = f"storage quota on {TOP}: its file system has no quota of projects"
    # The controller may still know what the daemon said before it was started again.
    wait_for("the node's word on quotas", lambda: (
        off in c.root(["gctl", "show", "node", "node1"], check=True).stdout) == (not DISK))


def case_2_a_job_is_held_to_it(c):
    out = job(c, write(2) + write(8, "more"))
    equal(out.count("wrote"), 1 if DISK else 2, out)
    if DISK:
        contains(out, "Disk quota exceeded")
    os.unlink(f"{TOP}/red/more")
    equal(job(c, write(8), "blue").count("wrote"), 1, "another tenant")


def case_3_a_limit_that_changes(c):
    apply(c, size="16Mi")
    equal(job(c, write(8, "more")).count("wrote"), 1, "more room")
    apply(c, size="64Mi", files=5)
    out = job(c, "for i in 1 2 3 4 5 6; do echo > $GANTRY_TENANT_DIR/file$i && echo wrote; done\n")
    equal(out.count("wrote") < 6, bool(DISK), out)
    apply(c)


def case_4_it_cannot_be_dodged(c):
    if not DISK:
        cluster.pass_over("there is no file system with quotas of projects; vm_project_quota has one")
        return
    out = job(c, "python3 move.py $GANTRY_TENANT_DIR/data\npython3 move.py $GANTRY_TENANT_DIR\n")
    equal(out.count("could not move it"), 2, out)
    # The owner of a file can where no user namespace is in the way.
    done = subprocess.run([sys.executable, f"{c.out}/move.py", f"{TOP}/red/data"], user=c.users[0], group=c.users[0],
                          extra_groups=[], capture_output=True, text=True, check=False)
    contains(done.stdout, "moved it", "outside of a job")


def main():
    global DISK
    if "--disk" in sys.argv:
        at = sys.argv.index("--disk")
        DISK = sys.argv[at + 1]
        del sys.argv[at:at + 2]
    try:
        return cluster.main(__doc__, globals(), "room", nodes=1, users=2)
    finally:
        if DISK:
            subprocess.run(["umount", TOP], check=False, capture_output=True)
        shutil.rmtree(TOP, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
