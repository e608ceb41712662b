//! Password and token hashes, token formats, envelope encryption. Knows no
//! database and no HTTP; whoever stores the results names the row.

mod base62;
mod cbor;
mod headers;
mod jwt;
mod keyfile;
mod keys;
mod mac;
mod password;
mod random;
mod seal;
mod token;
mod totp;
mod webauthn;
mod webhook;

pub use headers::UpstreamHeaders;
pub use jwt::{Jwks, JwtError};
pub use keyfile::{KeyFileError, load_or_create};
pub use keys::{KeysError, Vault, generate_master_key};
pub use password::{MAX_PASSWORD_BYTES, MIN_PASSWORD_CHARS, PasswordError, Passwords};
pub use random::{random_word, same};
pub use seal::{Place, SealError};
pub use token::{Issued, TokenHash, TokenKind, parse_token};
pub use totp::{RecoveryCode, TOTP_PERIOD_S, TotpSecret};
pub use webauthn::{
    Asserted, Assertion, MAX_CREDENTIAL_ID, NewPasskey, PASSKEY_ALGORITHMS, PasskeyError,
    PasskeyKey, RelyingParty, asserted, challenge_of, registered,
};
pub use webhook::WebhookSecret;
