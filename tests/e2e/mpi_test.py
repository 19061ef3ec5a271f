#!/usr/bin/env python3
"""srun --mpi=pmix: Debian's Open MPI finds its ranks through the PMIx servers of the step's nodes.

usage: mpi_test.py BIN_DIR [-k CASE] [--keep]
"""
import os
import re
import shutil
import subprocess
import sys

import cluster
from cluster import contains, equal

COMPILER = shutil.which("mpicc.openmpi")  # mpicc may belong to MPICH
HELLO = r"""
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(int argc, char** argv) {
  int rank, size, sum = 0, length;
  char name[MPI_MAX_PROCESSOR_NAME];
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Get_processor_name(name, &length);
  if (argc > 1 && strcmp(argv[1], "abort") == 0 && rank == 1) MPI_Abort(MPI_COMM_WORLD, 5);
  if (argc > 1 && strcmp(argv[1], "leave") == 0 && rank == 1) exit(6);
  MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  printf("hello from rank %d of %d on %s, sum %d\n", rank, size, name, sum);
  MPI_Finalize();
  return 0;
}
"""
# These settings keep Open MPI from trying the transports of a real cluster, and from warning about
# them.
SETTINGS = ("export OMPI_MCA_btl=self,tcp,vader OMPI_MCA_pml=ob1 OMPI_MCA_btl_base_warn_component_"
            "unused=0 OMPI_MCA_btl_vader_single_copy_mechanism=none\n")


def hello(c):
    program = f"{c.out}/hello"
    if not os.path.exists(program):
        with open(f"{c.out}/hello.c", "w", encoding="utf-8") as f:
            f.write(HELLO)
        subprocess.run([COMPILER, "-o", program, f"{c.out}/hello.c"], check=True)
    return program


def run(c, options, command, *more):
    job = c.submit(*options, "-t", "3:00", script=SETTINGS + f"PATH={c.bin}/slurm:$PATH\n{command}\n"
                   "echo status $?\n", defaults=("--mem=400M", "-o", "%j.out"))
    c.ended(job)
    return c.output(job)


def lines_of(ranks, out):
    return sorted(int(r) for r in re.findall(rf"^hello from rank (\d+) of {ranks} on \S+, sum "
                                             rf"{ranks * (ranks - 1) // 2}$", out, re.M))


def case_two_nodes(c):
    out = run(c, ("-N2", "-n4", "--network=host"), f"srun --mpi=pmix {hello(c)}")
    equal(lines_of(4, out), [0, 1, 2, 3], out)
    equal(set(re.findall(r" on (\S+),", out)), {"node1", "node2"}, out)
    contains(out, "status 0")


def case_one_node_without_network(c):
    out = run(c, ("-N1", "-n2"), f"srun --mpi=pmix {hello(c)}; srun --mpi=pmix_v4 {hello(c)}")
    equal(lines_of(2, out), [0, 0, 1, 1], out)
    contains(out, "status 0")


def case_from_outside(c):
    done = c.as_user(["slurm/srun", "-N1", "-n2", "--mem=400M", "--mpi=pmix", hello(c)])
    equal(lines_of(2, done.stdout), [0, 1], done.stdout + done.stderr)
    equal(done.returncode, 0, done.stderr)


def case_abort(c):
    """When one rank calls MPI_Abort or ends without MPI_Finalize, the others, which wait for it,
    are ended."""
    out = run(c, ("-N2", "-n2", "--network=host"), f"srun --mpi=pmix {hello(c)} abort")
    contains(out, "task 1")
    assert re.search(r"^status (5|137|143)$", out, re.M), out
    out = run(c, ("-N2", "-n2", "--network=host"), f"srun --mpi=pmix {hello(c)} leave")
    assert re.search(r"^status (6|137|143)$", out, re.M), out


def case_refusals(c):
    done = c.as_user(["slurm/srun", "--mem=40M", "--mpi=openmpi", "true"])
    assert done.returncode != 0
    contains(done.stderr, '"openmpi": there are pmix, pmi2 and none')
    done = c.as_user(["slurm/srun", "--mpi=list"])
    contains(done.stdout, "\tpmix\n")


if __name__ == "__main__":
    if not COMPILER:
        print("skipped: there is no mpicc.openmpi (libopenmpi-dev)")
        sys.exit(cluster.SKIPPED)
    sys.exit(cluster.main(__doc__, globals(), "mpi", nodes=2))
