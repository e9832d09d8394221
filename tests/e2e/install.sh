#!/usr/bin/env bash
# Install the pinned clients for the end-to-end tests into .e2e/ of the checkout, and say where they are:
#   eval "$(tests/e2e/install.sh)" && python -m pytest tests/e2e
# The platform packages are taken, not their wrappers: those would need install scripts, which are not run. A client
# whose package can't be had is named on standard error and left out; the status is 1 when none could be had. Beside
# each stands the newest version, where that is another: TEAMS_E2E_CLAUDE_NEWEST, and so on.
set -euo pipefail
cd "$(dirname "$0")/../.."
# Where nothing can be had that is soon known.
export npm_config_fetch_retries=1 npm_config_fetch_retry_mintimeout=2000 npm_config_fetch_retry_maxtimeout=5000

# variable, package, program in it
clients=(
    "TEAMS_E2E_CLAUDE @anthropic-ai/claude-code-linux-x64@2.1.332 @anthropic-ai/claude-code-linux-x64/claude"
    "TEAMS_E2E_CODEX codex-linux-x64@npm:@openai/codex@0.171.0-linux-x64 codex-linux-x64/vendor/x86_64-unknown-linux-musl/bin/codex"
    "TEAMS_E2E_GEMINI @google/gemini-cli@0.61.0 .bin/gemini"
    "TEAMS_E2E_QWEN @qwen-code/qwen-code@0.24.4 .bin/qwen"
    "TEAMS_E2E_COPILOT @github/copilot@1.0.102 .bin/copilot"
    "TEAMS_E2E_OPENCODE opencode-linux-x64@1.18.34 opencode-linux-x64/bin/opencode"
)

install() { npm install --prefix "$1" --ignore-scripts --no-save --no-audit --no-fund "$2" >&2; }

newest() { # the same package in its newest version
    local package=${1%@*} version platform=
    [[ $1 == *-linux-x64 ]] && platform=-linux-x64
    version=$(npm view "${package#*@npm:}" version 2>/dev/null) && echo "$package@$version$platform"
}

provide() { # variable, package, program in it
    local place=.e2e/$1
    if [ "$(cat "$place/pin" 2>/dev/null)" != "$2" ]; then
        mkdir -p "$place"
        install "$place" "$2" && [ -x "$place/node_modules/$3" ] && echo "$2" >"$place/pin" || {
            printf '!!! %s could not be had\n' "$2" >&2
            return 1
        }
    fi
    printf 'export %s=%q\n' "$1" "$PWD/$place/node_modules/$3"
}

found=0
for client in "${clients[@]}"; do
    read -r variable package program <<<"$client"
    provide "$variable" "$package" "$program" || continue
    found=1
    if ! latest=$(newest "$package"); then
        printf '!!! nobody says which is the newest version of %s\n' "${package%@*}" >&2
    elif [ "$latest" = "$package" ]; then
        printf '%s is the newest: it is tried once\n' "$package" >&2
    else
        provide "${variable}_NEWEST" "$latest" "$program" || true
    fi
done
[ "$found" = 1 ]
