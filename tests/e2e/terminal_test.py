#!/usr/bin/env python3
"""srun --pty in a real terminal (tmux), and output that is larger than any daemon's memory.

usage: terminal_test.py BIN_DIR [-k CASE] [--keep]
GANTRY_LONG=1 makes a gigabyte of output instead of 64 MB.
"""
import contextlib
import itertools
import hashlib
import os
import re
import subprocess
import sys
import threading
import time

import cluster
from cluster import contains, equal, text, wait_for

MEM = "--mem=60M"
SIZE = (1 << 30) if os.environ.get("GANTRY_LONG") else (64 << 20)
LARGEST = 50_000_000  # the most resident bytes that any daemon may have


class Terminal:
    """A user's shell in a window of tmux, 100 columns by 30 lines; `with` ends it."""
    numbers = itertools.count()

    def __init__(self, c):
        # Each window has its own socket, because the previous server may still be ending.
        self.c, self.socket = c, f"{c.out}/tmux.{next(self.numbers)}.sock"
        self.tmux("-f", "/dev/null", "new-session", "-d", "-x", "100", "-y", "30",
                  "exec bash --norc --noprofile")
        self.tmux("set-option", "-g", "history-limit", "5000")
        self.keys("PS1='outside> '; clear", "Enter")
        self.shows(r"^outside> *$")

    def tmux(self, *words):
        env = {"PATH": f"{self.c.bin}/slurm:{self.c.bin}:/usr/bin:/bin", "HOME": self.c.out,
               "USER": self.c.user, "TERM": "xterm", "LANG": "C.UTF-8", "SHELL": "/bin/bash",
               "GANTRY_CONF": self.c.env["GANTRY_CONF"]}
        done = subprocess.run(["tmux", "-S", self.socket, *words], user=self.c.user,
                              group=self.c.user, extra_groups=[], env=env, cwd=self.c.out,
                              capture_output=True, text=True, timeout=30, check=False)
        if done.returncode != 0:
            raise AssertionError(f"tmux {words}: {done.stderr}")
        return done.stdout

    def keys(self, *keys):
        self.tmux("send-keys", *keys)

    def line(self, line):
        self.tmux("send-keys", "-l", line)
        self.keys("Enter")

    def screen(self):
        return self.tmux("capture-pane", "-p", "-J", "-S", "-")

    def shows(self, pattern):
        """Waits until a line of the screen matches, and returns the match."""
        try:
            return wait_for(pattern, lambda: re.search(pattern, self.screen(), re.M))
        except AssertionError as e:
            raise AssertionError(f"{e}; the screen:\n{self.screen()}") from None

    def fresh(self):
        self.keys("C-l")
        self.tmux("clear-history")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        with contextlib.suppress(AssertionError, subprocess.TimeoutExpired):
            self.tmux("kill-server")


def open_shell(terminal, command="srun -n1 -t 5 " + MEM):
    terminal.line(f"export PS1='inside> '; {command} --pty bash --norc --noprofile; code=$?; "
                  "PS1='outside> '; echo \"status $code\"")
    terminal.shows(r"^inside> *$")


def try_shell(terminal):
    """The commands and keys of a user in a shell: names, sizes, Ctrl-C, Ctrl-Z, the exit status."""
    terminal.line("tty; stty size; echo $TERM $SLURM_PTY_WIN_COL; [ -t 0 ] && [ -t 1 ] && echo both")
    terminal.shows(r"^/dev/pts/\d+$")
    terminal.shows(r"^30 100$")
    terminal.shows(r"^tmux\S* 100$")
    terminal.shows(r"^both$")
    terminal.tmux("resize-window", "-x", "77", "-y", "20")
    terminal.line("until [ \"$(stty size)\" = '20 77' ]; do sleep 0.1; done; echo re''sized")
    terminal.shows(r"^resized$")
    terminal.line("echo be''gun; sleep 1000")
    terminal.shows(r"^begun$")
    terminal.keys("C-c")
    terminal.line("echo c''ode $?")
    terminal.shows(r"^code 130$")
    terminal.line("echo ag''ain; sleep 1000")
    terminal.shows(r"^again$")
    terminal.keys("C-z")
    terminal.shows(r"^\[1\]\+ +Stopped +sleep 1000$")
    terminal.line("fg")
    terminal.shows(r"^sleep 1000$")
    terminal.keys("C-c")
    terminal.line("echo fore''ground $?")
    terminal.shows(r"^foreground 130$")
    terminal.line("exit 7")
    terminal.shows(r"^srun: error: \S+: task 0: Exited with exit code 7 *$")
    terminal.shows(r"^status 7$")
    terminal.line("stty -a | grep -o -w -e icanon -e echo -e isig | sort | tr '\\n' ' '; echo")
    terminal.shows(r"^echo icanon isig *$")


def case_shell(c):
    with Terminal(c) as terminal:
        open_shell(terminal)
        try_shell(terminal)


