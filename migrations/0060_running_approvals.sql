-- When the replica that runs an approved call last said so. One that fell says nothing more, and what
-- became of its call is unknown.
ALTER TABLE approvals ADD COLUMN run_seen_at TIMESTAMPTZ;
CREATE INDEX approvals_running ON approvals (run_seen_at) WHERE status = 'running';
