-- What `sluice apply` made or took over, and how it left it: an object that is different by now was
-- changed by somebody else. The digest is keyed, since it covers upstream credentials.
CREATE TABLE applied_objects (
    workspace_id UUID NOT NULL REFERENCES workspaces (id) ON DELETE CASCADE,
    kind TEXT NOT NULL CHECK (kind IN ('workspace', 'server', 'policy', 'grant')),
    object_id UUID NOT NULL,
    path TEXT NOT NULL,
    digest TEXT NOT NULL,
    applied_at TIMESTAMPTZ NOT NULL,
    PRIMARY KEY (workspace_id, kind, object_id)
);

-- The headers of a kept answer that a repeat gives again.
ALTER TABLE idempotency_keys ADD COLUMN headers TEXT;
