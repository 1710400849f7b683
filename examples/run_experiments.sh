#!/usr/bin/env bash
# The original's experiment: four solvers, both evals, three seeds each, and plots of all runs.
#
#   examples/run_experiments.sh [FOLDER]
#
# It needs OPENAI_API_KEY. Records and plots go to FOLDER (experiment-openai-evals). SEEDS and
# MAX_SAMPLES make it smaller. The same command goes on where it stopped.
set -euo pipefail

folder=${1:-experiment-openai-evals}
export CDTA_HOME=${CDTA_HOME:-$PWD/$folder/home}
solvers=(
  generation/direct/gpt-3.5-turbo
  generation/direct/gpt-4-turbo-preview
  generation/direct/gpt-4-0314
  chess/generation/direct/gpt-3.5-turbo-instruct
)
mkdir -p "$folder"
for solver in "${solvers[@]}"; do
  for eval in cant_do_that_anymore cant_do_that_anymore.all_diagonal; do
    for seed in ${SEEDS:-1 2 3}; do
      record="$folder/${solver//\//-}_${eval}_$seed.jsonl"
      [ -s "$record" ] && grep -q final_report "$record" && continue
      oaieval "$solver" "$eval" --seed "$seed" --record_path "$record" \
        ${MAX_SAMPLES:+--max_samples "$MAX_SAMPLES"}
    done
  done
done
cdta experiment "$CDTA_HOME/runs" --out "$folder"
