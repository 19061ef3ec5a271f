#!/usr/bin/env bash
# All benches of one build, one table after the other; called by ./dev bench.
#
# usage: bench/run.sh BUILD_DIR [NAME ...]     (default: all but variations, which takes an hour)
# Names: system steps store sched tenants preempt trace variations containers gpu
# mig slices money finished
# Tables go to the screen and to BUILD_DIR/bench-NAME.txt. The machine should have nothing else to do.
set -euo pipefail
build=${1:?usage: bench/run.sh BUILD_DIR [NAME...]}
shift
here=$(dirname "$(readlink -f "$0")")
names=("$@")
[ ${#names[@]} -gt 0 ] || names=(system steps store sched tenants preempt trace containers gpu mig slices money finished)
for name in "${names[@]}"; do
  out=$build/bench-$name.txt
  printf '== %s\n' "$name" >&2
  case $name in
    system) python3 "$here/system/run.py" "$build" --out "$out" ;;
    steps) python3 "$here/steps/run.py" "$build" --out "$out" ;;
    store) "$build/bin/bench_store" --dir "$build" | tee "$out" ;;
    trace) { "$build/bin/bench_trace"; "$here/trace/tenants.sh" "$build"; } | tee "$out" ;;
    variations) "$here/trace/variations.py" "$build" | tee "$out" ;;
    finished)
      dir=$(mktemp -d "$build/finished.XXXXXX")
      "$build/bin/bench_finished" "$dir" | tee "$out"
      rm -rf "$dir" ;;
    sched | tenants | preempt | containers | gpu | mig | slices | money) "$build/bin/bench_$name" | tee "$out" ;;
    *)
      echo "bench/run.sh: '$name' is no bench; there are system, steps, store, sched, tenants, preempt," \
        "trace, variations, containers, gpu, mig, slices, money and finished" >&2
      exit 2 ;;
  esac
done
