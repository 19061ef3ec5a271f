"""A real cluster for one test: makes users, runs `gantry up` and commands as a user, waits, cleans
up.

    def case_hello(c):
        job = c.submit("--wrap=exit 3")
        c.ended(job, "failed", code=3)

    sys.exit(cluster.main(__doc__, globals(), nodes=2))

main() runs every function whose name begins with case_, one after the other, on one cluster (-k
NAME selects some of them) and prints a line for each. At the end it stops everything and reports
whatever is left: processes, mounts, cgroups. The exit status is 77 if the test cannot run;
a case that cannot run calls pass_over() and returns. Commands
have a time limit; no code here waits for a fixed time.
"""
import argparse
import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback

SKIPPED = 77
# The longest time, in seconds, for which a test waits for a state; an emulated machine (tests/vm)
# is slower.
PATIENCE = 240 if "GANTRY_VM" in os.environ else 60


def read(path):
    try:
        with open(path, "rb") as f:
            return f.read()
    except OSError:
        return b""


def text(path):
    return read(path).decode(errors="replace")


def processes():
    """Returns pid -> arguments of every process on the machine."""
    found = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            line = read(f"/proc/{entry}/cmdline")
            if line:
                found[int(entry)] = line.split(b"\0")[:-1]
    return found


def program(argv):
    return os.path.basename(argv[0].decode(errors="replace")) if argv else ""


def parent(pid):
    stat = read(f"/proc/{pid}/stat").rsplit(b")")[-1].split()
    return int(stat[1]) if len(stat) > 1 else 0


def alive(pid):
    """True if any thread of the process is alive: the last thread closes its sockets, and the first
    thread may end earlier."""
    try:
        threads = os.listdir(f"/proc/{pid}/task")
    except OSError:
        return False
    states = [read(f"/proc/{pid}/task/{t}/stat").rsplit(b")")[-1].split()[:1] for t in threads]
    return any(state and state[0] not in (b"Z", b"X") for state in states)


def wait_for(what, condition, patience=PATIENCE):
    """Calls condition() until it returns something true, and returns that."""
    deadline = time.monotonic() + patience
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > deadline:
            raise AssertionError(f"waited {patience} s in vain for {what}")
        time.sleep(0.03)


def equal(got, wanted, what=""):
    if got != wanted:
        raise AssertionError(f"{what or 'value'}: wanted {wanted!r}, got {got!r}")


def contains(haystack, needle, what="text"):
    if needle not in haystack:
        raise AssertionError(f"{what}: no {needle!r} in {haystack!r}")


class Programs:
    """The folder `path` of our programs, where ordinary users and their jobs can run them. If they
    lie below a closed directory, such as root's home, or below /tmp, where each job has its own
    files, a copy in /opt is used, which remove() removes."""

    def __init__(self, bin_dir):
        self.path = os.path.realpath(bin_dir)
        self.copied = ""
        if self.path.startswith(("/tmp/", "/var/tmp/")) or not self.open_to_all():
            self.copied = tempfile.mkdtemp(prefix="gantry-test.", dir="/opt")
            os.chmod(self.copied, 0o755)
            for name in os.listdir(self.path):
                if name.startswith("g") and name != "gantry_sim":
                    shutil.copy2(f"{self.path}/{name}", f"{self.copied}/{name}",
                                 follow_symlinks=False)
            if os.path.isdir(f"{self.path}/slurm"):
                shutil.copytree(f"{self.path}/slurm", f"{self.copied}/slurm", symlinks=True)
            self.path = self.copied

    def open_to_all(self):
        try:
            return subprocess.run([f"{self.path}/gantry", "--version"], user=65534, group=65534,
                                  extra_groups=[], cwd="/", capture_output=True,
                                  check=False).returncode == 0
        except PermissionError:
            return False

    def remove(self):
        if self.copied:
            shutil.rmtree(self.copied, ignore_errors=True)


def job_cgroups(root):
    """Cgroup directories of jobs below the cluster's own cgroup, in every hierarchy."""
    return sorted(path for top, dirs, _ in os.walk("/sys/fs/cgroup")
                  for path in (os.path.join(top, name) for name in dirs)
                  if f"/{root}/" in path and re.search(r"/job_[^/]*$", path))


