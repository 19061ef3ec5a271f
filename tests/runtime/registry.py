"""A read-only image registry on loopback that serves an OCI layout: registry.py LAYOUT prints its port.

It has just enough of the distribution API for skopeo: the version check, manifests by tag or digest, blobs.
"""
import http.server
import json
import sys

layout = sys.argv[1]


def blob(digest):
    with open(f"{layout}/blobs/{digest.replace(':', '/')}", "rb") as file:
        return file.read()


def digest_of(tag):
    with open(f"{layout}/index.json", encoding="utf-8") as file:
        for entry in json.load(file)["manifests"]:
            if entry["annotations"]["org.opencontainers.image.ref.name"] == tag:
                return entry["digest"]
    raise FileNotFoundError(tag)


class Handler(http.server.BaseHTTPRequestHandler):
    def log_message(self, *_):
        pass

    def do_HEAD(self):
        self.answer(False)

    def do_GET(self):
        self.answer(True)

    def answer(self, with_body):
        name = self.path.split("/")[-1]
        kind = "application/octet-stream"
        try:
            if self.path == "/v2/":
                data = b"{}"
            elif "/manifests/" in self.path:
                kind = "application/vnd.oci.image.manifest.v1+json"
                data = blob(name if name.startswith("sha256:") else digest_of(name))
            else:
                data = blob(name)
        except FileNotFoundError:
            self.send_error(404)
            return
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        if with_body:
            self.wfile.write(data)


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
print(server.server_address[1], flush=True)
server.serve_forever()
