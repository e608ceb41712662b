//! A right answer, and every way in which one is wrong.

use proptest::prelude::*;
use sluice_testkit::{SoftAssertion, SoftPasskey};

use super::*;

const CHALLENGE: &str = "Y2hhbGxlbmdl";

fn site() -> RelyingParty {
    let url = "http://localhost:8080".parse().expect("a URL");
    RelyingParty::of(&url).expect("localhost will do")
}

fn made(passkey: &SoftPasskey) -> Result<NewPasskey, PasskeyError> {
    let (client_data, attestation) = passkey.register(CHALLENGE);
    registered(&site(), CHALLENGE, &client_data, &attestation)
}

fn check(
    made: &NewPasskey,
    counter: u32,
    soft: &SoftAssertion,
    verified: bool,
) -> Result<Asserted, PasskeyError> {
    let assertion = Assertion {
        client_data: &soft.client_data,
        authenticator_data: &soft.authenticator_data,
        signature: &soft.signature,
    };
    asserted(&site(), CHALLENGE, (&made.key, counter), assertion, verified)
}

fn of(url: &str) -> Option<RelyingParty> {
    RelyingParty::of(&url.parse().expect("a URL"))
}

#[test]
fn the_public_url_says_for_which_site() {
    for (url, id, origin) in [
        ("https://Sluice.Example:443/", "sluice.example", "https://sluice.example"),
        ("https://sluice.example:8443", "sluice.example", "https://sluice.example:8443"),
        ("http://localhost:8080", "localhost", "http://localhost:8080"),
        ("http://a.localhost", "a.localhost", "http://a.localhost"),
    ] {
        let expected = RelyingParty { id: id.to_owned(), origin: origin.to_owned() };
        assert_eq!(of(url), Some(expected), "{url}");
    }
    for url in
        ["http://sluice.example", "https://192.0.2.1", "http://127.0.0.1:8080", "http://[::1]/"]
    {
        assert_eq!(of(url), None, "{url}");
    }
}

#[test]
fn a_passkey_is_registered_and_signs_in() {
    for mut passkey in [SoftPasskey::es256(), SoftPasskey::eddsa()] {
        let new = made(&passkey).expect("registered");
        assert_eq!(new.credential, passkey.credential);
        assert_eq!(
            (new.key.algorithm, new.counter, new.user_verified),
            (passkey.algorithm, 1, true)
        );
        assert!(!new.backed_up);
        passkey.counter = 2;
        let soft = passkey.sign_in(CHALLENGE);
        assert_eq!(challenge_of(&soft.client_data).as_deref(), Some(CHALLENGE));
        let expected = Asserted { counter: 2, user_verified: true };
        assert_eq!(check(&new, 1, &soft, true), Ok(expected));
        passkey.flags = 1;
        assert!(
            !check(&new, 1, &passkey.sign_in(CHALLENGE), false).expect("touched").user_verified
        );
        // Some do not count.
        passkey.counter = 0;
        assert!(check(&new, 0, &passkey.sign_in(CHALLENGE), false).is_ok());
    }
}

/// Bends a passkey.
type Bend = fn(&mut SoftPasskey);

const BENT: [(PasskeyError, Bend); 8] = [
    (PasskeyError::Origin, |passkey| passkey.origin = "https://evil.example".to_owned()),
    (PasskeyError::Origin, |passkey| passkey.origin = "http://localhost".to_owned()),
    (PasskeyError::Origin, |passkey| {
        passkey.origin = "http://localhost:8080.evil.example".to_owned();
    }),
    (PasskeyError::Origin, |passkey| passkey.cross_origin = true),
    (PasskeyError::RelyingParty, |passkey| passkey.site = "evil.example".to_owned()),
    (PasskeyError::NotPresent, |passkey| passkey.flags = 0b100),
    (PasskeyError::Purpose, |passkey| passkey.kind = Some("payment.get")),
    (PasskeyError::Malformed, |passkey| passkey.flags = 0b1_0101),
];

#[test]
fn what_was_made_elsewhere_or_by_nobody_is_refused() {
    let new = made(&SoftPasskey::es256()).expect("registered");
    for (error, bend) in BENT {
        let mut passkey = SoftPasskey::es256();
        bend(&mut passkey);
        assert_eq!(made(&passkey), Err(error));
        assert_eq!(check(&new, 0, &passkey.sign_in(CHALLENGE), false), Err(error));
    }
    let mut passkey = SoftPasskey::es256();
    passkey.flags = 1;
    assert_eq!(check(&new, 0, &passkey.sign_in(CHALLENGE), true), Err(PasskeyError::NotVerified));
    // One ceremony's answer is none of the other's.
    passkey.kind = Some("webauthn.get");
    assert_eq!(made(&passkey), Err(PasskeyError::Purpose));
    passkey.kind = Some("webauthn.create");
    assert_eq!(check(&new, 0, &passkey.sign_in(CHALLENGE), false), Err(PasskeyError::Purpose));
}

#[test]
fn another_question_is_not_answered() {
    let passkey = SoftPasskey::es256();
    let new = made(&passkey).expect("registered");
    for other in ["", "Y2hhbGxlbmdm", "Y2hhbGxlbmdlZQ"] {
        assert_eq!(check(&new, 0, &passkey.sign_in(other), true), Err(PasskeyError::Challenge));
        let (client_data, attestation) = passkey.register(other);
        let registered = registered(&site(), CHALLENGE, &client_data, &attestation);
        assert_eq!(registered, Err(PasskeyError::Challenge));
    }
}

