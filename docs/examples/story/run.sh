#!/usr/bin/env bash
# The story: 640 GPUs of 15 teams. The performance team's tuning run holds 200 of them, 160 borrowed,
# when at ten o'clock the fraud team must retrain on 32 GPUs and be done by four. A day in virtual
# time, through the scheduler that a controller has; and at its end a real job over two nodes that talk.
#
# usage: run.sh BIN_DIR [SVG]      (./dev demo story builds and calls it)
set -euo pipefail
bin=$(realpath "${1:?usage: run.sh BIN_DIR [SVG]}")
svg=$(realpath -m "${2:-gantry-story.svg}")
here=$(dirname "$(realpath "$0")")
cd "$here/../tenants/fifteen"
"$bin/gantry" replay --trace ../../story/story.csv --cluster gantry.yaml \
  --policy tenants --policy2 tenants,preemption=off --timeline=fraud --svg "$svg"
cat <<TEXT

A is the policy as it is, B the same without preemption. Fraud's job 102 is the alarm: it starts when
the grace of those who had to leave is over, and is done in time; they go on from their checkpoints.
The GPUs in use by each team over the day are drawn in $svg
TEXT

if [ "$(id -u)" -eq 0 ] && command -v crun >/dev/null && [ -x "$bin/gantry-noded" ]; then
  exec "$here/two-nodes.sh" "$bin"
fi
echo "A real job over two nodes that talk comes next where root runs this, with crun; here it is left out."
