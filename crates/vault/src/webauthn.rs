//! Passkeys: what an authenticator says when it is registered and when it signs in (Web Authentication
//! Level 2, sections 7.1 and 7.2). Attestation is not asked for, and what comes of it is not believed.
//! Knows no store: challenges that are used once, and counters, are the caller's.

use ring::digest::{SHA256, digest};
use ring::signature::{
    ECDSA_P256_SHA256_ASN1, ED25519, RSA_PKCS1_2048_8192_SHA256, RsaPublicKeyComponents,
    UnparsedPublicKey,
};
use serde::Deserialize;
use subtle::ConstantTimeEq;
use url::Url;

use crate::cbor::{self, Item};

/// Bytes of a credential's id at most (section 4).
pub const MAX_CREDENTIAL_ID: usize = 1_023;
/// Bytes of the texts that a browser sends.
const MAX_BYTES: usize = 16 * 1024;
/// Algorithms of COSE (RFC 9053), as a browser is offered them, the one liked best first.
pub const PASSKEY_ALGORITHMS: [i64; 3] = [EDDSA, ES256, RS256];
const ES256: i64 = -7;
const EDDSA: i64 = -8;
const RS256: i64 = -257;

// Flags of the authenticator data (section 6.1).
const USER_PRESENT: u8 = 1;
const USER_VERIFIED: u8 = 1 << 2;
const BACKUP_ELIGIBLE: u8 = 1 << 3;
const BACKED_UP: u8 = 1 << 4;
const HAS_CREDENTIAL: u8 = 1 << 6;
const HAS_EXTENSIONS: u8 = 1 << 7;

/// Why an authenticator is not believed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PasskeyError {
    #[error("what came from the browser is not of the form that WebAuthn gives it")]
    Malformed,
    #[error("it was made for another purpose")]
    Purpose,
    #[error("it answers another question than the one that was asked")]
    Challenge,
    #[error("it was made on another site")]
    Origin,
    #[error("the authenticator made it for another site")]
    RelyingParty,
    #[error("nobody touched the authenticator")]
    NotPresent,
    #[error("the authenticator did not check who touched it, by a PIN, a finger or a face")]
    NotVerified,
    #[error("its algorithm is none that was offered")]
    Algorithm,
    #[error("its signature is wrong")]
    Signature,
    #[error("its counter went back, so the passkey may have been copied")]
    Counter,
}

/// The site that passkeys are made for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RelyingParty {
    /// The host's name.
    pub id: String,
    /// As a browser writes it.
    pub origin: String,
}

impl RelyingParty {
    /// `None` where browsers make no passkeys: without https, unless on this machine, and for hosts
    /// that have no name.
    pub fn of(public_url: &Url) -> Option<Self> {
        let url::Host::Domain(name) = public_url.host()? else { return None };
        let here = name == "localhost" || name.ends_with(".localhost");
        let safe = public_url.scheme() == "https" || public_url.scheme() == "http" && here;
        let origin = public_url.origin().ascii_serialization();
        safe.then(|| Self { id: name.to_owned(), origin })
    }
}

/// A passkey's public key, as it is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PasskeyKey {
    pub algorithm: i64,
    /// Of ES256 the uncompressed point, of `EdDSA` the 32 bytes, of RS256 the modulus with its length and the
    /// exponent.
    pub key: Vec<u8>,
}

/// A passkey that was just made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewPasskey {
    pub credential: Vec<u8>,
    pub key: PasskeyKey,
    pub counter: u32,
    pub user_verified: bool,
    /// Kept by a provider of passkeys as well, not on one device alone.
    pub backed_up: bool,
}

/// What a passkey proved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Asserted {
    pub counter: u32,
    pub user_verified: bool,
}

/// What a browser sends of a passkey that signs in.
#[derive(Debug, Clone, Copy)]
pub struct Assertion<'a> {
    pub client_data: &'a [u8],
    pub authenticator_data: &'a [u8],
    pub signature: &'a [u8],
}

/// What the browser signed for: its own account of the ceremony (section 5.8.1).
#[derive(Debug, Deserialize)]
struct ClientData {
    #[serde(rename = "type")]
    kind: String,
    challenge: String,
    origin: String,
    #[serde(rename = "crossOrigin", default)]
    cross_origin: bool,
}

/// The challenge that the browser says it answers, as it was given out; whether it is ours is not known yet.
pub fn challenge_of(client_data: &[u8]) -> Option<String> {
    read_client_data(client_data).ok().map(|data| data.challenge)
}

