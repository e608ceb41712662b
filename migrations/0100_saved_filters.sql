-- A member's own names for filters of the log. They go when the membership does.
CREATE TABLE saved_filters (
    id UUID NOT NULL PRIMARY KEY,
    workspace_id UUID NOT NULL,
    user_id UUID NOT NULL,
    name TEXT NOT NULL,
    -- The filters as the page's address has them, without the question mark.
    query TEXT NOT NULL,
    created_at TIMESTAMPTZ NOT NULL,
    FOREIGN KEY (workspace_id, user_id) REFERENCES memberships (workspace_id, user_id) ON DELETE CASCADE
);
CREATE UNIQUE INDEX saved_filters_name ON saved_filters (workspace_id, user_id, name);
