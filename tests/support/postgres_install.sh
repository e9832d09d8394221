#!/usr/bin/env bash
# See that there is what the tests with PostgreSQL need: a server, of which they start their own, psql, PgBouncer, and
# `ip` for machines in network namespaces. Debian's packages, unless they are there.
set -euo pipefail

pooler() { command -v pgbouncer >/dev/null || [ -x /usr/sbin/pgbouncer ]; }
server() { command -v postgres >/dev/null || ls /usr/lib/postgresql/*/bin/postgres >/dev/null 2>&1; }

packages=()
{ server && command -v psql >/dev/null; } || packages+=(postgresql)
pooler || packages+=(pgbouncer)
command -v ip >/dev/null || packages+=(iproute2)
if [ ${#packages[@]} -gt 0 ]; then
    # No cluster is made at installation: nothing is to run but what the tests start.
    mkdir -p /etc/postgresql-common
    [ -e /etc/postgresql-common/createcluster.conf ] ||
        echo 'create_main_cluster = false' >/etc/postgresql-common/createcluster.conf
    apt-get update -qq
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${packages[@]}"
fi
server && command -v psql >/dev/null && command -v ip >/dev/null
pooler || echo "no PgBouncer: the tests behind it are skipped"
