-- The call log in partitions of a day (UTC), so that a day that nobody keeps any more goes as a whole.
-- What was there before stays together, up to the end of this day; rows of a day that has no partition
-- are in calls_rest until it gets one. No row is copied.
ALTER TABLE calls RENAME TO calls_before;
ALTER TABLE calls_before DROP CONSTRAINT calls_pkey;
ALTER TABLE calls_before ADD CONSTRAINT calls_before_pkey PRIMARY KEY (workspace_id, id, at);
ALTER INDEX calls_at RENAME TO calls_before_at;
ALTER INDEX calls_server RENAME TO calls_before_server;
ALTER INDEX calls_grant RENAME TO calls_before_grant;
ALTER INDEX calls_tool RENAME TO calls_before_tool;
ALTER INDEX calls_outcome RENAME TO calls_before_outcome;
ALTER INDEX calls_code RENAME TO calls_before_code;

CREATE TABLE calls (LIKE calls_before INCLUDING DEFAULTS) PARTITION BY RANGE (at);
ALTER TABLE calls ADD CONSTRAINT calls_pkey PRIMARY KEY (workspace_id, id, at);
CREATE INDEX calls_at ON calls (workspace_id, at);
CREATE INDEX calls_server ON calls (workspace_id, server_id, id);
CREATE INDEX calls_grant ON calls (workspace_id, grant_id, id);
CREATE INDEX calls_tool ON calls (workspace_id, tool, id);
CREATE INDEX calls_outcome ON calls (workspace_id, outcome, id) WHERE outcome <> 'allowed';
CREATE INDEX calls_code ON calls (workspace_id, code, id) WHERE code <> 'allowed';
CREATE TABLE calls_rest PARTITION OF calls DEFAULT;

DO $$
DECLARE
    until TIMESTAMPTZ;
BEGIN
    SELECT date_trunc('day', greatest(max(at), now()), 'UTC') + interval '24 hours'
        INTO until FROM calls_before HAVING count(*) > 0;
    IF until IS NULL THEN
        DROP TABLE calls_before;
    ELSE
        EXECUTE format(
            'ALTER TABLE calls ATTACH PARTITION calls_before FOR VALUES FROM (MINVALUE) TO (%L)', until
        );
    END IF;
END
$$;
