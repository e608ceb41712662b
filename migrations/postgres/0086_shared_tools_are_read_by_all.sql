-- What workspaces gave to the public catalogue is read by all: of several the first feeds the record. Only its
-- own does a workspace write. The rest of the function is as it was.
CREATE OR REPLACE FUNCTION sluice_guard_tenants() RETURNS integer LANGUAGE plpgsql AS $$
DECLARE
    guarded integer := 0;
    place record;
BEGIN
    FOR place IN
        SELECT c.relname AS name, a.attname AS of
        FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid
        WHERE c.relnamespace = current_schema()::regnamespace AND c.relkind IN ('r', 'p')
          AND NOT a.attisdropped AND NOT c.relforcerowsecurity AND NOT c.relispartition
          AND (a.attname = 'workspace_id' OR (c.relname = 'workspaces' AND a.attname = 'id'))
    LOOP
        EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', place.name);
        EXECUTE format('ALTER TABLE %I FORCE ROW LEVEL SECURITY', place.name);
        -- Each side is asked for once a query, not once a row.
        EXECUTE format(
            'CREATE POLICY sluice_workspace ON %I USING (
                 (SELECT current_setting(''sluice.workspace'', true)) = ''*''
                 OR %I = (SELECT nullif(nullif(current_setting(''sluice.workspace'', true), ''''), ''*'')::uuid))',
            place.name, place.of);
        IF place.name = 'catalogue_shared' THEN
            CREATE POLICY sluice_public ON catalogue_shared FOR SELECT USING (true);
        END IF;
        guarded := guarded + 1;
    END LOOP;
    RETURN guarded;
END
$$;
