#!/bin/bash
#SBATCH --job-name=train
#SBATCH --ntasks=1 --cpus-per-task=1 --mem=300M
#SBATCH --time=5:00
#SBATCH --output=train_%j.out
echo "job $SLURM_JOB_ID of $USER on $SLURM_JOB_NODELIST, processes I can see: $(ls /proc | grep -c '^[0-9]')"
python3 train.py 1 0.001
