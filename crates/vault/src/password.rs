//! Passwords: what may be one, and their Argon2id hashes (19 MiB, 2 passes,
//! 1 lane; OWASP Password Storage). Slow on purpose: call it off the async threads.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};

use argon2::password_hash::phc::PasswordHash;
use argon2::{Algorithm, Argon2, Params, PasswordHasher, PasswordVerifier, Version};
use secrecy::{ExposeSecret, SecretString};
use unicode_normalization::UnicodeNormalization;
use zeroize::Zeroizing;

use crate::random::random;

/// Characters that a password has at least.
pub const MIN_PASSWORD_CHARS: usize = 10;
/// Bytes that a password has at most, so that hashing one is bounded.
pub const MAX_PASSWORD_BYTES: usize = 1_024;

/// Why a text may not be a password.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PasswordError {
    #[error("a password has at least {MIN_PASSWORD_CHARS} characters")]
    TooShort,
    #[error("a password has at most {MAX_PASSWORD_BYTES} bytes")]
    TooLong,
    #[error("a password must not be one character repeated")]
    OneCharacter,
    #[error("a password must not be the e-mail address")]
    IsEmail,
}

/// Hashes and verifies passwords; keeps one hash that no password has, so that an
/// unknown account takes as long as a known one.
pub struct Passwords {
    argon2: Argon2<'static>,
    nobody: String,
    runs: AtomicU64,
}

impl fmt::Debug for Passwords {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Passwords")
    }
}

/// As little memory and as few passes as the algorithm knows.
const LEAST: Params = match Params::new(Params::MIN_M_COST, Params::MIN_T_COST, 1, None) {
    Ok(params) => params,
    Err(_) => unreachable!(),
};

impl Default for Passwords {
    fn default() -> Self {
        Self::new()
    }
}

impl Passwords {
    /// With the cost that OWASP recommends for Argon2id: 19 MiB, two passes.
    pub fn new() -> Self {
        Self::of(Params::DEFAULT)
    }

    /// With the least cost there is: for tests that are about something else and sign in a hundred times.
    pub fn without_cost() -> Self {
        Self::of(LEAST)
    }

    fn of(params: Params) -> Self {
        let (memory, passes) = (params.m_cost(), params.t_cost());
        // A salt and a hash of the usual lengths.
        let nobody = format!("$argon2id$v=19$m={memory},t={passes},p=1${:A<22}${:A<43}", "", "");
        let argon2 = Argon2::new(Algorithm::Argon2id, Version::V0x13, params);
        Self { argon2, nobody, runs: AtomicU64::new(0) }
    }

    /// Says what is wrong with a new password, if anything.
    pub fn check(password: &SecretString, email: &str) -> Result<(), PasswordError> {
        let text = password.expose_secret();
        if text.len() > MAX_PASSWORD_BYTES {
            return Err(PasswordError::TooLong);
        }
        if text.chars().count() < MIN_PASSWORD_CHARS {
            return Err(PasswordError::TooShort);
        }
        let first = text.chars().next();
        if text.chars().all(|c| Some(c) == first) {
            return Err(PasswordError::OneCharacter);
        }
        if text.trim().eq_ignore_ascii_case(email) {
            return Err(PasswordError::IsEmail);
        }
        Ok(())
    }

    /// The hash to store, as a PHC string with its parameters and a new salt.
    pub fn hash(&self, password: &SecretString) -> String {
        self.runs.fetch_add(1, Ordering::Relaxed);
        hash(&self.argon2, &prepared(password))
    }

    /// How often it was hashed since the start, for verifying too: what two answers must have in common.
    pub fn runs(&self) -> u64 {
        self.runs.load(Ordering::Relaxed)
    }

