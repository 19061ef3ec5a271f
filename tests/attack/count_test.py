#!/usr/bin/env python3
"""Counts the attempts in README.md of this folder, by the program that makes them, and compares the table in
docs/security.md with the count. With GANTRY_UPDATE_GOLDEN=1 it writes the table.

usage: count_test.py
"""
import os
import re
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
PAGE = os.path.join(HERE, "../../docs/security.md")
LEAST = 150
BEGIN, END = "<!-- counted by tests/attack/count_test.py -->\n", "<!-- end of the count -->\n"
# Programs whose attempts are made a second time where the layer is missing, and must succeed there.
SHOWN = {"walls_test.py": "all, as root and as a user of the machine, and at least 45 have to succeed",
         "sandbox_test.py": "all, in a standard sandbox",
         "storage_test.py": "those of a job, on a node without the wall"}


def sections(text):
    """(program, heading, names of the attempts) of each part of README.md."""
    for part in re.split(r"^# ", text, flags=re.M)[1:]:
        names = re.findall(r"^\| `([a-z0-9_/-]+)` \|", part, re.M)
        program = re.search(r"`(\w+_test\.py)`", part)
        yield program.group(1) if program else "", part.split("\n")[0], names


def main():
    with open(f"{HERE}/README.md", encoding="utf-8") as f:
        found = list(sections(f.read()))
    wrong = [f"README.md: \"{heading}\" names no program" for program, heading, _ in found if not program]
    wrong += [f"README.md: there is no {program}" for program, _, _ in found
              if program and not os.path.exists(f"{HERE}/{program}")]
    everything = [name for _, _, names in found for name in names]
    wrong += [f"README.md: {name} is there twice" for name in sorted(set(everything)) if everything.count(name) > 1]
    if len(everything) < LEAST:
        wrong.append(f"README.md: {len(everything)} attempts; there were at least {LEAST}")
    table = "| attempts | program | made again where the layer is missing |\n|---|---|---|\n"
    for program, heading, names in found:
        table += f"| {len(names)} {heading[9:] if heading.startswith('Attempts ') else heading} | `tests/attack/{program}` | " \
                 f"{SHOWN.get(program, '-')} |\n"
    table += f"| {len(everything)} in all | | |\n"
    with open(PAGE, encoding="utf-8") as f:
        page = f.read()
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
