#!/usr/bin/env bash
# Three services on a four-node cluster of this machine, and a day of requests in two minutes: a training
# job runs on what they leave idle, goes when they need it and comes back; a version is rolled out, and
# a node is killed. It ends with the promises kept and the bill.
#
# usage: run.sh BIN_DIR [SECONDS]      (./dev demo services builds and calls it; a day of 120 s unless given)
# As root it makes three users for the time of the demo and removes them again. Leaves nothing behind.
# GANTRY_DEMO_KEEP=1 keeps the cluster up and says how to reach it.
set -euo pipefail

bin=$(realpath "${1:?usage: run.sh BIN_DIR [SECONDS]}")
day=${2:-120}
here=$(dirname "$(realpath "$0")")
export PATH="$bin:$PATH"
top=$(mktemp -d /tmp/gantry-demo.XXXXXX)
chmod 755 "$top"
state=$top/cluster
made_users=() copied='' victim=''

if [ -t 1 ]; then bold=$'\e[1m' dim=$'\e[2m' off=$'\e[0m'; else bold='' dim='' off=''; fi
say() { printf '\n%s== %s%s\n' "$bold" "$*" "$off"; }
shown() { printf '%s# %s%s\n' "$dim" "$*" "$off"; "$@"; }
as() {  # as USER COMMAND...: shows the command, then runs it as that user
  local user=$1; shift
  printf '%s%s$ %s%s\n' "$dim" "$user" "$*" "$off"
  quietly "$user" "$@"
}
quietly() {  # the same without showing it
  local user=$1; shift
  if [ "$user" = "$(id -un)" ]; then (cd "$top/$user" && "$@")
  else (cd "$top/$user" && runuser -u "$user" -- env PATH="$PATH" GANTRY_CONF="$GANTRY_CONF" "$@"); fi
}

finish() {
  local status=$?
  trap - EXIT INT TERM
  jobs -p | xargs -r kill 2>/dev/null || true
  if [ "${GANTRY_DEMO_KEEP:-0}" = 1 ] && [ $status -eq 0 ]; then
    say "The cluster is still up"
    echo "  export PATH=$bin:\$PATH GANTRY_CONF=$GANTRY_CONF"
    echo "  gantry down --state $state     # when you are done"
    return
  fi
  if [ $status -ne 0 ] && [ -d "$state/log" ]; then
    for service in score recommend summarise; do gctl service show "$service" || true; done
    gqueue || true
  fi >&2
  [ -z "$victim" ] || gctl dead "$victim" -r "the demo is over" >/dev/null 2>&1 || true
  "$here/../../take-down.sh" "$state" || status=1
  for user in "${made_users[@]}"; do userdel "$user" 2>/dev/null || true; done
  rm -rf --one-file-system "$top" ${copied:+"$copied"}
  [ $status -eq 0 ] || echo "The demo failed (exit status $status); see the last command above." >&2
  exit $status
}
trap finish EXIT
trap 'exit 130' INT TERM

# ---- people and files ----------------------------------------------------------------------------
if [ "$(id -u)" -eq 0 ]; then
  fraud=gdemo-fraud shop=gdemo-shop research=gdemo-research
  users=(--user "$fraud,$shop,$research")
  for user in $fraud $shop $research; do
    id "$user" >/dev/null 2>&1 || {
      useradd --no-create-home --home-dir "$top/$user" --shell /bin/bash "$user"
      made_users+=("$user")
    }
    install -d -o "$user" -m 755 "$top/$user"
  done
  if ! runuser -u "$fraud" -- test -x "$bin/gantry"; then
    copied=$(mktemp -d /opt/gantry-demo.XXXXXX)
    chmod 755 "$copied"
    cp -a "$bin"/g* "$copied"
    bin=$copied
    export PATH="$bin:$PATH"
  fi
else
  fraud=$(id -un) shop=$fraud research=$fraud
  users=()
  install -d -m 755 "$top/$fraud"
fi
install -d -m 755 "$top/tokens"
for user in $fraud $shop $research; do install -m 644 "$here"/{model,train}.py "$top/$user"; done
# The examples' documents, with the names of these users and their directories.
filled() { sed -e "s|DIRECTORY|$top|" -e "s/USER-FRAUD/$fraud/" -e "s/USER-SHOP/$shop/" -e "s/USER-RESEARCH/$research/" "$here/$1"; }