fn read_client_data(bytes: &[u8]) -> Result<ClientData, PasskeyError> {
    if bytes.len() > MAX_BYTES {
        return Err(PasskeyError::Malformed);
    }
    serde_json::from_slice(bytes).map_err(|_| PasskeyError::Malformed)
}

/// Steps 5 to 9 of section 7.1 and 11 to 14 of section 7.2.
fn check_client_data(
    site: &RelyingParty,
    kind: &str,
    challenge: &str,
    bytes: &[u8],
) -> Result<(), PasskeyError> {
    let data = read_client_data(bytes)?;
    if data.kind != kind {
        return Err(PasskeyError::Purpose);
    }
    if !bool::from(data.challenge.as_bytes().ct_eq(challenge.as_bytes())) {
        return Err(PasskeyError::Challenge);
    }
    if data.origin != site.origin || data.cross_origin {
        return Err(PasskeyError::Origin);
    }
    Ok(())
}

/// The head of the authenticator data (section 6.1).
struct Head<'a> {
    flags: u8,
    counter: u32,
    rest: &'a [u8],
}

/// Steps 13 to 15 of section 7.1 and 15 to 17 of section 7.2.
fn check_head<'a>(
    site: &RelyingParty,
    bytes: &'a [u8],
    verified: bool,
) -> Result<Head<'a>, PasskeyError> {
    if bytes.len() > MAX_BYTES {
        return Err(PasskeyError::Malformed);
    }
    let (hash, rest) = bytes.split_at_checked(32).ok_or(PasskeyError::Malformed)?;
    let (&flags, rest) = rest.split_first().ok_or(PasskeyError::Malformed)?;
    let (counter, rest) = rest.split_first_chunk::<4>().ok_or(PasskeyError::Malformed)?;
    if !bool::from(hash.ct_eq(digest(&SHA256, site.id.as_bytes()).as_ref())) {
        return Err(PasskeyError::RelyingParty);
    }
    if flags & USER_PRESENT == 0 {
        return Err(PasskeyError::NotPresent);
    }
    if verified && flags & USER_VERIFIED == 0 {
        return Err(PasskeyError::NotVerified);
    }
    if flags & BACKED_UP != 0 && flags & BACKUP_ELIGIBLE == 0 {
        return Err(PasskeyError::Malformed);
    }
    Ok(Head { flags, counter: u32::from_be_bytes(*counter), rest })
}

/// Checks a passkey that is being registered (section 7.1).
pub fn registered(
    site: &RelyingParty,
    challenge: &str,
    client_data: &[u8],
    attestation: &[u8],
) -> Result<NewPasskey, PasskeyError> {
    check_client_data(site, "webauthn.create", challenge, client_data)?;
    if attestation.len() > MAX_BYTES {
        return Err(PasskeyError::Malformed);
    }
    let whole = cbor::read(attestation).map_err(|_| PasskeyError::Malformed)?;
    // `fmt` and `attStmt` are there and are not looked into: no attestation was asked for.
    let is_text = |item: &Item<'_>| matches!(item, Item::Text(_));
    let is_map = |item: &Item<'_>| matches!(item, Item::Map(_));
    let formed = whole.at("fmt").is_some_and(is_text) && whole.at("attStmt").is_some_and(is_map);
    let Some(Item::Bytes(data)) = whole.at("authData").filter(|_| formed) else {
        return Err(PasskeyError::Malformed);
    };
    let head = check_head(site, data, false)?;
    if head.flags & HAS_CREDENTIAL == 0 {
        return Err(PasskeyError::Malformed);
    }
    let (credential, key) = credential(head.rest, head.flags & HAS_EXTENSIONS != 0)?;
    Ok(NewPasskey {
        credential,
        key,
        counter: head.counter,
        user_verified: head.flags & USER_VERIFIED != 0,
        backed_up: head.flags & BACKED_UP != 0,
    })
}

