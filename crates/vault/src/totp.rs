//! One-time codes from an authenticator app (TOTP, RFC 6238: HMAC-SHA-1, six digits, 30 seconds, which
//! is what every app takes), and the recovery codes for when the app is gone.

use std::fmt;

use hmac::{Hmac, KeyInit, Mac};
use secrecy::SecretString;
use sha1::Sha1;
use sha2::{Digest, Sha256};
use subtle::{Choice, ConditionallySelectable, ConstantTimeEq};
use uuid::Uuid;
use zeroize::Zeroizing;

use crate::random::random;

/// How long a code is shown, in seconds.
pub const TOTP_PERIOD_S: i64 = 30;
const DIGITS: usize = 6;
const SECRET_BYTES: usize = 20;
/// Clocks may be apart by one step either way (RFC 6238 section 5.2).
const SKEW: [i64; 3] = [-1, 0, 1];
const BASE32: &[u8; 32] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
const RECOVERY_BYTES: usize = 10;
const RECOVERY_CHARS: usize = 16;

/// What an app and we share.
pub struct TotpSecret(Zeroizing<[u8; SECRET_BYTES]>);

impl fmt::Debug for TotpSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TotpSecret(…)")
    }
}

impl TotpSecret {
    /// A new random secret.
    pub fn random() -> Self {
        Self(Zeroizing::new(random()))
    }

    /// The secret as it was stored; `None` if it is of another length.
    pub fn from_slice(bytes: &[u8]) -> Option<Self> {
        bytes.try_into().ok().map(|bytes| Self(Zeroizing::new(bytes)))
    }

    /// The secret, to be sealed.
    pub fn as_bytes(&self) -> &[u8] {
        &*self.0
    }

    /// The secret as apps take it typed: base 32, without padding.
    pub fn base32(&self) -> SecretString {
        SecretString::from(base32(&*self.0))
    }

    /// The code of a step (RFC 4226 section 5.3).
    pub fn code(&self, step: i64) -> String {
        let digest = self.digest(step);
        let offset = usize::from(digest[19] & 0x0f);
        let word: [u8; 4] = digest[offset..offset + 4].try_into().unwrap_or_default();
        let number = (u32::from_be_bytes(word) & 0x7fff_ffff) % 1_000_000;
        format!("{number:06}")
    }

    fn digest(&self, step: i64) -> [u8; 20] {
        let mut mac = Hmac::<Sha1>::new_from_slice(&*self.0).expect("HMAC takes any key length");
        mac.update(&step.to_be_bytes());
        mac.finalize().into_bytes().into()
    }

    /// The step whose code this is: the present one or a neighbour. Every candidate is compared, in
    /// constant time. That a step is not used twice is for the caller to see to.
    pub fn step_of(&self, code: &str, unix_s: i64) -> Option<i64> {
        if code.len() != DIGITS {
            return None;
        }
        let present = unix_s.div_euclid(TOTP_PERIOD_S);
        let (mut found, mut step) = (Choice::from(0), 0_i64);
        for skew in SKEW {
            let candidate = present.saturating_add(skew);
            let same = self.code(candidate).as_bytes().ct_eq(code.as_bytes());
            step.conditional_assign(&candidate, same);
            found |= same;
        }
        bool::from(found).then_some(step)
    }
}

fn base32(bytes: &[u8]) -> String {
    let (mut out, mut buffer, mut bits) = (String::new(), 0_u32, 0_u32);
    for byte in bytes {
        buffer = (buffer << 8) | u32::from(*byte);
        bits += 8;
        while bits >= 5 {
            bits -= 5;
            out.push(digit(buffer >> bits));
        }
        buffer &= (1 << bits) - 1;
    }
    if bits > 0 {
        out.push(digit(buffer << (5 - bits)));
    }
    out
}

fn digit(value: u32) -> char {
    char::from(BASE32[(value & 31) as usize])
}

/// A recovery code that was just made: shown once, kept only as its hash.
#[derive(Debug)]
pub struct RecoveryCode {
    pub code: SecretString,
    pub hash: [u8; 32],
}

impl RecoveryCode {
    /// A new random code of a person: 80 bits, so a plain hash gives nothing to guess.
    pub fn random(user: Uuid) -> Self {
        let plain = Zeroizing::new(base32(&random::<RECOVERY_BYTES>()));
        let code = [&plain[..4], &plain[4..8], &plain[8..12], &plain[12..]].join("-");
        Self { code: SecretString::from(code), hash: recovery_hash(user, &plain) }
    }

