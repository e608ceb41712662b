-- An account that somebody asked for by mail and whose address nobody has proven yet: nothing signs in to
-- it until its owner follows the mailed link, and it is forgotten if nobody does.
ALTER TABLE users ADD COLUMN pending BOOLEAN NOT NULL DEFAULT FALSE;
CREATE INDEX users_pending ON users (created_at) WHERE pending;
