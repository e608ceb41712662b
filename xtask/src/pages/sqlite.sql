-- Copies of one server with its policy and grant, and calls of thirty days.
PRAGMA journal_mode = OFF;
PRAGMA synchronous = OFF;
PRAGMA cache_size = -2000000;
CREATE TEMPORARY TABLE numbers AS
    WITH RECURSIVE g (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM g WHERE n < @grants) SELECT n FROM g;
CREATE TEMPORARY TABLE b (n INTEGER PRIMARY KEY, v BLOB);
INSERT INTO b VALUES @bytes;

INSERT INTO servers (id, workspace_id, name, name_key, upstream_url, settings, sealed_headers, header_names,
        is_example, revision, tools_read, last_read_at, protocol_version, server_name, created_by, created_at, updated_at)
    SELECT randomblob(16), s.workspace_id, 'server ' || n.n, 'server ' || n.n, s.upstream_url, s.settings, NULL,
        s.header_names, FALSE, 1, s.tools_read, s.last_read_at, s.protocol_version, s.server_name,
        s.created_by, s.created_at, s.updated_at
    FROM servers s, numbers n WHERE s.id = @server AND n.n < @servers;
INSERT INTO tools (id, workspace_id, server_id, name, definition, hash, reviewed_definition, reviewed_hash,
        reviewed_at, state, category, severity, rating, findings, first_seen_at, changed_at, shown_at)
    SELECT randomblob(16), t.workspace_id, s.id, t.name, t.definition, t.hash, t.reviewed_definition, t.reviewed_hash,
        t.reviewed_at, t.state, t.category, t.severity, t.rating, t.findings, t.first_seen_at, t.changed_at, t.shown_at
    FROM tools t, servers s WHERE t.server_id = @server AND s.id <> @server;
INSERT INTO policies (id, workspace_id, server_id, name, name_key, kind, version, created_by, created_at, updated_at)
    SELECT randomblob(16), p.workspace_id, s.id, p.name, p.name_key, p.kind, p.version, p.created_by, p.created_at, p.updated_at
    FROM policies p, servers s WHERE p.id = @policy AND s.id <> @server;
INSERT INTO policy_versions (workspace_id, policy_id, version, document, author, note, created_at)
    SELECT v.workspace_id, p.id, v.version, v.document, v.author, v.note, v.created_at
    FROM policy_versions v, policies p WHERE v.policy_id = @policy AND p.id <> @policy;
CREATE TEMPORARY TABLE of (k INTEGER PRIMARY KEY, server_id BLOB, policy_id BLOB);
INSERT INTO of SELECT row_number() OVER (ORDER BY id) - 1, server_id, id FROM policies;
INSERT INTO grants (id, workspace_id, server_id, label, label_key, token_hash, last4, policy_id, observe, networks,
        revision, created_by, created_at, updated_at, last_used_at)
    SELECT randomblob(16), g.workspace_id, of.server_id, 'agent ' || n.n, 'agent ' || n.n, randomblob(32), 'wxyz', of.policy_id,
        FALSE, g.networks, 1, g.created_by, g.created_at, g.updated_at, g.created_at
    FROM grants g, numbers n JOIN of ON of.k = n.n % @servers WHERE g.id = @grant AND n.n < @grants;
CREATE TEMPORARY TABLE who (k INTEGER PRIMARY KEY, server_id BLOB, grant_id BLOB, policy_id BLOB, label TEXT);
INSERT INTO who SELECT row_number() OVER (ORDER BY id) - 1, server_id, id, policy_id, label FROM grants;
CREATE TEMPORARY TABLE what (k INTEGER PRIMARY KEY, tool TEXT);
INSERT INTO what SELECT row_number() OVER (ORDER BY name) - 1, name FROM tools WHERE server_id = @server;

DROP INDEX calls_at;
DROP INDEX calls_server;
DROP INDEX calls_grant;
DROP INDEX calls_tool;
DROP INDEX calls_outcome;
DROP INDEX calls_code;

INSERT INTO calls (workspace_id, id, server_id, grant_id, grant_label, at, method, tool, outcome, code, rule, message,
        policy_id, policy_version, observed, arguments, client_name, protocol_version, client_address,
        request_bytes, response_bytes, upstream_status, total_us, limits_us, approval_us, upstream_us)
    SELECT (SELECT workspace_id FROM servers WHERE id = @server), CAST((SELECT v FROM b WHERE n = (n.ms >> 40) & 255) || (SELECT v FROM b WHERE n = (n.ms >> 32) & 255) || (SELECT v FROM b WHERE n = (n.ms >> 24) & 255) || (SELECT v FROM b WHERE n = (n.ms >> 16) & 255) || (SELECT v FROM b WHERE n = (n.ms >> 8) & 255) || (SELECT v FROM b WHERE n = (n.ms >> 0) & 255) || x'7000' || x'80' || randomblob(7) AS BLOB), who.server_id, who.grant_id, who.label,
        strftime('%Y-%m-%dT%H:%M:%S', n.ms / 1000, 'unixepoch') || printf('.%03d+00:00', n.ms % 1000), 'tools/call', what.tool,
        CASE n.n % 20 WHEN 0 THEN 'denied' WHEN 1 THEN 'limited' ELSE 'allowed' END,
        CASE n.n % 20 WHEN 0 THEN 'default_deny' WHEN 1 THEN 'rate_limited' ELSE 'allowed' END,
        CASE WHEN n.n % 20 < 2 THEN '/default' ELSE '' END, '', who.policy_id, 1, FALSE, '{"code":"text"}',
        'claude-code', '2025-11-25', '192.0.2.1', 120, 400, 200, 900, 20, 0, 800
    FROM (WITH RECURSIVE g (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM g WHERE n < @rows)
          SELECT g.n, (CAST(strftime('%s', 'now') AS INTEGER) * 1000) - 2592000000 + g.n * 2592000000 / @rows AS ms FROM g) n
    JOIN who ON who.k = CASE WHEN n.n % 10 = 3 THEN 0 ELSE (n.n * 7919) % @grants END
    JOIN what ON what.k = n.n % (SELECT count(*) FROM what);

CREATE INDEX calls_at ON calls (workspace_id, at);
CREATE INDEX calls_server ON calls (workspace_id, server_id, id);
CREATE INDEX calls_grant ON calls (workspace_id, grant_id, id);
CREATE INDEX calls_tool ON calls (workspace_id, tool, id);
CREATE INDEX calls_outcome ON calls (workspace_id, outcome, id) WHERE outcome <> 'allowed';
CREATE INDEX calls_code ON calls (workspace_id, code, id) WHERE code <> 'allowed';
@counts
PRAGMA journal_mode = WAL;
