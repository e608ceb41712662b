-- How often an attempt of the same kind came from the same place since the row before.
ALTER TABLE security_events ADD COLUMN times BIGINT NOT NULL DEFAULT 1;
