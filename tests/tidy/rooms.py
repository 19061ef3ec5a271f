#!/usr/bin/env python3
"""Checks the rooms: which folders there are, what each may include, and how large its files and
classes may be.

  rooms.py ROOT           prints what tidy.py would complain about
  rooms.py ROOT --write   writes the table of folders into docs/architecture.md

rooms.txt is the only table: a line for each folder of the programs, "FOLDER | MAY INCLUDE | HOLDS".
A folder may include itself and the folders named there, and nothing else; "NAME = FOLDER..."
defines a short name for several folders. The table has no cycle, so the code has none either.
owed.txt lists the places that still break a rule, one a line, with how each will be mended. A line
that is no longer needed is a complaint too.
"""

import re
import sys
from collections import defaultdict
from pathlib import Path

TABLE, OWED = "tests/tidy/rooms.txt", "tests/tidy/owed.txt"
ARCHITECTURE = "docs/architecture.md"
BEGIN, END = "<!-- made from tests/tidy/rooms.txt -->", "<!-- end of the table -->"

FILES, README_LINES = 40, 40  # per folder
METHODS, MEMBERS = 20, 15     # public methods and data members of a class
SMALL_CLASSES = ("ctld/core/", "ctld/sched/")
# A struct with at most this many methods is a record, which may have any number of members.
RECORD_METHODS = 3
EXCEPTIONS = 3  # at most this many lines of owed.txt may say "stays: REASON"


class Rooms:
    """The table: folder -> (set of folders that it may include, one line that says what it
    holds)."""

    def __init__(self, text):
        self.words, self.holds, self.named, self.wrong = {}, {}, {}, []
        for number, line in enumerate(text.splitlines(), 1):
            cells = [cell.strip() for cell in line.split("|")]
            word = re.match(r"(\w+) = (.*)", line)
            if not line.strip() or line.startswith("#"):
                continue
            if word:
                self.words[word.group(1)] = word.group(2).split()
            elif len(cells) == 3:
                self.named[cells[0]], self.holds[cells[0]] = cells[1].split(), cells[2]
            else:
                self.wrong.append(f"{TABLE}:{number}: [room-table] a line has three parts")
        self.may = {room: self.expand(names) | {room} for room, names in self.named.items()}

    def expand(self, names):
        return {folder for name in names for folder in self.words.get(name, [name])}

    def circle(self):
        """Returns one cycle of folders that may include each other (first = last), or [] if there
        is none."""
        done, way = set(), []

        def walk(room):
            if room in way:
                return way[way.index(room):] + [room]
            if room in done:
                return []
            way.append(room)
            for other in sorted(self.may.get(room, set()) - {room}):
                found = walk(other)
                if found:
                    return found
            way.pop()
            done.add(room)
            return []
        for room in sorted(self.may):
            found = walk(room)
            if found:
                return found
        return []

    def document(self):
        lines = [BEGIN, "", "| folder | holds | may include |", "|---|---|---|"]
        for room, holds in self.holds.items():
            names = ", ".join(f"`{name}`" for name in self.named[room]) or "nothing else"
            lines.append(f"| `{room}/` | {holds} | {names} |")
        for word, names in self.words.items():
            lines += ["", f"`{word}` stands for " + ", ".join(f"`{name}`" for name in names) + "."]
        return "\n".join(lines + ["", END])


def read(root, path):
    full = root / path
    return full.read_text(encoding="utf-8") if full.exists() else None


def folder_of(path):
    return path.rpartition("/")[0]


# ---- folders -----------------------------------------------------------------------------------


def check_table(rooms, files, root):
    yield from rooms.wrong
    there = defaultdict(int)
    for file in files:
        if file.is_cpp and file.top in {r.split("/")[0] for r in rooms.holds}:
            there[folder_of(file.path)] += 1
    for folder in sorted(set(there) - set(rooms.holds)):
        yield f"{folder}:1: [room-table] {TABLE} has no line for this folder"
    for room in sorted(set(rooms.holds) - set(there)):
        yield f"{TABLE}:1: [room-table] there are no sources in {room}"
    for room in sorted(rooms.holds):
        for other in sorted(rooms.may[room] - set(rooms.holds)):
            yield f"{TABLE}:1: [room-table] {room} may include {other}, which is no folder"
    circle = rooms.circle()
    if circle:
        yield f"{TABLE}:1: [room-circle] {' -> '.join(circle)}"
    document = read(root, ARCHITECTURE)
    if document is not None and rooms.document() not in document:
        yield (f"{ARCHITECTURE}:1: [room-table] is not made from {TABLE}: "
               "run tests/tidy/rooms.py . --write")


def check_sizes(files):
    count = defaultdict(int)
    for file in files:
        if file.is_cpp:
            count[folder_of(file.path)] += 1
    for folder, number in sorted(count.items()):
        if number > FILES:
            yield f"{folder}:1: [room-size] {number} source files; at most {FILES}"


def check_readmes(rooms, root):
    for room in sorted(rooms.holds):
        text = read(root, f"{room}/README.md")
        if text is None:
            yield f"{room}:1: [room-readme] has no README.md that says what it owns"
        elif len(text.splitlines()) > README_LINES:
            yield (f"{room}/README.md:1: [room-readme] {len(text.splitlines())} lines; "
                   f"at most {README_LINES}")


def check_includes(rooms, files):
    """Yields (complaint, the line of owed.txt that would excuse it)."""
    paths = {f.path for f in files}
    for file in files:
        room = folder_of(file.path)
        if not file.is_cpp or room not in rooms.holds:
            continue
        for number, quoted, header in file.includes():
            other = folder_of(header)
            if not quoted or header not in paths or other in rooms.may[room]:
                continue
            yield (f"{file.path}:{number}: [room-include] {room}/ may not include {header}",
                   f"room-include {file.path} {header}")


