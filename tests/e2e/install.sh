#!/usr/bin/env bash
# Install the pinned clients for the end-to-end tests into .e2e/ of the checkout, and say where they are:
#   eval "$(tests/e2e/install.sh)" && python -m pytest tests/e2e
# The platform packages are taken, not their wrappers: those would need install scripts, which are not run. A client
# whose package can't be had is named on standard error and left out; the status is 1 when none could be had.
set -euo pipefail
cd "$(dirname "$0")/../.."

# variable, package, program in it
clients=(
    "TEAMS_E2E_CLAUDE @anthropic-ai/claude-code-linux-x64@2.1.197 @anthropic-ai/claude-code-linux-x64/claude"
    "TEAMS_E2E_CODEX codex-linux-x64@npm:@openai/codex@0.169.0-linux-x64 codex-linux-x64/vendor/x86_64-unknown-linux-musl/bin/codex"
    "TEAMS_E2E_GEMINI @google/gemini-cli@0.61.0 .bin/gemini"
    "TEAMS_E2E_QWEN @qwen-code/qwen-code@0.24.4 .bin/qwen"
    "TEAMS_E2E_OPENCODE opencode-linux-x64@1.18.33 opencode-linux-x64/bin/opencode"
)

install() { npm install --prefix "$1" --ignore-scripts --no-save --no-audit --no-fund "$2" >&2; }

found=0
for client in "${clients[@]}"; do
    read -r variable package program <<<"$client"
    place=.e2e/$variable
    if [ "$(cat "$place/pin" 2>/dev/null)" != "$package" ]; then
        mkdir -p "$place"
        install "$place" "$package" && [ -x "$place/node_modules/$program" ] && echo "$package" >"$place/pin" || {
            printf '!!! %s could not be had\n' "$package" >&2
            continue
        }
    fi
    printf 'export %s=%q\n' "$variable" "$PWD/$place/node_modules/$program"
    found=1
done
[ "$found" = 1 ]
