-- What happened: calls, refused attempts, approvals and what members did. Log rows name workspaces,
-- servers and grants without a reference: a log must be writable whatever became of them.

CREATE TABLE calls (
    workspace_id UUID NOT NULL,
    id UUID NOT NULL,
    server_id UUID NOT NULL,
    grant_id UUID NOT NULL,
    grant_label TEXT NOT NULL,
    at TIMESTAMPTZ NOT NULL,
    method TEXT NOT NULL,
    tool TEXT,
    outcome TEXT NOT NULL,
    code TEXT NOT NULL,
    rule TEXT NOT NULL,
    message TEXT NOT NULL,
    policy_id UUID,
    policy_version BIGINT,
    observed BOOLEAN NOT NULL,
    counter TEXT,
    retry_after_s BIGINT,
    arguments TEXT,
    trace TEXT,
    client_name TEXT,
    protocol_version TEXT,
    session TEXT,
    client_address TEXT,
    request_bytes BIGINT NOT NULL,
    response_bytes BIGINT NOT NULL,
    upstream_status INTEGER,
    total_us BIGINT NOT NULL,
    limits_us BIGINT NOT NULL,
    approval_us BIGINT NOT NULL,
    upstream_us BIGINT NOT NULL,
    PRIMARY KEY (workspace_id, id)
);
CREATE INDEX calls_at ON calls (workspace_id, at);
CREATE INDEX calls_server ON calls (workspace_id, server_id, id);
CREATE INDEX calls_grant ON calls (workspace_id, grant_id, id);
CREATE INDEX calls_tool ON calls (workspace_id, tool, id);
CREATE INDEX calls_outcome ON calls (workspace_id, outcome, id);
CREATE INDEX calls_code ON calls (workspace_id, code, id);

CREATE TABLE security_events (
    id UUID NOT NULL PRIMARY KEY,
    at TIMESTAMPTZ NOT NULL,
    kind TEXT NOT NULL,
    workspace_id UUID,
    grant_id UUID,
    address TEXT NOT NULL,
    detail TEXT NOT NULL
);
CREATE INDEX security_events_workspace ON security_events (workspace_id, id);
CREATE INDEX security_events_age ON security_events (at);

-- A parked call. `live` rows are found by the same call sent again; there is at most one.
CREATE TABLE approvals (
    id UUID NOT NULL PRIMARY KEY,
    workspace_id UUID NOT NULL,
    server_id UUID NOT NULL,
    grant_id UUID NOT NULL,
    grant_label TEXT NOT NULL,
    call_id UUID NOT NULL,
    tool TEXT NOT NULL,
    tool_hash TEXT,
    category TEXT,
    severity TEXT,
    arguments_digest TEXT NOT NULL,
    sealed_arguments BYTEA,
    policy_id UUID NOT NULL,
    policy_version BIGINT NOT NULL,
    rule TEXT NOT NULL,
    rules_digest TEXT NOT NULL,
    session TEXT,
    client_name TEXT,
    reservation UUID,
    demands TEXT,
    approvers TEXT NOT NULL,
    quorum BIGINT NOT NULL,
    self_allowed BOOLEAN NOT NULL,
    status TEXT NOT NULL
        CHECK (status IN ('pending', 'approved', 'denied', 'expired', 'running', 'used', 'unknown')),
    live BOOLEAN NOT NULL,
    created_at TIMESTAMPTZ NOT NULL,
    hold_until TIMESTAMPTZ NOT NULL,
    expires_at TIMESTAMPTZ NOT NULL,
    decided_at TIMESTAMPTZ,
    decided_by UUID REFERENCES users (id) ON DELETE SET NULL,
    note TEXT,
    run_at TIMESTAMPTZ,
    run_by TEXT,
    run_call_id UUID,
    finished_at TIMESTAMPTZ,
    UNIQUE (workspace_id, id),
    FOREIGN KEY (workspace_id, server_id, grant_id)
        REFERENCES grants (workspace_id, server_id, id) ON DELETE CASCADE
);
CREATE UNIQUE INDEX approvals_call
    ON approvals (workspace_id, grant_id, tool, arguments_digest, rules_digest) WHERE live;
CREATE INDEX approvals_status ON approvals (workspace_id, status, id);
CREATE INDEX approvals_grant ON approvals (workspace_id, grant_id, status);
CREATE INDEX approvals_due ON approvals (status, expires_at);

CREATE TABLE approval_decisions (
    workspace_id UUID NOT NULL,
    approval_id UUID NOT NULL,
    user_id UUID NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    approve BOOLEAN NOT NULL,
    note TEXT NOT NULL,
    at TIMESTAMPTZ NOT NULL,
    PRIMARY KEY (workspace_id, approval_id, user_id),
    FOREIGN KEY (workspace_id, approval_id) REFERENCES approvals (workspace_id, id) ON DELETE CASCADE
);

-- What members and operators did. Each row's hash covers the row and the hash before it; a chain
-- is one workspace, or the nil UUID for what belongs to none.
CREATE TABLE admin_events (
    chain UUID NOT NULL,
    seq BIGINT NOT NULL,
    id UUID NOT NULL,
    workspace_id UUID REFERENCES workspaces (id) ON DELETE CASCADE,
    at TIMESTAMPTZ NOT NULL,
    actor_kind TEXT NOT NULL,
    actor_id UUID,
    actor_name TEXT NOT NULL,
    address TEXT NOT NULL,
    action TEXT NOT NULL,
    object_kind TEXT NOT NULL,
    object_id TEXT NOT NULL,
    object_name TEXT NOT NULL,
    before TEXT,
    after TEXT,
    prev_hash BYTEA NOT NULL,
    hash BYTEA NOT NULL,
    PRIMARY KEY (chain, seq)
);
CREATE UNIQUE INDEX admin_events_id ON admin_events (id);
CREATE INDEX admin_events_workspace ON admin_events (workspace_id, seq);