say "A cluster of four nodes with two cores each, and a gate"
# Nodes are not started again here: one of them is to be lost.
gantry up --nodes 4 --cpus 2 --memory 1G --oversubscribe --restarts 0 "${users[@]}" --state "$state"
export GANTRY_CONF=$state/client.conf
gate=$(sed -n "s|.*listen: \['\(.*\)'\]|\1|p" "$state/gantry.yaml")
if [ -z "$gate" ]; then
  echo "there is no gate: is the package haproxy installed?" >&2
  exit 1
fi
filled cluster.yaml >"$top/cluster.yaml"
gtenant apply -y -f "$top/cluster.yaml" | tail -n 1

say "Three services: score of fraud, recommend and summarise of shop; each by its tenant's admin"
filled services.yaml | awk -v RS='---\n' -v top="$top" '{
  match($0, /name: [a-z]+/); printf "%s", $0 > (top "/" substr($0, RSTART + 6, RLENGTH - 6) ".yaml") }'
as "$fraud" gtenant apply -y -f "$top/score.yaml" | tail -n 1
as "$shop" gtenant apply -y -f "$top/recommend.yaml" -f "$top/summarise.yaml" | tail -n 1
for of in "$fraud fraud" "$shop shop"; do
  quietly "${of% *}" gctl token --audience gantry-services --tenant "${of#* }" -t 1:00:00 >"$top/tokens/${of#* }"
done
ready() { [ "$(gctl service list --json | python3 -c 'import json, sys; print(sum(r["ready"] for r in json.load(sys.stdin)["rows"]))')" -ge "$1" ]; }
until_so() {  # until_so SECONDS WHAT COMMAND...
  local deadline=$((SECONDS + $1)) what=$2; shift 2
  until "$@"; do
    [ $SECONDS -lt $deadline ] || { echo "this did not come true: $what" >&2; return 1; }
    sleep 0.3
  done
}
until_so 60 "four replicas are ready" ready 4
gctl service list

say "A training job takes two of the cores that are left"
train=$(quietly "$research" gbatch --parsable -A research -J train -c 2 --mem=300M --time=1:00:00 --requeue \
  -o train.out --open-mode=append --wrap "exec python3 train.py model.kept")
runs() { [ "$(gqueue -h -j "$train" -o %T)" = "$1" ]; }
until_so 60 "the training job runs" runs RUNNING

say "A day in $day seconds; at noon score gets a spike, in the afternoon a new version, in the evening a node dies"
python3 "$here/traffic.py" "$gate" "$day" "$top/tokens" "$top/report.json" &
traffic=$!
began=$SECONDS
at() { local left=$((began + day * $1 / 100 - SECONDS)); [ $left -le 0 ] || sleep $left; }
at 66
sed -i 's/model.py 20 v1/model.py 15 v2/' "$top/score.yaml"
as "$fraud" gtenant apply -y -f "$top/score.yaml" | tail -n 1
at 80
victim=$(gctl service show score --json | python3 -c '
import json, sys
rows = json.load(sys.stdin)["rows"][0].get("replicas", [])
print(next((r["node"] for r in rows if r["state"] == "ready"), "node1"))')
echo "$victim is killed, with all that runs on it"
python3 "$here/../../kill-node.py" "$state" "$victim"
lost() { ginfo -h -N -n "$victim" -o %t | grep -q '^down'; }
until_so 60 "$victim counts as lost" lost
# Jobs of a lost node stay where they are until somebody says that it does not come back.
shown gctl dead "$victim" -r "power cut"
wait $traffic

say "The node is repaired"
gantry up --state "$state" >/dev/null
shown gctl resume "$victim"
until_so 60 "four replicas are ready again" ready 4
until_so 60 "the training job runs again" runs RUNNING
until_so 60 "it goes on where it was" grep -q "goes on after epoch" "$top/$research/train.out"
say "What happened to score, and to the training job"
gctl service why score
sed 's/^/    /' "$top/$research/train.out" | tail -n 4

say "Promises, and what they cost"
gctl service list
greport --by tenant 2>/dev/null || greport
left=$(gacct -n -P -D -X -j "$train" -o State | grep -c PREEMPTED || true)
echo "Times that the training job left for the services, and went on later where it was: $left"
[ "$left" -ge 1 ]
python3 - "$top/report.json" <<'CHECK'
import json, sys
for r in json.load(open(sys.argv[1])):
    assert r["failed"] <= r["requests"] / 100, r
CHECK

say "All as it should be. What to type next"
cat <<NEXT
  build/release/bin/gantry up                 a cluster that stays, with a gate
  gtenant apply -f docs/examples/services/http.yaml
  gctl service list;  gctl service why NAME   docs/services.md has the rest
NEXT
