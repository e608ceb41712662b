-- The change feed. AUTOINCREMENT never hands out a pruned number again.
CREATE TABLE changes (
    seq INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
    workspace_id BLOB NOT NULL,
    kind TEXT NOT NULL,
    object_id BLOB NOT NULL,
    at TEXT NOT NULL
);
CREATE INDEX changes_age ON changes (at);

CREATE TRIGGER policy_versions_fixed BEFORE UPDATE ON policy_versions
BEGIN
    SELECT RAISE(ABORT, 'a policy version cannot be changed');
END;

CREATE TRIGGER admin_events_fixed BEFORE UPDATE ON admin_events
BEGIN
    SELECT RAISE(ABORT, 'an admin event cannot be changed');
END;
