#!/usr/bin/env bash
# The suites, three times beside a load of four busy processes: tests/steady.sh [TIMES [BUSY]]. Fails at the first that does.
set -euo pipefail
cd "$(dirname "$0")/.."
times=${1:-3} busy=${2:-4}
python=${PYTHON:-.venv/bin/python}

load=()
trap 'kill "${load[@]}" 2>/dev/null || true' EXIT
for _ in $(seq "$busy"); do
    (while :; do :; done) &
    load+=($!)
done

for round in $(seq "$times"); do
    printf '\n== round %s of %s beside %s busy processes\n' "$round" "$times" "$busy"
    "$python" -m pytest
    "$python" -m pytest -m slow -n 2
done
printf '\n== %s rounds without a failure\n' "$times"
