-- What people are told of parked calls, and what they did with them.

-- Everything that happened to an approval, in order. What is not `told` yet is to be: to endpoints,
-- by mail, and to the admin audit log.
CREATE TABLE approval_events (
    id UUID NOT NULL PRIMARY KEY,
    workspace_id UUID NOT NULL,
    approval_id UUID NOT NULL,
    at TIMESTAMPTZ NOT NULL,
    kind TEXT NOT NULL,
    user_id UUID REFERENCES users (id) ON DELETE SET NULL,
    who TEXT NOT NULL,
    detail TEXT NOT NULL,
    told BOOLEAN NOT NULL,
    FOREIGN KEY (workspace_id, approval_id) REFERENCES approvals (workspace_id, id) ON DELETE CASCADE
);
CREATE INDEX approval_events_approval ON approval_events (workspace_id, approval_id, id);
CREATE INDEX approval_events_untold ON approval_events (id) WHERE NOT told;

-- A link by which one approval can be decided, by one person; without a person by whoever signs in
-- and may. Only its signature, which is kept nowhere, makes a link of the id.
CREATE TABLE approval_links (
    id UUID NOT NULL PRIMARY KEY,
    workspace_id UUID NOT NULL,
    approval_id UUID NOT NULL,
    user_id UUID REFERENCES users (id) ON DELETE CASCADE,
    created_at TIMESTAMPTZ NOT NULL,
    used_at TIMESTAMPTZ,
    FOREIGN KEY (workspace_id, approval_id) REFERENCES approvals (workspace_id, id) ON DELETE CASCADE
);
CREATE INDEX approval_links_approval ON approval_links (workspace_id, approval_id);

-- Calls that a person lets pass for a while; bound as the approval was that they come from.
CREATE TABLE approval_exceptions (
    id UUID NOT NULL PRIMARY KEY,
    workspace_id UUID NOT NULL,
    server_id UUID NOT NULL,
    grant_id UUID NOT NULL,
    approval_id UUID NOT NULL,
    policy_id UUID NOT NULL,
    rule TEXT NOT NULL,
    tool TEXT NOT NULL,
    tool_hash TEXT,
    arguments_digest TEXT NOT NULL,
    rules_digest TEXT NOT NULL,
    created_by UUID NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    created_at TIMESTAMPTZ NOT NULL,
    expires_at TIMESTAMPTZ NOT NULL,
    max_uses BIGINT NOT NULL,
    uses BIGINT NOT NULL,
    last_used_at TIMESTAMPTZ,
    revoked_at TIMESTAMPTZ,
    revoked_by UUID REFERENCES users (id) ON DELETE SET NULL,
    UNIQUE (workspace_id, id),
    FOREIGN KEY (workspace_id, server_id, grant_id)
        REFERENCES grants (workspace_id, server_id, id) ON DELETE CASCADE
);
CREATE INDEX approval_exceptions_call
    ON approval_exceptions (workspace_id, grant_id, tool, arguments_digest);
CREATE INDEX approval_exceptions_age ON approval_exceptions (expires_at);

-- Where a workspace is told of things. The address itself is a secret with some services, so it is
-- sealed; `shown_url` is what pages show of it.
CREATE TABLE endpoints (
    id UUID NOT NULL PRIMARY KEY,
    workspace_id UUID NOT NULL REFERENCES workspaces (id) ON DELETE CASCADE,
    name TEXT NOT NULL,
    name_key TEXT NOT NULL,
    kind TEXT NOT NULL CHECK (kind IN ('webhook', 'slack', 'teams')),
    sealed_url BYTEA NOT NULL,
    shown_url TEXT NOT NULL,
    sealed_secret BYTEA,
    sealed_previous_secret BYTEA,
    previous_until TIMESTAMPTZ,
    notices TEXT NOT NULL,
    enabled BOOLEAN NOT NULL,
    revision BIGINT NOT NULL,
    created_by UUID REFERENCES users (id) ON DELETE SET NULL,
    created_at TIMESTAMPTZ NOT NULL,
    updated_at TIMESTAMPTZ NOT NULL,
    UNIQUE (workspace_id, id)
);
CREATE UNIQUE INDEX endpoints_name ON endpoints (workspace_id, name_key);

-- Messages on their way out: to an endpoint, or by mail to a person. Mail about an account belongs
-- to no workspace. `next_at` is also the claim of whoever is sending it.
CREATE TABLE outbox (
    id UUID NOT NULL PRIMARY KEY,
    workspace_id UUID REFERENCES workspaces (id) ON DELETE CASCADE,
    endpoint_id UUID,
    recipient TEXT NOT NULL,
    topic TEXT NOT NULL,
    subject_id UUID,
    sealed_body BYTEA NOT NULL,
    status TEXT NOT NULL CHECK (status IN ('waiting', 'sent', 'dead')),
    attempts BIGINT NOT NULL,
    next_at TIMESTAMPTZ NOT NULL,
    give_up_at TIMESTAMPTZ NOT NULL,
    tries TEXT NOT NULL,
    created_at TIMESTAMPTZ NOT NULL,
    done_at TIMESTAMPTZ,
    FOREIGN KEY (workspace_id, endpoint_id) REFERENCES endpoints (workspace_id, id) ON DELETE CASCADE
);
CREATE INDEX outbox_due ON outbox (next_at) WHERE status = 'waiting';
CREATE INDEX outbox_workspace ON outbox (workspace_id, id);
CREATE INDEX outbox_endpoint ON outbox (workspace_id, endpoint_id, id);
CREATE INDEX outbox_recipient ON outbox (recipient, created_at);
CREATE INDEX outbox_age ON outbox (done_at) WHERE status <> 'waiting';

-- When others are told of an approval that nobody decided, and when they were.
ALTER TABLE workspaces ADD COLUMN escalate_after_s BIGINT;
ALTER TABLE approvals ADD COLUMN escalate_at TIMESTAMPTZ;
ALTER TABLE approvals ADD COLUMN escalated_at TIMESTAMPTZ;
CREATE INDEX approvals_escalate ON approvals (escalate_at)
    WHERE status = 'pending' AND escalated_at IS NULL AND escalate_at IS NOT NULL;
-- For how long a person would let the same call pass.
ALTER TABLE approval_decisions ADD COLUMN allow_s BIGINT;
-- Whether a member wants mail about parked calls.
ALTER TABLE memberships ADD COLUMN mail_approvals BOOLEAN NOT NULL DEFAULT TRUE;
