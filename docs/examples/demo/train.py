"""Trains one classifier on scikit-learn's handwritten digits and reports its accuracy.

usage: train.py C GAMMA [RESULT.json]
The data set (1,797 images of 8x8 pixels) ships with Debian's python3-sklearn: no download.
"""
import json
import os
import sys
import time

from sklearn import datasets, svm
from sklearn.model_selection import train_test_split

c, gamma = float(sys.argv[1]), float(sys.argv[2])
digits = datasets.load_digits()
train_x, test_x, train_y, test_y = train_test_split(
    digits.data, digits.target, test_size=0.3, random_state=7)
started = time.time()
model = svm.SVC(C=c, gamma=gamma).fit(train_x, train_y)
accuracy = model.score(test_x, test_y)
print(f"node {os.environ.get('SLURMD_NODENAME', '?')}, cores {sorted(os.sched_getaffinity(0))}, "
      f"uid {os.getuid()}: C={c:g} gamma={gamma:g} accuracy {accuracy:.4f} "
      f"in {time.time() - started:.2f} s")
if len(sys.argv) > 3:
    with open(sys.argv[3], "w", encoding="utf-8") as out:
        json.dump({"C": c, "gamma": gamma, "accuracy": accuracy}, out)
