#!/bin/bash
#SBATCH --job-name=sweep
#SBATCH --array=0-8
#SBATCH --ntasks=1 --cpus-per-task=1 --mem=300M
#SBATCH --time=5:00
#SBATCH --output=sweep_%A_%a.out
cs=(0.1 1 10)
gammas=(0.0001 0.001 0.01)
i=$SLURM_ARRAY_TASK_ID
exec python3 train.py "${cs[$((i / 3))]}" "${gammas[$((i % 3))]}" "result_$i.json"
