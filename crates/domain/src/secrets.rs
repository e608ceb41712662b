//! What looks like a secret, by its name or its form, so that logs and pages can leave it out.

/// What is written in the place of a secret.
pub const REDACTED: &str = "[redacted]";

const NAMES: &[&str] = &[
    "password",
    "passwd",
    "passphrase",
    "pwd",
    "secret",
    "token",
    "apikey",
    "accesskey",
    "privatekey",
    "credential",
    "authorization",
    "auth",
    "cookie",
    "session",
    "signature",
    "otp",
    "pin",
    "cvv",
    "cvc",
    "ssn",
    "iban",
    "cardnumber",
];

const STARTS: &[&str] = &[
    "sk-",
    "sk_",
    "pk_",
    "rk_",
    "ghp_",
    "gho_",
    "ghs_",
    "github_pat_",
    "glpat-",
    "xox",
    "slg_",
    "slu_",
    "AKIA",
    "ASIA",
    "AIza",
    "ya29.",
    "eyJ",
    "Bearer ",
    "Basic ",
    "-----BEGIN",
    "npm_",
    "pypi-",
    "hf_",
];

/// Whether a field of this name holds a secret. Case and punctuation do not matter.
pub fn names_secret(name: &str) -> bool {
    let plain: String =
        name.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect();
    NAMES.iter().any(|secret| plain == *secret || (secret.len() > 4 && plain.contains(secret)))
}

/// A known token form, a long run of letters and digits without a space, or an address with credentials.
pub fn looks_secret(text: &str) -> bool {
    let known =
        STARTS.iter().any(|start| text.starts_with(start) || text.contains(&format!(" {start}")));
    let dense = text.len() >= 32
        && text
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'/' | b'=' | b'_' | b'-'))
        && text.bytes().any(|b| b.is_ascii_digit())
        && text.bytes().any(|b| b.is_ascii_alphabetic());
    let userinfo = text
        .split_once("://")
        .is_some_and(|(_, rest)| rest.split('/').next().is_some_and(|host| host.contains('@')));
    known || dense || userinfo
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_forms_of_secrets_are_known() {
        for name in ["password", "API_KEY", "x-api-key", "accessToken", "Client Secret", "pin"] {
            assert!(names_secret(name), "{name}");
        }
        for name in ["path", "pinned", "author", "message", "n", ""] {
            assert!(!names_secret(name), "{name}");
        }
        for text in [
            "sk-test-AAAA",
            "use Bearer abc",
            "https://u:p@host/x",
            "0123456789abcdef0123456789abcdef",
        ] {
            assert!(looks_secret(text), "{text}");
        }
        for text in ["hello", "a long sentence about nothing in particular", "https://host/@x"] {
            assert!(!looks_secret(text), "{text}");
        }
    }
}
