-- Links that are mailed to a person: to confirm the address, to sign in, to set a new password.
-- Only the token's hash is kept. A newer link of the same purpose ends the older ones.
CREATE TABLE account_links (
    id UUID NOT NULL PRIMARY KEY,
    user_id UUID NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    purpose TEXT NOT NULL CHECK (purpose IN ('verify', 'sign_in', 'reset')),
    token_hash BYTEA NOT NULL,
    created_at TIMESTAMPTZ NOT NULL,
    expires_at TIMESTAMPTZ NOT NULL,
    used_at TIMESTAMPTZ
);
CREATE UNIQUE INDEX account_links_token ON account_links (token_hash);
CREATE INDEX account_links_user ON account_links (user_id, purpose);
CREATE INDEX account_links_expiry ON account_links (expires_at);
