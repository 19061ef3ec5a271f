#!/usr/bin/env bash
# Ends and removes the cluster of a demo, whatever state the demo has left it in.
#
# usage: take-down.sh STATE
# Jobs may be unable to end: their node is dead, or a service starts other replicas for those that are
# cancelled. `gantry down` gives up then, so the daemons and jobs are killed, and it removes what is left:
# cgroups, mounts, files.
state=${1:?usage: take-down.sh STATE}
[ -d "$state" ] || exit 0
gantry down --cancel --remove --state "$state" >/dev/null 2>&1 && exit
python3 "$(dirname "$0")/kill-node.py" "$state"
gantry down --remove --state "$state" >/dev/null
