//! The master keys: read from `id:base64,id2:base64`, the first is current,
//! the others still open what they sealed. Everything else derives from them.

use std::fmt;

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE};
use hkdf::Hkdf;
use secrecy::{ExposeSecret, SecretString};
use sha2::Sha256;
use zeroize::Zeroizing;

use crate::random::random;

const MAX_ID_CHARS: usize = 32;

/// Why a list of master keys cannot be used. Positions count from 1; no key is ever in the text.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum KeysError {
    #[error("no master key is given; write `id:base64`, where the base64 is 32 random bytes")]
    Empty,
    #[error("master key {0} has no id; write `id:base64`")]
    NoId(usize),
    #[error("the id of master key {0} is not 1 to {MAX_ID_CHARS} letters, digits, `-` or `_`")]
    BadId(usize),
    #[error("master key `{0}` is not base64")]
    NotBase64(String),
    #[error("master key `{id}` has {bytes} bytes instead of 32")]
    WrongLength { id: String, bytes: usize },
    #[error("master key `{0}` is not random; make one with `openssl rand -base64 32`")]
    NotRandom(String),
    #[error("the id `{0}` is given to two master keys")]
    Twice(String),
}

pub(crate) struct MasterKey {
    pub(crate) id: String,
    secret: Zeroizing<[u8; 32]>,
}

impl MasterKey {
    /// A key for one purpose, by HKDF-SHA-256.
    pub(crate) fn derive(&self, label: &str) -> Zeroizing<[u8; 32]> {
        let mut key = Zeroizing::new([0; 32]);
        Hkdf::<Sha256>::new(Some(b"sluice"), &*self.secret)
            .expand(label.as_bytes(), &mut *key)
            .expect("32 bytes are within what HKDF-SHA-256 gives");
        key
    }
}

/// Seals, opens, signs and derives with the master keys.
pub struct Vault {
    pub(crate) keys: Vec<MasterKey>,
}

impl fmt::Debug for Vault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ids: Vec<_> = self.keys.iter().map(|key| &key.id).collect();
        f.debug_struct("Vault").field("key_ids", &ids).finish_non_exhaustive()
    }
}

impl Vault {
    /// Reads a list such as `2026:base64,2025:base64`; commas or line ends separate.
    pub fn from_keys(text: &SecretString) -> Result<Self, KeysError> {
        let entries = text.expose_secret().split([',', '\n']).map(str::trim);
        let mut keys: Vec<MasterKey> = Vec::new();
        for (index, entry) in entries.filter(|entry| !entry.is_empty()).enumerate() {
            let key = read_key(index + 1, entry)?;
            if keys.iter().any(|known| known.id == key.id) {
                return Err(KeysError::Twice(key.id));
            }
            keys.push(key);
        }
        if keys.is_empty() { Err(KeysError::Empty) } else { Ok(Self { keys }) }
    }

    /// The id of the key that seals now.
    pub fn current_key_id(&self) -> &str {
        &self.current().id
    }

    /// A key for one purpose, derived from the current master key.
    pub fn derive(&self, label: &str) -> Zeroizing<[u8; 32]> {
        self.current().derive(label)
    }

    pub(crate) fn current(&self) -> &MasterKey {
        // `from_keys` refuses an empty list.
        &self.keys[0]
    }

    pub(crate) fn key(&self, id: &[u8]) -> Option<&MasterKey> {
        self.keys.iter().find(|key| key.id.as_bytes() == id)
    }
}

fn read_key(position: usize, entry: &str) -> Result<MasterKey, KeysError> {
    let (id, encoded) = entry.split_once(':').ok_or(KeysError::NoId(position))?;
    let good = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    if id.is_empty() || id.len() > MAX_ID_CHARS || !id.bytes().all(good) {
        return Err(KeysError::BadId(position));
    }
    let id = id.to_owned();
    let mut padded = Zeroizing::new(encoded.trim().trim_end_matches('=').to_owned());
    while !padded.len().is_multiple_of(4) {
        padded.push('=');
    }
    let decoded =
        STANDARD.decode(padded.as_bytes()).or_else(|_| URL_SAFE.decode(padded.as_bytes()));
    let bytes = Zeroizing::new(decoded.map_err(|_| KeysError::NotBase64(id.clone()))?);
    let Ok(secret) = <[u8; 32]>::try_from(bytes.as_slice()) else {
        return Err(KeysError::WrongLength { id, bytes: bytes.len() });
    };
    if secret.iter().all(|byte| *byte == secret[0]) {
        return Err(KeysError::NotRandom(id));
    }
    Ok(MasterKey { id, secret: Zeroizing::new(secret) })
}

/// A new `id:base64` entry.
pub fn generate_master_key(id: &str) -> SecretString {
    let key = Zeroizing::new(random::<32>());
    SecretString::from(format!("{id}:{}", STANDARD.encode(*key)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Vault, KeysError> {
        Vault::from_keys(&SecretString::from(text.to_owned()))
    }

    const A: &str = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";

    #[test]
    fn the_first_key_is_current() {
        let unpadded = A.trim_end_matches('=');
        let vault = read(&format!("new:{A}, old:{unpadded}\n")).expect("two keys");
        assert_eq!(vault.current_key_id(), "new");
        assert!(vault.key(b"old").is_some());
        let made = generate_master_key("made");
        assert!(Vault::from_keys(&made).is_ok());
    }

    #[test]
    fn bad_lists_are_told_without_the_key() {
        let short = "c2hvcnQ=";
        let zeros = "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=";
        let table = [
            (String::new(), KeysError::Empty),
            (" , \n".to_owned(), KeysError::Empty),
            (A.to_owned(), KeysError::NoId(1)),
            (format!("a:{A},{A}"), KeysError::NoId(2)),
            (format!(":{A}"), KeysError::BadId(1)),
            (format!("a b:{A}"), KeysError::BadId(1)),
            ("a:se!cret".to_owned(), KeysError::NotBase64("a".to_owned())),
            (format!("a:{short}"), KeysError::WrongLength { id: "a".to_owned(), bytes: 5 }),
            (format!("a:{zeros}"), KeysError::NotRandom("a".to_owned())),
            (format!("a:{A},a:{A}"), KeysError::Twice("a".to_owned())),
        ];
        for (text, expected) in table {
            let error = read(&text).expect_err(&text);
            assert_eq!(error, expected, "{text}");
            assert!(!error.to_string().contains("se!cret"));
        }
    }

    #[test]
    fn labels_separate_keys_and_debug_shows_only_ids() {
        let vault = read(&format!("k:{A}")).expect("a key");
        assert_ne!(*vault.derive("a"), *vault.derive("b"));
        assert_eq!(*vault.derive("a"), *vault.derive("a"));
        let shown = format!("{vault:?}");
        assert!(
            shown.contains('k') && !shown.contains("AAEC") && !shown.contains("1, 2"),
            "{shown}"
        );
    }
}
