"""Just enough of HTTP/2 (RFC 9113, RFC 7541) to send what no client sends: each frame as it is told, each
header as a literal without an index and without Huffman's code."""
import socket
import struct

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, RESET, SETTINGS, PING, GOAWAY, CONTINUATION = 0, 1, 3, 4, 6, 7, 9
END_STREAM, END_HEADERS, ACK = 1, 4, 1
# Entries of the static table that are a whole status: their index with the first bit set.
STATUS = {0x88: 200, 0x89: 204, 0x8a: 206, 0x8b: 304, 0x8c: 400, 0x8d: 404, 0x8e: 500}


def number(value, prefix):
    most = (1 << prefix) - 1
    if value < most:
        return bytes([value])
    out, value = bytearray([most]), value - most
    while value >= 128:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


def header(name, value):
    return b"\0" + number(len(name), 7) + name + number(len(value), 7) + value


def block(*headers):
    return b"".join(header(name, value) for name, value in headers)


def frame(kind, flags, stream, payload=b""):
    return struct.pack(">I", len(payload))[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + payload


def request(stream, *headers, end=True):
    return frame(HEADERS, END_HEADERS | (END_STREAM if end else 0), stream, block(*headers))


def get(authority, path=b"/", *more):
    return ((b":method", b"GET"), (b":scheme", b"http"), (b":authority", authority), (b":path", path), *more)


def talk(port, *frames, timeout=1.0):
    """Sends the frames on a new connection. Returns ({stream: status, or 0 if it is none of STATUS}, all
    bodies together, whether the connection was ended with GOAWAY)."""
    status, body, gone, got = {}, b"", False, b""
    with socket.create_connection(("127.0.0.1", port), timeout) as s:
        try:
            s.sendall(PREFACE + frame(SETTINGS, 0, 0) + b"".join(frames))
            while piece := s.recv(65536):
                got += piece
        except OSError:
            pass
    while len(got) >= 9:
        length, kind = int.from_bytes(got[:3], "big"), got[3]
        stream, payload = int.from_bytes(got[5:9], "big"), got[9:9 + length]
        got = got[9 + length:]
        if kind == HEADERS and stream not in status:
            while payload and payload[0] & 0xe0 == 0x20:  # the table gets another size
                payload = payload[1:]
            status[stream] = STATUS.get(payload[0], 0) if payload else 0
        elif kind == DATA:
            body += payload
        elif kind == GOAWAY:
            gone = True
    return status, body, gone
