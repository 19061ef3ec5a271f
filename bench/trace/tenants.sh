#!/usr/bin/env bash
# Many tenants on public logs, compared with plain EASY on the same input: Philly on 720 and on 640
# GPUs with 15 tenants (nominal quota = mean use), and the other logs that lie beside the project.
#
# usage: bench/trace/tenants.sh BUILD_DIR      (skips if the traces are not there)
set -euo pipefail
replay=${1:?usage: tenants.sh BUILD_DIR}/bin/gantry-replay
traces=$(dirname "$(readlink -f "$0")")/../../../shared/traces
[ -d "$traces" ] || { echo "skipped: no $traces"; exit 0; }
for cluster in 90x8gpu 80x8gpu; do
  printf '\n== Philly on %s\n' "$cluster"
  "$replay" --quiet --trace "$traces/philly.csv.gz" --cluster "$cluster" \
    --policy tenants=mean --policy2 reservations=1
done
printf '\n== KTH-SP2 on 100 processors\n'
"$replay" --quiet --brief --trace "$traces/pyss_easy_KTH-SP2.swf.gz" --cluster 1x100cpu \
  --policy reservations=1 --policy2 reservations=all,promises=on