/// The attested credential data (section 6.5.1): AAGUID, id with its length, key; then extensions.
fn credential(bytes: &[u8], extensions: bool) -> Result<(Vec<u8>, PasskeyKey), PasskeyError> {
    let (_aaguid, rest) = bytes.split_at_checked(16).ok_or(PasskeyError::Malformed)?;
    let (length, rest) = rest.split_first_chunk::<2>().ok_or(PasskeyError::Malformed)?;
    let length = usize::from(u16::from_be_bytes(*length));
    if length == 0 || length > MAX_CREDENTIAL_ID {
        return Err(PasskeyError::Malformed);
    }
    let (id, rest) = rest.split_at_checked(length).ok_or(PasskeyError::Malformed)?;
    let (key, rest) = cbor::read_one(rest).map_err(|_| PasskeyError::Malformed)?;
    match (extensions, rest) {
        (false, []) => {}
        (true, rest) if matches!(cbor::read(rest), Ok(Item::Map(_))) => {}
        _ => return Err(PasskeyError::Malformed),
    }
    Ok((id.to_vec(), cose_key(&key)?))
}

/// A key of COSE (RFC 9053 section 7.1, RFC 8230 section 4), of an algorithm that was offered.
fn cose_key(item: &Item<'_>) -> Result<PasskeyKey, PasskeyError> {
    let number = |label| match item.of(label) {
        Some(Item::Int(value)) => Some(*value),
        _ => None,
    };
    let bytes = |label| match item.of(label) {
        Some(Item::Bytes(value)) => Some(*value),
        _ => None,
    };
    let malformed = PasskeyError::Malformed;
    let algorithm = number(3).ok_or(malformed)?;
    let key = match (algorithm, number(1).ok_or(malformed)?) {
        (ES256, 2) => {
            let (x, y) = (bytes(-2).ok_or(malformed)?, bytes(-3).ok_or(malformed)?);
            if number(-1) != Some(1) || x.len() != 32 || y.len() != 32 {
                return Err(malformed);
            }
            [&[4], x, y].concat()
        }
        (EDDSA, 1) => {
            let x = bytes(-2).ok_or(malformed)?;
            if number(-1) != Some(6) || x.len() != 32 {
                return Err(malformed);
            }
            x.to_vec()
        }
        (RS256, 3) => {
            let (n, e) = (bytes(-1).ok_or(malformed)?, bytes(-2).ok_or(malformed)?);
            let length = u16::try_from(n.len()).map_err(|_| malformed)?;
            if !(256..=1_024).contains(&length) || e.is_empty() || e.len() > 8 {
                return Err(malformed);
            }
            [&length.to_be_bytes(), n, e].concat()
        }
        (ES256 | EDDSA | RS256, _) => return Err(malformed),
        _ => return Err(PasskeyError::Algorithm),
    };
    Ok(PasskeyKey { algorithm, key })
}

impl PasskeyKey {
    fn signed(&self, message: &[u8], signature: &[u8]) -> bool {
        let checked = match self.algorithm {
            ES256 => UnparsedPublicKey::new(&ECDSA_P256_SHA256_ASN1, &self.key)
                .verify(message, signature),
            EDDSA => UnparsedPublicKey::new(&ED25519, &self.key).verify(message, signature),
            RS256 => {
                let Some((length, rest)) = self.key.split_first_chunk::<2>() else { return false };
                let length = usize::from(u16::from_be_bytes(*length));
                let Some((n, e)) = rest.split_at_checked(length) else { return false };
                RsaPublicKeyComponents { n, e }.verify(
                    &RSA_PKCS1_2048_8192_SHA256,
                    message,
                    signature,
                )
            }
            _ => return false,
        };
        checked.is_ok()
    }
}

/// Checks a passkey that signs in (section 7.2). `counter` is the one that was kept; `verified`: the
/// authenticator must have checked who touched it.
pub fn asserted(
    site: &RelyingParty,
    challenge: &str,
    (key, counter): (&PasskeyKey, u32),
    assertion: Assertion<'_>,
    verified: bool,
) -> Result<Asserted, PasskeyError> {
    check_client_data(site, "webauthn.get", challenge, assertion.client_data)?;
    let data = assertion.authenticator_data;
    let head = check_head(site, data, verified)?;
    let message = [data, digest(&SHA256, assertion.client_data).as_ref()].concat();
    if assertion.signature.len() > MAX_BYTES || !key.signed(&message, assertion.signature) {
        return Err(PasskeyError::Signature);
    }
    // Step 21: 0 says that the authenticator does not count.
    if (head.counter != 0 || counter != 0) && head.counter <= counter {
        return Err(PasskeyError::Counter);
    }
    Ok(Asserted { counter: head.counter, user_verified: head.flags & USER_VERIFIED != 0 })
}

#[cfg(test)]
#[path = "webauthn_tests.rs"]
mod tests;
