-- The call log counted by day (UTC, days since 1970): the overview reads these, not the log. What comes is
-- counted by the store's insert, batch by batch; what goes by the trigger. `skew_low` and `skew_high` are
-- the least and the most that a row's time is after the time in its id, in milliseconds; a range of times
-- is a range of ids with them.
CREATE TABLE call_days (
    workspace_id BLOB NOT NULL,
    day INTEGER NOT NULL,
    tool_call BOOLEAN NOT NULL,
    outcome TEXT NOT NULL,
    code TEXT NOT NULL,
    observed BOOLEAN NOT NULL,
    calls INTEGER NOT NULL,
    skew_low INTEGER NOT NULL,
    skew_high INTEGER NOT NULL,
    PRIMARY KEY (workspace_id, day, tool_call, outcome, code, observed)
) WITHOUT ROWID;
CREATE TABLE call_tools (
    workspace_id BLOB NOT NULL,
    day INTEGER NOT NULL,
    server_id BLOB NOT NULL,
    tool TEXT NOT NULL,
    calls INTEGER NOT NULL,
    last_at TEXT NOT NULL,
    PRIMARY KEY (workspace_id, day, server_id, tool)
) WITHOUT ROWID;

-- An id begins with its time: twelve digits, read one by one.
INSERT INTO call_days
    SELECT workspace_id, CAST(julianday(substr(at, 1, 10)) - 2440587.5 AS INTEGER), tool IS NOT NULL,
           outcome, code, observed, count(*), min(ms - made), max(ms - made)
    FROM (SELECT workspace_id, at, tool, outcome, code, observed,
                 CAST(strftime('%s', substr(at, 1, 19)) AS INTEGER) * 1000
                 + CASE substr(at, 20, 1) WHEN '.' THEN CAST(substr(at, 21, 3) AS INTEGER) ELSE 0 END AS ms,
                 (instr('123456789ABCDEF', substr(hex(id), 1, 1)) << 44)
                 + (instr('123456789ABCDEF', substr(hex(id), 2, 1)) << 40)
                 + (instr('123456789ABCDEF', substr(hex(id), 3, 1)) << 36)
                 + (instr('123456789ABCDEF', substr(hex(id), 4, 1)) << 32)
                 + (instr('123456789ABCDEF', substr(hex(id), 5, 1)) << 28)
                 + (instr('123456789ABCDEF', substr(hex(id), 6, 1)) << 24)
                 + (instr('123456789ABCDEF', substr(hex(id), 7, 1)) << 20)
                 + (instr('123456789ABCDEF', substr(hex(id), 8, 1)) << 16)
                 + (instr('123456789ABCDEF', substr(hex(id), 9, 1)) << 12)
                 + (instr('123456789ABCDEF', substr(hex(id), 10, 1)) << 8)
                 + (instr('123456789ABCDEF', substr(hex(id), 11, 1)) << 4)
                 + instr('123456789ABCDEF', substr(hex(id), 12, 1)) AS made
          FROM calls)
    GROUP BY 1, 2, 3, 4, 5, 6;
INSERT INTO call_tools
    SELECT workspace_id, CAST(julianday(substr(at, 1, 10)) - 2440587.5 AS INTEGER), server_id, tool,
           count(*), max(at)
    FROM calls WHERE tool IS NOT NULL GROUP BY 1, 2, 3, 4;

CREATE TRIGGER calls_uncounted AFTER DELETE ON calls
BEGIN
    UPDATE call_days SET calls = calls - 1
        WHERE workspace_id = OLD.workspace_id AND tool_call = (OLD.tool IS NOT NULL)
          AND day = CAST(julianday(substr(OLD.at, 1, 10)) - 2440587.5 AS INTEGER)
          AND outcome = OLD.outcome AND code = OLD.code AND observed = OLD.observed;
    DELETE FROM call_days
        WHERE workspace_id = OLD.workspace_id AND tool_call = (OLD.tool IS NOT NULL)
          AND day = CAST(julianday(substr(OLD.at, 1, 10)) - 2440587.5 AS INTEGER)
          AND outcome = OLD.outcome AND code = OLD.code AND observed = OLD.observed AND calls <= 0;
    UPDATE call_tools SET calls = calls - 1
        WHERE workspace_id = OLD.workspace_id AND server_id = OLD.server_id AND tool = OLD.tool
          AND day = CAST(julianday(substr(OLD.at, 1, 10)) - 2440587.5 AS INTEGER);
    DELETE FROM call_tools
        WHERE workspace_id = OLD.workspace_id AND server_id = OLD.server_id AND tool = OLD.tool
          AND day = CAST(julianday(substr(OLD.at, 1, 10)) - 2440587.5 AS INTEGER) AND calls <= 0;
END;
