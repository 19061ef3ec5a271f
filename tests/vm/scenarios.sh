#!/bin/sh
# scenarios.sh BIN_DIR RESULTS FIRST COUNT [CHUNK]: runs vm_scenarios with COUNT seeds from FIRST on, CHUNK
# (20) in one boot of a virtual machine (boot.sh), and appends what each has shown to RESULTS at once. Seeds
# that RESULTS has already are not run again, so a run that was cut goes on where it was. Prints the table
# of all of RESULTS; exits with 0 if the aims are met, 77 if it was skipped.
set -u
[ "$(id -u)" = 0 ] || { echo "SKIPPED: needs root" >&2; exit 77; }
here=$(dirname "$(realpath "$0")")
bin=$(realpath "$1") results=$2 next=$3 last=$(($3 + $4)) chunk=${5:-20}
share=$(mktemp -d "${TMPDIR:-/tmp}/gantry-vm-share.XXXXXX")
trap 'rm -rf "$share"' EXIT
touch "$results"
while [ "$next" -lt "$last" ]; do
  if grep -q "^scenario $next " "$results"; then next=$((next + 1)); continue; fi
  count=0
  while [ $count -lt "$chunk" ] && [ $((next + count)) -lt "$last" ] &&
    ! grep -q "^scenario $((next + count)) " "$results"; do count=$((count + 1)); done
  "$here/boot.sh" -m 2500 -d 256 -b 12000000 -n 2 -e 24 -t $((count * 60 + 180)) -s "$share" -- \
    "$bin/vm_scenarios" /dev/vda "$next" "$count" >> "$results"
  status=$?
  [ $status = 77 ] && exit 77
  [ $status = 0 ] || echo "scenarios.sh: seeds $next to $((next + count - 1)): status $status" >&2
  next=$((next + count))
done
"$bin/vm_scenarios" --sum "$results"
