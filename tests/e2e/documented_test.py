#!/usr/bin/env python3
"""Every command that README.md and docs/ show is accepted by a real cluster, and so are the examples
in the help of the commands that only read, and the documents and examples that the pages link to.

usage: documented_test.py BIN_DIR [-k CASE] [--keep]

The commands are taken from the indented and fenced blocks, in their order on the page. A command
must end with status 0, or with the status in STATUS. What a reader would have to prepare is made
before: scripts, documents (those that the page itself shows), a job. NAMES says what replaces the
names on the page. A command that cannot run here stands in NOT_HERE, with the reason and with the
test that runs it instead; an entry that matches no command any more is a failure as well.
"""
import glob
import os
import re
import shlex
import subprocess
import sys

import cluster

TOP = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../..")
OURS = set("""gantry gbatch gqueue gcancel ginfo gacct grun galloc gctl gtenant gshare gprio greport
              sbatch squeue sinfo sacct scancel scontrol salloc srun sprio sshare sreport sdiag sstat
              sacctmgr strigger sattach sbcast""".split())
OF_ADMINS = ("gtenant", "gantry", "gctl reserve", "gctl drain", "gctl top", "gctl network", "greport", "gctl mig",
             "gctl who-can")
ASKS = ("gtenant apply", "gtenant price apply", "gtenant create", "gtenant rollback")

# (pattern of the command, reason why it does not run here)
NOT_HERE = [
    (r"gantry (up|down)\b", "the cluster of this test is made so, and taken down at its end"),
    (r"salloc |srun --pty", "needs a terminal: terminal_test"),
    (r"gctl network (show|probe) 12", "its jobs have no networks: network_profile_test"),
    (r"gctl audit ", "reads the controller's own files: tests/attack/audit_test"),
    (r"srun --mpi=", "needs programs built with MPI: mpi_test, pmi2_test"),
    (r"gbatch --(gpus|gres)=", "there are no GPUs here: gpu_share_test, and the demo of GPUs"),
    (r"gctl (drain|close|dead|resume) (gpu01 --gpu|--rack)",
     "there are no GPUs and racks here: the demo of GPUs, tests/core/scenarios/rack.txt"),
    (r"gctl maintenance start", "would run ssh: tests/core/scenarios/maintenance.txt"),
    (r"gtenant import --slurm", "needs a site's own files: slurm_test"),
    (r"(gantry config check|gtenant apply -f) new/", "made by the import of a site's own files"),
    (r"gbatch -p fraud --priority-class", "needs its tenant's own classes: tenants_test"),
    (r"gbatch -p fraud --(secret|identity)=", "needs a user of its tenant: tests/attack/secrets_test"),
    (r"gbatch -p fraud train.sh", "its users are those of the manifests: tenants_test"),
    (r"greport .*--invoice", "nothing was charged last month: money_test"),
    (r"gtenant request ask fraud --quota gpu=8 --flavor", "there is no node of that flavor here"),
    (r"gctl reserve course", "a date in the past; the next line runs"),
    (r"gbatch --reservation course", "needs the reservation in front of it: reserve_test"),
    (r"gtenant apply -f score.yaml|gctl service ", "needs a service and a gate: services_test"),
    (r"gtenant (check|diff|apply) -f tenants/", "a site's own repository: tests/tenancy"),
]
STATUS = {}
NAMES = [
    (r"^(gctl why|scontrol show job|sacct -j|scancel) \d+", r"\1 {job}"),
    (r"\bgpu01\b", "node1"),
    (r"'n\[01-16\]'", "node4"),
    (r"(request approve) \d+", r"\1 1"),
    (r"(gtenant rollback) \d+", r"\1 1"),
    (r"2026-W44 2026-W47", "last-month"),
    (r"--until 2026-12-01", "--until 2090-12-01"),
]
SCRIPT = "#!/bin/sh\n#SBATCH --mem=40M --time=5:00\nsleep 1\n"


def without_comment(line):
    return re.split(r"\s+# ", line)[0].strip()