class Cluster:
    """A cluster of `nodes` nodes with two cores and 1 GiB each, and of ordinary `users`; usable
    after start()."""

    def __init__(self, bin_dir, name, nodes=4, users=1, runtime="crun", up_options=("--no-gate",)):
        self.programs = Programs(bin_dir)
        self.bin = self.programs.path
        self.top = tempfile.mkdtemp(prefix=f"gantry-{name}.", dir="/var/tmp")
        os.chmod(self.top, 0o755)
        self.state = f"{self.top}/cluster"
        self.out = f"{self.top}/out"  # the working directory of jobs, and the home of the users
        os.mkdir(self.out)
        os.chmod(self.out, 0o1777)
        self.nodes, self.runtime, self.up_options = nodes, runtime, list(up_options)
        # The names hold our pid, because two tests at the same time would otherwise remove each
        # other's users.
        self.users = [f"g{name}-{os.getpid()}-{i + 1}" for i in range(users)]
        self.user = self.users[0]
        self.env = {k: v for k, v in os.environ.items()
                    if not k.startswith(("SLURM_", "GANTRY_", "SBATCH_", "GBATCH_"))}
        self.env.update(PATH=f"{self.bin}:{os.environ['PATH']}",
                        GANTRY_CONF=f"{self.state}/client.conf")
        self.daemons = {}   # pid -> arguments
        self.children = []  # daemons that the test started itself

    # ---- start and stop -------------------------------------------------------------------------
    def start(self):
        for user in self.users:
            subprocess.run(["useradd", "--no-create-home", "--home-dir", self.out, "--shell",
                            "/bin/bash", user], check=False, capture_output=True)
        command = ["gantry", "up", "--nodes", str(self.nodes), "--cpus",
                   str(min(2, os.cpu_count())), "--memory", "1G", "--oversubscribe", "--user",
                   ",".join(self.users), "--state", self.state,
                   # the tests themselves restart the daemons that they kill
                   "--restarts", "0"] + self.up_options
        if self.runtime != "crun":
            command += ["--runtime", self.runtime]
        self.root(command, check=True, timeout=120)
        self.find_daemons()
        return self

    def find_daemons(self):
        self.daemons = {pid: argv for pid, argv in processes().items()
                        if program(argv) in ("gantry-ctld", "gantry-noded")
                        and self.state.encode() in b"\0".join(argv)}
        equal(len(self.daemons), self.nodes + 1, "daemons")

    def daemon(self, name):
        """The pid of the controller ("ctld") or of a node daemon by its node's name."""
        for pid, argv in self.daemons.items():
            if name == "ctld" and program(argv) == "gantry-ctld":
                return pid
            if name.encode() in argv:
                return pid
        raise AssertionError(f"no daemon {name}")

    def of_program(self, name):
        return [pid for pid, argv in self.daemons.items() if program(argv) == name]

    def shims(self, node="", job=None):
        """The pids of the shims of all jobs, of one node or of one job."""
        return [pid for pid, argv in processes().items()
                if program(argv) == "gantry-shim" and self.state.encode() in b"\0".join(argv)
                and argv[1] in (b"job", b"step")
                and f"/nodes/{node}".encode() in b"\0".join(argv)
                and (job is None or argv[-1].split(b".")[0] == str(job).encode())]

    def templates(self):
        """The pids of the node daemons' templates of shims, without shims that were just forked
        from one."""
        return [pid for pid, argv in processes().items()
                if program(argv) == "gantry-shim" and argv[1:2] == [b"template"]
                and self.state.encode() in argv[2] and parent(pid) in self.daemons]

    def kill(self, pid):
        """Kills a daemon with SIGKILL and returns its arguments."""
        argv = self.daemons.pop(pid)
        os.kill(pid, signal.SIGKILL)
        wait_for(f"the end of pid {pid}", lambda: not alive(pid))
        return argv

    def spawn(self, argv, env=None):
        with open(f"{self.top}/daemons.log", "ab") as log:
            child = subprocess.Popen(
                [a.decode() for a in argv], env=env or self.env, stdin=subprocess.DEVNULL,
                stdout=log, stderr=log, start_new_session=True, close_fds=True)
        self.daemons[child.pid] = argv
        self.children.append(child)
        return child

    def kill_and_restart(self, pid):
        return self.spawn(self.kill(pid)).pid

    def stop(self):
        """Cancels the remaining jobs, stops all daemons, and returns complaints."""
        errors = []
        self.root(["gcancel", "-Q"] + [f"--user={user}" for user in self.users[:1]])
        for user in self.users[1:]:
            self.root(["gcancel", "-Q", f"--user={user}"])
        with contextlib.suppress(AssertionError):
            wait_for("the end of all jobs", lambda: not self.shims() and not self.root(
                ["gqueue", "-h"]).stdout.strip(), 30)
        for pid in self.daemons:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGTERM)
        deadline = time.monotonic() + 20
        while time.monotonic() < deadline and any(alive(pid) for pid in self.daemons):
            for child in self.children:
                child.poll()
            time.sleep(0.05)
        for pid in self.daemons:
            if alive(pid):
                errors.append(f"daemon {pid} survived SIGTERM")
                os.kill(pid, signal.SIGKILL)
        for child in self.children:
            child.wait(timeout=15)
        # the last shims of killed jobs end by themselves within this time
        with contextlib.suppress(AssertionError):
            wait_for("nothing to be left", lambda: not self.leftovers(), 15)
        return errors + self.leftovers()

    def leftovers(self):
        found = []
        for pid, argv in processes().items():
            if self.state.encode() in b"\0".join(argv) and pid != os.getpid() and alive(pid):
                found.append(f"process {pid}: {b' '.join(argv)[:160].decode(errors='replace')}")
        for line in text("/proc/self/mountinfo").splitlines():
            if self.state in line:
                found.append("mount: " + line.split()[4])
        if root := self.cgroup_root():
            found += ["cgroup: " + path for path in job_cgroups(root)]
        return found

    def cgroup_root(self):
        """The name of the cluster's cgroup below the mounts; "" when the cluster is removed."""
        root = re.search(r"^\s*cgroup_root:\s*(\S+)", text(f"{self.state}/gantry.yaml"), re.M)
        return root.group(1).strip("\"'") if root else ""

    def clean(self, keep):
        """Called after stop(): removes the users and, unless `keep`, the files; also tidies after
        failures."""
        self.root(["gantry", "down", "--cancel", "--remove", "--state", self.state])
        for pid, argv in processes().items():
            if program(argv).startswith("gantry-") and self.state.encode() in b"\0".join(argv):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
        for user in self.users:
            subprocess.run(["userdel", user], check=False, capture_output=True)
        self.programs.remove()
        if keep:
            print(f"kept: {self.top}")
        else:
            shutil.rmtree(self.top, ignore_errors=True)

    # ---- commands ------------------------------------------------------------------------------
    def root(self, command, check=False, timeout=60, **options):
        """Runs a Gantry command as root."""
        done = subprocess.run([f"{self.bin}/{command[0]}"] + list(command[1:]), env=self.env,
                              capture_output=True, text=True, timeout=timeout, check=False,
                              **options)
        if check and done.returncode != 0:
            raise AssertionError(f"{' '.join(command)}: exit {done.returncode}\n"
                                 f"{done.stdout}{done.stderr}")
        return done

    def as_user(self, command, user=None, env=None, timeout=90, **options):
        """Runs a Gantry command as an ordinary user, in the jobs' working directory."""
        user = user or self.user
        options.setdefault("cwd", self.out)
        if "input" not in options:
            options.setdefault("stdin", subprocess.DEVNULL)
        return subprocess.run(
            [f"{self.bin}/{command[0]}"] + [str(a) for a in command[1:]],
            env=dict(self.env, HOME=self.out, USER=user, **(env or {})), capture_output=True,
            text=True, errors="replace", timeout=timeout, check=False, user=user, group=user,
            extra_groups=[], **options)

    def popen(self, command, user=None, **options):
        user = user or self.user
        return subprocess.Popen(
            [f"{self.bin}/{command[0]}"] + [str(a) for a in command[1:]],
            env=dict(self.env, HOME=self.out, USER=user), cwd=self.out, text=True, user=user,
            group=user, extra_groups=[], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            **{"stdin": subprocess.DEVNULL, **options})

    def submit(self, *options, script=None, user=None, defaults=("--mem=40M", "-o", "%j.out")):
        """Runs gbatch and returns the id of the job. `script` is its text without the first
        line."""
        command = ["gbatch", "--parsable", *defaults, *options]
        more = {} if script is None else {"input": "#!/bin/bash\n" + script}
        done = self.as_user(command, user=user, **more)
        if done.returncode != 0:
            raise AssertionError(f"{' '.join(map(str, command))}: {done.stderr.strip()}")
        return int(done.stdout)

    def output(self, job):
        return text(f"{self.out}/{job}.out")

    # ---- the controller's answers ---------------------------------------------------------------
    def accounts(self, *options):
        """The rows of gacct by job id (each entry: row, usage, cause, steps)."""
        data = json.loads(self.root(["gacct", "--json", "-a", *options], check=True,
                                    timeout=120).stdout)
        return {entry["row"]["job"]: entry for entry in data["rows"]}

    def account(self, job):
        return self.accounts("-j", str(job)).get(job)

    def phase(self, job):
        entry = self.account(job)
        return entry["row"]["phase"] if entry else None

    def queue_line(self, job, fields="%T|%r"):
        """The line of gqueue for one job, or "" if it shows none."""
        return self.root(["gqueue", "-h", "-t", "all", "-j", str(job), "-o",
                          fields]).stdout.strip()

    def running(self, job, patience=PATIENCE):
        return wait_for(f"job {job} to run ({self.queue_line(job)})",
                        lambda: self.phase(job) == "running", patience)

    def said(self, job, needle, patience=PATIENCE):
        """Waits until the output of the job contains this text."""
        return wait_for(f"{needle!r} from job {job}", lambda: needle in self.output(job), patience)

    def ended(self, job, outcome=None, code=None, patience=PATIENCE):
        """Waits for the job's end, checks its outcome, and returns its entry in the accounts."""
        def end():
            entry = self.account(job)
            return entry if entry and entry["row"]["phase"] == "ended" else None
        try:
            entry = wait_for(f"the end of job {job}", end, patience)
        except AssertionError as e:
            raise AssertionError(f"{e}: {self.queue_line(job)}; {self.output(job)[-400:]}") from None
        about = f"job {job} ({entry['cause']}; output {self.output(job)[-400:]!r})"
        if outcome is not None:
            equal(entry["row"]["outcome"], outcome, f"outcome of {about}")
        if code is not None:
            equal(entry["row"]["exit"]["code"], code, f"exit code of {about}")
        return entry


