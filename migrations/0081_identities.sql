-- Who a person is to an identity provider: its address and the provider's own name for the person, which
-- it gives to nobody else. An e-mail address alone never links an account.
CREATE TABLE identities (
    id UUID NOT NULL PRIMARY KEY,
    user_id UUID NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    issuer TEXT NOT NULL,
    subject TEXT NOT NULL,
    email TEXT NOT NULL,
    created_at TIMESTAMPTZ NOT NULL,
    last_used_at TIMESTAMPTZ NOT NULL
);
CREATE UNIQUE INDEX identities_subject ON identities (issuer, subject);
CREATE UNIQUE INDEX identities_user ON identities (user_id, issuer);

-- By which provider a login came in; absent where it was a password or a mailed link.
ALTER TABLE login_sessions ADD COLUMN issuer TEXT;
ALTER TABLE half_logins ADD COLUMN issuer TEXT;
