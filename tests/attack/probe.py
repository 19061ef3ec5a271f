"""Attempts of a hostile job to leave its container. argv[1] is a JSON file that tells it everything
about its victim. It prints one line of JSON for each attempt: the name and the outcome. The outcome
"reached" means success; every other word says how the attempt was stopped. With argv[2], names of
attempts to leave out, each is made in a process of its own, since without walls some change it."""
import ctypes
import errno
import json
import mmap
import os
import signal
import socket
import stat
import subprocess
import sys

libc = ctypes.CDLL(None, use_errno=True)
CLONE_NEWUSER, CLONE_NEWNS, CLONE_NEWNET = 0x10000000, 0x20000, 0x40000000
attempts = {}


def attempt(f):
    attempts[f.__name__.replace("_", "-")] = f
    return f


def call(result):
    """Raises OSError if a C function returned -1 (with errno set); else the outcome is
    "reached"."""
    if result == -1:
        raise OSError(ctypes.get_errno(), "")
    return "reached"


def opened(path, flags=os.O_RDWR | os.O_NONBLOCK):
    try:
        os.close(os.open(path, flags))
    except OSError as e:
        # The device rules let the open pass; only the driver is missing on this machine.
        if e.errno == errno.ENXIO:
            return "reached"
        raise
    return "reached"


def opened_unmasked(path):
    """Opens a path that the runtime may have masked with /dev/null; an open of that mask reaches
    nothing."""
    if os.path.exists(path) and os.stat(path).st_rdev == os.stat("/dev/null").st_rdev:
        return "masked"
    return opened(path)


def write(path, what="1"):
    with open(path, "w", encoding="utf-8") as f:
        f.write(what)
    return "reached"


def first(found, of):
    """Returns "reached" if `found` reaches one of the items, else the first refusal."""
    worst = None
    for item in of:
        try:
            if found(item) == "reached":
                return f"reached {item}"
        except OSError as e:
            worst = worst or errno.errorcode.get(e.errno, str(e.errno))
    return worst or "nothing there"


# ---- device files ----------------------------------------------------------------------------------
@attempt
def open_the_victims_gpu(v):
    return first(opened, [f"/dev/nvidia{m}" for m in v["minors"]])


@attempt
def open_every_gpu_number(v):
    return first(opened, [f"/dev/nvidia{m}" for m in range(256) if m not in v["own_minors"]])


@attempt
def open_capabilities_of_the_victims_slice(v):
    return first(lambda p: opened(p, os.O_RDONLY),
                 [f"/dev/nvidia-caps/nvidia-cap{m}" for m in v["caps"]])


@attempt
def open_the_right_to_configure_mig(v):
    return first(lambda p: opened(p, os.O_RDONLY),
                 ["/dev/nvidia-caps/nvidia-cap1", "/dev/nvidia-caps/nvidia-cap2"])


def node(v, folder, kind=stat.S_IFCHR):
    path = f"{folder}/try-{os.getpid()}"
    try:
        os.mknod(path, kind | 0o666, os.makedev(195, v["minors"][0]))
        return opened(path)
    finally:
        if os.path.lexists(path):
            os.unlink(path)


@attempt
def mknod_in_tmp(v):
    return node(v, "/tmp")


@attempt
def mknod_in_dev(v):
    return node(v, "/dev")


@attempt
def mknod_in_shared_memory(v):
    return node(v, "/dev/shm")


@attempt
def mknod_in_the_working_directory(v):
    return node(v, os.getcwd())


@attempt
def mknod_of_a_block_device(v):
    return node(v, "/tmp", stat.S_IFBLK)


@attempt
def open_a_file_that_lies_in_a_shared_directory(v):
    return opened(v["planted"])


@attempt
def open_it_through_another_root(v):
    return first(opened, [f"/proc/{p}/root/dev/nvidia{v['minors'][0]}" for p in (1, v["pid"])]
                 + [f"/proc/{os.getppid()}/root/../dev/nvidia{v['minors'][0]}"])


@attempt
def take_it_from_another_process(v):
    return first(opened, [f"/proc/{v['pid']}/fd/{n}" for n in range(32)])


@attempt
def open_the_machines_memory(v):
    return first(opened_unmasked, ["/dev/mem", "/dev/kmem", "/dev/port", "/proc/kcore"])