def arguments(doc, add=None):
    parser = argparse.ArgumentParser(description=doc,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bin_dir")
    parser.add_argument("-k", metavar="NAME", default="", help="only cases with this in the name")
    parser.add_argument("--keep", action="store_true", help="keep the state directory")
    if add:
        add(parser)
    return parser.parse_args()


def cannot_run():
    """The reason why a test with real containers cannot run here, or ""."""
    if os.getuid() != 0:
        return "this test makes users and containers, so it needs root"
    if not shutil.which("crun") and not shutil.which("runc"):
        return "neither crun nor runc is installed"
    return ""


def pass_over(reason):
    """Says that the case that calls this cannot run, for the tests' log and for ./dev test, which counts
    such cases. In CI they have to stand in tests/passed_over.txt."""
    frame = sys._getframe(1)  # pylint: disable=protected-access
    while not frame.f_code.co_name.startswith("case_") and frame.f_back:
        frame = frame.f_back
    file = os.path.basename(frame.f_code.co_filename).removesuffix(".py")
    name = f"{file} {frame.f_code.co_name.removeprefix('case_')}"
    print(f"  passed over: {name}: {reason}", flush=True)
    if path := os.environ.get("GANTRY_PASSED_OVER"):
        with open(path, "a", encoding="utf-8") as out:
            out.write(f"{name} | {reason}\n")


def run_cases(cases, argument):
    """Runs each function of [(name, function)] with the argument; returns how many failed."""
    failed = 0
    for name, case in cases:
        start = time.monotonic()
        try:
            case(argument)
            print(f"  ok    {name}  {time.monotonic() - start:.1f} s", flush=True)
        except Exception as e:  # a case that fails must not stop the others
            failed += 1
            print(f"  FAIL  {name}  {time.monotonic() - start:.1f} s: {e}", flush=True)
            if not isinstance(e, AssertionError):
                traceback.print_exc()
    return failed


def main(doc, scope, name, **cluster_options):
    args = arguments(doc)
    if why := cannot_run():
        print(f"skipped: {why}")
        return SKIPPED
    cases = [(n[5:], f) for n, f in scope.items() if n.startswith("case_") and args.k in n]
    failed = 1
    c = Cluster(args.bin_dir, name, **cluster_options)
    try:
        c.start()
        failed = run_cases(cases, c)
    finally:
        left = c.stop()
        for line in left:
            print(f"  LEFT  {line}")
        c.clean(args.keep or failed > 0)
    print("all well" if not failed and not left else f"{failed} failed, {len(left)} things left")
    return 1 if failed or left else 0


if __name__ == "__main__":
    sys.exit("a module for the tests beside it")
