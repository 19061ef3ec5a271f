"""Attempts of a program to do what a job may not. argv[1] is a JSON file with what it is told. It
prints one line of JSON for each attempt: its name, who would succeed without the walls ("user" or
"root"), and the outcome. The outcome "reached" means success; every other word says what stopped it.

walls_test.py runs it in a job, where nothing may be reached, and without walls, where everything
that can be shown on this machine is reached: so each attempt is known to bite. Whatever root writes
is what it has read before."""
import ctypes
import errno
import json
import os
import resource
import socket
import struct
import sys

libc = ctypes.CDLL(None, use_errno=True)
CLONE_NEWNS, CLONE_NEWUTS, CLONE_NEWUSER, CLONE_NEWNET = 0x20000, 0x4000000, 0x10000000, 0x40000000
attempts = []


def attempt(without):
    """`without`: who succeeds without any wall."""
    def add(f):
        attempts.append((f.__name__.replace("_", "-"), without, f))
        return f
    return add


def call(result):
    if result == -1:
        raise OSError(ctypes.get_errno(), "")
    return "reached"


def in_child(work):
    """Runs work() in a child and returns its outcome; a child because it changes the process."""
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            said = work() or "reached"
        except OSError as e:
            said = errno.errorcode.get(e.errno, str(e.errno))
        except BaseException as e:  # the child must not go on as the parent
            said = type(e).__name__
        os.write(write, said.encode())
        os._exit(0)
    os.close(write)
    with os.fdopen(read, "rb") as f:
        said = f.read().decode()
    _, status = os.waitpid(pid, 0)
    return said or f"ended by signal {os.WTERMSIG(status)}"


def rewrite(path):
    """Writes what the file has already."""
    with open(path, encoding="utf-8", errors="replace") as f:
        now = f.read()
    with open(path, "w", encoding="utf-8") as f:
        f.write(now)
    return "reached"


def first(found, of):
    worst = None
    for item in of:
        try:
            if found(item) == "reached":
                return "reached"
        except OSError as e:
            worst = worst or errno.errorcode.get(e.errno, str(e.errno))
    return worst or "nothing there"


def read_some(path):
    with open(path, "rb") as f:
        return "reached" if f.read(64) else "empty"


def opened(path, flags=os.O_RDONLY | os.O_NONBLOCK):
    os.close(os.open(path, flags))
    return "reached"


# ---- files of the kernel by which root's programs are named, and switches of the machine ------------
@attempt("root")
def name_the_program_for_core_dumps(_):
    return rewrite("/proc/sys/kernel/core_pattern")


@attempt("root")
def name_the_program_that_loads_modules(_):
    return rewrite("/proc/sys/kernel/modprobe")


@attempt("root")
def name_the_release_agent_of_a_cgroup(_):
    return first(rewrite, [os.path.join("/sys/fs/cgroup", name, "release_agent")
                           for name in sorted(os.listdir("/sys/fs/cgroup"))])


@attempt("root")
def name_the_program_for_device_events(_):
    return first(rewrite, ["/sys/kernel/uevent_helper", "/proc/sys/kernel/hotplug"])


@attempt("root")
def set_a_limit_of_the_whole_machine(_):
    return rewrite("/proc/sys/fs/file-max")


@attempt("root")
def drop_the_caches_of_all(_):
    with open("/proc/sys/vm/drop_caches", "w", encoding="utf-8") as f:
        f.write("1\n")
    return "reached"


@attempt("root")
def ask_for_help_by_sysrq(_):
    with open("/proc/sysrq-trigger", "w", encoding="utf-8") as f:
        f.write("h")
    return "reached"


@attempt("root")
def make_a_cgroup(_):
    def one(folder):
        path = os.path.join("/sys/fs/cgroup", folder, f"gantry-walls-{os.getpid()}")
        os.mkdir(path)
        os.rmdir(path)
        return "reached"
    return first(one, ["memory", "pids", "cpu", ""])


@attempt("root")
def leave_the_own_cgroup(_):
    def work():
        return first(lambda p: write(p, "0"), ["/sys/fs/cgroup/pids/cgroup.procs", "/sys/fs/cgroup/memory/cgroup.procs",
                                               "/sys/fs/cgroup/cgroup.procs"])

    def write(path, what):
        with open(path, "w", encoding="utf-8") as f:
            f.write(what)
        return "reached"
    return in_child(work)


# ---- mounts and namespaces --------------------------------------------------------------------------
@attempt("root")
def mount_a_file_system(_):
    def work():
        call(libc.mount(b"none", b"/tmp", b"tmpfs", 0, None))
        return call(libc.umount2(b"/tmp", 2))
    return in_child(work)


@attempt("root")
def mount_proc_again(_):
    def work():
        call(libc.mount(b"proc", b"/tmp", b"proc", 0, None))
        return call(libc.umount2(b"/tmp", 2))
    return in_child(work)


@attempt("root")
def bind_the_root_elsewhere(_):
    def work():
        call(libc.mount(b"/", b"/tmp", None, 4096, None))
        return call(libc.umount2(b"/tmp", 2))
    return in_child(work)


