"""A store in PostgreSQL, which many machines share."""

from teams_cli.extensions import Extension

EXTENSION = Extension(provides={f"store of {scheme}": "engine:PostgresStore" for scheme in ("postgresql", "postgres")})
