#!/usr/bin/env bash
# Runs the benches of one build, one table after the other. `./dev bench` calls it with the release
# build.
set -euo pipefail
here=$(dirname "$(readlink -f "$0")")

# The columns are: name | ninja targets that the bench needs | what it measures
benches() {
  cat <<'TABLE'
system     | programs bench_load bench_bare | daemons under load: submits, listings, tenants, containers
beside     | programs                    | sbatch beside a real Slurm, if there is one ($GANTRY_SLURM_ROOT)
steps      | programs bench_poll         | srun: starts, throughput, clients that poll
store      | bench_store                 | the store beside the bare disk
sched      | bench_sched                 | plans of 100,000 jobs on 10,000 nodes
tenants    | bench_tenants               | the same jobs of 1,000 tenants
preempt    | bench_preempt               | searches for victims
trace      | bench_trace bin/gantry-replay | public workload logs, by the shipped planner
variations | bin/gantry-replay           | 50 random variations of one log; takes an hour, runs by name only
listing    | bench_listing               | each listing on 10,000 nodes with 1,000 tenants
containers | bench_containers            | starts of containers beside bare crun
walls      | programs                    | all layers between tenants together, in a job's start
gpu        | bench_gpu                   | what GPUs cost a node daemon
mig        | bench_mig                   | plans of MIG slices
slices     | bench_slices                | the placement of slices
money      | bench_money                 | the ledger, with each job and to read
network    | programs bench_network      | what the network of a job costs its node
services   | bench_services              | promises of 100 services for six hours, beside Kubernetes' rule
gate       | bin/gantry-gate bin/gantry-shim bench_http_load | what a gate adds to a request, beside nginx alone
finished   | bench_finished              | accounting of ten million jobs
TABLE
}

usage() {
  cat <<'TEXT'
usage: bench/run.sh BUILD_DIR [NAME ...]   run these benches, or all but variations
       bench/run.sh --needs [NAME ...]     print the targets of the build that they need
       bench/run.sh --help

Tables go to the screen and to BUILD_DIR/bench-NAME.txt. The machine should have nothing else to do.

TEXT
  benches | awk -F ' *[|] *' '{ printf "  %-11s %s\n", $1, $3 }'
}

case ${1:---help} in
  -h | --help) usage; exit 0 ;;
esac
build=$1
shift
names=("$@")
if [ ${#names[@]} -eq 0 ]; then
  mapfile -t names < <(benches | awk '$1 != "variations" { print $1 }')
fi
for name in "${names[@]}"; do
  if ! benches | awk -v name="$name" '$1 == name { found = 1 } END { exit !found }'; then
    echo "bench/run.sh: '$name' is no bench; there are" \
      "$(benches | awk '{ printf "%s%s", sep, $1; sep = ", " }')" >&2
    exit 2
  fi
done
if [ "$build" = --needs ]; then
  for name in "${names[@]}"; do
    benches | awk -F ' *[|] *' -v name="$name" '$1 == name { print $2 }'
  done | xargs -n 1 | sort -u
  exit 0
fi

for name in "${names[@]}"; do
  out=$build/bench-$name.txt
  printf '== %s\n' "$name" >&2
  case $name in
    system) python3 "$here/system/run.py" "$build" --out "$out" ;;
    beside)
      python3 "$here/system/beside_slurm.py" "$build" \
        ${GANTRY_SLURM_ROOT:+--slurm-root "$GANTRY_SLURM_ROOT"} | tee "$out" ;;
    steps) python3 "$here/steps/run.py" "$build" --out "$out" ;;
    store) "$build/bin/bench_store" --dir "$build" | tee "$out" ;;
    trace) { "$build/bin/bench_trace"; "$here/trace/tenants.sh" "$build"; } | tee "$out" ;;
    variations) "$here/trace/variations.py" "$build" | tee "$out" ;;
    finished)
      dir=$(mktemp -d "$build/finished.XXXXXX")
      "$build/bin/bench_finished" "$dir" | tee "$out"
      rm -rf "$dir" ;;
    gate) python3 "$here/services/gate.py" "$build" --out "$out" ;;
    walls) python3 "$here/walls/starts.py" "$build" | tee "$out" ;;
    network) { "$build/bin/bench_network"; "$here/network/starts.py" "$build"; } | tee "$out" ;;
    *) "$build/bin/bench_$name" | tee "$out" ;;
  esac
done
