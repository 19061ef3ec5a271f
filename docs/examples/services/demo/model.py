"""Pretends to be a model: answers each request after some milliseconds, a little more or less.

usage: model.py MILLISECONDS VERSION      (PORT says where)
"""
import asyncio
import os
import random
import sys

milliseconds, version = float(sys.argv[1]), sys.argv[2]


async def answer(reader, writer):
    try:
        while head := await reader.readuntil(b"\r\n\r\n"):
            if b" /healthz " not in head.split(b"\r\n", 1)[0]:
                await asyncio.sleep(random.gauss(1, 0.1) * milliseconds / 1000)
            body = f"{version} {os.environ['SLURM_JOB_ID']}\n".encode()
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body))
            await writer.drain()
    except (asyncio.IncompleteReadError, ConnectionError):
        pass
    finally:
        writer.close()


async def main():
    server = await asyncio.start_server(answer, "127.0.0.1", int(os.environ["PORT"]))
    await server.serve_forever()


asyncio.run(main())
