#!/usr/bin/env bash
# The demo: a four-node cluster on this machine, and two ordinary users with real work on it.
#
# usage: run.sh BIN_DIR      (./dev demo builds and calls it)
# As root it makes two users for the time of the demo and removes them again; as an ordinary user
# everything runs as that user. Leaves nothing behind: cluster, users and files go at the end.
# GANTRY_DEMO_KEEP=1 keeps the cluster up and says how to reach it.
set -euo pipefail

bin=$(realpath "${1:?usage: run.sh BIN_DIR}")
here=$(dirname "$(realpath "$0")")
export PATH="$bin:$PATH:$bin/slurm"
top=$(mktemp -d /tmp/gantry-demo.XXXXXX)
chmod 755 "$top"
state=$top/cluster
made_users=()
copied=

if [ -t 1 ]; then bold=$'\e[1m' dim=$'\e[2m' off=$'\e[0m'; else bold='' dim='' off=''; fi
say() { printf '\n%s== %s%s\n' "$bold" "$*" "$off"; }
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
  if [ "${GANTRY_DEMO_KEEP:-0}" = 1 ] && [ $status -eq 0 ]; then
    say "The cluster is still up"
    echo "  export PATH=$bin:$bin/slurm:\$PATH GANTRY_CONF=$GANTRY_CONF"
    echo "  gantry down --state $state     # when you are done"
    [ -z "$copied" ] || echo "  rm -r $copied     # and its programs, which lie where all can run them"
    return
  fi
  "$here/../take-down.sh" "$state" || status=1
  for user in "${made_users[@]}"; do userdel "$user" 2>/dev/null || true; done
  rm -rf "$top" ${copied:+"$copied"}
  [ $status -eq 0 ] || echo "The demo failed (exit status $status); see the last command above." >&2
  exit $status
}
trap finish EXIT
trap 'exit 130' INT TERM

# ---- two people ---------------------------------------------------------------------------------
if [ "$(id -u)" -eq 0 ]; then
  ana=gdemo-ana ben=gdemo-ben
  for user in $ana $ben; do
    if ! id "$user" >/dev/null 2>&1; then
      useradd --no-create-home --home-dir "$top/$user" --shell /bin/bash "$user"
      made_users+=("$user")
    fi
  done
else
  ana=$(id -un) ben=$ana
fi
for user in $ana $ben; do
  mkdir -p "$top/$user"
  cp "$here"/*.py "$here"/train.sh "$here"/sweep.sh "$here"/too-*.sh "$top/$user/"
  [ "$(id -u)" -ne 0 ] || chown -R "$user:" "$top/$user"
done

# The programs may lie below a directory that other users cannot enter, such as root's home.
if [ "$(id -u)" -eq 0 ] && ! runuser -u "$ana" -- test -x "$bin/gantry"; then
  copied=$(mktemp -d /opt/gantry-demo.XXXXXX)
  chmod 755 "$copied"
  cp -a "$bin"/g* "$bin"/slurm "$copied"
  bin=$copied
  export PATH="$bin:$PATH:$bin/slurm"
fi

say "A cluster of four nodes on this machine"
users=()
[ "$(id -u)" -ne 0 ] || users=(--user "$ana,$ben")
gantry up --nodes 4 --cpus 2 --memory 1G --oversubscribe "${users[@]}" --state "$state"
export GANTRY_CONF=$state/client.conf
as "$ana" ginfo

say "$ana trains a model; $ben sweeps nine parameter settings and picks the best of them"
train=$(quietly "$ana" gbatch --parsable train.sh)
echo "$ana: train.sh is job $train"
sweep=$(quietly "$ben" gbatch --parsable sweep.sh)
echo "$ben: sweep.sh is job array $sweep, 9 tasks"
best=$(quietly "$ben" gbatch --parsable --dependency="afterok:$sweep" --job-name=best --mem=100M \
  --time=2:00 --output=best_%j.out --wrap "python3 best.py .")
echo "$ben: best.py is job $best, after all of them"
hungry=$(quietly "$ana" gbatch --parsable too-much-memory.sh)
slow=$(quietly "$ana" gbatch --parsable too-long.sh)
echo "$ana: jobs $hungry (takes more memory than it asked for) and $slow (more time)"

say "The queue moves"
for _ in 1 2 3; do
  gqueue
  sleep 2
done
echo
echo "Why is job $best waiting?"
as "$ben" gctl why "$best"

deadline=$((SECONDS + 240))
while [ -n "$(gqueue -h)" ] && [ $SECONDS -lt $deadline ]; do sleep 0.5; done

say "What they wrote"
for file in "$top/$ana/train_$train.out" "$top/$ben/best_$best.out"; do
  echo "${file##*/}:"
  sed 's/^/    /' "$file"
done
grep -q 'accuracy' "$top/$ana/train_$train.out"
grep -q '9 results' "$top/$ben/best_$best.out"

say "The accounts, with what each job used"
gacct -o JobID%12,JobName,User%10,State%14,ExitCode,Elapsed,TotalCPU,MaxRSS,NodeList
as "$ana" gctl show job "$hungry"
states=$(gacct -n -P -X -o JobIDRaw,State)
expect() {
  grep -q "^$1|$2" <<<"$states" || { echo "job $1 should have ended as $2" >&2; exit 1; }
}
expect "$train" COMPLETED
expect "$best" COMPLETED
expect "$hungry" OUT_OF_MEMORY
expect "$slow" TIMEOUT

say "All as it should be. What to type next"
cat <<NEXT
  build/release/bin/gantry up                 a cluster that stays
  gbatch --wrap 'hostname; nproc'             a first job;  gqueue, gacct, gctl why JOB
  gbatch --help                               every option, with examples
  GANTRY_DEMO_KEEP=1 ./dev demo               this demo, and the cluster stays up
NEXT
