-- A second factor at sign-in. The secret that an authenticator app shares is sealed under the master
-- keys; a factor without confirmed_at was begun and asks for nothing yet. last_step is the newest time
-- step whose code was used: none is taken twice.
CREATE TABLE totp_factors (
    user_id UUID NOT NULL PRIMARY KEY REFERENCES users (id) ON DELETE CASCADE,
    sealed_secret BYTEA NOT NULL,
    created_at TIMESTAMPTZ NOT NULL,
    confirmed_at TIMESTAMPTZ,
    last_step BIGINT NOT NULL
);

-- Codes for when the app is gone; each works once. Only hashes are kept.
CREATE TABLE recovery_codes (
    user_id UUID NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    code_hash BYTEA NOT NULL,
    used_at TIMESTAMPTZ,
    PRIMARY KEY (user_id, code_hash)
);

-- Logins that passed their first factor and wait for the second. Apart from login_sessions, so that
-- nothing can take one for a login.
CREATE TABLE half_logins (
    id UUID NOT NULL PRIMARY KEY,
    user_id UUID NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    token_hash BYTEA NOT NULL,
    created_at TIMESTAMPTZ NOT NULL,
    expires_at TIMESTAMPTZ NOT NULL
);
CREATE UNIQUE INDEX half_logins_token ON half_logins (token_hash);
CREATE INDEX half_logins_user ON half_logins (user_id);
CREATE INDEX half_logins_expiry ON half_logins (expires_at);
