#!/usr/bin/env python3
"""Counts the attempts in README.md of this folder, by the program that makes them, and compares the table in
docs/security.md with the count. With GANTRY_UPDATE_GOLDEN=1 it writes the table.

usage: count_test.py
"""
import glob
import os
import re
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
PAGE = os.path.join(HERE, "../../docs/security.md")
LEAST = 200
BEGIN, END = "<!-- counted by tests/attack/count_test.py -->\n", "<!-- end of the count -->\n"
# How each program shows that its attempts succeed where the layer is missing.
SHOWN = {"attack_test.py": "all but two, as root of the machine and as root in the victim's namespaces",
         "root_test.py": "the same paths opened by root itself; a process that lets itself be traced",
         "login_test.py": "the same message of the owner, outside of a job, with a key; two users hold what one may not",
         "walls_test.py": "all, as root and as a user of the machine, and at least 45 have to succeed; all floods without limits",
         "sandbox_test.py": "all, in a standard sandbox",
         "secrets_test.py": "a planted copy is found; root writes where the job may not; the owner's, with its key, for its audience",
         "issuer_test.py": "the same claims, signed by the issuer's key, count",
         "storage_test.py": "those of a job, on a node without the wall",
         "enroll_test.py": "the token before it was used or taken back, the key before it was revoked",
         "audit_test.py": "a line that was changed reads as any other to who does not check the chain",
         "races_test.py": "a program of root that looks first and opens then, in the same race",
         "shims_test.py": "all, in the shim of a job with a scratch directory",
         "messages_test.py": "each: in clear, by the user, unchanged, with a readable key, by the owner",
         "gate_test.py": "each: an open service, no rate, no gate, no door"}


def sections(text):
    """(program, heading, names of the attempts) of each part of README.md."""
    for part in re.split(r"^# ", text, flags=re.M)[1:]:
        names = re.findall(r"^\| `([a-z0-9_/-]+)` \|", part, re.M)
        program = re.search(r"`(\w+_test\.py)`", part)
        yield program.group(1) if program else "", part.split("\n")[0], names


def named_tests(page):
    """What is wrong with the tests that the page names: files, and test cases of C++ files."""
    wrong = []
    part = page.split("<!-- every test")[1].split("<!-- end of the tests")[0]
    for row in part.splitlines():
        found = re.findall(r"`(tests/[^`]+)`((?:,? \"[^\"]+\")*)", row)
        if row.startswith("| ") and not row.startswith("| against") and not found:
            wrong.append(f"docs/security.md names no test: {row[:60]}")
        for path, names in found:
            files = glob.glob(os.path.join(HERE, "../..", path))
            if not files:
                wrong.append(f"docs/security.md: there is no {path}")
            for name in re.findall(r"\"([^\"]+)\"", names):
                with open(files[0], encoding="utf-8") as f:
                    if f'TEST_CASE("{name}")' not in f.read():
                        wrong.append(f"docs/security.md: {path} has no test case \"{name}\"")
    return wrong


def main():
    with open(f"{HERE}/README.md", encoding="utf-8") as f:
        found = list(sections(f.read()))
    wrong = [f"README.md: \"{heading}\" names no program" for program, heading, _ in found if not program]
    wrong += [f"README.md: there is no {program}" for program, _, _ in found
              if program and not os.path.exists(f"{HERE}/{program}")]
    wrong += [f"count_test.py does not say how {program} shows that its attempts bite" for program, _, _ in found
              if program not in SHOWN]
    everything = [name for _, _, names in found for name in names]
    wrong += [f"README.md: {name} is there twice" for name in sorted(set(everything)) if everything.count(name) > 1]
    if len(everything) < LEAST:
        wrong.append(f"README.md: {len(everything)} attempts; there were at least {LEAST}")
    table = "| attempts | program | where they succeed |\n|---|---|---|\n"
    for program, heading, names in found:
        table += f"| {len(names)} {heading[9:] if heading.startswith('Attempts ') else heading} | `tests/attack/{program}` | " \
                 f"{SHOWN.get(program, '')} |\n"
    table += f"| {len(everything)} in all | | |\n"
    with open(PAGE, encoding="utf-8") as f:
        page = f.read()
    wrong += named_tests(page)
    if BEGIN not in page or END not in page:
        wrong.append("docs/security.md: the marks of the table are missing")
    else:
        before, rest = page.split(BEGIN)
        if os.environ.get("GANTRY_UPDATE_GOLDEN"):
            with open(PAGE, "w", encoding="utf-8") as f:
                f.write(before + BEGIN + table + END + rest.split(END)[1])
        elif rest.split(END)[0] != table:
            wrong.append("docs/security.md: the table is not that of README.md; "
                         "GANTRY_UPDATE_GOLDEN=1 writes it")
    for line in wrong:
        print(line)
    print(f"{len(everything)} attempts, {len(wrong)} complaints")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