    /// The hash of what a person typed, blanks, dashes and case aside; `None` if it is no such code.
    pub fn hash_of(user: Uuid, typed: &str) -> Option<[u8; 32]> {
        let plain: Zeroizing<String> = Zeroizing::new(
            typed
                .chars()
                .filter(|c| !c.is_whitespace() && *c != '-')
                .map(|c| c.to_ascii_uppercase())
                .take(RECOVERY_CHARS + 1)
                .collect(),
        );
        let fits = plain.len() == RECOVERY_CHARS && plain.bytes().all(|b| BASE32.contains(&b));
        fits.then(|| recovery_hash(user, &plain))
    }
}

fn recovery_hash(user: Uuid, plain: &str) -> [u8; 32] {
    let mut hash = Sha256::new();
    hash.update(b"recovery code\0");
    hash.update(user.as_bytes());
    hash.update(plain.as_bytes());
    hash.finalize().into()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use secrecy::ExposeSecret;

    use super::*;

    fn rfc() -> TotpSecret {
        TotpSecret::from_slice(b"12345678901234567890").expect("twenty bytes")
    }

    /// RFC 6238 appendix B, SHA-1, cut to six digits as section 5.3 of RFC 4226 does it.
    #[test]
    fn the_vectors_of_the_rfc() {
        for (unix_s, code) in [
            (59, "287082"),
            (1_111_111_109, "081804"),
            (1_111_111_111, "050471"),
            (1_234_567_890, "005924"),
            (2_000_000_000, "279037"),
            (20_000_000_000, "353130"),
        ] {
            let step = unix_s / TOTP_PERIOD_S;
            assert_eq!(rfc().code(step), code, "{unix_s}");
            assert_eq!(rfc().step_of(code, unix_s), Some(step));
        }
    }

    /// RFC 4226 appendix D.
    #[test]
    fn the_vectors_of_the_counter() {
        let codes = [
            "755224", "287082", "359152", "969429", "338314", "254676", "287922", "162583",
            "399871", "520489",
        ];
        for (step, code) in (0..).zip(codes) {
            assert_eq!(rfc().code(step), code);
        }
    }

    #[test]
    fn a_neighbour_of_the_present_step_is_taken_and_no_other() {
        let now = 1_700_000_000;
        let step = now / TOTP_PERIOD_S;
        for (away, taken) in [(-2, false), (-1, true), (0, true), (1, true), (2, false)] {
            let code = rfc().code(step + away);
            let found = rfc().step_of(&code, now);
            assert_eq!(found, taken.then_some(step + away), "{away}");
        }
        for odd in ["", "12345", "1234567", "abcdef", "２８７０８２"] {
            assert_eq!(rfc().step_of(odd, now), None, "{odd}");
        }
        assert_eq!(rfc().step_of("000000", i64::MAX), None);
        assert_eq!(TotpSecret::from_slice(b"short").map(|_| ()), None);
    }

    /// RFC 4648 section 10, without padding.
    #[test]
    fn base_32() {
        for (bytes, text) in [
            ("", ""),
            ("f", "MY"),
            ("fo", "MZXQ"),
            ("foo", "MZXW6"),
            ("foob", "MZXW6YQ"),
            ("fooba", "MZXW6YTB"),
            ("foobar", "MZXW6YTBOI"),
        ] {
            assert_eq!(base32(bytes.as_bytes()), text);
        }
        assert_eq!(rfc().base32().expose_secret(), "GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ");
    }

    #[test]
    fn a_recovery_code_is_known_however_it_is_typed_and_is_one_persons() {
        let user = Uuid::from_u128(1);
        let made = RecoveryCode::random(user);
        let code = made.code.expose_secret();
        assert_eq!(code.len(), 19);
        for typed in [code.to_owned(), code.to_lowercase(), format!(" {} ", code.replace('-', " "))]
        {
            assert_eq!(RecoveryCode::hash_of(user, &typed), Some(made.hash), "{typed}");
        }
        assert_ne!(RecoveryCode::hash_of(Uuid::from_u128(2), code), Some(made.hash));
        for odd in ["", "123456", &format!("{code}A"), "ABCD-EFGH-IJKL-MNO1"] {
            assert_eq!(RecoveryCode::hash_of(user, odd), None, "{odd}");
        }
        assert_ne!(RecoveryCode::random(user).hash, made.hash);
        assert!(!format!("{:?} {:?}", made, rfc()).contains(&code[..4]));
    }

    proptest! {
        #[test]
        fn any_text_is_read_without_panic(text in "\\PC{0,40}", at: i64) {
            let _ = rfc().step_of(&text, at);
            let _ = RecoveryCode::hash_of(Uuid::nil(), &text);
        }
    }
}
