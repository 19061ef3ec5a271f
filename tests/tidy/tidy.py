#!/usr/bin/env python3
"""Checks the house rules: sizes, what each folder may include, banned calls, head comments.

  tidy.py ROOT          checks the tree; prints "FILE:LINE: [rule] what", exits 1 if it found any
  tidy.py --self-test   checks the checker: each sample in samples.txt must break exactly its rules

Where a rule does not apply to a line, a comment on it or on the line before excuses it, with a
reason:
  // tidy-allow(RULE): REASON
Rules are functions registered with @rule(NAME); the tables above them say what is allowed where.
"""

import re
import subprocess
import sys
import tempfile
from pathlib import Path

import rooms

PROGRAM_FOLDERS = ("common", "config", "ctld", "noded", "cli")
FOLDERS = PROGRAM_FOLDERS + ("tests", "bench", "docs", "cmake")

# ---- tables ------------------------------------------------------------------------------------

# The most lines that a file may have. Files that are still larger stand in owed.txt (see rooms.py).
SIZE_LIMITS = {".cc": 500, ".h": 250, ".py": 500}
FUNCTION_LINES = 70
COLUMNS = 100

# For each top folder, the other top folders whose headers it may include.
LAYERS = {
    "common": {"common"},
    "config": {"config", "common"},
    "ctld": {"ctld", "config", "common"},
    "noded": {"noded", "config", "common"},
    "cli": {"cli", "config", "common"},
}

# These folders are deterministic: they may not include a clock, a thread, a disk or a socket.
PURE_FOLDERS = ("ctld/core/", "ctld/sched/", "noded/core/")
PURE_BANNED_INCLUDES = re.compile(
    r"^(atomic|chrono|condition_variable|ctime|filesystem|fstream|future|iostream|mutex|random|"
    r"semaphore|shared_mutex|stop_token|thread|time\.h|unistd\.h|fcntl\.h|poll\.h|pthread\.h|"
    r"signal\.h|sys/.*|linux/.*|netinet/.*|arpa/.*|zmq.*|lmdb\.h|boost/.*|spdlog/.*|yaml-cpp/.*|"
    r"munge\.h|common/(net|loop|auth|log).*|ctld/(rpc|http|acct/.*io).*|"
    r"noded/(machine|runtime|image|shim|net).*)$")

# Headers that are slow to compile, and the only folders of the programs that may include each.
HEAVY_HEADERS = {
    r"msgpack.*": ("common/codec/",),
    r"rapidjson/.*": ("common/codec/", "noded/runtime/", "noded/shim/", "noded/image/"),
    r"zmq.*": ("common/net/", "common/loop/"),
    r"boost/.*": ("common/loop/", "common/net/", "ctld/http/"),
    r"spdlog/.*": ("common/log",),
    r"yaml-cpp/.*": ("config/",),
    r"CLI/.*": ("cli/",),
    r"lmdb\.h": ("ctld/store/",),
    r"munge\.h": ("common/auth/",),
    r"openssl/.*": ("ctld/secrets/",),
    r"seccomp\.h": ("noded/runtime/",),
}

# Only these folders of the programs may read a clock or a random source.
SHELL_FOLDERS = ("common/loop/", "common/net/", "common/auth/", "common/log", "cli/", "ctld/rpc/",
                 "ctld/store/", "ctld/http/", "common/http/", "noded/machine/", "noded/runtime/", "noded/image/",
                 "noded/shim/", "noded/net/", "noded/gpu/node/")
CLOCK_OR_RANDOM = re.compile(
    r"\b(system_clock|steady_clock|high_resolution_clock|random_device|mt19937\w*|clock_gettime|"
    r"gettimeofday)\b|"
    r"(?<![\w.>:])(?:std::|::)?(time\s*\((?!\))|"
    r"(rand|srand|random|getrandom)\s*\()")
