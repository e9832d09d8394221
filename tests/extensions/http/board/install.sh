#!/usr/bin/env bash
# Have Chromium, its driver and axe-core for the tests of the board, and say where they are:
#   eval "$(tests/extensions/http/board/install.sh)" && python -m pytest -m browser
# The browser is the distribution's; axe-core goes into .browser/ of the checkout.
set -euo pipefail
cd "$(dirname "$0")/../../../.."

axe=axe-core@4.14.1
browser=${TEAMS_CHROMIUM:-/usr/bin/chromium}
driver=${TEAMS_CHROMEDRIVER:-/usr/bin/chromedriver}

give_up() {
    printf '%s\n' "$1" >&2
    exit 1
}

if ! [ -x "$browser" ] || ! [ -x "$driver" ]; then
    command -v apt-get >/dev/null || give_up "There is no Chromium, and no apt-get to install it with."
    [ "$(id -u)" = 0 ] || give_up "There is no Chromium. As root: apt-get install chromium chromium-driver"
    { apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
        chromium chromium-driver; } >&2 || give_up "The packages chromium and chromium-driver could not be had."
fi
if [ "$(cat .browser/pins 2>/dev/null)" != "$axe" ]; then
    mkdir -p .browser
    npm install --prefix .browser --ignore-scripts --no-save --no-audit --no-fund "$axe" >&2 ||
        give_up "The package axe-core could not be had."
    echo "$axe" >.browser/pins
fi
printf 'export TEAMS_CHROMIUM=%q TEAMS_CHROMEDRIVER=%q TEAMS_AXE=%q\n' \
    "$browser" "$driver" "$PWD/.browser/node_modules/axe-core/axe.min.js"
