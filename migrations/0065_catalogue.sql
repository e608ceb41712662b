-- The public catalogue: records of registries and files, and the tools that are known of them. It belongs to no
-- workspace.

CREATE TABLE catalogue_servers (
    id UUID NOT NULL PRIMARY KEY,
    slug TEXT NOT NULL UNIQUE,
    -- A registry's address, or `file`.
    origin TEXT NOT NULL,
    -- The record as JSON, without its tools.
    entry TEXT NOT NULL,
    is_deleted BOOLEAN NOT NULL,
    is_proven BOOLEAN NOT NULL,
    -- When the registry last changed the record.
    record_updated_at TIMESTAMPTZ,
    -- When the tools were first and last told; none: they are not known.
    tools_first_at TIMESTAMPTZ,
    tools_last_at TIMESTAMPTZ,
    first_seen_at TIMESTAMPTZ NOT NULL,
    changed_at TIMESTAMPTZ NOT NULL
);

CREATE TABLE catalogue_tools (
    server_id UUID NOT NULL REFERENCES catalogue_servers (id) ON DELETE CASCADE,
    name TEXT NOT NULL,
    -- Its place in the server's list.
    place BIGINT NOT NULL,
    -- The definition as JSON.
    definition TEXT NOT NULL,
    -- The beginning of its description, for search.
    about TEXT NOT NULL,
    category TEXT NOT NULL,
    severity TEXT NOT NULL,
    PRIMARY KEY (server_id, name)
);

CREATE TABLE catalogue_changes (
    id UUID NOT NULL PRIMARY KEY,
    server_id UUID NOT NULL REFERENCES catalogue_servers (id) ON DELETE CASCADE,
    at TIMESTAMPTZ NOT NULL,
    kind TEXT NOT NULL,
    -- The tool or member of the record that changed; empty: the record itself.
    what TEXT NOT NULL
);
CREATE INDEX catalogue_changes_server ON catalogue_changes (server_id, id);

-- How far a registry has been read.
CREATE TABLE catalogue_syncs (
    origin TEXT NOT NULL PRIMARY KEY,
    -- The page to ask for next; none: the last run reached the end.
    page_cursor TEXT,
    -- What the run asks for: records changed since then; none: all of them.
    since TIMESTAMPTZ,
    began_at TIMESTAMPTZ NOT NULL,
    -- When the last run that reached the end began.
    complete_at TIMESTAMPTZ,
    pages BIGINT NOT NULL
);

-- One row, whose number rises with every change of the catalogue.
CREATE TABLE catalogue_revision (one BIGINT NOT NULL PRIMARY KEY, revision BIGINT NOT NULL);
INSERT INTO catalogue_revision (one, revision) VALUES (1, 1);
