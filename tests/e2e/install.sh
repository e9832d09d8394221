#!/usr/bin/env bash
# Install the pinned clients for the end-to-end tests into .e2e/ of the checkout, and say where they are:
#   eval "$(tests/e2e/install.sh)" && python -m pytest tests/e2e
# The platform packages are taken, not their wrappers: those would need install scripts, which are not run.
set -euo pipefail
cd "$(dirname "$0")/../.."

claude=@anthropic-ai/claude-code-linux-x64@2.1.197
codex=codex-linux-x64@npm:@openai/codex@0.169.0-linux-x64

install() { npm install --prefix .e2e --ignore-scripts --no-save --no-audit --no-fund "$@" >&2; }

binaries() {
    TEAMS_E2E_CLAUDE=$PWD/.e2e/node_modules/@anthropic-ai/claude-code-linux-x64/claude
    TEAMS_E2E_CODEX=$PWD/.e2e/node_modules/codex-linux-x64/vendor/x86_64-unknown-linux-musl/bin/codex
    [ -x "$TEAMS_E2E_CLAUDE" ] && [ -x "$TEAMS_E2E_CODEX" ]
}

if [ "$(cat .e2e/pins 2>/dev/null)" != "$claude $codex" ] || ! binaries; then
    mkdir -p .e2e && install "$claude" "$codex"
    binaries && echo "$claude $codex" >.e2e/pins
fi
binaries
printf 'export TEAMS_E2E_CLAUDE=%q TEAMS_E2E_CODEX=%q\n' "$TEAMS_E2E_CLAUDE" "$TEAMS_E2E_CODEX"
