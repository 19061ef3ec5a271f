#!/usr/bin/env bash
# The end of the story, for real: fraud's retraining as a job over two nodes of a small cluster on this
# machine. Its parts add up what each has, over the job's own network; another job reaches neither.
#
# usage: two-nodes.sh BIN_DIR      (run.sh calls it where it can run)
# Needs root: users are made for the time of the demo. Leaves nothing behind.
set -euo pipefail
bin=$(realpath "${1:?usage: two-nodes.sh BIN_DIR}")
export PATH="$bin:$PATH"
top=$(mktemp -d /var/tmp/gantry-story.XXXXXX)
chmod 755 "$top"
state=$top/cluster
people="story-fraud story-other"
made_users=()
copied=

finish() {
  local status=$?
  trap - EXIT INT TERM
  gantry down --cancel --remove --state "$state" >/dev/null 2>&1 || true
  for user in "${made_users[@]}"; do userdel "$user" 2>/dev/null || true; done
  rm -rf "$top" ${copied:+"$copied"}
  [ $status -eq 0 ] || echo "The demo failed (exit status $status); see the last command above." >&2
  exit $status
}
trap finish EXIT
trap 'exit 130' INT TERM

for user in $people; do
  id "$user" >/dev/null 2>&1 || {
    useradd --no-create-home --home-dir "$top/$user" --shell /bin/bash "$user"
    made_users+=("$user")
  }
  install -d -o "$user" "$top/$user"
done
if ! runuser -u story-fraud -- test -x "$bin/gantry"; then
  copied=$(mktemp -d /opt/gantry-demo.XXXXXX)
  chmod 755 "$copied"
  cp -a "$bin"/g* "$copied"
  export PATH="$copied:$PATH"
fi

shown() { printf '\n$ %s\n' "$*"; "$@"; }
as() {
  local user=$1; shift
  (cd "$top/$user" && runuser -u "$user" -- env PATH="$PATH" GANTRY_CONF="$GANTRY_CONF" "$@")
}
wait_end() {
  local deadline=$((SECONDS + 120))
  while [ -n "$(gqueue -h -o %i -j "$1")" ] && [ $SECONDS -lt $deadline ]; do sleep 0.2; done
}

printf '\n== Two nodes, each with daemons of its own\n'
gantry up --state "$state" --nodes 2 --cpus 2 --memory 1G --oversubscribe --user "${people// /,}" \
  >"$top/up" 2>&1 || { cat "$top/up" >&2; exit 1; }
export GANTRY_CONF=$state/client.conf
if gctl show node node1 | grep -q 'networks of jobs'; then
  echo "This machine makes no networks of jobs, so the job over two nodes is left out:"
  gctl show node node1 | grep -o 'networks of jobs: [^,]*'
  exit 0
fi

# Each part has a gradient. The second finds the first by the name of its node.
cat >"$top/story-fraud/train.py" <<'PY'
import os, socket, time
rank, node = int(os.environ["SLURM_PROCID"]), os.environ["SLURMD_NODENAME"]
mine = 1.5 + rank
if rank == 0:
    server = socket.create_server(("::", 29500), family=socket.AF_INET6, dualstack_ipv6=True)
    other, who = server.accept()
    theirs = float(other.makefile().readline())
    other.sendall(b"%f\n" % (mine + theirs))
    sender = who[0].removeprefix("::ffff:")
    print(f"{node}: {sender} sent {theirs}, the sum is {mine + theirs}", flush=True)
else:
    for _ in range(300):
        try:
            link = socket.create_connection(("node1", 29500))
            break
        except OSError:
            time.sleep(0.1)
    link.sendall(b"%f\n" % mine)
    print(f"{node}: the sum is {float(link.makefile().readline())}", flush=True)
time.sleep(float(os.environ.get("STAY", "0")))
PY
chmod 644 "$top/story-fraud/train.py"

printf '\n== The retraining, over both of them\n'
job=$(as story-fraud env STAY=20 gbatch --parsable -J retrain -N 2 --ntasks-per-node=1 --mem=40M \
  -t 5:00 -o "$top/story-fraud/out" --wrap "grun python3 $top/story-fraud/train.py")
deadline=$((SECONDS + 60))
until [ "$(grep -c 'the sum is' "$top/story-fraud/out" 2>/dev/null)" = 2 ] ||
  [ $SECONDS -ge $deadline ]; do sleep 0.2; done
shown cat "$top/story-fraud/out"
shown gctl network show "$job"
shown gctl network show -w node2 "$job"
shown gctl network probe -w node2 "$job" node1:29500

printf '\n== Another user'"'"'s job on the same node looks for it\n'
address=$(gctl network show --json "$job" | grep -om1 '100\.[0-9.]*')
other=$(as story-other gbatch --parsable -J curious -n 1 -w node1 --mem=40M -t 5:00 \
  -o "$top/story-other/out" --wrap "python3 -c 'import socket
try: socket.create_connection((\"$address\", 29500), 3); print(\"$address is open\")
except OSError as e: print(\"$address:\", e)'")
wait_end "$other"
shown cat "$top/story-other/out"
if grep -q 'is open' "$top/story-other/out"; then exit 1; fi
gcancel "$job" && wait_end "$job"
[ "$(grep -c 'the sum is 4.0' "$top/story-fraud/out")" = 2 ]
