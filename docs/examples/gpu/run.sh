#!/usr/bin/env bash
# The demo of GPUs: four nodes with eight H100 each, which a stand-in for the driver pretends, and
# three tenants with whole GPUs and MIG slices on them. The jobs and their containers are real.
#
# usage: run.sh BIN_DIR      (./dev demo gpu builds and calls it)
# Needs root: device files are made, and users for the time of the demo. Leaves nothing behind.
# GANTRY_DEMO_KEEP=1 keeps the cluster up and says how to reach it.
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
people="gdemo-vision gdemo-speech gdemo-robots"
made_users=()
copied=

if [ -t 1 ]; then bold=$'\e[1m' dim=$'\e[2m' off=$'\e[0m'; else bold='' dim='' off=''; fi
say() { printf '\n%s== %s%s\n' "$bold" "$*" "$off"; }
shown() { printf '%s# %s%s\n' "$dim" "$*" "$off"; "$@"; }
# job USER TENANT NAME SECONDS OPTIONS...: prints the number of the job
job() {
  local user=$1 tenant=$2 name=$3 seconds=$4; shift 4
  (cd "$top/$user" && runuser -u "$user" -- env PATH="$PATH" GANTRY_CONF="$GANTRY_CONF" \
    gbatch --parsable -p "$tenant" -J "$name" --mem=8M --time=5:00 --requeue -o /dev/null "$@" \
    --wrap "sleep $seconds")
}
fake() { gantry-fake-gpu "$top/gpus/$1/fleet.json" "${@:2}"; }

finish() {
  local status=$?
  trap - EXIT INT TERM
  if [ "${GANTRY_DEMO_KEEP:-0}" = 1 ] && [ $status -eq 0 ]; then
    say "The cluster is still up"
    echo "  export PATH=$bin:\$PATH GANTRY_CONF=$GANTRY_CONF"
    echo "  gantry down --state $state     # when you are done"
    return
  fi
  gantry down --cancel --remove --state "$state" >/dev/null 2>&1 || true
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

say "A cluster of four nodes with eight H100 each, four of them in MIG mode; three tenants"
gantry up --nodes 4 --cpus 24 --memory 1G --oversubscribe --user "${people// /,}" \
  --state "$state" >/dev/null
gantry down --state "$state" >/dev/null
sed -i -e 's/memory: 1G/gpus: 8, gpu_model: h100, gpu_sharing: time-slicing, memory: 1G/' \
  -e "s|^noded:\$|noded:\n  gpu_library: $top/gpus/%n/libnvidia-ml.so.1\n  gpu_root: $top/gpus/%n|" \
  "$state/gantry.yaml"
gantry up --state "$state" >/dev/null
export GANTRY_CONF=$state/client.conf
gtenant apply -f "$here/tenants.yaml" --yes >/dev/null
deadline=$((SECONDS + 60))
until [ "$(ginfo --gpus -h -o %g 2>/dev/null | wc -l)" -eq 32 ] || [ $SECONDS -ge $deadline ]; do
  sleep 0.2
done
shown ginfo --layout -n node1

say "Whole GPUs and halves of them for vision, slices for speech, slices of all sizes for robots"
{
  for i in 1 2 3 4 5 6; do job gdemo-vision vision train$i $((30 + 5 * i)) --gpus-per-node=2; done
  for i in 1 2 3; do job gdemo-vision vision try$i $((30 + 5 * i)) --gpus=0.5; done
  for i in $(seq 14); do job gdemo-robots robots sim$i $((30 + 2 * i)) --gres=mig:3g.40gb:1; done
  for i in $(seq 16); do job gdemo-robots robots map$i $((25 + 2 * i)) --gres=mig:2g.20gb:1; done
  for i in $(seq 28); do job gdemo-speech speech infer$i $((20 + i)) --gres=mig:1g.10gb:1; done
} | tr '\n' ' '
echo
deadline=$((SECONDS + 60))
while [ -n "$(gqueue -h -t PD,CF -o %i)" ] && [ $SECONDS -lt $deadline ]; do sleep 0.5; done
shown ginfo --layout

say "The layout follows the queue: large slices are wanted, and GPUs are emptied for them"
large=$(for i in 1 2 3; do job gdemo-robots robots large$i 15 --gres=mig:7g.80gb:1; done)
sleep 2
shown gqueue -o '%.5i %.10P %.8j %.2t %R' -j "${large//$'\n'/,}"
gctl why "${large%%$'\n'*}"
deadline=$((SECONDS + 120))
until [ -n "$(gqueue -h -t R -j "${large//$'\n'/,}" -o %i)" ] || [ $SECONDS -ge $deadline ]; do
  sleep 0.5
done
shown ginfo --layout

say "A GPU falls off the bus under way: its jobs move, and no others"
victim=$(job gdemo-vision vision victim 20 --gpus-per-node=1)
beside=$(job gdemo-vision vision beside 20 --gpus-per-node=1)
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
shown ginfo --drift | grep -E 'FOUND|xid'
gantry check || true
shown ginfo --layout -n "$node"

say "All of them end"
deadline=$((SECONDS + 240))
while [ -n "$(gqueue -h)" ] && [ $SECONDS -lt $deadline ]; do sleep 0.5; done
gacct -X -n -a -o State%12 | sort | uniq -c
[ -z "$(gacct -X -n -a -P -o State | grep -v COMPLETED)" ]
say "Done"
