//! Signed tokens of identity providers (JWS, RFC 7515, in its compact form): which key signed one, and
//! nothing about what it claims. Only algorithms with public keys are known, so that neither `none` nor
//! a public key taken for a shared secret can pass.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED, ED25519, RSA_PKCS1_2048_8192_SHA256, RSA_PSS_2048_8192_SHA256,
    RsaPublicKeyComponents, UnparsedPublicKey,
};
use serde_json::{Map, Value};

/// The longest token that is looked at.
const MAX_TOKEN_BYTES: usize = 32 * 1024;
/// Keys of one provider that are kept.
const MAX_KEYS: usize = 100;

/// Why a token is not believed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum JwtError {
    #[error("it is not a signed token in compact form")]
    Malformed,
    #[error("its algorithm is none that is taken: RS256, PS256, ES256 or EdDSA")]
    Algorithm,
    /// The provider may have changed its keys.
    #[error("no key of the provider fits it")]
    UnknownKey,
    #[error("its signature is wrong")]
    Signature,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Algorithm {
    Rs256,
    Ps256,
    Es256,
    EdDsa,
}

impl Algorithm {
    fn named(name: &str) -> Option<Self> {
        match name {
            "RS256" => Some(Self::Rs256),
            "PS256" => Some(Self::Ps256),
            "ES256" => Some(Self::Es256),
            "EdDSA" => Some(Self::EdDsa),
            _ => None,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Material {
    Rsa {
        n: Vec<u8>,
        e: Vec<u8>,
    },
    /// Uncompressed: 4, x, y.
    P256(Vec<u8>),
    Ed25519(Vec<u8>),
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Key {
    id: Option<String>,
    algorithm: Option<String>,
    material: Material,
}

impl Key {
    fn read(value: &Value) -> Option<Self> {
        let text = |name: &str| value.get(name).and_then(Value::as_str);
        if text("use").is_some_and(|purpose| purpose != "sig") {
            return None;
        }
        let bytes = |name: &str| URL_SAFE_NO_PAD.decode(text(name)?).ok();
        let material = match (text("kty")?, text("crv")) {
            ("RSA", _) => Material::Rsa { n: bytes("n")?, e: bytes("e")? },
            ("EC", Some("P-256")) => {
                let (x, y) = (bytes("x")?, bytes("y")?);
                (x.len() == 32 && y.len() == 32)
                    .then(|| Material::P256([vec![4], x, y].concat()))?
            }
            ("OKP", Some("Ed25519")) => Material::Ed25519(bytes("x")?),
            _ => return None,
        };
        let owned = |name| text(name).map(str::to_owned);
        Some(Self { id: owned("kid"), algorithm: owned("alg"), material })
    }

    fn fits(&self, header: &Header) -> bool {
        let id_fits = header.key_id.is_none() || header.key_id == self.id;
        let named = self.algorithm.as_deref().map(Algorithm::named);
        let algorithm_fits = named.is_none_or(|named| named == Some(header.algorithm));
        let material_fits = matches!(
            (header.algorithm, &self.material),
            (Algorithm::Rs256 | Algorithm::Ps256, Material::Rsa { .. })
                | (Algorithm::Es256, Material::P256(_))
                | (Algorithm::EdDsa, Material::Ed25519(_))
        );
        id_fits && algorithm_fits && material_fits
    }

    fn signed(&self, algorithm: Algorithm, message: &[u8], signature: &[u8]) -> bool {
        let checked = match &self.material {
            Material::Rsa { n, e } => {
                let scheme = match algorithm {
                    Algorithm::Ps256 => &RSA_PSS_2048_8192_SHA256,
                    _ => &RSA_PKCS1_2048_8192_SHA256,
                };
                RsaPublicKeyComponents { n, e }.verify(scheme, message, signature)
            }
            Material::P256(point) => {
                UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, point).verify(message, signature)
            }
            Material::Ed25519(key) => {
                UnparsedPublicKey::new(&ED25519, key).verify(message, signature)
            }
        };
        checked.is_ok()
    }
}

struct Header {
    algorithm: Algorithm,
    key_id: Option<String>,
}

impl Header {
    fn read(encoded: &str) -> Result<Self, JwtError> {
        let header = object(encoded)?;
        // An extension that must be understood, and is not (RFC 7515 section 4.1.11).
        if header.contains_key("crit") {
            return Err(JwtError::Malformed);
        }
        let text = |name: &str| header.get(name).and_then(Value::as_str);
        let algorithm = text("alg").and_then(Algorithm::named).ok_or(JwtError::Algorithm)?;
        Ok(Self { algorithm, key_id: text("kid").map(str::to_owned) })
    }
}

fn object(encoded: &str) -> Result<Map<String, Value>, JwtError> {
    let bytes = URL_SAFE_NO_PAD.decode(encoded).map_err(|_| JwtError::Malformed)?;
    serde_json::from_slice(&bytes).map_err(|_| JwtError::Malformed)
}

/// A provider's public keys (RFC 7517).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Jwks(Vec<Key>);

impl Jwks {
    /// Reads a key set; `None` if it is none. Keys that cannot be used are passed over.
    pub fn read(json: &[u8]) -> Option<Self> {
        let value: Value = serde_json::from_slice(json).ok()?;
        let keys = value.get("keys")?.as_array()?;
        Some(Self(keys.iter().filter_map(Key::read).take(MAX_KEYS).collect()))
    }

    /// The claims of a token that one of the keys signed. Whether they are meant for us, and still hold,
    /// is for the caller to see.
    pub fn claims(&self, token: &str) -> Result<Map<String, Value>, JwtError> {
        if token.len() > MAX_TOKEN_BYTES {
            return Err(JwtError::Malformed);
        }
        let (message, signature) = token.rsplit_once('.').ok_or(JwtError::Malformed)?;
        let (header, claims) = message.split_once('.').ok_or(JwtError::Malformed)?;
        if claims.contains('.') {
            return Err(JwtError::Malformed);
        }
        let header = Header::read(header)?;
        let signature = URL_SAFE_NO_PAD.decode(signature).map_err(|_| JwtError::Malformed)?;
        let mut fitting = self.0.iter().filter(|key| key.fits(&header)).peekable();
        if fitting.peek().is_none() {
            return Err(JwtError::UnknownKey);
        }
        if !fitting.any(|key| key.signed(header.algorithm, message.as_bytes(), &signature)) {
            return Err(JwtError::Signature);
        }
        object(claims)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    /// RFC 7515 appendix A.2: RS256.
    const RSA_TOKEN: &str = "eyJhbGciOiJSUzI1NiJ9.eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvbS9pc19yb290Ijp0cnVlfQ.cC4hiUPoj9Eetdgtv3hF80EGrhuB__dzERat0XF9g2VtQgr9PJbu3XOiZj5RZmh7AAuHIm4Bh-0Qc_lF5YKt_O8W2Fp5jujGbds9uJdbF9CUAr7t1dnZcAcQjbKBYNX4BAynRFdiuB--f_nZLgrnbyTyWzO75vRK5h6xBArLIARNPvkSjtQBMHlb1L07Qe7K0GarZRmB_eSN9383LcOLn6_dO--xi12jzDwusC-eOkHWEsqtFZESc6BfI7noOPqvhJ1phCnvWh6IeYI2w9QOYEUipUTI8np6LbgGY9Fs98rqVt5AXLIhWkWywlVmtVrBp0igcN_IoypGlUPQGe77Rw";
    const RSA_N: &str = "ofgWCuLjybRlzo0tZWJjNiuSfb4p4fAkd_wWJcyQoTbji9k0l8W26mPddxHmfHQp-Vaw-4qPCJrcS2mJPMEzP1Pt0Bm4d4QlL-yRT-SFd2lZS-pCgNMsD1W_YpRPEwOWvG6b32690r2jZ47soMZo9wGzjb_7OMg0LOL-bSf63kpaSHSXndS5z5rexMdbBYUsLA9e-KXBdQOS-UTo7WTBEMa2R2CapHg665xsmtdVMTBQY4uDZlxvb3qCo5ZwKh9kG4LT6_I5IhlJH7aGhyxXFvUK-DWNmoudF8NAco9_h9iaGNj8q2ethFkMLs91kzk2PAcDTW9gb54h4FRWyuXpoQ";
    /// RFC 7515 appendix A.3: ES256.
    const EC_TOKEN: &str = "eyJhbGciOiJFUzI1NiJ9.eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvbS9pc19yb290Ijp0cnVlfQ.DtEhU3ljbEg8L38VWAfUAqOyKAM6-Xx-F4GawxaepmXFCgfTjDxw5djxLa8ISlSApmWQxfKTUJqPP3-Kg6NU1Q";
    /// RFC 8037 appendix A.4: Ed25519; its payload is no JSON.
    const ED_TOKEN: &str = "eyJhbGciOiJFZERTQSJ9.RXhhbXBsZSBvZiBFZDI1NTE5IHNpZ25pbmc.hgyY0il_MGCjP0JzlnLWG1PPOt7-09PGcvMg3AIbQR6dWbhijcNR4ki4iylGjg5BhVsPt9g7sVvpAr_MuM0KAg";

    fn keys() -> Jwks {
        let keys = json!({"keys": [
            {"kty": "RSA", "n": RSA_N, "e": "AQAB", "kid": "rsa"},
            {"kty": "EC", "crv": "P-256", "x": "f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU",
             "y": "x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0"},
            {"kty": "OKP", "crv": "Ed25519", "x": "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"},
            {"kty": "oct", "k": "AAAA"}, {"kty": "RSA"}, 7,
        ]});
        Jwks::read(keys.to_string().as_bytes()).expect("a key set")
    }

    #[test]
    fn the_examples_of_the_rfcs() {
        assert_eq!(keys().0.len(), 3);
        for token in [RSA_TOKEN, EC_TOKEN] {
            let claims = keys().claims(token).expect("signed");
            assert_eq!((&claims["iss"], &claims["exp"]), (&json!("joe"), &json!(1_300_819_380)));
        }
        assert_eq!(keys().claims(ED_TOKEN), Err(JwtError::Malformed), "its payload is no object");
        let cut = &ED_TOKEN[..ED_TOKEN.len() - 2];
        assert_eq!(keys().claims(&format!("{cut}AA")), Err(JwtError::Signature));
    }

    fn with_header(header: &Value, token: &str) -> String {
        let (_, rest) = token.split_once('.').expect("three parts");
        format!("{}.{rest}", URL_SAFE_NO_PAD.encode(header.to_string()))
    }

    #[test]
    fn what_no_key_signed_is_not_believed() {
        let (_, rest) = RSA_TOKEN.split_once('.').expect("three parts");
        let (claims, _) = rest.split_once('.').expect("two parts");
        let unsigned = format!("{}.{claims}.", URL_SAFE_NO_PAD.encode(r#"{"alg":"none"}"#));
        let table = [
            (unsigned, JwtError::Algorithm),
            (with_header(&json!({"alg": "HS256"}), RSA_TOKEN), JwtError::Algorithm),
            (with_header(&json!({"alg": "none"}), RSA_TOKEN), JwtError::Algorithm),
            (with_header(&json!({}), RSA_TOKEN), JwtError::Algorithm),
            (
                with_header(&json!({"alg": "RS256", "kid": "other"}), RSA_TOKEN),
                JwtError::UnknownKey,
            ),
            (with_header(&json!({"alg": "ES256", "kid": "rsa"}), RSA_TOKEN), JwtError::UnknownKey),
            (with_header(&json!({"alg": "RS256", "kid": "rsa"}), RSA_TOKEN), JwtError::Signature),
            (with_header(&json!({"alg": "PS256"}), RSA_TOKEN), JwtError::Signature),
            (
                with_header(&json!({"alg": "RS256", "crit": ["b64"]}), RSA_TOKEN),
                JwtError::Malformed,
            ),
            (RSA_TOKEN.replacen(".ey", ".ez", 1), JwtError::Signature),
            (format!("{RSA_TOKEN}."), JwtError::Malformed),
            (format!("{RSA_TOKEN}="), JwtError::Malformed),
            (String::new(), JwtError::Malformed),
            ("a.b.c".to_owned(), JwtError::Malformed),
            ("x".repeat(MAX_TOKEN_BYTES + 1), JwtError::Malformed),
        ];
        for (token, error) in table {
            assert_eq!(keys().claims(&token), Err(error), "{token}");
        }
        assert_eq!(Jwks::default().claims(RSA_TOKEN), Err(JwtError::UnknownKey));
        for odd in ["", "[]", "{}", r#"{"keys": 7}"#] {
            assert_eq!(Jwks::read(odd.as_bytes()), None, "{odd}");
        }
    }

    #[test]
    fn a_key_says_what_it_is_for() {
        let with = |member: &str, value: &str| {
            let mut key = json!({"kty": "RSA", "n": RSA_N, "e": "AQAB"});
            key[member] = json!(value);
            let set = Jwks::read(json!({"keys": [key]}).to_string().as_bytes()).expect("a set");
            set.claims(RSA_TOKEN).map(|_| ())
        };
        assert_eq!(with("use", "sig"), Ok(()));
        assert_eq!(with("use", "enc"), Err(JwtError::UnknownKey));
        assert_eq!(with("alg", "RS256"), Ok(()));
        assert_eq!(with("alg", "PS256"), Err(JwtError::UnknownKey));
        assert_eq!(with("alg", "RSA-OAEP"), Err(JwtError::UnknownKey));
    }

    proptest! {
        #[test]
        fn any_text_is_refused_without_panic(text in "[a-zA-Z0-9_.=-]{0,80}", json in "\\PC{0,40}") {
            prop_assert!(keys().claims(&text).is_err());
            let _ = Jwks::read(json.as_bytes());
        }
    }
}
