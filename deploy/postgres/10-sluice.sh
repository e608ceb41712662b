#!/bin/sh
# Run once by the PostgreSQL image on an empty volume. Sluice owns its database and is no superuser, so that
# row-level security holds for it.
set -eu
psql -v ON_ERROR_STOP=1 -v password="$POSTGRES_PASSWORD" -U "$POSTGRES_USER" -d postgres <<'SQL'
CREATE ROLE sluice LOGIN PASSWORD :'password';
CREATE DATABASE sluice OWNER sluice;
SQL