@attempt("root")
def make_the_root_writable(_):
    return in_child(lambda: call(libc.mount(None, b"/", None, 32 | 4096, None)))


@attempt("root")
def open_a_file_system_by_the_new_calls(_):
    return in_child(lambda: call(libc.syscall(430, b"tmpfs", 0)))  # fsopen


@attempt("root")
def clone_a_tree_of_mounts(_):
    return in_child(lambda: call(libc.syscall(428, -100, b"/", 1)))  # open_tree, OPEN_TREE_CLONE


@attempt("user")
def make_a_user_namespace(_):
    return in_child(lambda: call(libc.unshare(CLONE_NEWUSER)))


@attempt("user")
def make_a_user_namespace_by_clone3(_):
    def work():
        arguments = struct.pack("11Q", CLONE_NEWUSER, 0, 0, 0, 17, 0, 0, 0, 0, 0, 0)
        pid = libc.syscall(435, arguments, len(arguments))
        if pid == 0:
            os._exit(0)
        call(pid)
        os.waitpid(pid, 0)
        return "reached"
    return in_child(work)


@attempt("root")
def make_a_network_namespace(_):
    return in_child(lambda: call(libc.unshare(CLONE_NEWNET)))


@attempt("root")
def enter_a_namespace(_):
    def work():
        fd = os.open("/proc/self/ns/net", os.O_RDONLY)
        return call(libc.setns(fd, 0))
    return in_child(work)


@attempt("root")
def change_the_root(_):
    return in_child(lambda: os.chroot("/") or "reached")


# ---- being somebody else, or more -------------------------------------------------------------------
@attempt("root")
def become_root(_):
    return in_child(lambda: os.setresuid(0, 0, 0) or "reached")


@attempt("root")
def become_another_user(_):
    return in_child(lambda: os.setresuid(65534, 65534, 65534) or "reached")


@attempt("root")
def join_another_group(_):
    return in_child(lambda: os.setgroups([0, 6]) or "reached")


@attempt("root")
def give_a_file_away(told):
    def work():
        path = f"{told['out']}/given-{os.getpid()}"
        with open(path, "w", encoding="utf-8"):
            pass
        try:
            os.chown(path, 65534, 65534)
        finally:
            os.unlink(path)
        return "reached"
    return in_child(work)


@attempt("user")
def run_with_the_rights_of_a_set_uid_program(_):
    # Without new privileges su cannot even ask: it runs as the user.
    def work():
        with open("/proc/self/status", encoding="utf-8") as f:
            return "no new privileges" if "NoNewPrivs:\t1" in f.read() else "reached"
    return in_child(work)


@attempt("root")
def be_first_on_the_processors(_):
    return in_child(lambda: os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1)) or "reached")


@attempt("root")
def have_the_highest_priority(_):
    return in_child(lambda: os.setpriority(os.PRIO_PROCESS, 0, -20) or "reached")


@attempt("root")
def be_first_at_the_disks(_):
    return in_child(lambda: call(libc.syscall(251, 1, 0, 1 << 13)))  # ioprio_set, real time


@attempt("root")
def raise_a_hard_limit(_):
    def work():
        resource.setrlimit(resource.RLIMIT_CORE, (100, 100))
        try:
            resource.setrlimit(resource.RLIMIT_CORE, (100, 101))
        except ValueError:
            return "EPERM"
        return "reached"
    return in_child(work)


@attempt("root")
def name_the_machine(_):
    name = socket.gethostname().encode()
    return in_child(lambda: call(libc.sethostname(name, len(name))))


@attempt("root")
def switch_accounting_of_processes_off(_):
    return in_child(lambda: call(libc.acct(None)))


# ---- system calls with a history --------------------------------------------------------------------
@attempt("user")
def look_into_the_keys_of_the_user(_):
    return in_child(lambda: call(libc.syscall(250, 0, -4, 0)))  # keyctl, the user's keyring


@attempt("user")
def leave_a_key_for_another_job(_):
    def work():
        key = libc.syscall(248, b"user", b"gantry-walls", b"x", 1, -4)  # add_key
        call(key)
        libc.syscall(250, 3, key)  # revoke it
        return "reached"
    return in_child(work)


@attempt("root")
def watch_the_processor_of_all(_):
    def work():
        attributes = struct.pack("IIQQQQQ", 0, 112, 0, 0, 0, 0, 0) + b"\0" * 72
        return call(libc.syscall(298, attributes, -1, 0, -1, 0))  # perf_event_open, all of CPU 0
    return in_child(work)


@attempt("root")
def stop_the_kernel_in_a_page_fault(_):
    return in_child(lambda: call(libc.syscall(323, 0)))  # userfaultfd


@attempt("root")
def load_a_program_into_the_kernel(_):
    def work():
        attributes = struct.pack("IIIIII", 2, 4, 8, 1, 0, 0) + b"\0" * 96  # an array map
        return call(libc.syscall(321, 0, attributes, len(attributes)))
    return in_child(work)


