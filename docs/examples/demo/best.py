"""Picks the best of the sweep's result files. usage: best.py DIR"""
import glob
import json
import sys

results = []
for name in glob.glob(f"{sys.argv[1]}/result_*.json"):
    with open(name, encoding="utf-8") as f:
        results.append(json.load(f))
results.sort(key=lambda r: -r["accuracy"])
print(f"{len(results)} results; the best three:")
for r in results[:3]:
    print(f"  accuracy {r['accuracy']:.4f}  C={r['C']:g} gamma={r['gamma']:g}")
