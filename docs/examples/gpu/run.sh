#!/usr/bin/env bash
# The demo of GPUs: four nodes with eight H100 each, which a stand-in for the driver pretends, and
# three tenants with whole GPUs and MIG slices on them. The jobs and their containers are real.
#
# usage: run.sh BIN_DIR      (./dev demo gpu builds and calls it)
# Needs root: device files are made, and users for the time of the demo. Leaves nothing behind.
# GANTRY_DEMO_KEEP=1 keeps the cluster up and says how to reach it. GANTRY_DEMO_PACE=25 has most jobs
# last a quarter of their time: for tests, nobody reads along.
set -euo pipefail

bin=$(realpath "${1:?usage: run.sh BIN_DIR}")
here=$(dirname "$(realpath "$0")")
if [ "$(id -u)" -ne 0 ]; then
  echo "The demo of GPUs makes device files and users: run it as root." >&2
  exit 1
fi
library=$(dirname "$bin")/nvml/libnvidia-ml.so.1
export PATH="$bin:$PATH"
top=$(mktemp -d /tmp/gantry-gpu-demo.XXXXXX)
chmod 755 "$top"
state=$top/cluster
pace=${GANTRY_DEMO_PACE:-100}
people="gdemo-vision gdemo-speech gdemo-robots"
made_users=()
copied=

if [ -t 1 ]; then bold=$'\e[1m' dim=$'\e[2m' off=$'\e[0m'; else bold='' dim='' off=''; fi
told=
say() {
  told=$*
  printf '\n%s== %s%s\n' "$bold" "$told" "$off"
}
shown() { printf '%s# %s%s\n' "$dim" "$*" "$off"; "$@"; }
# job USER TENANT NAME SECONDS OPTIONS...: prints the number of the job
job() {
  local user=$1 tenant=$2 name=$3 seconds=$4; shift 4
  (cd "$top/$user" && runuser -u "$user" -- env PATH="$PATH" GANTRY_CONF="$GANTRY_CONF" \
    gbatch --parsable -p "$tenant" -J "$name" --mem=8M --time=5:00 --requeue -o /dev/null "$@" \
    --wrap "sleep $seconds")
}
fake() { gantry-fake-gpu "$top/gpus/$1/fleet.json" "${@:2}"; }
pause() { [ ! -t 1 ] || sleep "$1"; }  # for who reads along
some() { [ -n "$(gqueue -h -o %i "$@")" ]; }
# How many jobs of each tenant run and wait.
tenants() {
  gqueue -h -t R,PD,CF -o '%P %t' | awk '
    {n[$1 " " ($2 == "PD" ? "waiting" : "running")]++}
    END {printf "jobs running and waiting:"
         for (t = split("vision speech robots", name, " "); t > 0; t--)
           printf " %s %d+%d", name[t], n[name[t] " running"], n[name[t] " waiting"]
         print ""}'
}
# while_so SECONDS COMMAND...: waits while the command is true, for so long at most. On a terminal
# the GPUs are drawn meanwhile: all of them where there is room, else those in MIG mode.
while_so() {
  local deadline=$((SECONDS + $1)); shift
  while "$@" && [ $SECONDS -lt $deadline ]; do
    if [ -t 1 ]; then frame; fi
    sleep 0.5
  done
  if [ -t 1 ]; then frame; else shown ginfo --layout; tenants; fi
}
frame() {
  local from=0 text
  [ "$(tput lines 2>/dev/null || echo 24)" -ge 37 ] || from=4
  text=$(ginfo --layout | awk -v from=$from '$2 >= from'; echo; tenants)
  printf '\e[H\e[J%s== %s%s\n%s\n' "$bold" "$told" "$off" "$text"
}

