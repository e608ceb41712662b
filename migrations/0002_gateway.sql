-- What a workspace sets up: servers with their tools, policies and grants. References carry the
-- workspace (and the server), so that a row cannot point into another tenant.

CREATE TABLE servers (
    id UUID NOT NULL PRIMARY KEY,
    workspace_id UUID NOT NULL REFERENCES workspaces (id) ON DELETE CASCADE,
    name TEXT NOT NULL,
    name_key TEXT NOT NULL,
    upstream_url TEXT NOT NULL,
    settings TEXT NOT NULL,
    sealed_headers BYTEA,
    header_names TEXT NOT NULL,
    is_example BOOLEAN NOT NULL,
    revision BIGINT NOT NULL,
    tools_read BOOLEAN NOT NULL,
    last_read_at TIMESTAMPTZ,
    last_error_code TEXT,
    last_error_words TEXT,
    last_error_at TIMESTAMPTZ,
    protocol_version TEXT,
    server_name TEXT,
    created_by UUID REFERENCES users (id) ON DELETE SET NULL,
    created_at TIMESTAMPTZ NOT NULL,
    updated_at TIMESTAMPTZ NOT NULL,
    deleted_at TIMESTAMPTZ,
    UNIQUE (workspace_id, id)
);
CREATE UNIQUE INDEX servers_name ON servers (workspace_id, name_key) WHERE deleted_at IS NULL;

-- `definition` is the tool as last read, `reviewed_definition` as a person last accepted it.
CREATE TABLE tools (
    id UUID NOT NULL PRIMARY KEY,
    workspace_id UUID NOT NULL,
    server_id UUID NOT NULL,
    name TEXT NOT NULL,
    definition TEXT NOT NULL,
    hash TEXT NOT NULL,
    reviewed_definition TEXT,
    reviewed_hash TEXT,
    reviewed_at TIMESTAMPTZ,
    reviewed_by UUID REFERENCES users (id) ON DELETE SET NULL,
    state TEXT NOT NULL CHECK (state IN ('current', 'changed', 'held', 'gone')),
    category TEXT NOT NULL,
    severity TEXT NOT NULL,
    rating TEXT NOT NULL,
    findings TEXT NOT NULL,
    first_seen_at TIMESTAMPTZ NOT NULL,
    changed_at TIMESTAMPTZ NOT NULL,
    FOREIGN KEY (workspace_id, server_id) REFERENCES servers (workspace_id, id) ON DELETE CASCADE
);
CREATE UNIQUE INDEX tools_name ON tools (workspace_id, server_id, name);
CREATE INDEX tools_server ON tools (server_id);

CREATE TABLE policies (
    id UUID NOT NULL PRIMARY KEY,
    workspace_id UUID NOT NULL,
    server_id UUID NOT NULL,
    name TEXT NOT NULL,
    name_key TEXT NOT NULL,
    kind TEXT NOT NULL CHECK (kind IN ('button', 'custom')),
    version BIGINT NOT NULL,
    created_by UUID REFERENCES users (id) ON DELETE SET NULL,
    created_at TIMESTAMPTZ NOT NULL,
    updated_at TIMESTAMPTZ NOT NULL,
    deleted_at TIMESTAMPTZ,
    UNIQUE (workspace_id, id),
    UNIQUE (workspace_id, server_id, id),
    FOREIGN KEY (workspace_id, server_id) REFERENCES servers (workspace_id, id) ON DELETE CASCADE
);
CREATE UNIQUE INDEX policies_name ON policies (workspace_id, server_id, name_key)
    WHERE deleted_at IS NULL;
CREATE UNIQUE INDEX policies_button ON policies (workspace_id, server_id)
    WHERE deleted_at IS NULL AND kind = 'button';

-- The document as it was typed; never changed once written.
CREATE TABLE policy_versions (
    workspace_id UUID NOT NULL,
    policy_id UUID NOT NULL,
    version BIGINT NOT NULL,
    document TEXT NOT NULL,
    author UUID,
    note TEXT NOT NULL,
    created_at TIMESTAMPTZ NOT NULL,
    PRIMARY KEY (workspace_id, policy_id, version),
    FOREIGN KEY (workspace_id, policy_id) REFERENCES policies (workspace_id, id) ON DELETE CASCADE
);

CREATE TABLE grants (
    id UUID NOT NULL PRIMARY KEY,
    workspace_id UUID NOT NULL,
    server_id UUID NOT NULL,
    label TEXT NOT NULL,
    label_key TEXT NOT NULL,
    token_hash BYTEA NOT NULL,
    last4 TEXT NOT NULL,
    previous_token_hash BYTEA,
    previous_until TIMESTAMPTZ,
    policy_id UUID,
    expires_at TIMESTAMPTZ,
    revoked_at TIMESTAMPTZ,
    observe BOOLEAN NOT NULL,
    networks TEXT NOT NULL,
    revision BIGINT NOT NULL,
    created_by UUID REFERENCES users (id) ON DELETE SET NULL,
    created_at TIMESTAMPTZ NOT NULL,
    updated_at TIMESTAMPTZ NOT NULL,
    last_used_at TIMESTAMPTZ,
    last_used_client TEXT,
    UNIQUE (workspace_id, id),
    UNIQUE (workspace_id, server_id, id),
    FOREIGN KEY (workspace_id, server_id) REFERENCES servers (workspace_id, id) ON DELETE CASCADE,
    FOREIGN KEY (workspace_id, server_id, policy_id)
        REFERENCES policies (workspace_id, server_id, id)
);
CREATE UNIQUE INDEX grants_token ON grants (token_hash);
CREATE UNIQUE INDEX grants_previous_token ON grants (previous_token_hash);
CREATE UNIQUE INDEX grants_label ON grants (workspace_id, server_id, label_key)
    WHERE revoked_at IS NULL;
CREATE INDEX grants_policy ON grants (workspace_id, policy_id);
