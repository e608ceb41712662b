-- What workspaces agreed to give to the public catalogue: the definitions that a server with a public address told
-- them. The row is the workspace's, and goes when it withdraws; the record made from it names no workspace.
CREATE TABLE catalogue_shared (
    workspace_id UUID NOT NULL,
    server_id UUID NOT NULL PRIMARY KEY,
    -- The record's place in URLs, made from the public address.
    slug TEXT NOT NULL,
    address TEXT NOT NULL,
    -- A JSON array.
    definitions TEXT NOT NULL,
    -- Tools that were left out because their definitions hold something private.
    withheld BIGINT NOT NULL,
    -- Of several workspaces the one that agreed first feeds the record.
    since TIMESTAMPTZ NOT NULL,
    FOREIGN KEY (workspace_id, server_id) REFERENCES servers (workspace_id, id) ON DELETE CASCADE
);
CREATE INDEX catalogue_shared_slug ON catalogue_shared (slug, since, server_id);
CREATE INDEX catalogue_shared_workspace ON catalogue_shared (workspace_id);

-- Its definition has signs of poison, which every list says.
ALTER TABLE catalogue_tools ADD COLUMN poisoned BOOLEAN NOT NULL DEFAULT FALSE;