# ---- classes -----------------------------------------------------------------------------------


class Type:
    """A class or struct: its name, its place, and its members."""

    def __init__(self, path, line, kind, name):
        self.path, self.line, self.kind, self.name = path, line, kind, name
        self.methods, self.members, self.friends = 0, 0, []


def types(file):
    """The classes and structs defined in a header, nested ones too."""
    code = "\n".join(file.code)
    head = re.compile(r"\b(class|struct)\s+(?:\[\[[^\]]*\]\]\s*)?(\w+)(?:\s+final)?"
                      r"(?:\s*:[^;{()]*)?\s*\{")
    for match in head.finditer(code):
        if re.search(r"\benum\s+$", code[:match.start()]):
            continue
        found = Type(file.path, code.count("\n", 0, match.start()) + 1, *match.groups())
        public = match.group(1) == "struct"
        for statement in statements(code, match.end()):
            label = re.match(r"\s*(public|private|protected)\s*:\s*", statement)
            while label:
                public = label.group(1) == "public"
                statement = statement[label.end():]
                label = re.match(r"\s*(public|private|protected)\s*:\s*", statement)
            count(found, statement.strip(), public)
        yield found


def statements(code, start):
    """The text between the braces of a class, member by member, without function bodies."""
    depth, text, position = 1, "", start
    while position < len(code) and depth:
        char = code[position]
        depth += (char == "{") - (char == "}")
        if depth == 1 and char in ";}":
            following = re.match(r"\s*([;,=]|\w+\s*;)?", code[position + 1:]).group(1)
            if char == ";" or not following:
                yield text
                text = ""
        elif depth == 1:
            text += char
        position += 1


def count(found, statement, public):
    statement = re.sub(r"\[\[[^\]]*\]\]", "", statement).strip()
    friend = re.match(r"friend\s+(?:class|struct)\s+(\w+)$", statement)
    if friend:
        found.friends.append(friend.group(1))
    if not statement or re.match(r"(friend|using|typedef|template|enum|class|struct|union|static|"
                                 r"GANTRY_\w+|#)\b", statement):
        found.methods += bool(public and re.match(r"(template|static)\b.*\(", statement, re.S))
        return
    while re.search(r"<[^<>]*>", statement):
        statement = re.sub(r"<[^<>]*>", "", statement)
    before = re.split(r"[={]", statement)[0]
    if "operator" in statement or re.match(rf"(explicit\s+|virtual\s+|constexpr\s+)*~?{found.name}"
                                           r"\s*\(", statement):
        return
    if "(" in before:
        found.methods += public
    else:
        found.members += 1


def check_types(files):
    """Yields (complaint, the line of owed.txt that would excuse it)."""
    all_types = [t for f in files if f.is_cpp for t in types(f)]
    home = defaultdict(set)
    for found in all_types:
        home[found.name].add(folder_of(found.path))
    for found in all_types:
        for friend in found.friends:
            if home[friend] and folder_of(found.path) not in home[friend]:
                yield (f"{found.path}:{found.line}: [room-friend] {found.name} has a friend in "
                       f"another folder: {friend}", f"room-friend {found.path} {friend}")
        if not found.path.startswith(SMALL_CLASSES):
            continue
        record = found.kind == "struct" and found.methods <= RECORD_METHODS
        large = found.methods > METHODS or (found.members > MEMBERS and not record)
        if large:
            yield (f"{found.path}:{found.line}: [class-size] {found.name} has {found.methods} public "
                   f"methods and {found.members} data members; at most {METHODS} and {MEMBERS}",
                   f"class-size {found.path} {found.name}")


# ---- what is owed ------------------------------------------------------------------------------


class Owed:
    def __init__(self, text):
        self.lines = {}
        for line in (text or "").splitlines():
            if line.strip() and not line.startswith("#"):
                what, _, how = line.partition("|")
                self.lines[" ".join(what.split())] = how.strip()
        self.used = set()

    def excuses(self, what):
        if self.lines.get(what):
            self.used.add(what)
            return True
        return False

    def complaints(self):
        stay = [what for what, how in self.lines.items() if how.startswith("stays:")]
        for what in stay[EXCEPTIONS:]:
            yield f"{OWED}:1: [owed] {what}: at most {EXCEPTIONS} exceptions stay"
        for what, how in self.lines.items():
            if not how:
                yield f"{OWED}:1: [owed] {what}: says nothing of how it ends"
            elif what not in self.used:
                yield f"{OWED}:1: [owed] {what}: is no longer needed; take the line out"


def check(files, root, owed):
    yield from check_sizes(files)
    for complaint, what in check_types(files):
        if not owed.excuses(what):
            yield complaint
    table = read(root, TABLE)
    if table is None:
        return
    rooms = Rooms(table)
    yield from check_table(rooms, files, root)
    yield from check_readmes(rooms, root)
    for complaint, what in check_includes(rooms, files):
        if not owed.excuses(what):
            yield complaint


def write(root):
    path = root / ARCHITECTURE
    text, table = path.read_text(encoding="utf-8"), Rooms(read(root, TABLE)).document()
    pattern = re.compile(re.escape(BEGIN) + ".*?" + re.escape(END), re.S)
    if not pattern.search(text):
        sys.exit(f"{ARCHITECTURE} has no place for the table: {BEGIN} and {END}")
    path.write_text(pattern.sub(lambda _: table, text), encoding="utf-8")


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    root = Path(sys.argv[1]).resolve()
    if "--write" in sys.argv[2:]:
        write(root)
        return 0
    import tidy
    owed = Owed(read(root, OWED))
    found = list(check(list(tidy.source_files(root)), root, owed))
    print("\n".join(found))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
