-- Passkeys (WebAuthn): a public key each, of whose private half only the person's device knows. counter is
-- the newest that its authenticator told; one that goes back is a copy.
CREATE TABLE passkeys (
    id UUID NOT NULL PRIMARY KEY,
    user_id UUID NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    credential BYTEA NOT NULL,
    algorithm BIGINT NOT NULL,
    public_key BYTEA NOT NULL,
    counter BIGINT NOT NULL,
    name TEXT NOT NULL,
    backed_up BOOLEAN NOT NULL,
    created_at TIMESTAMPTZ NOT NULL,
    last_used_at TIMESTAMPTZ
);
CREATE UNIQUE INDEX passkeys_credential ON passkeys (credential);
CREATE INDEX passkeys_user ON passkeys (user_id);

-- Questions that a passkey is to answer, each once. Only hashes are kept. Whoever signs in by a passkey
-- alone is nobody yet.
CREATE TABLE passkey_challenges (
    hash BYTEA NOT NULL PRIMARY KEY,
    user_id UUID REFERENCES users (id) ON DELETE CASCADE,
    purpose TEXT NOT NULL CHECK (purpose IN ('register', 'second', 'alone')),
    expires_at TIMESTAMPTZ NOT NULL
);
CREATE INDEX passkey_challenges_expiry ON passkey_challenges (expires_at);