SLEEP = re.compile(r"\b(sleep_for|sleep_until|usleep|nanosleep)\b|(?<![\w.>])(?:::)?sleep\s*\(")
# Commands may pause before they ask again; tests of real processes may pause because no event tells
# them when to look.
SLEEPERS = ("cli/", "tests/e2e/", "tests/noded/", "tests/runtime/", "tests/attack/")
BANNED_EVERYWHERE = {
    r"\busing\s+namespace\s+std\s*;": "write std:: where it is used",
    r"\bstd::(cout|cerr|clog|endl)\b": "format with fmt",
    r"#\s*include\s*<iostream>": "format with fmt",
    r"\b(strcpy|strcat|sprintf|gets|mktemp|tmpnam)\s*\(": "unsafe; there is a better call",
}
BANNED_IN_PROGRAMS = {
    r"(?<!\w)(std)?::(system|popen)\s*\(": "no shell; start the program with its arguments",
}
PURE_BANNED_WORDS = {
    r"\bshared_ptr\b": "ownership is clear in core and sched",
    r"\bstd::(mutex|thread|atomic|condition_variable|async)\b": "one thread owns all of this",
}
BANNED_FILE_NAMES = re.compile(r"(^|_)(manager|helper|helpers|util|utils|misc)(_|\.|$)")
DEVELOPER_PATHS = re.compile(r"(?<![\w.])/(work/(main|shared)|root/\w|home/\w+/)")
SHARED_FOLDER = re.compile(r"\.\./shared\b")

# ---- files -------------------------------------------------------------------------------------


class File:
    """One source file: its path from the root, its lines, and its code without comments."""

    def __init__(self, path, text, has_header=False):
        self.path = path
        # True if a .cc has a .h of the same name, whose head comment then counts for both.
        self.has_header = has_header
        self.text = text
        self.lines = text.splitlines()
        self.suffix = Path(path).suffix
        self.is_cpp = self.suffix in (".cc", ".h")
        self._code = None

    @property
    def code(self):
        """The text with comments and the contents of literals blanked; line numbers do not
        change."""
        if self._code is None:
            self._code = blank_literals(self.text).splitlines()
        return self._code

    @property
    def top(self):
        return self.path.split("/")[0]

    @property
    def is_pure(self):
        return self.is_cpp and self.path.startswith(PURE_FOLDERS)

    def includes(self):
        for number, line in enumerate(self.lines, 1):
            match = re.match(r'\s*#\s*include\s*([<"])([^">]+)[">]', line)
            if match:
                yield number, match.group(1) == '"', match.group(2)


def blank_literals(text):
    token = re.compile(
        r'R"(?P<d>[^()\\\s]{0,16})\((?:.|\n)*?\)(?P=d)"'    # raw string
        r'|"(?:\\.|[^"\\\n])*"|(?<![0-9a-fA-F])\'(?:\\.|[^\'\\\n])+\''  # string, character
        r"|//[^\n]*|/\*(?:.|\n)*?\*/")
    return token.sub(lambda m: re.sub(r"[^\n]", " ", m.group(0)), text)


def source_files(root):
    """Tracked and new files of a checkout; all files if there is no git repository."""
    if (root / ".git").exists():
        listed = subprocess.run(
            ["git", "-c", "safe.directory=*", "ls-files", "-z", "--cached", "--others",
             "--exclude-standard"], cwd=root, check=True, capture_output=True, text=True).stdout
        paths = [p for p in listed.split("\0") if p]
    else:
        paths = [str(p.relative_to(root)) for p in root.rglob("*") if p.is_file()]
    for path in sorted(set(paths)):
        full = root / path
        if not full.is_file() or full.is_symlink() or path.startswith("build/"):
            continue
        try:
            header = full.suffix == ".cc" and full.with_suffix(".h").exists()
            yield File(path, full.read_text(encoding="utf-8"), header)
        except UnicodeDecodeError:
            continue


# ---- rules -------------------------------------------------------------------------------------

RULES = {}


def rule(name):
    def register(function):
        RULES[name] = function
        return function
    return register


@rule("size")
def size(file):
    most = SIZE_LIMITS.get(file.suffix)
    if most and len(file.lines) > most:
        yield len(file.lines), f"{len(file.lines)} lines; at most {most}"


@rule("function-size")
def function_size(file):
    for start, length in functions(file) if file.is_cpp else ():
        if length > FUNCTION_LINES:
            yield start, f"a function of {length} lines; at most {FUNCTION_LINES}"


@rule("columns")
def columns(file):
    if file.suffix not in (".cc", ".h", ".def", ".cmake") and \
            Path(file.path).name not in ("CMakeLists.txt", "dev"):
        return
    for number, line in enumerate(file.lines, 1):
        if len(line) > COLUMNS and "://" not in line:
            yield number, f"{len(line)} columns; at most {COLUMNS}"


@rule("head-comment")
def head_comment(file):
    if not file.is_cpp or file.has_header or file.text.startswith("//"):
        return
    yield 1, "the head of a file says in a few lines what it owns and promises"


@rule("pragma-once")
def pragma_once(file):
    if file.suffix == ".h" and "#pragma once" not in file.text and file.path != "cmake/pch.h":
        yield 1, "a header starts with #pragma once"


