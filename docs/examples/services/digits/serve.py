"""A PyTorch model behind HTTP, which answers several requests by one run of the model.

POST /predict with a JSON list of 64 numbers (an image of 8x8) is answered by {"digit": N, "batch": HOW MANY}.
Requests are collected for BATCH_WAIT_MS, or until there are BATCH_MOST. model.pt in the directory has the
weights (torch.save of the state_dict); without it, they are random: enough to try it out.
"""
import asyncio
import json
import os

import torch

MOST, WAIT = int(os.environ.get("BATCH_MOST", "16")), float(os.environ.get("BATCH_WAIT_MS", "5")) / 1000
torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", "1")))
model = torch.nn.Sequential(torch.nn.Linear(64, 128), torch.nn.ReLU(), torch.nn.Linear(128, 10))
if os.path.exists("model.pt"):
    model.load_state_dict(torch.load("model.pt", map_location="cpu"))
model.eval()


async def run_batches(queue):
    while True:
        batch = [await queue.get()]
        deadline = asyncio.get_running_loop().time() + WAIT
        while len(batch) < MOST:
            try:
                left = deadline - asyncio.get_running_loop().time()
                batch.append(await asyncio.wait_for(queue.get(), max(left, 0)))
            except asyncio.TimeoutError:
                break
        with torch.no_grad():
            digits = model(torch.tensor([pixels for pixels, _ in batch])).argmax(dim=1).tolist()
        for (_, answer), digit in zip(batch, digits):
            if not answer.done():
                answer.set_result({"digit": digit, "batch": len(batch)})


async def answer(queue, method, path, body):
    if path == "/healthz":
        return 200, {}
    if (method, path) != ("POST", "/predict"):
        return 404, {"error": "there are /healthz and POST /predict"}
    try:
        pixels = [float(p) for p in json.loads(body)]
    except (ValueError, TypeError):
        pixels = []
    if len(pixels) != 64:
        return 400, {"error": "the body is to be a JSON list of 64 numbers"}
    result = asyncio.get_running_loop().create_future()
    await queue.put((pixels, result))
    return 200, await result


async def serve(queue, reader, writer):
    try:
        while True:
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
            method, path, _ = head[0].split(" ", 2)
            fields = {k.lower(): v.strip() for k, _, v in (line.partition(":") for line in head[1:])}
            body = await reader.readexactly(int(fields.get("content-length", "0")))
            status, said = await answer(queue, method, path, body)
            text = json.dumps(said).encode()
            writer.write(b"HTTP/1.1 %d X\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s" % (status, len(text), text))
            await writer.drain()
    except (asyncio.IncompleteReadError, ConnectionError, ValueError):
        pass
    finally:
        writer.close()


async def main():
    queue = asyncio.Queue()
    batches = asyncio.ensure_future(run_batches(queue))
    server = await asyncio.start_server(lambda r, w: serve(queue, r, w), "127.0.0.1", int(os.environ["PORT"]), backlog=256)
    await asyncio.gather(server.serve_forever(), batches)


asyncio.run(main())
