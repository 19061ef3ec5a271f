"""Makes poisoned images: poison.py KIND OUT GOOD writes the OCI layout OUT, with tag t, from the
layout GOOD, tag t.

A user could have written each of these images by hand. Most keep GOOD's layers, so that a job could
run, and add a layer with a file etc/marker that says "poisoned".
"""
import gzip
import hashlib
import io
import json
import os
import shutil
import sys
import tarfile

INDEX = "application/vnd.oci.image.index.v1+json"
MANIFEST = "application/vnd.oci.image.manifest.v1+json"
CONFIG = "application/vnd.oci.image.config.v1+json"
LAYER = "application/vnd.oci.image.layer.v1.tar+gzip"
REF = "org.opencontainers.image.ref.name"

kind, out, good = sys.argv[1:4]


def path_of(digest, layout=None):
    return os.path.join(layout or out, "blobs", digest.replace(":", "/"))


def put(data):
    digest = "sha256:" + hashlib.sha256(data).hexdigest()
    if not os.path.lexists(path_of(digest)):
        with open(path_of(digest), "wb") as file:
            file.write(data)
    return digest


def load(digest):
    with open(path_of(digest), "rb") as file:
        return json.load(file)


def described(media_type, data):
    return {"mediaType": media_type, "digest": put(data), "size": len(data)}


def member(tar, name, data=b"", **fields):
    info = tarfile.TarInfo(name)
    info.size = len(data)
    for key, value in fields.items():
        setattr(info, key, value)
    tar.addfile(info, io.BytesIO(data))


def layer_of(fill):
    """Makes the tar file of a layer; returns its diff_id, and its bytes packed by gzip."""
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w", format=tarfile.PAX_FORMAT) as tar:
        fill(tar)
    data = raw.getvalue()
    return "sha256:" + hashlib.sha256(data).hexdigest(), gzip.compress(data, 1, mtime=0)


def poisoned(tar):
    member(tar, "etc/marker", b"poisoned\n", mode=0o644)


def escapes(tar):
    top = os.path.dirname(out)
    member(tar, "../" * 20 + top.lstrip("/") + "/escaped1", b"x", mode=0o666)
    member(tar, "away", type=tarfile.SYMTYPE, linkname=top)
    member(tar, "away/escaped2", b"x", mode=0o666)
    member(tar, "up", type=tarfile.SYMTYPE, linkname="../" * 20 + top.lstrip("/"))
    member(tar, "up/escaped3", b"x", mode=0o666)
    member(tar, "shadow", type=tarfile.LNKTYPE, linkname="../" * 20 + "etc/shadow")


def specials(tar):
    member(tar, "null", type=tarfile.CHRTYPE, devmajor=1, devminor=3, mode=0o666)
    member(tar, "mem", type=tarfile.CHRTYPE, devmajor=1, devminor=1, mode=0o666)
    member(tar, "disk", type=tarfile.BLKTYPE, devmajor=8, devminor=0, mode=0o666)
    member(tar, "become", b"#!/bin/sh\nid -u\n", mode=0o6755)


def large(tar):
    member(tar, "zeros", bytes(96 << 20), mode=0o644)


def many(tar):
    for number in range(20_000):
        member(tar, f"many/{number}")


def deep(tar):
    member(tar, "/".join(["d"] * 400) + "/x")


def image(fill=poisoned, layer_type=LAYER):
    """Makes GOOD's image with one more layer; returns the manifest as an object."""
    diff_id, layer = layer_of(fill)
    manifest = load(good_entry["digest"])
    config = load(manifest["config"]["digest"])
    config["rootfs"]["diff_ids"].append(diff_id)
    config.pop("history", None)
    manifest["config"] = described(CONFIG, json.dumps(config).encode())
    manifest["layers"].append(described(layer_type, layer))
    return manifest


def entry(manifest, media_type=MANIFEST):
    text = manifest if isinstance(manifest, bytes) else json.dumps(manifest).encode()
    return dict(described(media_type, text), annotations={REF: "t"})


def write_index(*texts):
    """Writes an index.json with one `manifests` member for each text, so that the key appears more
    than once."""
    members = ",".join(f'"manifests":[{t}]' for t in texts)
    with open(f"{out}/index.json", "w", encoding="utf-8") as file:
        file.write(f'{{"schemaVersion":2,{members}}}')


def one(*args, **more):
    write_index(json.dumps(entry(image(*args, **more))))


def two_manifests():
    write_index(json.dumps(good_entry), json.dumps(entry(image())))


def two_manifests_turned():
    write_index(json.dumps(entry(image())), json.dumps(good_entry))


def swapped_manifest():
    evil = json.dumps(image()).encode()
    with open(path_of(good_entry["digest"]), "wb") as file:
        file.write(evil)
    write_index(json.dumps(dict(good_entry, size=len(evil))))


def swapped_layer():
    first = load(good_entry["digest"])["layers"][0]["digest"]
    os.truncate(path_of(first), 0)
    with open(path_of(first), "wb") as file:
        file.write(layer_of(poisoned)[1])
    write_index(json.dumps(good_entry))


def linked_layer():
    first = load(good_entry["digest"])["layers"][0]["digest"]
    os.unlink(path_of(first))
    os.symlink("/etc/shadow", path_of(first))
    write_index(json.dumps(good_entry))


def two_layers_members():
    evil = json.dumps(image())
    honest = json.dumps(load(good_entry["digest"])["layers"])
    text = evil[:-1] + f',"layers":{honest}}}'
    write_index(json.dumps(entry(text.encode())))


def nested_index():
    inner = {"schemaVersion": 2, "mediaType": INDEX, "manifests": [entry(image())]}
    outer = {"schemaVersion": 2, "mediaType": INDEX, "manifests": [entry(inner, INDEX)]}
    write_index(json.dumps(entry(outer, INDEX)))


os.makedirs(out)
shutil.copytree(f"{good}/blobs", f"{out}/blobs")
shutil.copy(f"{good}/oci-layout", out)
with open(f"{good}/index.json", encoding="utf-8") as index:
    good_entry = json.load(index)["manifests"][0]
{
    "two-manifests": two_manifests,
    "two-manifests-turned": two_manifests_turned,
    "swapped-manifest": swapped_manifest,
    "swapped-layer": swapped_layer,
    "linked-layer": linked_layer,
    "two-layers-members": two_layers_members,
    "nested-index": nested_index,
    "unknown-type": lambda: one(layer_type="application/vnd.unknown.layer"),
    "marked": one,
    "escapes": lambda: one(escapes),
    "specials": lambda: one(specials),
    "large": lambda: one(large),
    "many": lambda: one(many),
    "deep": lambda: one(deep),
}[kind]()
