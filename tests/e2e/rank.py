"""One rank of steps_test.py: finds the others through rank 0 and adds up 1..N over sockets."""
import os
import socket
import time

rank, size = int(os.environ["SLURM_PROCID"]), int(os.environ["SLURM_NTASKS"])
master = (os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]))
if rank == 0:
    listener = socket.create_server(("", master[1]))
    others = [listener.accept()[0] for _ in range(size - 1)]
    total = 1 + sum(int(o.makefile().readline()) for o in others)
    for other in others:
        other.sendall(b"%d\n" % total)
else:
    deadline = time.monotonic() + 30
    while True:
        try:
            link = socket.create_connection(master)
            break
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.05)
    link.sendall(b"%d\n" % (rank + 1))
    total = int(link.makefile().readline())
print(f"rank {rank} of {size} on {os.environ['SLURMD_NODENAME']} node {os.environ['SLURM_NODEID']}"
      f" local {os.environ['SLURM_LOCALID']} total {total}", flush=True)
