"""Trains on scikit-learn's handwritten digits, one epoch after the other; after each it keeps what it has, so
that it goes on there when it was sent away.

usage: train.py CHECKPOINT
"""
import os
import pickle
import sys
import time

from sklearn import datasets
from sklearn.linear_model import SGDClassifier

path = sys.argv[1]
digits = datasets.load_digits()
epoch, model = 0, SGDClassifier(random_state=7)
if os.path.exists(path):
    with open(path, "rb") as kept:
        epoch, model = pickle.load(kept)
    print(f"goes on after epoch {epoch}", flush=True)
while True:
    model.partial_fit(digits.data, digits.target, classes=range(10))
    epoch += 1
    with open(path + ".new", "wb") as kept:
        pickle.dump((epoch, model), kept)
    os.rename(path + ".new", path)
    if epoch % 10 == 0:
        print(f"epoch {epoch}: {model.score(digits.data, digits.target):.3f}", flush=True)
    time.sleep(0.2)
