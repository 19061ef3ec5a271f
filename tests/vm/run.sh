#!/bin/sh
# run.sh PROGRAM [DISK_MIB [BYTES [ARG...]]]: runs PROGRAM under a kernel with cgroup v2 only (boot.sh), with
# an empty scratch disk of that size, which moves so much in a second, as its argument if one is asked
# for, and these further ones. GANTRY_VM_LIMIT: seconds that it may take (1700). Exits with 77 if it was
# skipped.
set -u
[ "$(id -u)" = 0 ] || { echo "SKIPPED: needs root" >&2; exit 77; }
here=$(dirname "$(realpath "$0")")
case $1 in
  /tmp/* | /var/tmp/*)  # the guest has its own temporary folders, and must see the build there
    share=$(dirname "$(dirname "$1")") ;;
  *)
    share=$(mktemp -d "${TMPDIR:-/tmp}/gantry-vm-share.XXXXXX")
    trap 'rm -rf "$share"' EXIT ;;
esac
disk=${2:+/dev/vda} program=$1 size=${2:-0} rate=${3:-0} more=
[ $# -gt 3 ] && { shift 3; more="$*"; }
asked=${GANTRY_TRANSPORT:+env GANTRY_TRANSPORT=$GANTRY_TRANSPORT}
"$here/boot.sh" -m 3000 -d "$size" -b "$rate" -t "${GANTRY_VM_LIMIT:-1700}" -s "$share" -- \
  sh -c "modprobe loop; modprobe squashfs; exec $asked $program $disk $more"