finish() {
  local status=$?
  trap - EXIT INT TERM
  if [ "${GANTRY_DEMO_KEEP:-0}" = 1 ] && [ $status -eq 0 ]; then
    say "The cluster is still up"
    echo "  export PATH=$bin:\$PATH GANTRY_CONF=$GANTRY_CONF"
    echo "  gantry down --state $state     # when you are done"
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

# ---- people, and what pretends to be GPUs --------------------------------------------------------
for user in $people; do
  id "$user" >/dev/null 2>&1 || {
    useradd --no-create-home --home-dir "$top/$user" --shell /bin/bash "$user"
    made_users+=("$user")
  }
  install -d -o "$user" "$top/$user"
done
if ! runuser -u "${people%% *}" -- test -x "$bin/gantry"; then
  copied=$(mktemp -d /opt/gantry-demo.XXXXXX)
  chmod 755 "$copied"
  cp -a "$bin"/g* "$copied"
  bin=$copied
  export PATH="$bin:$PATH"
fi
for i in 1 2 3 4; do
  mkdir -p "$top/gpus/node$i"
  cp "$library" "$top/gpus/node$i"
  cat >"$top/gpus/node$i/fleet.json" <<END
{"driver": "550.54.15", "cuda": 12040, "seed": $i,
 "gpus": [{"model": "h100", "count": 4}, {"model": "h100", "count": 4, "mig": true}]}
END
  fake "node$i" init
  fake "node$i" tree "$top/gpus/node$i"
done

say "Four nodes with eight H100 each, four of them in MIG mode; three tenants"
up() { gantry up --state "$state" "$@" >"$top/up" 2>&1 || { cat "$top/up" >&2; return 1; }; }
up --nodes 4 --cpus 24 --memory 1G --oversubscribe --user "${people// /,}"
gantry down --state "$state" >/dev/null
sed -i -e 's/memory: 1G/gpus: 8, gpu_model: h100, gpu_sharing: time-slicing, memory: 1G/' \
  -e "s|^noded:\$|noded:\n  gpu_library: $top/gpus/%n/libnvidia-ml.so.1\n  gpu_root: $top/gpus/%n|" \
  "$state/gantry.yaml"
up
export GANTRY_CONF=$state/client.conf
gtenant apply -f "$here/tenants.yaml" --yes >/dev/null
deadline=$((SECONDS + 60))
until [ "$(ginfo --gpus -h -o %g 2>/dev/null | wc -l)" -eq 32 ] || [ $SECONDS -ge $deadline ]; do
  sleep 0.2
done
shown ginfo --layout -n node1

say "Jobs: whole GPUs and halves for vision, slices for speech and robots"
{
  for i in 1 2 3 4 5 6; do job gdemo-vision vision train"$i" $(((30 + 5 * i) * pace / 100)) --gpus-per-node=2; done
  for i in 1 2 3; do job gdemo-vision vision try"$i" $(((30 + 5 * i) * pace / 100)) --gpus=0.5; done
  for i in $(seq 14); do job gdemo-robots robots sim"$i" $(((30 + 2 * i) * pace / 100)) --gres=mig:3g.40gb:1; done
  for i in $(seq 16); do job gdemo-robots robots map"$i" $(((25 + 2 * i) * pace / 100)) --gres=mig:2g.20gb:1; done
  for i in $(seq 28); do job gdemo-speech speech infer"$i" $(((20 + i) * pace / 100)) --gres=mig:1g.10gb:1; done
} | wc -l | sed 's/$/ jobs/'
while_so 60 some -t PD,CF

say "The layout follows the queue: GPUs are emptied for large slices"
large=$(for i in 1 2 3; do job gdemo-robots robots large"$i" 15 --gres=mig:7g.80gb:1; done)
sleep 2
shown gqueue -o '%.5i %.10P %.8j %.2t %R' -j "${large//$'\n'/,}"
gctl why "${large%%$'\n'*}"
pause 8
while_so 120 some -t PD -j "${large//$'\n'/,}"

say "A GPU falls off the bus under way: its jobs move, and no others"
victim=$(job gdemo-vision vision victim 20 --gpus-per-node=1)
beside=$(job gdemo-vision vision beside 45 --gpus-per-node=1)
deadline=$((SECONDS + 60))
until [ "$(gqueue -h -t R -j "$victim,$beside" -o %i | wc -l)" -eq 2 ] || [ $SECONDS -ge $deadline ]; do
  sleep 0.2
done
read -r node gpu < <(ginfo --gpus -h -o '%N %g %j' | awk -v j="$victim" '$3 == j {print $1, $2}')
echo "job $victim is on GPU $gpu of $node"
shown fake "$node" xid "$gpu" 79
until gctl show job "$victim" | grep -q 'Restarts=1' || [ $SECONDS -ge $deadline ]; do sleep 0.1; done
until [ "$(gqueue -h -t R -j "$victim" -o %i)" ] || [ $SECONDS -ge $deadline ]; do sleep 0.1; done
gctl show job "$victim" | grep -Eo '(^| )(Restarts|NodeList)=[^ ]*' | tr '\n' ' '
echo
gctl show job "$beside" | grep -q 'Restarts=0' && echo "job $beside runs on where it was"
shown gantry check || true
shown ginfo --layout -n "$node"

pause 8
say "An operator takes a GPU out of service: its job ends in peace"
read -r node gpu < <(ginfo --gpus -h -o '%N %g %j' | awk -v j="$beside" '$3 == j {print $1, $2}')
shown gctl drain "$node" --gpu "$gpu" -r "a noisy fan"
shown ginfo --gpus -n "$node" -o '%4g %10t %5j %e' | awk 'NR == 1 || /drain|fail/'
shown gctl resume "$node" --gpu "$gpu"

pause 8
say "All of them end"
while_so 240 some
if some; then
  echo "These jobs have not ended:" >&2
  gqueue -o '%.5i %.10P %.8j %.2t %R' >&2
  exit 1
fi
gacct -X -n -a -o State%12 | sort | uniq -c
if gacct -X -n -a -P -o State | grep -qv COMPLETED; then exit 1; fi
say "Done"