@attempt
def mount_a_dev_of_its_own(v):
    os.makedirs("/tmp/dev", exist_ok=True)
    return call(libc.mount(b"devtmpfs", b"/tmp/dev", b"devtmpfs", 0, None))


@attempt
def bind_the_hosts_dev(v):
    os.makedirs("/tmp/bound", exist_ok=True)
    return call(libc.mount(b"/dev", b"/tmp/bound", None, 4096, None))


@attempt
def remount_without_nodev(v):
    return call(libc.mount(None, os.getcwd().encode(), None, 32 | 4096, None))


@attempt
def link_to_a_driver_file_outside(v):
    path = f"/tmp/link-{os.getpid()}"
    os.symlink(f"{v['host_dev']}/nvidia{v['minors'][0]}", path)
    return opened(path)


# ---- cgroups, capabilities, namespaces --------------------------------------------------------------
@attempt
def widen_the_device_rules(v):
    found = [os.path.join(top, f) for top, _, files in os.walk("/sys/fs/cgroup")
             for f in files if f in ("devices.allow", "cgroup.procs", "cgroup.subtree_control")]
    return first(lambda p: write(p, "a"), found or ["/sys/fs/cgroup/devices/devices.allow"])


@attempt
def move_to_another_cgroup(v):
    return first(lambda p: write(p, str(os.getpid())),
                 ["/sys/fs/cgroup/cgroup.procs", "/sys/fs/cgroup/devices/cgroup.procs",
                  f"{v['cgroup']}/cgroup.procs"])


@attempt
def have_a_capability(v):
    words = dict(line.split(":", 1) for line in open("/proc/self/status", encoding="utf-8"))
    held = [words[s].strip() for s in ("CapPrm", "CapEff", "CapBnd", "CapAmb")]
    return "reached" if any(int(h, 16) for h in held) else "none"


@attempt
def gain_by_a_set_uid_program(v):
    words = dict(line.split(":", 1) for line in open("/proc/self/status", encoding="utf-8"))
    done = subprocess.run(["su", "-c", "id -u", "root"], capture_output=True, text=True,
                          stdin=subprocess.DEVNULL, check=False)
    if done.stdout.strip() == "0":
        return "reached"
    return "no new privileges" if words["NoNewPrivs"].strip() == "1" else "reached"


@attempt
def make_a_user_namespace(v):
    return call(libc.unshare(CLONE_NEWUSER))


@attempt
def make_a_mount_namespace(v):
    return call(libc.unshare(CLONE_NEWNS))


@attempt
def enter_the_victims_namespaces(v):
    def enter(path):
        fd = os.open(path, os.O_RDONLY)
        return call(libc.setns(fd, 0))
    return first(enter, [f"/proc/{v['pid']}/ns/{n}" for n in ("mnt", "ipc", "pid")])


@attempt
def load_a_device_program(v):
    # bpf() must be refused because device rules of cgroup v2 are bpf programs.
    return call(libc.syscall(321, 0, None, 0))


@attempt
def reach_io_ports(v):
    return call(libc.iopl(3))


# ---- the driver's files ------------------------------------------------------------------------------
@attempt
def change_the_drivers_parameters(v):
    return first(write, ["/proc/driver/nvidia/params", "/proc/driver/nvidia/registry",
                         "/sys/module/nvidia/parameters/NVreg_DeviceFileUID"])


@attempt
def reset_or_remove_a_pci_device(v):
    found = [f"/sys/bus/pci/devices/{d}/{f}" for d in os.listdir("/sys/bus/pci/devices")
             for f in ("reset", "remove", "rescan")] if os.path.isdir("/sys/bus/pci/devices") else []
    return first(write, found + ["/sys/bus/pci/rescan"])


@attempt
def map_a_pci_devices_memory(v):
    def reach(path):
        fd = os.open(path, os.O_RDWR)
        mmap.mmap(fd, 4096)
        return "reached"
    found = [f"/sys/bus/pci/devices/{d}/resource{n}" for d in os.listdir("/sys/bus/pci/devices")
             for n in range(6)] if os.path.isdir("/sys/bus/pci/devices") else []
    return first(reach, found or ["/sys/bus/pci/devices/0000:00:00.0/resource0"])


@attempt
def set_a_kernel_parameter(v):
    return first(write, ["/proc/sys/kernel/modprobe", "/proc/sysrq-trigger", "/proc/sys/kernel/core_pattern"])