@rule("layers")
def layers(file):
    allowed = LAYERS.get(file.top)
    if not file.is_cpp or allowed is None:
        return
    for number, quoted, header in file.includes():
        top = header.split("/")[0]
        if quoted and top not in allowed:
            yield number, f"{file.top}/ may include only {', '.join(sorted(allowed))}, not {header}"


@rule("pure")
def pure(file):
    if not file.is_pure:
        return
    for number, _, header in file.includes():
        if PURE_BANNED_INCLUDES.match(header):
            yield number, f"deterministic code may not include {header}"
    yield from search(file, PURE_BANNED_WORDS)


@rule("heavy-header")
def heavy_header(file):
    if not file.is_cpp or file.top not in PROGRAM_FOLDERS:
        return
    for number, _, header in file.includes():
        for pattern, homes in HEAVY_HEADERS.items():
            if re.fullmatch(pattern, header) and not file.path.startswith(homes):
                yield number, f"{header} belongs in {' or '.join(homes)} only"


@rule("banned-call")
def banned_call(file):
    if file.is_cpp:
        yield from search(file, BANNED_EVERYWHERE)
    if file.is_cpp and file.top in PROGRAM_FOLDERS:
        yield from search(file, BANNED_IN_PROGRAMS)


@rule("clock-or-random")
def clock_or_random(file):
    if not file.is_cpp or file.top not in PROGRAM_FOLDERS or file.path.startswith(SHELL_FOLDERS):
        return
    if file.path.count("/") == 1 and file.top in ("ctld", "noded"):
        return  # the main files of programs may do what a shell does
    for number, line in enumerate(file.code, 1):
        match = CLOCK_OR_RANDOM.search(line)
        if match:
            yield number, f"{match.group(0).strip()}: clocks and randomness come from the shell"


@rule("sleep")
def sleep(file):
    if not file.is_cpp or file.top not in PROGRAM_FOLDERS + ("tests",) or \
            file.path.startswith(SLEEPERS):
        return
    for number, line in enumerate(file.code, 1):
        if SLEEP.search(line):
            yield number, "nothing sleeps: wait for the event, with a timer"


@rule("hash-order")
def hash_order(file):
    if not file.is_pure:
        return
    names = set(re.findall(r"unordered_(?:map|set)<[^;{}]*>\s+(\w+)\s*[;={]", "\n".join(file.code)))
    for number, line in enumerate(file.code, 1):
        match = re.search(r"\bfor\s*\([^;]*:\s*(?:\w+(?:\.|->))*(\w+)\s*\)", line)
        if match and match.group(1) in names:
            yield number, f"iterates over the hash table {match.group(1)}; its order is no decision"


@rule("file-name")
def file_name(file):
    name = Path(file.path).name
    if file.is_cpp and (BANNED_FILE_NAMES.search(name) or name != name.lower()):
        yield 1, "name a file in snake_case after what it does; not manager, helper, util or misc"


@rule("developer-path")
def developer_path(file):
    if file.path.startswith("tests/tidy/"):
        return
    in_tests = file.top in ("tests", "bench")
    for number, line in enumerate(file.lines, 1):
        match = DEVELOPER_PATHS.search(line)
        if match and (file.top in PROGRAM_FOLDERS or match.group(2)):
            yield number, f"{match.group(0)}: no path of one developer's machine"
        if SHARED_FOLDER.search(line) and not in_tests:
            yield number, "only tests and benches may look for ../shared"


def search(file, patterns):
    for number, line in enumerate(file.code, 1):
        for pattern, why in patterns.items():
            match = re.search(pattern, line)
            if match:
                yield number, f"{match.group(0).strip()}: {why}"


def functions(file):
    """(first line, lines) of each outermost function body; lines of a table inside of it do not
    count."""
    stack, head, line = [], "", 1  # of stack: kind, first line, lines of tables inside
    for char in "\n".join(file.code):
        if char == "\n":
            line += 1
        if char == "{":
            inside = any(kind == "function" for kind, _, _ in stack)
            kind = "function" if not inside and is_function(head) else \
                "table" if inside and not is_block(head) else "block"
            stack.append([kind, line, 0])
            head = ""
        elif char == "}" and stack:
            kind, start, tables = stack.pop()
            if kind == "function":
                yield start, line - start + 1 - tables
            elif stack:
                stack[-1][2] += line - start if kind == "table" else tables
            head = ""
        elif char == ";":
            head = ""
        else:
            head += char


def is_block(head):
    """True if statements follow, false if the values of an initialiser follow."""
    return bool(re.search(r"(\)|\b(else|do|try|const|noexcept|mutable))\s*(->[^;]*)?$", head))