def case_shell_in_salloc(c):
    with Terminal(c) as terminal:
        terminal.line(f"salloc -n1 -t 5 {MEM} bash --norc --noprofile")
        terminal.shows(r"^salloc: Nodes \S+ are ready for job$")
        open_shell(terminal, "srun")
        try_shell(terminal)
        terminal.line("exit 3")
        terminal.shows(r"^salloc: Relinquishing job allocation \d+$")
        terminal.line("echo sa''lloc $?")
        terminal.shows(r"^salloc 3$")


def case_second_task(c):
    """Task 0 has the terminal; the output of the others is not shown, but their exit status
    counts."""
    with Terminal(c) as terminal:
        terminal.line(f"srun -n2 -t 5 {MEM} --pty bash -c 'echo task $SLURM_PROCID of two; "
                      "exit $((SLURM_PROCID * 4))'; echo status $?")
        terminal.shows(r"^status 4$")
        screen = terminal.screen()
        equal(re.findall(r"^task \d of two", screen, re.M), ["task 0 of two"], screen)


def case_hang_up(c):
    """When the window is closed the step ends, and so does its allocation."""
    with Terminal(c) as terminal:
        open_shell(terminal, f"srun -J hangup -n1 -t 5 {MEM}")
        terminal.line("sleep 1000")
        job = c.root(["gqueue", "-h", "-n", "hangup", "-o", "%i"]).stdout.strip()
        assert job.isdigit(), job
    c.ended(int(job))


def case_without_terminal(c):
    done = c.as_user(["slurm/srun", MEM, "--pty", "echo", "hello"])
    equal((done.returncode, done.stdout), (0, "hello\n"))
    equal(done.stderr, "srun: error: ioctl(TIOCGWINSZ): Inappropriate ioctl for device\n"
          "srun: error: Not using a pseudo-terminal, disregarding --pty option\n")
    for option in ("--output=x", "--error=x", "--label", "--input=none"):
        done = c.as_user(["slurm/srun", MEM, "--pty", option, "true"])
        equal(done.returncode, 1, option)
        contains(done.stderr, "srun: error: --pty: a terminal is input and output")


# ---- much output --------------------------------------------------------------------------------

PATTERN = b"".join(b"%07d\n" % i for i in range(1 << 17))  # a MiB
WRITER = """
import sys
block = b"".join(b"%07d\\n" % i for i in range(1 << 17))
for _ in range(int(sys.argv[1]) // len(block)):
    sys.stdout.buffer.write(block)
"""


class Sizes(threading.Thread):
    """The largest resident size of each of the cluster's daemons and shims while it runs."""

    def __init__(self, c):
        super().__init__(daemon=True)
        self.c, self.going, self.largest = c, True, {}
        self.before = {pid: self.resident(pid) for pid in c.daemons}

    @staticmethod
    def resident(pid):
        found = re.search(r"^VmRSS:\s+(\d+)", text(f"/proc/{pid}/status"), re.M)
        return int(found.group(1)) * 1024 if found else 0

    def run(self):
        while self.going:
            for pid in [*self.c.daemons, *self.c.shims()]:
                self.largest[pid] = max(self.largest.get(pid, 0), self.resident(pid))
            time.sleep(0.1)

    def check(self):
        self.going = False
        self.join()
        assert len(self.largest) > len(self.before), "no shim was seen"
        for pid, size in self.largest.items():
            assert size - self.before.get(pid, 0) < LARGEST, f"{pid}: {size} bytes resident"


def writer(c):
    path = f"{c.out}/writer.py"
    with open(path, "w", encoding="utf-8") as f:
        f.write(WRITER)
    return path


def case_much_output(c):
    """The output is complete although its reader is slow, and only pipes hold it."""
    sizes = Sizes(c)
    sizes.start()
    with c.popen(["slurm/srun", "-n1", MEM, "python3", writer(c), str(SIZE)]) as srun:
        raw = srun.stdout.buffer
        sums, count = hashlib.sha256(), 0
        while (chunk := raw.read(1 << 20)):
            sums.update(chunk)
            count += len(chunk)
            if count == 8 << 20:
                # a daemon that does not wait for the reader has the rest in memory by then
                time.sleep(3)
    sizes.check()
    wanted = hashlib.sha256()
    for _ in range(SIZE // len(PATTERN)):
        wanted.update(PATTERN)
    equal((count, sums.hexdigest()), (SIZE, wanted.hexdigest()), "output of srun")
    equal(srun.returncode, 0)


def case_much_output_inside(c):
    """The same output from two tasks on two nodes, inside of a container without a network."""
    sizes = Sizes(c)
    sizes.start()
    job = c.submit("-N2", "-n2", "-t", "10:00", script=f"""
PATH={c.bin}/slurm:$PATH
srun python3 {writer(c)} {SIZE // 4} | python3 -c '
import sys, collections
lines = collections.Counter(sys.stdin.buffer)
print(len(lines), set(lines.values()))'
""")
    c.ended(job, "completed", patience=600)
    sizes.check()
    equal(c.output(job), f"131072 {{{2 * SIZE // 4 // len(PATTERN)}}}\n", "lines, and how often each came")


if __name__ == "__main__":
    sys.exit(cluster.main(__doc__, globals(), "terminal", nodes=2))
