-- Copies of one server with its policy and grant, and calls of thirty days.
SET sluice.workspace = '*';
SET statement_timeout = 0;
SET work_mem = '256MB';
SET maintenance_work_mem = '512MB';
BEGIN;
CREATE TEMPORARY TABLE numbers AS SELECT generate_series(1, @grants) AS n;

INSERT INTO servers (id, workspace_id, name, name_key, upstream_url, settings, sealed_headers, header_names,
        is_example, revision, tools_read, last_read_at, protocol_version, server_name, created_by, created_at, updated_at)
    SELECT gen_random_uuid(), s.workspace_id, 'server ' || n.n, 'server ' || n.n, s.upstream_url, s.settings, NULL,
        s.header_names, FALSE, 1, s.tools_read, s.last_read_at, s.protocol_version, s.server_name,
        s.created_by, s.created_at, s.updated_at
    FROM servers s, numbers n WHERE s.id = @server AND n.n < @servers;
INSERT INTO tools (id, workspace_id, server_id, name, definition, hash, reviewed_definition, reviewed_hash,
        reviewed_at, state, category, severity, rating, findings, first_seen_at, changed_at, shown_at)
    SELECT gen_random_uuid(), t.workspace_id, s.id, t.name, t.definition, t.hash, t.reviewed_definition, t.reviewed_hash,
        t.reviewed_at, t.state, t.category, t.severity, t.rating, t.findings, t.first_seen_at, t.changed_at, t.shown_at
    FROM tools t, servers s WHERE t.server_id = @server AND s.id <> @server;
INSERT INTO policies (id, workspace_id, server_id, name, name_key, kind, version, created_by, created_at, updated_at)
    SELECT gen_random_uuid(), p.workspace_id, s.id, p.name, p.name_key, p.kind, p.version, p.created_by, p.created_at, p.updated_at
    FROM policies p, servers s WHERE p.id = @policy AND s.id <> @server;
INSERT INTO policy_versions (workspace_id, policy_id, version, document, author, note, created_at)
    SELECT v.workspace_id, p.id, v.version, v.document, v.author, v.note, v.created_at
    FROM policy_versions v, policies p WHERE v.policy_id = @policy AND p.id <> @policy;
CREATE TEMPORARY TABLE of (k INTEGER PRIMARY KEY, server_id UUID, policy_id UUID);
INSERT INTO of SELECT row_number() OVER (ORDER BY id) - 1, server_id, id FROM policies;
INSERT INTO grants (id, workspace_id, server_id, label, label_key, token_hash, last4, policy_id, observe, networks,
        revision, created_by, created_at, updated_at, last_used_at)
    SELECT gen_random_uuid(), g.workspace_id, of.server_id, 'agent ' || n.n, 'agent ' || n.n, decode(md5(random()::text) || md5(random()::text), 'hex'), 'wxyz', of.policy_id,
        FALSE, g.networks, 1, g.created_by, g.created_at, g.updated_at, g.created_at
    FROM grants g, numbers n JOIN of ON of.k = n.n % @servers WHERE g.id = @grant AND n.n < @grants;
CREATE TEMPORARY TABLE who (k INTEGER PRIMARY KEY, server_id UUID, grant_id UUID, policy_id UUID, label TEXT);
INSERT INTO who SELECT row_number() OVER (ORDER BY id) - 1, server_id, id, policy_id, label FROM grants;
CREATE TEMPORARY TABLE what (k INTEGER PRIMARY KEY, tool TEXT);
INSERT INTO what SELECT row_number() OVER (ORDER BY name) - 1, name FROM tools WHERE server_id = @server;

ALTER TABLE calls DISABLE TRIGGER calls_counted;
DO $$ BEGIN
    FOR back IN 0..31 LOOP
        EXECUTE format('CREATE TABLE IF NOT EXISTS calls_%s PARTITION OF calls FOR VALUES FROM (%L) TO (%L)',
            to_char((now() AT TIME ZONE 'UTC')::date - back, 'YYYYMMDD'),
            ((now() AT TIME ZONE 'UTC')::date - back)::text || ' 00:00+00',
            ((now() AT TIME ZONE 'UTC')::date - back + 1)::text || ' 00:00+00');
    END LOOP;
END $$;
DROP INDEX calls_at, calls_server, calls_grant, calls_tool, calls_outcome, calls_code;

INSERT INTO calls (workspace_id, id, server_id, grant_id, grant_label, at, method, tool, outcome, code, rule, message,
        policy_id, policy_version, observed, arguments, client_name, protocol_version, client_address,
        request_bytes, response_bytes, upstream_status, total_us, limits_us, approval_us, upstream_us)
    SELECT (SELECT workspace_id FROM servers WHERE id = @server), (lpad(to_hex(n.ms), 12, '0') || '7' || substr(md5(n.n::text), 1, 3) || '8' || substr(md5(n.n::text), 4, 15))::uuid, who.server_id, who.grant_id, who.label,
        to_timestamp(n.ms / 1000.0), 'tools/call', what.tool,
        CASE n.n % 20 WHEN 0 THEN 'denied' WHEN 1 THEN 'limited' ELSE 'allowed' END,
        CASE n.n % 20 WHEN 0 THEN 'default_deny' WHEN 1 THEN 'rate_limited' ELSE 'allowed' END,
        CASE WHEN n.n % 20 < 2 THEN '/default' ELSE '' END, '', who.policy_id, 1, FALSE, '{"code":"text"}',
        'claude-code', '2025-11-25', '192.0.2.1', 120, 400, 200, 900, 20, 0, 800
    FROM (SELECT g::bigint AS n, floor(extract(epoch FROM now()) * 1000)::bigint - 2592000000 + g::bigint * 2592000000 / @rows AS ms
          FROM generate_series(1, @rows) AS g) n
    JOIN who ON who.k = CASE WHEN n.n % 10 = 3 THEN 0 ELSE (n.n * 7919) % @grants END
    JOIN what ON what.k = n.n % (SELECT count(*) FROM what);

CREATE INDEX calls_at ON calls (workspace_id, at);
CREATE INDEX calls_server ON calls (workspace_id, server_id, id);
CREATE INDEX calls_grant ON calls (workspace_id, grant_id, id);
CREATE INDEX calls_tool ON calls (workspace_id, tool, id);
CREATE INDEX calls_outcome ON calls (workspace_id, outcome, id) WHERE outcome <> 'allowed';
CREATE INDEX calls_code ON calls (workspace_id, code, id) WHERE code <> 'allowed';
@counts
ALTER TABLE calls ENABLE TRIGGER calls_counted;
COMMIT;
VACUUM ANALYZE;
