#!/usr/bin/env bash
# A minute before a commit: style, types, and the quick tests of what changed: tests/before_commit.sh [SINCE]
# What changed is what git sees since HEAD, or since the commit SINCE. Tests of a package are in the folder of its name.
set -euo pipefail
cd "$(dirname "$0")/.."
bin=${BIN:-.venv/bin}

tests=(tests/architecture tests/cli)
while read -r path; do
    case $path in
    tests/*/test_*.py) tests+=("$path") ;;
    teams_cli/extensions/*/*) tests+=("tests/$(cut -d/ -f2,3 <<<"$path")") ;;
    teams_cli/*/*) tests+=("tests/$(cut -d/ -f2 <<<"$path")") ;;
    *.md) tests+=(tests/docs) ;;
    esac
done < <(git diff --name-only --diff-filter=d "${1:-HEAD}" && git ls-files --others --exclude-standard)
mapfile -t tests < <(for path in "${tests[@]}"; do [ ! -e "$path" ] || echo "$path"; done | sort -u)

"$bin/ruff" check .
"$bin/ruff" format --check .
"$bin/mypy"
exec "$bin/python" -m pytest "${tests[@]}"
