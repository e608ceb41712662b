-- Tools that somebody should look at, of all servers: what changed since its review, and what looks
-- poisoned. Few are, so that the few alone are in the indexes.
CREATE INDEX tools_review ON tools (workspace_id, id) WHERE state IN ('changed', 'held');
CREATE INDEX tools_poisoned ON tools (workspace_id, id) WHERE findings <> '[]' AND state <> 'gone';
