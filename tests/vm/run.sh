#!/bin/sh
# run.sh PROGRAM: runs the tests of PROGRAM under a kernel with cgroup v2 only (boot.sh). Exits with
# 77 if it was skipped.
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
"$here/boot.sh" -m 3000 -t 1700 -s "$share" -- sh -c "modprobe loop; modprobe squashfs; exec $1"