@attempt("root")
def open_a_file_by_its_number(_):
    def work():
        handle = ctypes.create_string_buffer(struct.pack("Ii", 128, 0) + b"\0" * 128)
        mount = ctypes.c_int()
        call(libc.syscall(303, -100, b"/etc/passwd", handle, ctypes.byref(mount), 0))
        where = os.open("/etc", os.O_RDONLY)
        return call(libc.syscall(304, where, handle, os.O_RDONLY))
    return in_child(work)


@attempt("root")
def read_the_log_of_the_kernel(_):
    def work():
        buffer = ctypes.create_string_buffer(4096)
        return call(libc.syscall(103, 3, buffer, 4096))
    return in_child(work)


# ---- what there is to see ---------------------------------------------------------------------------
@attempt("root")
def read_addresses_of_the_kernel(_):
    with open("/proc/kallsyms", encoding="utf-8") as f:
        return "reached" if any(int(line.split()[0], 16) for line in f) else "all are zero"


@attempt("user")
def see_the_daemons_of_the_node(_):
    def named(pid):
        with open(f"/proc/{pid}/comm", encoding="utf-8") as f:
            return "reached" if f.read().startswith("gantry-noded") else "another"
    return first(named, [pid for pid in os.listdir("/proc") if pid.isdigit()])


@attempt("user")
def read_the_keys_of_the_kernel(_):
    return read_some("/proc/keys")


@attempt("root")
def read_the_timers_of_all(_):
    return read_some("/proc/timer_list")


@attempt("root")
def read_the_passwords(_):
    return read_some("/etc/shadow")


@attempt("root")
def read_the_key_of_munge(_):
    return read_some("/etc/munge/munge.key")


@attempt("root")
def read_the_keys_of_the_controller(told):
    return first(read_some, told["keys"])


@attempt("root")
def read_the_queue_of_the_controller(told):
    return first(read_some, told["store"])


@attempt("root")
def read_the_orders_of_other_jobs(told):
    return first(lambda p: "reached" if os.listdir(p) is not None else "empty", told["job_dirs"])


@attempt("root")
def list_the_containers_of_the_node(_):
    return first(lambda p: "reached" if os.listdir(p) is not None else "empty",
                 ["/run/crun", "/run/runc", "/run/user/0/crun"])


@attempt("root")
def read_the_home_of_root(_):
    return "reached" if os.listdir("/root") is not None else "empty"


# ---- what there is to write -------------------------------------------------------------------------
def made(folder):
    path = f"{folder}/gantry-walls-{os.getpid()}"
    os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    os.unlink(path)
    return "reached"


@attempt("root")
def write_programs_of_the_node(_):
    return first(made, ["/usr/bin", "/usr/local/bin", "/usr/lib"])


@attempt("root")
def write_settings_of_the_node(_):
    return first(made, ["/etc", "/etc/cron.d", "/etc/ld.so.conf.d"])


@attempt("root")
def write_beside_the_daemons(told):
    return first(made, [told["state"]])


# ---- devices and sockets ----------------------------------------------------------------------------
@attempt("root")
def overwrite_the_program_of_another_process(_):  # CVE-2019-5736: the OCI runtime's own file
    return first(lambda pid: "reached" if os.access(f"/proc/{pid}/exe", os.W_OK) else "EACCES",
                 [pid for pid in os.listdir("/proc") if pid.isdigit() and int(pid) != os.getpid()])


@attempt("user")
def step_out_by_an_open_directory(_):  # CVE-2024-21626: a descriptor that was left open
    return first(lambda fd: os.stat(f"/proc/self/fd/{fd}/..") and "reached",
                 [fd for fd in os.listdir("/proc/self/fd") if int(fd) > 2])


@attempt("root")
def open_a_disk(_):
    with open("/proc/partitions", encoding="utf-8") as f:
        disks = [line.split()[3] for line in f if len(line.split()) == 4 and line.split()[3] != "name"]
    return first(opened, [f"/dev/{disk}" for disk in disks])


@attempt("root")
def open_devices_that_reach_the_kernel(_):
    return first(opened, ["/dev/loop-control", "/dev/fuse", "/dev/net/tun", "/dev/kvm", "/dev/vsock", "/dev/kmsg"])


@attempt("root")
def have_a_raw_socket(_):
    return first(lambda proto: socket.socket(socket.AF_INET, socket.SOCK_RAW, proto).close() or "reached", [1, 255])


@attempt("root")
def have_a_packet_socket(_):
    return socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3)).close() or "reached"


@attempt("user")
def reach_the_hypervisor_by_vsock(_):
    return socket.socket(socket.AF_VSOCK, socket.SOCK_STREAM).close() or "reached"


@attempt("user")
def have_the_kernel_cipher_for_it(_):
    return socket.socket(socket.AF_ALG, socket.SOCK_SEQPACKET).close() or "reached"


def main():
    with open(sys.argv[1], encoding="utf-8") as f:
        told = json.load(f)
    for name, without, work in attempts:
        try:
            came = work(told)
        except (OSError, AttributeError, ValueError) as e:
            came = errno.errorcode.get(getattr(e, "errno", None), str(e))
        print(json.dumps({"attempt": name, "without": without, "came": came}), flush=True)


if __name__ == "__main__":
    main()
