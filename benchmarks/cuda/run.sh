#!/bin/sh
# Measures a CUDA device and judges the policy that follows on cases drawn anew: benchmarks/cuda/run.sh FOLDER
# [MINUTES]. It needs this package, Triton and a CUDA device, and leaves small files in the folder.
set -eu
out=$1
minutes=${2:-10}
mkdir -p "$out"
python3 -m benchmarks.cuda "$out/grid.json" --minutes "$minutes" --machine "${MACHINE:-gpu}"
# What is known of the strategies' stability is that of the CPU's results.
mkdir -p "$out/all"
cp -r results/* "$out/all"
mkdir -p "$out/all/gpu"
cp "$out/grid.json" "$out/all/gpu"
python3 -m strategies policy build "$out/policy.json" --results "$out/all" --base epyc
rm -r "$out/all"
python3 -m strategies regret "$out/policy.json" --cases "${CASES:-40}" --seed "${SEED:-1}" --device cuda:0 --scores "$out/draw.json"