    /// Whether the password belongs to the stored hash. `None` (no such account) takes as long and is false.
    pub fn verify(&self, password: &SecretString, stored: Option<&str>) -> bool {
        if password.expose_secret().len() > MAX_PASSWORD_BYTES {
            return false;
        }
        self.runs.fetch_add(1, Ordering::Relaxed);
        let known = stored.is_some();
        let parsed = PasswordHash::new(stored.unwrap_or(&self.nobody));
        let matches = parsed
            .is_ok_and(|parsed| self.argon2.verify_password(&prepared(password), &parsed).is_ok());
        known && matches
    }

    /// Whether the stored hash was made with less work than is done today.
    pub fn is_outdated(&self, stored: &str) -> bool {
        let today = self.argon2.params();
        PasswordHash::new(stored).ok().and_then(|parsed| Params::try_from(&parsed).ok()).is_none_or(
            |params| params.m_cost() < today.m_cost() || params.t_cost() < today.t_cost(),
        )
    }
}

/// The bytes that are hashed: NFKC, so that the same password typed on another keyboard is the same.
fn prepared(password: &SecretString) -> Zeroizing<Vec<u8>> {
    Zeroizing::new(password.expose_secret().nfkc().collect::<String>().into_bytes())
}

fn hash(argon2: &Argon2<'_>, password: &[u8]) -> String {
    argon2
        .hash_password_with_salt(password, &random::<16>())
        .expect("the default parameters and a 16 byte salt are valid")
        .to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn secret(text: &str) -> SecretString {
        SecretString::from(text.to_owned())
    }

    #[test]
    fn a_hash_knows_its_password_alone() {
        let passwords = Passwords::new();
        let stored = passwords.hash(&secret("correct horse"));
        assert!(stored.starts_with("$argon2id$v=19$m=19456,t=2,p=1$"), "{stored}");
        assert!(passwords.verify(&secret("correct horse"), Some(&stored)));
        assert!(!passwords.verify(&secret("correct horsf"), Some(&stored)));
        assert!(!passwords.verify(&secret("correct horse"), None));
        assert!(!passwords.verify(&secret("correct horse"), Some("not a hash")));
        assert!(!passwords.verify(&secret(&"a".repeat(1_025)), Some(&stored)));
        assert_ne!(stored, passwords.hash(&secret("correct horse")));
        assert!(!passwords.is_outdated(&stored));
        assert!(passwords.is_outdated(&stored.replace("m=19456", "m=4096")));
    }

    #[test]
    fn an_unknown_account_costs_what_a_known_one_costs() {
        for passwords in [Passwords::new(), Passwords::without_cost()] {
            let params = |text: &str| {
                let parsed = PasswordHash::new(text).expect("a PHC string");
                assert_eq!(parsed.hash.map(|hash| hash.len()), Some(32), "{text}");
                Params::try_from(&parsed).expect("its parameters")
            };
            assert_eq!(
                params(&passwords.nobody),
                params(&passwords.hash(&secret("correct horse")))
            );
        }
    }

    #[test]
    fn the_same_letters_typed_otherwise_are_the_same_password() {
        let passwords = Passwords::new();
        let stored = passwords.hash(&secret("Ångström-café"));
        assert!(passwords.verify(&secret("A\u{30a}ngstro\u{308}m-cafe\u{301}"), Some(&stored)));
    }

    #[test]
    fn what_may_be_a_password() {
        let mail = "someone@example.test";
        for (text, expected) in [
            ("tiny", Err(PasswordError::TooShort)),
            ("äöüäöüäöü", Err(PasswordError::TooShort)),
            ("aaaaaaaaaaaa", Err(PasswordError::OneCharacter)),
            ("Someone@Example.test", Err(PasswordError::IsEmail)),
            ("a little secret", Ok(())),
            ("  \u{0}\u{202e} odd but long", Ok(())),
        ] {
            assert_eq!(Passwords::check(&secret(text), mail), expected, "{text}");
        }
        assert_eq!(Passwords::check(&secret(&"ab".repeat(513)), mail), Err(PasswordError::TooLong));
    }
}