@attempt
def load_a_module(v):
    return call(libc.syscall(175, b"x", 1, b""))


# ---- MPS ---------------------------------------------------------------------------------------------
@attempt
def open_the_victims_mps_pipe(v):
    return first(opened, [f"{v['mps']}/pipe/control"])


@attempt
def list_the_mps_directories(v):
    return "reached" if os.listdir(os.path.dirname(v["mps"])) else "empty"


@attempt
def find_the_victims_gpu_behind_its_own_pipe(v):
    with open("/dev/mps/devices", encoding="utf-8") as f:
        return "reached" if v["uuid"] in f.read() else "its own only"


@attempt
def use_the_default_mps_directory(v):
    return first(opened, ["/tmp/nvidia-mps/control"])


@attempt
def find_the_victims_file_in_mps_memory(v):
    return "reached" if v["shm"] in os.listdir("/dev/shm") else "its own only"


# ---- IPC, shared memory, processes -------------------------------------------------------------------
@attempt
def attach_the_victims_shared_memory(v):
    return call(libc.shmget(v["key"], 0, 0o666))


@attempt
def get_the_victims_semaphores(v):
    return call(libc.semget(v["key"], 0, 0o666))


@attempt
def get_the_victims_message_queue(v):
    return call(libc.msgget(v["key"], 0o666))


@attempt
def open_the_victims_posix_memory(v):
    return opened(f"/dev/shm/{v['shm']}")


@attempt
def open_the_victims_posix_queue(v):
    return opened(f"/dev/mqueue/{v['shm']}")


@attempt
def read_the_victims_tmp(v):
    return opened(f"/tmp/{v['shm']}", os.O_RDONLY)


@attempt
def connect_to_an_abstract_socket(v):
    with socket.socket(socket.AF_UNIX) as s:
        s.connect("\0" + v["socket"])
    return "reached"


@attempt
def connect_over_loopback(v):
    with socket.socket() as s:
        s.settimeout(3)
        s.connect(("127.0.0.1", v["port"]))
    return "reached"


@attempt
def signal_the_victim(v):
    os.kill(v["pid"], signal.SIGCONT)
    return "reached"


@attempt
def trace_the_victim(v):
    return call(libc.ptrace(16, v["pid"], None, None))


@attempt
def read_the_victims_memory(v):
    return opened(f"/proc/{v['pid']}/mem", os.O_RDONLY)


@attempt
def read_the_victims_environment(v):
    return opened(f"/proc/{v['pid']}/environ", os.O_RDONLY)


@attempt
def open_a_file_by_its_handle(v):
    return call(libc.syscall(304, -100, b"\0" * 16, 0))


@attempt
def perf_or_io_uring(v):
    return call(libc.syscall(425, 1, None))


# ---- the environment ---------------------------------------------------------------------------------
@attempt
def spoof_the_environment(v):
    own = {n: os.environ.get(n, "") for n in
           ("CUDA_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES", "SLURM_JOB_GPUS", "GANTRY_JOB_GPUS",
            "CUDA_MPS_PIPE_DIRECTORY", "GPU_DEVICE_ORDINAL", "GANTRY_GRES_FPGA")}
    bad = [n for n, value in own.items() if v["uuid"] in value or value in ("all", v["mps"], "spoofed")]
    return f"reached {bad}" if bad else "overwritten"


def apart(name):
    """True in the process that makes this attempt: a child, if argv[2] asks for one."""
    if len(sys.argv) < 3:
        return True
    if name in sys.argv[2].split(","):
        return False
    child = os.fork()
    if child != 0:
        os.waitpid(child, 0)
    return child == 0


def main():
    with open(sys.argv[1], encoding="utf-8") as f:
        victim = json.load(f)
    for name, f in attempts.items():
        if not apart(name):
            continue
        ctypes.set_errno(0)
        try:
            came = f(victim)
        except OSError as e:
            came = errno.errorcode.get(e.errno, str(e.errno))
        # The test must see this error; it must not be mistaken for a refusal.
        except Exception as e:
            came = f"error {type(e).__name__}: {e}"
        print(json.dumps({"attempt": name, "came": came}), flush=True)
        if len(sys.argv) > 2:
            os._exit(0)


if __name__ == "__main__":
    main()