def is_function(head):
    head = re.sub(r"#[^\n]*", "", head).strip()
    scope = re.match(r"(template\s*<.*>\s*)?(inline\s+)?"
                     r"(namespace|class|struct|union|enum|extern)\b", head, re.S)
    return bool(head) and not scope and ")" in head and not head.endswith(("=", "return"))


# ---- running -----------------------------------------------------------------------------------


def excused(file, name, number):
    for line in file.lines[max(0, number - 2):number]:
        if re.search(rf"tidy-allow\({name}\): \S", line):
            return True
    return False


def check_folders(files):
    """Every folder of tests that holds a test has a CMakeLists.txt, because without it the test
    would never run."""
    paths = {f.path for f in files}
    folders = {"/".join(p.split("/")[:2]) for p in paths
               if p.startswith("tests/") and p.count("/") >= 2 and p.endswith(".cc")}
    for folder in sorted(folders):
        if f"{folder}/CMakeLists.txt" not in paths:
            yield f"{folder}:1: [test-folder] has tests but no CMakeLists.txt"


def declared_tests(files):
    """The names of all tests that the files for CMake declare."""
    names = set()
    for file in files:
        if Path(file.path).name == "CMakeLists.txt":
            names.update(re.findall(r"(?:\bgantry_test\(|\badd_test\(NAME )(\w+)", file.text))
            names.update(f"e2e_{n}" for n in re.findall(r"\bgantry_e2e_test\((\w+)", file.text))
    return names


def check_documents(files, root):
    """A path that a document names in backticks or above a change, from a top folder on, must
    exist, and so must a test that it runs by name."""
    tests = declared_tests(files)
    for file in files:
        if file.suffix != ".md":
            continue
        change = False
        for number, line in enumerate(file.lines, 1):
            change = line == "```diff" or (change and line != "```")
            head = change and line[:1].isalnum()
            for path in re.findall(r"[\w-]+/[\w./-]+" if head else r"`([\w-]+/[\w./-]+)`", line):
                if path.split("/")[0] in FOLDERS and not (root / path).exists():
                    yield f"{file.path}:{number}: [document] there is no {path}"
            parts = (run.split("|") for run in re.findall(r"test -R '?([\w|]+)", line))
            for part in sum(parts, []):
                if not any(part in name for name in tests):
                    yield f"{file.path}:{number}: [document] no test is named {part}"


def check(root):
    """Returns (complaints, number of lines in owed.txt)."""
    files = list(source_files(root))
    owed = rooms.Owed(rooms.read(root, rooms.OWED))
    complaints = list(check_folders(files)) + list(check_documents(files, root))
    complaints += rooms.check(files, root, owed)
    for file in files:
        for name, function in RULES.items():
            for number, what in function(file):
                if not excused(file, name, number) and not owed.excuses(f"{name} {file.path}"):
                    complaints.append(f"{file.path}:{number}: [{name}] {what}")
    return complaints + list(owed.complaints()), len(owed.lines)


def self_test():
    """Reads samples: "== RULE... | title", then "-- PATH" and its text; "*N TEXT" stands for N
    equal lines."""
    failures = 0
    samples = (Path(__file__).parent / "samples.txt").read_text(encoding="utf-8")
    blocks = re.split(r"^== ", samples, flags=re.M)[1:]
    for block in blocks:
        head, _, body = block.partition("\n")
        wanted, _, title = (part.strip() for part in head.partition("|"))
        with tempfile.TemporaryDirectory() as folder:
            for part in re.split(r"^-- ", body, flags=re.M)[1:]:
                path, _, text = part.partition("\n")
                text = re.sub(r"^\*(\d+) (.*)$", lambda m: (m.group(2) + "\n") * int(m.group(1)),
                              text, flags=re.M)
                target = Path(folder) / path.strip()
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_text(text, encoding="utf-8")
            complaints, _ = check(Path(folder))
        got = sorted(re.search(r"\[([\w-]+)\]", c).group(1) for c in complaints)
        if got != sorted(wanted.split()):
            failures += 1
            print(f"self-test \"{title}\": wanted {wanted or 'nothing'}, got {complaints}")
    print(f"{len(blocks) - failures} passed, {failures} failed")
    return 1 if failures or not blocks else 0


def main():
    if sys.argv[1:] == ["--self-test"]:
        return self_test()
    complaints, owed = check(Path(sys.argv[1] if len(sys.argv) > 1 else ".").resolve())
    for text in complaints:
        print(text)
    print(f"tidy: {len(complaints)} complaints; {owed} owed (tests/tidy/owed.txt)")
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
