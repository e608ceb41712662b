-- Both databases run this file. Ids are UUIDs (version 7), times are UTC, JSON is text.
-- A column that ends in _key is the lower-case form that must be unique.

CREATE TABLE users (
    id UUID NOT NULL PRIMARY KEY,
    email TEXT NOT NULL,
    email_key TEXT NOT NULL,
    name TEXT NOT NULL,
    password_hash TEXT,
    created_at TIMESTAMPTZ NOT NULL,
    verified_at TIMESTAMPTZ,
    disabled BOOLEAN NOT NULL
);
CREATE UNIQUE INDEX users_email ON users (email_key);

CREATE TABLE login_sessions (
    id UUID NOT NULL PRIMARY KEY,
    user_id UUID NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    token_hash BYTEA NOT NULL,
    created_at TIMESTAMPTZ NOT NULL,
    last_seen_at TIMESTAMPTZ NOT NULL,
    expires_at TIMESTAMPTZ NOT NULL,
    user_agent TEXT NOT NULL,
    address TEXT NOT NULL
);
CREATE UNIQUE INDEX login_sessions_token ON login_sessions (token_hash);
CREATE INDEX login_sessions_user ON login_sessions (user_id, created_at);
CREATE INDEX login_sessions_expiry ON login_sessions (expires_at);

CREATE TABLE workspaces (
    id UUID NOT NULL PRIMARY KEY,
    slug TEXT NOT NULL,
    name TEXT NOT NULL,
    suspended BOOLEAN NOT NULL,
    settings TEXT NOT NULL,
    limits TEXT NOT NULL,
    created_by UUID REFERENCES users (id) ON DELETE SET NULL,
    created_at TIMESTAMPTZ NOT NULL,
    deleted_at TIMESTAMPTZ
);
CREATE UNIQUE INDEX workspaces_slug ON workspaces (slug);

-- Slugs that a workspace used to have; links to them still lead there.
CREATE TABLE slug_history (
    slug TEXT NOT NULL PRIMARY KEY,
    workspace_id UUID NOT NULL REFERENCES workspaces (id) ON DELETE CASCADE,
    replaced_at TIMESTAMPTZ NOT NULL
);

CREATE TABLE memberships (
    workspace_id UUID NOT NULL REFERENCES workspaces (id) ON DELETE CASCADE,
    user_id UUID NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    role TEXT NOT NULL CHECK (role IN ('viewer', 'policy_manager', 'admin')),
    created_at TIMESTAMPTZ NOT NULL,
    PRIMARY KEY (workspace_id, user_id)
);
CREATE INDEX memberships_user ON memberships (user_id);

CREATE TABLE invites (
    id UUID NOT NULL PRIMARY KEY,
    workspace_id UUID NOT NULL REFERENCES workspaces (id) ON DELETE CASCADE,
    email TEXT NOT NULL,
    email_key TEXT NOT NULL,
    role TEXT NOT NULL CHECK (role IN ('viewer', 'policy_manager', 'admin')),
    token_hash BYTEA NOT NULL,
    created_by UUID REFERENCES users (id) ON DELETE SET NULL,
    created_at TIMESTAMPTZ NOT NULL,
    expires_at TIMESTAMPTZ NOT NULL,
    accepted_at TIMESTAMPTZ,
    revoked_at TIMESTAMPTZ
);
CREATE UNIQUE INDEX invites_token ON invites (token_hash);
CREATE UNIQUE INDEX invites_email ON invites (workspace_id, email_key)
    WHERE accepted_at IS NULL AND revoked_at IS NULL;

CREATE TABLE api_tokens (
    id UUID NOT NULL PRIMARY KEY,
    workspace_id UUID NOT NULL REFERENCES workspaces (id) ON DELETE CASCADE,
    label TEXT NOT NULL,
    role TEXT NOT NULL CHECK (role IN ('viewer', 'policy_manager', 'admin')),
    token_hash BYTEA NOT NULL,
    last4 TEXT NOT NULL,
    created_by UUID NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    created_at TIMESTAMPTZ NOT NULL,
    expires_at TIMESTAMPTZ,
    last_used_at TIMESTAMPTZ,
    revoked_at TIMESTAMPTZ
);
CREATE UNIQUE INDEX api_tokens_token ON api_tokens (token_hash);
CREATE INDEX api_tokens_workspace ON api_tokens (workspace_id, id);

-- A POST's answer, kept so that the same request sent again gets the same answer.
-- An account's own requests, which belong to no workspace, have the nil UUID there.
CREATE TABLE idempotency_keys (
    workspace_id UUID NOT NULL,
    actor_id UUID NOT NULL,
    key TEXT NOT NULL,
    request_hash BYTEA NOT NULL,
    status INTEGER,
    body BYTEA,
    created_at TIMESTAMPTZ NOT NULL,
    PRIMARY KEY (workspace_id, actor_id, key)
);
CREATE INDEX idempotency_keys_age ON idempotency_keys (created_at);
