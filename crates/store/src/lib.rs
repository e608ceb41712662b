//! All SQL, migrations and the change feed, for PostgreSQL and SQLite.
