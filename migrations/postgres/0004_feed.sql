-- The change feed. A reader asks for numbers above the last it saw, so numbers must become visible
-- in order: the row gets its final number at commit, under a lock that is then held only as long
-- as the commit itself takes.
CREATE SEQUENCE changes_seq;
CREATE TABLE changes (
    seq BIGINT NOT NULL PRIMARY KEY DEFAULT nextval('changes_seq'),
    workspace_id UUID NOT NULL,
    kind TEXT NOT NULL,
    object_id UUID NOT NULL,
    at TIMESTAMPTZ NOT NULL
);
CREATE INDEX changes_age ON changes (at);

CREATE FUNCTION sluice_number_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_advisory_xact_lock(6011087501201);
    UPDATE changes SET seq = nextval('changes_seq') WHERE seq = NEW.seq;
    PERFORM pg_notify('sluice_changes', '');
    RETURN NULL;
END
$$;
CREATE CONSTRAINT TRIGGER changes_number AFTER INSERT ON changes
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION sluice_number_change();

CREATE FUNCTION sluice_fixed_row() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'a row of % cannot be changed', TG_TABLE_NAME;
END
$$;
CREATE TRIGGER policy_versions_fixed BEFORE UPDATE ON policy_versions
    FOR EACH ROW EXECUTE FUNCTION sluice_fixed_row();
CREATE TRIGGER admin_events_fixed BEFORE UPDATE ON admin_events
    FOR EACH ROW EXECUTE FUNCTION sluice_fixed_row();
