//! A passkey in software, with the bytes that an authenticator and a browser would send. Every part of
//! what it says can be bent, for tests that must see it refused.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_ASN1_SIGNING, EcdsaKeyPair, Ed25519KeyPair, KeyPair as _};
use sha2::{Digest as _, Sha256};

#[derive(Debug)]
enum Key {
    Es256(EcdsaKeyPair),
    EdDsa(Ed25519KeyPair),
}

/// The passkey, and what it says of itself.
#[derive(Debug)]
pub struct SoftPasskey {
    key: Key,
    pub credential: Vec<u8>,
    /// What the browser takes the site for.
    pub origin: String,
    /// What the authenticator takes the site for.
    pub site: String,
    /// Flags of the authenticator data: 1 touched, 4 checked who touched it.
    pub flags: u8,
    /// What the next answer counts.
    pub counter: u32,
    /// Put in place of the ceremony's name.
    pub kind: Option<&'static str>,
    /// Written into the browser's account of the ceremony.
    pub cross_origin: bool,
    /// The number of the algorithm that the key claims.
    pub algorithm: i64,
}

/// What a browser sends when a passkey signs in.
#[derive(Debug, Clone)]
pub struct SoftAssertion {
    pub client_data: Vec<u8>,
    pub authenticator_data: Vec<u8>,
    pub signature: Vec<u8>,
}

impl SoftPasskey {
    /// A P-256 key for `http://localhost:8080`, touched by somebody who was checked.
    pub fn es256() -> Self {
        let random = SystemRandom::new();
        let scheme = &ECDSA_P256_SHA256_ASN1_SIGNING;
        let document = EcdsaKeyPair::generate_pkcs8(scheme, &random).expect("a key");
        let key = EcdsaKeyPair::from_pkcs8(scheme, document.as_ref(), &random).expect("its own");
        Self::with(Key::Es256(key), -7)
    }

    /// The same with an Ed25519 key.
    pub fn eddsa() -> Self {
        let document = Ed25519KeyPair::generate_pkcs8(&SystemRandom::new()).expect("a key");
        let key = Ed25519KeyPair::from_pkcs8(document.as_ref()).expect("its own");
        Self::with(Key::EdDsa(key), -8)
    }

    fn with(key: Key, algorithm: i64) -> Self {
        Self {
            key,
            credential: uuid::Uuid::new_v4().as_bytes().to_vec(),
            origin: "http://localhost:8080".to_owned(),
            site: "localhost".to_owned(),
            flags: 0b101,
            counter: 1,
            kind: None,
            cross_origin: false,
            algorithm,
        }
    }

    fn client_data(&self, kind: &str, challenge: &str) -> Vec<u8> {
        let data = serde_json::json!({
            "type": self.kind.unwrap_or(kind), "challenge": challenge, "origin": self.origin,
            "crossOrigin": self.cross_origin,
        });
        data.to_string().into_bytes()
    }

    fn head(&self, flags: u8) -> Vec<u8> {
        let mut head = Sha256::digest(&self.site).to_vec();
        head.push(self.flags | flags);
        head.extend(self.counter.to_be_bytes());
        head
    }

    /// The public key as COSE writes it.
    fn cose(&self) -> Vec<u8> {
        let small = |number: i64| {
            let (major, value) = if number < 0 { (0x20, -1 - number) } else { (0, number) };
            match u8::try_from(value).expect("small") {
                value @ 0..=23 => vec![major | value],
                value => vec![major | 0x18, value],
            }
        };
        let bytes =
            |bytes: &[u8]| [&[0x58, u8::try_from(bytes.len()).expect("short")], bytes].concat();
        let algorithm = small(self.algorithm);
        match &self.key {
            Key::Es256(key) => {
                let point = key.public_key().as_ref();
                let (x, y) = (bytes(&point[1..33]), bytes(&point[33..65]));
                [&[0xa5, 1, 2, 3], &*algorithm, &[0x20, 1, 0x21], &*x, &[0x22], &*y].concat()
            }
            Key::EdDsa(key) => {
                let x = bytes(key.public_key().as_ref());
                [&[0xa4, 1, 1, 3], &*algorithm, &[0x20, 6, 0x21], &*x].concat()
            }
        }
    }

    /// Answers a registration: the browser's account, and the attestation object.
    pub fn register(&self, challenge: &str) -> (Vec<u8>, Vec<u8>) {
        let mut data = self.head(0x40);
        data.extend([0; 16]);
        data.extend(u16::try_from(self.credential.len()).expect("short").to_be_bytes());
        data.extend(&self.credential);
        data.extend(self.cose());
        let length = u16::try_from(data.len()).expect("short").to_be_bytes();
        let mut object = vec![0xa3];
        object.extend(b"\x63fmt\x64none\x67attStmt\xa0\x68authData\x59");
        object.extend(length);
        object.extend(data);
        (self.client_data("webauthn.create", challenge), object)
    }

    /// Answers a sign-in.
    pub fn sign_in(&self, challenge: &str) -> SoftAssertion {
        let client_data = self.client_data("webauthn.get", challenge);
        let authenticator_data = self.head(0);
        let message = [&*authenticator_data, &*Sha256::digest(&client_data)].concat();
        let signature = match &self.key {
            Key::Es256(key) => {
                key.sign(&SystemRandom::new(), &message).expect("signs").as_ref().to_vec()
            }
            Key::EdDsa(key) => key.sign(&message).as_ref().to_vec(),
        };
        SoftAssertion { client_data, authenticator_data, signature }
    }

    /// Bytes as a page sends them.
    pub fn text(bytes: &[u8]) -> String {
        URL_SAFE_NO_PAD.encode(bytes)
    }
}
