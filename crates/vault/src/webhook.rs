//! Signatures of webhooks, as the Standard Webhooks specification has them: HMAC-SHA-256 over
//! `id.timestamp.body`, under a secret that is written `whsec_` and base64.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit, Mac};
use secrecy::SecretString;
use sha2::Sha256;
use zeroize::Zeroizing;

use crate::random::random;

const PREFIX: &str = "whsec_";

/// A webhook's shared secret.
pub struct WebhookSecret(Zeroizing<Vec<u8>>);

impl std::fmt::Debug for WebhookSecret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("WebhookSecret")
    }
}

impl WebhookSecret {
    /// A new one, of 32 random bytes.
    pub fn generate() -> Self {
        Self(Zeroizing::new(random::<32>().to_vec()))
    }

    /// Reads what [`Self::text`] wrote.
    pub fn parse(text: &str) -> Option<Self> {
        let bytes = STANDARD.decode(text.strip_prefix(PREFIX)?).ok()?;
        (!bytes.is_empty()).then(|| Self(Zeroizing::new(bytes)))
    }

    /// The form that receivers are given.
    pub fn text(&self) -> SecretString {
        SecretString::from(format!("{PREFIX}{}", STANDARD.encode(&*self.0)))
    }

    /// The signature of one message, `v1,` and base64.
    pub fn sign(&self, id: &str, timestamp: i64, body: &[u8]) -> String {
        let mut mac = self.mac();
        mac.update(format!("{id}.{timestamp}.").as_bytes());
        mac.update(body);
        format!("v1,{}", STANDARD.encode(mac.finalize().into_bytes()))
    }

    fn mac(&self) -> Hmac<Sha256> {
        Hmac::<Sha256>::new_from_slice(&self.0).expect("HMAC takes any key length")
    }
}

#[cfg(test)]
mod tests {
    use secrecy::ExposeSecret;

    use super::*;

    #[test]
    fn the_specifications_own_example_holds() {
        let secret =
            WebhookSecret::parse("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw").expect("a secret");
        let signature =
            secret.sign("msg_p5jXN8AQM9LWM0D4loKWxJek", 1_614_265_330, br#"{"test": 2432232314}"#);
        assert_eq!(signature, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
    }

    #[test]
    fn a_secret_survives_its_text_and_signs_all_three_parts() {
        let secret = WebhookSecret::generate();
        let again = WebhookSecret::parse(secret.text().expose_secret()).expect("a secret");
        let signature = secret.sign("a", 1, b"x");
        assert_eq!(again.sign("a", 1, b"x"), signature);
        for other in [again.sign("b", 1, b"x"), again.sign("a", 2, b"x"), again.sign("a", 1, b"y")]
        {
            assert_ne!(other, signature);
        }
        assert_ne!(WebhookSecret::generate().sign("a", 1, b"x"), signature);
        for odd in ["", "whsec_", "whsec_é", "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"] {
            assert!(WebhookSecret::parse(odd).is_none(), "{odd}");
        }
        assert_eq!(format!("{secret:?}"), "WebhookSecret");
    }
}
