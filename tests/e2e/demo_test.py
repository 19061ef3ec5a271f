#!/usr/bin/env python3
"""Runs docs/examples/demo/run.sh with these programs; the demo must end well.

usage: demo_test.py BIN_DIR
"""
import os
import subprocess
import sys

from cluster import SKIPPED, arguments, cannot_run, processes

# Only Debian's own python3, which has scikit-learn, may be found on this PATH.
PATH = "/usr/local/sbin:/usr/sbin:/usr/bin:/sbin:/bin"
RUN = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../docs/examples/demo/run.sh")


def of_the_demo():
    return [p for p, argv in processes().items() if any(b"/tmp/gantry-demo." in a for a in argv)]


def main():
    args = arguments(__doc__)
    why = cannot_run()
    if not why and subprocess.run(
            ["/usr/bin/python3", "-c", "import sklearn"], check=False, capture_output=True).returncode:
        why = "scikit-learn (python3-sklearn) is not installed"
    if why:
        print(f"skipped: {why}")
        return SKIPPED
    before = of_the_demo()  # a person may be running a demo at the same time
    done = subprocess.run(["bash", RUN, args.bin_dir], stdin=subprocess.DEVNULL, text=True,
                          env=dict(os.environ, PATH=PATH), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=560, check=False)
    print(done.stdout)
    left = [p for p in of_the_demo() if p not in before]
    if left:
        print(f"FAIL: processes of the demo are left: {left}")
    return 1 if done.returncode or left else 0


if __name__ == "__main__":
    sys.exit(main())
