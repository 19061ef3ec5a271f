#!/bin/bash
#SBATCH --job-name=slow
#SBATCH --mem=32M --time=0:05
#SBATCH --output=slow_%j.out
# Asks for five seconds and sleeps for sixty: ends as TIMEOUT.
echo "asked for five seconds"
sleep 60