#[test]
fn another_key_and_other_bytes_do_not_sign() {
    let (passkey, other) = (SoftPasskey::es256(), SoftPasskey::eddsa());
    let new = made(&passkey).expect("registered");
    let wrong = Err(PasskeyError::Signature);
    assert_eq!(check(&new, 0, &SoftPasskey::es256().sign_in(CHALLENGE), true), wrong);
    assert_eq!(check(&new, 0, &other.sign_in(CHALLENGE), true), wrong);
    let good = passkey.sign_in(CHALLENGE);
    assert!(check(&new, 0, &good, true).is_ok());
    // Each bit of what was signed counts: here the counter's, an extension behind it, and a blank.
    for at in [33, 36] {
        let mut bent = good.clone();
        bent.authenticator_data[at] ^= 1;
        assert!(check(&new, 0, &bent, true).is_err(), "{at}");
    }
    let mut longer = good.clone();
    longer.authenticator_data.push(0);
    assert_eq!(check(&new, 0, &longer, true), wrong);
    let mut spaced = good.clone();
    spaced.client_data.push(b' ');
    assert_eq!(check(&new, 0, &spaced, true), wrong);
    let empty = SoftAssertion { signature: Vec::new(), ..good };
    assert_eq!(check(&new, 0, &empty, true), wrong);
}

#[test]
fn a_counter_that_goes_back_is_a_copy() {
    let mut passkey = SoftPasskey::es256();
    let new = made(&passkey).expect("registered");
    for (kept, told, good) in
        [(5, 6, true), (5, 5, false), (5, 4, false), (5, 0, false), (0, 0, true), (0, 1, true)]
    {
        passkey.counter = told;
        let checked = check(&new, kept, &passkey.sign_in(CHALLENGE), true);
        assert_eq!(checked.err(), (!good).then_some(PasskeyError::Counter), "{kept} {told}");
    }
}

#[test]
fn only_algorithms_that_were_offered_are_taken() {
    for algorithm in [-9, -35, -36, -37, 7] {
        let mut passkey = SoftPasskey::es256();
        passkey.algorithm = algorithm;
        assert_eq!(made(&passkey), Err(PasskeyError::Algorithm), "{algorithm}");
    }
    // A key of another kind than its algorithm's.
    let mut passkey = SoftPasskey::es256();
    passkey.algorithm = -8;
    assert_eq!(made(&passkey), Err(PasskeyError::Malformed));
}

#[test]
fn an_rsa_key_is_read() {
    let n = [0xab; 256];
    let cose = |n: &[u8]| {
        let length = u16::try_from(n.len()).expect("short").to_be_bytes();
        let start = [0xa4, 0x01, 0x03, 0x03, 0x39, 0x01, 0x00, 0x20, 0x59];
        [&start[..], &length, n, &[0x21, 0x43, 1, 0, 1]].concat()
    };
    let bytes = cose(&n);
    let key = cose_key(&cbor::read(&bytes).expect("CBOR")).expect("a key");
    assert_eq!((key.algorithm, key.key.len()), (RS256, 2 + 256 + 3));
    assert!(!key.signed(b"message", &[0; 256]));
    let short = cose(&n[..128]);
    let short = cose_key(&cbor::read(&short).expect("CBOR"));
    assert_eq!(short, Err(PasskeyError::Malformed));
}

#[test]
fn what_is_cut_or_goes_on_is_refused() {
    let passkey = SoftPasskey::es256();
    let (client_data, attestation) = passkey.register(CHALLENGE);
    let read = |client_data: &[u8], attestation: &[u8]| {
        registered(&site(), CHALLENGE, client_data, attestation)
    };
    assert!(read(&client_data, &attestation).is_ok());
    for length in 0..attestation.len() {
        let cut = read(&client_data, &attestation[..length]);
        assert_eq!(cut, Err(PasskeyError::Malformed), "{length}");
    }
    for length in 0..client_data.len() {
        let cut = read(&client_data[..length], &attestation);
        assert_eq!(cut, Err(PasskeyError::Malformed), "{length}");
    }
    let longer = [&attestation[..], &[0]].concat();
    assert_eq!(read(&client_data, &longer), Err(PasskeyError::Malformed));
    let deep = [b"\xa1\x67attStmt".as_slice(), &vec![0x81; 15_000]].concat();
    assert_eq!(read(&client_data, &deep), Err(PasskeyError::Malformed));
    let huge = vec![b' '; MAX_BYTES + 1];
    assert_eq!(read(&huge, &attestation), Err(PasskeyError::Malformed));
    assert_eq!(challenge_of(&huge), None);
}

proptest! {
    #[test]
    fn nothing_panics(client in proptest::collection::vec(any::<u8>(), 0..200), data in proptest::collection::vec(any::<u8>(), 0..300)) {
        let passkey = SoftPasskey::es256();
        let (good, _) = passkey.register(CHALLENGE);
        let _ = registered(&site(), CHALLENGE, &good, &data);
        let _ = challenge_of(&client);
        let key = PasskeyKey { algorithm: -257, key: data.clone() };
        let assertion = Assertion { client_data: &passkey.sign_in(CHALLENGE).client_data, authenticator_data: &data, signature: &client };
        prop_assert!(asserted(&site(), CHALLENGE, (&key, 0), assertion, false).is_err());
    }
}
