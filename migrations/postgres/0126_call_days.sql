-- The call log counted by day (UTC, days since 1970), kept by the database itself with every row that comes
-- and goes, whoever writes it: the overview reads these, not the log. `skew_low` and `skew_high` are the
-- least and the most that a row's time is after the time in its id, in milliseconds; a range of times is a
-- range of ids with them.
CREATE TABLE call_days (
    workspace_id UUID NOT NULL,
    day BIGINT NOT NULL,
    tool_call BOOLEAN NOT NULL,
    outcome TEXT NOT NULL,
    code TEXT NOT NULL,
    observed BOOLEAN NOT NULL,
    calls BIGINT NOT NULL,
    skew_low BIGINT NOT NULL,
    skew_high BIGINT NOT NULL,
    PRIMARY KEY (workspace_id, day, tool_call, outcome, code, observed)
);
CREATE TABLE call_tools (
    workspace_id UUID NOT NULL,
    day BIGINT NOT NULL,
    server_id UUID NOT NULL,
    tool TEXT NOT NULL,
    calls BIGINT NOT NULL,
    last_at TIMESTAMPTZ NOT NULL,
    PRIMARY KEY (workspace_id, day, server_id, tool)
);

CREATE FUNCTION sluice_day(at TIMESTAMPTZ) RETURNS BIGINT LANGUAGE sql STABLE
    AS $$ SELECT floor(extract(epoch FROM at) / 86400)::bigint $$;
CREATE FUNCTION sluice_skew(at TIMESTAMPTZ, id UUID) RETURNS BIGINT LANGUAGE sql STABLE
    AS $$ SELECT floor(extract(epoch FROM at) * 1000)::bigint
        - ('x' || translate(left(id::text, 13), '-', ''))::bit(48)::bigint $$;

INSERT INTO call_days
    SELECT workspace_id, sluice_day(at), tool IS NOT NULL, outcome, code, observed, count(*),
           min(sluice_skew(at, id)), max(sluice_skew(at, id))
    FROM calls GROUP BY 1, 2, 3, 4, 5, 6;
INSERT INTO call_tools
    SELECT workspace_id, sluice_day(at), server_id, tool, count(*), max(at)
    FROM calls WHERE tool IS NOT NULL GROUP BY 1, 2, 3, 4;

-- In the order of the keys, so that two writers cannot wait for each other.
CREATE FUNCTION sluice_count_calls() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO call_days AS kept
        SELECT workspace_id, sluice_day(at), tool IS NOT NULL, outcome, code, observed, count(*),
               min(sluice_skew(at, id)), max(sluice_skew(at, id))
        FROM came GROUP BY 1, 2, 3, 4, 5, 6 ORDER BY 1, 2, 3, 4, 5, 6
        ON CONFLICT (workspace_id, day, tool_call, outcome, code, observed) DO UPDATE
        SET calls = kept.calls + excluded.calls,
            skew_low = least(kept.skew_low, excluded.skew_low),
            skew_high = greatest(kept.skew_high, excluded.skew_high);
    INSERT INTO call_tools AS kept
        SELECT workspace_id, sluice_day(at), server_id, tool, count(*), max(at)
        FROM came WHERE tool IS NOT NULL GROUP BY 1, 2, 3, 4 ORDER BY 1, 2, 3, 4
        ON CONFLICT (workspace_id, day, server_id, tool) DO UPDATE
        SET calls = kept.calls + excluded.calls, last_at = greatest(kept.last_at, excluded.last_at);
    RETURN NULL;
END
$$;
CREATE TRIGGER calls_counted AFTER INSERT ON calls REFERENCING NEW TABLE AS came
    FOR EACH STATEMENT EXECUTE FUNCTION sluice_count_calls();

CREATE FUNCTION sluice_uncount_calls() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO call_days AS kept
        SELECT workspace_id, sluice_day(at), tool IS NOT NULL, outcome, code, observed, -count(*), 0, 0
        FROM went GROUP BY 1, 2, 3, 4, 5, 6 ORDER BY 1, 2, 3, 4, 5, 6
        ON CONFLICT (workspace_id, day, tool_call, outcome, code, observed) DO UPDATE
        SET calls = kept.calls + excluded.calls;
    INSERT INTO call_tools AS kept
        SELECT workspace_id, sluice_day(at), server_id, tool, -count(*), max(at)
        FROM went WHERE tool IS NOT NULL GROUP BY 1, 2, 3, 4 ORDER BY 1, 2, 3, 4
        ON CONFLICT (workspace_id, day, server_id, tool) DO UPDATE SET calls = kept.calls + excluded.calls;
    DELETE FROM call_days kept USING (SELECT DISTINCT workspace_id, sluice_day(at) AS day FROM went) gone
        WHERE kept.workspace_id = gone.workspace_id AND kept.day = gone.day AND kept.calls <= 0;
    DELETE FROM call_tools kept USING (SELECT DISTINCT workspace_id, sluice_day(at) AS day FROM went) gone
        WHERE kept.workspace_id = gone.workspace_id AND kept.day = gone.day AND kept.calls <= 0;
    RETURN NULL;
END
$$;
CREATE TRIGGER calls_uncounted AFTER DELETE ON calls REFERENCING OLD TABLE AS went
    FOR EACH STATEMENT EXECUTE FUNCTION sluice_uncount_calls();
