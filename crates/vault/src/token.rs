//! Bearer tokens: a prefix that says what it is, 32 random bytes in base 62
//! and a checksum, so that a secret scanner can know one and a typing error
//! costs no look-up. Only the SHA-256 is stored: with 256 random bits there is
//! nothing to guess, so no salt and no slow hash.

use std::fmt;
use std::hash::{Hash, Hasher};

use secrecy::SecretString;
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use crate::base62;
use crate::random::random;

const BODY_DIGITS: usize = 43;
const CHECKSUM_DIGITS: usize = 6;
const PREFIX_CHARS: usize = 4;
const TOKEN_CHARS: usize = PREFIX_CHARS + BODY_DIGITS + CHECKSUM_DIGITS;

/// What a token is for; its first four characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TokenKind {
    /// An agent's grant, `slg_`.
    Grant,
    /// A REST token, `slu_`.
    Api,
    /// A login session's cookie, `sls_`.
    Session,
    /// An invitation's link, `sli_`.
    Invite,
    /// A link that is mailed to a person, `sll_`.
    Link,
    /// A login that waits for its second factor, `slh_`.
    Half,
}

impl TokenKind {
    const ALL: [Self; 6] =
        [Self::Grant, Self::Api, Self::Session, Self::Invite, Self::Link, Self::Half];

    /// The four characters that a token of this kind begins with.
    pub const fn prefix(self) -> &'static str {
        match self {
            Self::Grant => "slg_",
            Self::Api => "slu_",
            Self::Session => "sls_",
            Self::Invite => "sli_",
            Self::Link => "sll_",
            Self::Half => "slh_",
        }
    }
}

/// The SHA-256 of a token: what is stored and looked up.
#[derive(Clone, Copy)]
pub struct TokenHash([u8; 32]);

impl TokenHash {
    /// The hash as stored.
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// Wraps what the database gave; `None` if it is not 32 bytes.
    pub fn from_slice(bytes: &[u8]) -> Option<Self> {
        bytes.try_into().ok().map(Self)
    }

    fn of(token: &str) -> Self {
        Self(Sha256::digest(token.as_bytes()).into())
    }
}

/// In constant time.
impl PartialEq for TokenHash {
    fn eq(&self, other: &Self) -> bool {
        self.0.ct_eq(&other.0).into()
    }
}

impl Eq for TokenHash {}

impl Hash for TokenHash {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.hash(state);
    }
}

impl fmt::Debug for TokenHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TokenHash(…)")
    }
}

/// A token that was just made: shown once, kept only as its hash and last four characters.
#[derive(Debug)]
pub struct Issued {
    pub token: SecretString,
    pub hash: TokenHash,
    pub last4: String,
}

impl Issued {
    /// A new random token.
    pub fn new(kind: TokenKind) -> Self {
        Self::from_random(kind, &random::<32>())
    }

    fn from_random(kind: TokenKind, bytes: &[u8; 32]) -> Self {
        let mut token = String::with_capacity(TOKEN_CHARS);
        token.push_str(kind.prefix());
        base62::push(&mut token, bytes, BODY_DIGITS);
        let checksum = checksum(&token);
        token.push_str(&checksum);
        let hash = TokenHash::of(&token);
        let last4 = token[TOKEN_CHARS - 4..].to_owned();
        Self { token: SecretString::from(token), hash, last4 }
    }
}

/// Reads a token: its form and checksum only, whether it is known is for the store to say.
pub fn parse_token(text: &str) -> Option<(TokenKind, TokenHash)> {
    if text.len() != TOKEN_CHARS || !text.is_ascii() {
        return None;
    }
    let (prefix, digits) = text.split_at(PREFIX_CHARS);
    let kind = TokenKind::ALL.into_iter().find(|kind| kind.prefix() == prefix)?;
    let (signed, given) = text.split_at(PREFIX_CHARS + BODY_DIGITS);
    let good = base62::is_base62(digits) && checksum(signed) == given;
    good.then(|| (kind, TokenHash::of(text)))
}

fn checksum(signed: &str) -> String {
    let digest = Sha256::digest(signed.as_bytes());
    let mut out = String::with_capacity(CHECKSUM_DIGITS);
    base62::push(&mut out, &digest[..8], CHECKSUM_DIGITS);
    out
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use secrecy::ExposeSecret;

    use super::*;

    proptest! {
        #[test]
        fn what_was_made_is_read_back(bytes: [u8; 32], kind in prop::sample::select(&TokenKind::ALL[..])) {
            let made = Issued::from_random(kind, &bytes);
            let text = made.token.expose_secret();
            prop_assert_eq!(text.len(), TOKEN_CHARS);
            prop_assert_eq!(parse_token(text), Some((kind, made.hash)));
            prop_assert!(text.ends_with(&made.last4));
        }

        #[test]
        fn one_wrong_character_is_noticed(bytes: [u8; 32], at in 0..TOKEN_CHARS, to in "[ -~]") {
            let made = Issued::from_random(TokenKind::Grant, &bytes);
            let text = made.token.expose_secret();
            let changed = format!("{}{to}{}", &text[..at], &text[at + 1..]);
            prop_assume!(changed != text);
            // `slg_` and `slu_` differ in one character, but then the checksum differs too.
            prop_assert_eq!(parse_token(&changed), None);
        }

        #[test]
        fn any_text_is_read_without_panic(text in "\\PC{0,80}") {
            let _ = parse_token(&text);
        }
    }

    #[test]
    fn two_tokens_differ_and_debug_tells_nothing() {
        let (a, b) = (Issued::new(TokenKind::Api), Issued::new(TokenKind::Api));
        assert_ne!(a.token.expose_secret(), b.token.expose_secret());
        assert_ne!(a.hash, b.hash);
        let shown = format!("{a:?}");
        assert!(!shown.contains(&a.token.expose_secret()[4..20]), "{shown}");
    }

    #[test]
    fn odd_texts_are_no_tokens() {
        let good = Issued::new(TokenKind::Grant);
        let good = good.token.expose_secret();
        for text in [
            "",
            "slg_",
            &good[..52],
            &format!("{good}0"),
            &format!(" {good}"),
            &good.to_uppercase(),
        ] {
            assert_eq!(parse_token(text), None, "{text}");
        }
        assert_eq!(parse_token(&"é".repeat(26)), None);
    }
}
