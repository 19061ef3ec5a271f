#!/bin/bash
#SBATCH --job-name=hungry
#SBATCH --mem=64M --time=2:00
#SBATCH --output=hungry_%j.out
# Asks for 64 MiB and takes 200: ends as OUT_OF_MEMORY, and its neighbours never notice.
exec python3 -c 'block = bytearray(200 * 1024 * 1024); print("never printed", len(block))'
