#!/usr/bin/env bash
# See that there is a PostgreSQL server for the tests, which start their own: Debian's package, unless one is there.
set -euo pipefail

there() { command -v postgres >/dev/null || ls /usr/lib/postgresql/*/bin/postgres >/dev/null 2>&1; }

if ! there; then
    # No cluster is made at installation: nothing is to run but what the tests start.
    mkdir -p /etc/postgresql-common
    [ -e /etc/postgresql-common/createcluster.conf ] || echo 'create_main_cluster = false' >/etc/postgresql-common/createcluster.conf
    apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends postgresql
fi
there && command -v psql >/dev/null
