-- E-mail domains whose people may join a workspace by themselves, each with the role that they get.
CREATE TABLE join_domains (
    id UUID NOT NULL PRIMARY KEY,
    workspace_id UUID NOT NULL REFERENCES workspaces (id) ON DELETE CASCADE,
    domain TEXT NOT NULL,
    role TEXT NOT NULL CHECK (role IN ('viewer', 'policy_manager')),
    created_by UUID REFERENCES users (id) ON DELETE SET NULL,
    created_at TIMESTAMPTZ NOT NULL
);
CREATE UNIQUE INDEX join_domains_domain ON join_domains (workspace_id, domain);
CREATE INDEX join_domains_of ON join_domains (domain);