def commands_of(path):
    """(line, command) of each Gantry command in the page's blocks."""
    found, fence, begun = [], None, ""
    with open(path, encoding="utf-8") as page:
        for number, line in enumerate(page, 1):
            mark = re.match(r"```(\w*)", line)
            if mark:
                fence = mark.group(1) if fence is None else None
                continue
            if fence in ("yaml",) or (fence is None and not line.startswith("    ") and not begun):
                continue
            words = (begun + " " + re.sub(r"^[$#] ", "", line.strip())).strip()
            begun = ""
            name, _, rest = words.partition(" ")
            if name not in OURS or rest.lstrip().startswith("─"):
                continue
            if words.endswith("\\"):
                begun = words[:-1].strip()
                continue
            found.append((number, without_comment(words)))
    return found


def yaml_blocks(page):
    with open(os.path.join(TOP, page), encoding="utf-8") as f:
        return re.findall(r"```yaml\n(.*?)```", f.read(), re.S)


def prepare(c):
    """Makes what the pages take for granted, in the user's working directory."""
    def write(name, text):
        path = os.path.join(c.out, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as f:
            f.write(text)
        os.chmod(path, 0o644)
    for name in ("hello.sh", "train.sh", "serve.sh", "retrain.sh", "lesson1.sh"):
        write(name, SCRIPT)
    for path in glob.glob(os.path.join(TOP, "tests/tenancy/manifests/*.yaml"))[:1]:
        with open(path, encoding="utf-8") as f:
            write("manifests/teams.yaml", f.read())
    money = [b for b in yaml_blocks("docs/money.md") if b.startswith("apiVersion")]
    write("prices.yaml", next(b for b in money if "kind: PriceBook" in b) +
          "meters: {storage-gib-month: 0.02}\n")
    write("budgets.yaml", next(b for b in money if "kind: Budget" in b))
    write("hub.token", "a token of a hub\n")
    rules = [b for b in yaml_blocks("docs/policies.md") if b.startswith("apiVersion")]
    write("rules.yaml", next(b for b in rules if "kind: Policy" in b))
    write("roles.yaml", next(b for b in rules if "kind: Role" in b))
    write("fraud.yaml", next(b for b in yaml_blocks("docs/tenancy.md") if "name: fraud" in b))
    write("lab.yaml", "apiVersion: gantry/v1\nkind: Tenant\nname: lab\n"
          "projects:\n  genomes: {shares: 1}\n")
    write("readers.yaml", "apiVersion: gantry/v1\nkind: Tenant\nname: readers\n"
          f"roles: {{user: {{users: [{c.user}]}}}}\n")
    write("storage-2026-11.csv", "date,tenant,meter,amount,project,user\n"
          "2026-11-02,fraud,storage-gib-month,20480.5,retraining,\n")


def case_every_documented_command_is_accepted(c):
    prepare(c)
    used, wrong, ran = set(), [], 0
    pages = [os.path.join(TOP, "README.md")] + sorted(
        glob.glob(os.path.join(TOP, "docs/*.md")),
        key=lambda page: (not page.endswith("/tenancy.md"), page))  # it makes the tenant of others
    for page in pages:
        # README.md has no tenants. The other pages make tenants, and then every job needs one, so
        # the user gets one here.
        if page == pages[1]:
            c.root(["gtenant", "apply", "--yes", "-f", f"{c.out}/readers.yaml"], check=True)
        # README.md counts its jobs from 1. The other pages name a job that waits.
        held = "" if page.endswith("README.md") else c.submit("--hold", "--wrap=true")
        if page == pages[2]:  # what tenancy.md shows first, applied as it stands there
            for name in ("fraud", "lab"):
                c.root(["gtenant", "apply", "--yes", "-f", f"{c.out}/{name}.yaml"], check=True)
        for number, command in commands_of(page):
            why = [i for i, (what, _) in enumerate(NOT_HERE) if re.search(what, command)]
            if why:
                used.update(why)
                continue
            line = command
            for what, instead in NAMES if held else []:
                line = re.sub(what, instead, line)
            line = line.replace("{job}", str(held))
            if line.startswith(ASKS) and "--yes" not in line:
                line += " --yes"
            words = shlex.split(line)
            if words[0].startswith("s"):
                words[0] = "slurm/" + words[0]
            run = c.root if line.startswith(OF_ADMINS) else c.as_user
            ran += 1
            try:
                done = run(words, cwd=c.out, stdin=subprocess.DEVNULL, timeout=40)
            except subprocess.TimeoutExpired:
                wrong.append(f"{os.path.basename(page)}:{number}: {line}: no end within 40 s")
                continue
            if done.returncode != STATUS.get(command, 0):
                wrong.append(f"{os.path.basename(page)}:{number}: {line}: status {done.returncode}: "
                             f"{(done.stderr or done.stdout).strip()[-300:]}")
    wrong += [f"NOT_HERE: {what} matches no command" for i, (what, _) in enumerate(NOT_HERE)
              if i not in used]
    print(f"{ran} commands ran")
    assert not wrong, "\n".join(wrong)


# The commands whose examples are asked of the cluster: they change nothing.
READERS = """gqueue ginfo gacct gprio gshare greport gctl_top gctl_ping gctl_reservations gctl_show_job
             gctl_show_node gctl_show_partition gctl_show_config gctl_show_stats
             gctl_show_hostnames gctl_show_hostlist gctl_why gctl_logs gtenant_list gtenant_quota
             gtenant_get gtenant_export gtenant_history gtenant_budget_list gtenant_price_list
             gtenant_events gtenant_request_list gtenant_access gtenant_policy_test gtenant_policy_fields
             gctl_who-can""".split()
EXAMPLE_NAMES = [
    (r"^(gctl (why|logs|show job)( -\w| --\w+)*) [\d_ ]+$", r"\1 {job}"),
    (r"(-j) [\d,.a-z]+", r"\1 {job}"),
    (r"\b(gpu|n)\[?\d+(-\d+)?\]?", "node1"),
    (r"2026-W44 2026-W47", "this-month"),
    (r" --script {job}", " {job}"),
]
NOT_AN_EXAMPLE = [
    (r"gqueue --watch", "does not end"),
    (r"gctl logs -f", "does not end"),
    (r"gtenant events -f", "does not end"),
    (r"--invoice", "nothing was charged last month: money_test"),
    (r"^watch ", "does not end"),
]


def examples_of(c, name):
    """The commands under "Examples:" in the help of a command."""
    text = c.root(name.split("_") + ["--help"], check=True).stdout
    part = text.partition("\nExamples:\n")[2].partition("\nExit status:")[0]
    part = re.sub(r" \\\n +", " ", part)
    return [line.strip() for line in part.splitlines() if re.match(r"  \S", line)]


def case_examples_in_help_are_accepted(c):
    """Those of listings, on a cluster with the tenant, prices and budget of the pages."""
    job = c.submit("--wrap=echo hello", "-A", "readers", "-o", f"{c.out}/example.out")
    c.ended(job, "completed")
    wrong, used = [], set()
    for name in READERS:
        examples = examples_of(c, name)
        assert examples, f"{name.replace('_', ' ')} has no example in its help"
        for example in examples:
            why = [i for i, (what, _) in enumerate(NOT_AN_EXAMPLE) if re.search(what, example)]
            if why:
                used.update(why)
                continue
            line = re.sub(r"\s*>.*", "", example)
            for what, instead in EXAMPLE_NAMES:
                line = re.sub(what, instead, line)
            line = line.replace("{job}", str(job))
            done = c.root(shlex.split(line), cwd=c.out, stdin=subprocess.DEVNULL)
            if done.returncode != 0:
                wrong.append(f"{example}: {line}: status {done.returncode}: {done.stderr.strip()}")
    wrong += [f"NOT_AN_EXAMPLE: {what}" for i, (what, _) in enumerate(NOT_AN_EXAMPLE)
              if i not in used]
    assert not wrong, "\n".join(wrong)


# Listings under Slurm's names; their examples ask the cluster too.
SLURM_READERS = """squeue sinfo sacct sprio sshare sreport sdiag""".split()
SLURM_NAMES = [(r"(-j) [\d,.a-z]+", r"\1 {job}"), (r"\b(gpu|n)\[?\d+(-\d+)?\]?", "node1")]
SLURM_NOT_HERE = [(r"^(sinfo|squeue|sacct|sdiag) .*(-i|--iterate)\b", "does not end")]


def case_examples_of_listings_under_slurms_names(c):
    job = c.submit("--wrap=echo hello", "-A", "readers", "-o", f"{c.out}/listed.out")
    c.ended(job, "completed")
    wrong = []
    for name in SLURM_READERS:
        for example in examples_of(c, f"slurm/{name}"):
            if any(re.search(what, example) for what, _ in SLURM_NOT_HERE):
                continue
            line = re.sub(r"\s*[|>].*", "", example).replace("$USER", c.user)
            for what, instead in SLURM_NAMES:
                line = re.sub(what, instead, line)
            done = c.root(shlex.split("slurm/" + line.replace("{job}", str(job))), cwd=c.out,
                          stdin=subprocess.DEVNULL)
            if done.returncode != 0:
                wrong.append(f"{example}: {line}: status {done.returncode}: {done.stderr.strip()}")
    assert not wrong, "\n".join(wrong)


# The commands that change something, in an order in which their examples make sense, each with the
# job that stands for its job 12: one that waits, one that runs, or one that is suspended.
CHANGERS = [("gctl_hold", "held"), ("gctl_release", "held"), ("gctl_requeue", "running"),
            ("gctl_suspend", "running"), ("gctl_unsuspend", "suspended"), ("gctl_update", "held"),
            ("gctl_partition_create", ""), ("gctl_partition_update", ""),
            ("gctl_partition_reset", ""), ("gctl_partition_create", ""),
            ("gctl_partition_delete", ""), ("gctl_drain", ""), ("gctl_resume", ""),
            ("gctl_close", ""), ("gctl_resume", ""), ("gctl_reserve", ""), ("gctl_unreserve", ""),
            ("gctl_reconfigure", ""), ("gcancel", "running"), ("gtenant_check", ""),
            ("gantry_config_check", ""), ("gantry_config_show", ""), ("gantry_help", ""),
            ("gantry_version", "")]
CHANGER_NAMES = [
    (r"\b(gpu|n)\[?\d+(-\d+)?\]?", "node1"),
    (r"\b1[0-9](_\[?[\d-]+\]?)?( 1\d_\[?[\d-]+\]?)*$", "{job}"),
    (r" job 12 ", " job {job} "),
    (r"gcancel 12 .*", "gcancel {job}"),
    (r"(gctl requeue --hold|gcancel -s USR1 -b) 12", r"\1 {job}"),
    (r"allow_groups=\S+", "allow_groups=root"),
    (r"--start 2026-\S+", "--start tomorrow"),
    (r"--count 4", "--count 1"),
    (r"--users eva,ben", "--users root"),
    (r"-f tenants/", "-f fraud.yaml"),
]
CHANGER_NOT_HERE = [
    (r"--gpu 3|--rack", "there are no GPUs and racks here: the demo of GPUs"),
    (r"^gbatch --reservation", "its reservation begins tomorrow: reserve_test"),
    (r"reserve --maintenance", "the nodes are needed: reserve_test"),
    (r"gcancel --me", "cancels what the other examples need"),
    (r"config (check|show)", "asks for the site's own file: config_test"),
]


def job_for(c, kind):
    if not kind:
        return ""
    options = ["-A", "readers", "-t", "10:00"]
    if kind == "held":
        return c.submit("--hold", "--wrap=true", *options)
    job = c.submit("--wrap=sleep 300", *options)
    c.running(job)
    if kind == "suspended":
        c.root(["gctl", "suspend", str(job)], check=True)
    return job


def case_examples_of_commands_that_change_something(c):
    wrong, used = [], set()
    for name, kind in CHANGERS:
        examples = examples_of(c, name)
        assert examples, f"{name.replace('_', ' ')} has no example in its help"
        for example in examples:
            why = [i for i, (what, _) in enumerate(CHANGER_NOT_HERE) if re.search(what, example)]
            if why:
                used.update(why)
                continue
            line = example
            for what, instead in CHANGER_NAMES:
                line = re.sub(what, instead, line)
            job = job_for(c, kind) if "{job}" in line else ""
            done = c.root(shlex.split(line.replace("{job}", str(job))), cwd=c.out,
                          stdin=subprocess.DEVNULL)
            if done.returncode != 0:
                wrong.append(f"{example}: {line}: status {done.returncode}: {done.stderr.strip()}")
            if job:
                c.root(["gcancel", str(job)])
    wrong += [f"CHANGER_NOT_HERE: {what}" for i, (what, _) in enumerate(CHANGER_NOT_HERE)
              if i not in used]
    assert not wrong, "\n".join(wrong)


def case_the_first_examples_of_gtenant(c):
    """As they stand in the help, on this cluster; they are only shown, because the tenant exists."""
    examples = examples_of(c, "gtenant")[:1] + examples_of(c, "gtenant_create")[:1]
    assert len(examples) == 2, examples
    for example in examples:
        words = shlex.split(example.replace("create fraud", "create another"))
        done = c.root(words + ["--dry-run"])
        assert done.returncode == 0, f"{example}: {done.stderr}"


def commands_in_text(page):
    """The commands in the running text of a page, as `gctl why JOB`; they may have placeholders."""
    with open(page, encoding="utf-8") as f:
        text = re.sub(r"^```.*?^```", "", f.read(), flags=re.S | re.M)
    spans = (" ".join(span.split()) for span in re.findall(r"`([^`]+)`", text))
    return [span for span in spans if span.split()[0] in OURS and " " in span]


def mistake_in(c, command, helps):
    """What is wrong with a command of the text: a subcommand or an option that there is not."""
    words = re.sub(r"[\[\]]", " ", command).split()
    if all(word in OURS for word in words):  # a list of commands
        return ""
    folder = "slurm/" if words[0].startswith("s") else ""
    path = [folder + words.pop(0)]

    def help_of_path():
        key = " ".join(path)
        if key not in helps:
            helps[key] = c.root([*path, "--help"], check=True).stdout
        return helps[key]

    while words and re.search(r"\nCommands:\n", help_of_path()):
        if not re.search(rf"^  {re.escape(words[0])}\b", help_of_path(), re.M):
            return f"there is no {' '.join(path)} {words[0]}"
        path.append(words.pop(0))
    said = help_of_path()
    if path[0] in ("slurm/scontrol", "slurm/sacctmgr") and words and words[0].isalpha() and \
            not re.search(rf"\b{words[0]}\b", said, re.I):
        return f"{path[0]} has no verb {words[0]}"
    for word in words:
        name = word.split("=")[0]
        if re.fullmatch(r"--?[a-z][a-z-]*|-[A-Z]", name, re.I) and \
                not re.search(rf"(^|[\s,\[]){name}\b", said, re.M):
            return f"{' '.join(path)} has no option {name}"
    return ""


def case_commands_in_the_text_exist(c):
    """What stands in the running text names subcommands and options that the help has, too."""
    helps, wrong, seen = {}, [], 0
    for page in [os.path.join(TOP, "README.md")] + sorted(glob.glob(os.path.join(TOP, "docs/*.md"))):
        for command in commands_in_text(page):
            seen += 1
            if why := mistake_in(c, command, helps):
                wrong.append(f"{os.path.basename(page)}: {command}: {why}")
    print(f"{seen} commands in the text")
    assert not wrong, "\n".join(wrong)
    assert mistake_in(c, "gctl whi JOB", helps) and mistake_in(c, "gqueue --nosuch", helps)


def case_linked_examples_are_sound(c):
    """The example folders that the pages link to."""
    for path in glob.glob(f"{TOP}/docs/examples/tenants/*/gantry.yaml") + \
            glob.glob(f"{TOP}/config/examples/*.yaml"):
        c.root(["gantry", "config", "check", path], check=True)
    folders = [f"{TOP}/docs/examples/tenants/fifteen/tenants", f"{TOP}/docs/examples/money",
               f"{TOP}/docs/examples/tenants/three-teams/tenants.yaml",
               f"{TOP}/docs/examples/gpu/tenants.yaml"]
    for folder in folders:
        c.root(["gtenant", "check", "--offline", "-f", folder], check=True)
    linked = set()
    for page in [f"{TOP}/README.md"] + glob.glob(f"{TOP}/docs/*.md"):
        with open(page, encoding="utf-8") as f:
            for target in re.findall(r"\]\(([^)#: ]*[a-z]/?[^)#: ]*)\)", f.read()):
                if "/" not in target and not target.endswith(".md"):
                    continue
                linked.add(os.path.join(os.path.dirname(page), target))
    gone = sorted(target for target in linked if not os.path.exists(target))
    assert not gone, f"pages link to what does not exist: {gone}"


if __name__ == "__main__":
    sys.exit(cluster.main(__doc__, globals(), name="docs", nodes=4))
