//! Signatures of short texts (HMAC-SHA-256), for form tokens and links.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

use crate::Vault;
use crate::keys::MasterKey;

impl Vault {
    /// Signs `message` for one purpose with the current key; URL-safe base64.
    pub fn sign(&self, purpose: &str, message: &[u8]) -> String {
        URL_SAFE_NO_PAD.encode(mac(self.current(), purpose, message).finalize().into_bytes())
    }

    /// Whether one of the keys signed `message` for this purpose; in constant time a key.
    pub fn verify(&self, purpose: &str, message: &[u8], signature: &str) -> bool {
        let Ok(given) = URL_SAFE_NO_PAD.decode(signature) else { return false };
        self.keys.iter().any(|key| mac(key, purpose, message).verify_slice(&given).is_ok())
    }
}

fn mac(key: &MasterKey, purpose: &str, message: &[u8]) -> Hmac<Sha256> {
    let derived = key.derive(&format!("mac:{purpose}"));
    let mut mac = Hmac::<Sha256>::new_from_slice(&*derived).expect("HMAC takes any key length");
    mac.update(message);
    mac
}

#[cfg(test)]
mod tests {
    use secrecy::{ExposeSecret, SecretString};

    use super::*;
    use crate::generate_master_key;

    #[test]
    fn a_signature_holds_for_one_purpose_and_message_over_key_changes() {
        let old = generate_master_key("old");
        let before = Vault::from_keys(&old).expect("a key");
        let new = generate_master_key("new");
        let both = format!("{},{}", new.expose_secret(), old.expose_secret());
        let after = Vault::from_keys(&SecretString::from(both)).expect("two keys");
        let signature = before.sign("csrf", b"session");
        assert!(after.verify("csrf", b"session", &signature));
        assert!(!after.verify("csrf", b"sessiom", &signature));
        assert!(!after.verify("link", b"session", &signature));
        assert!(!before.verify("csrf", b"session", &after.sign("csrf", b"session")));
        for odd in ["", "é", "AAAA", &signature[1..]] {
            assert!(!after.verify("csrf", b"session", odd), "{odd}");
        }
    }
}
