//! Envelope encryption: each value under a data key of its own, the data key
//! wrapped by the current master key, both bound to the row they stand in
//! (XChaCha20-Poly1305, random nonces). Layout of version 1:
//! `1 | id length | id | nonce 24 | wrapped key 48 | nonce 24 | sealed value`.

use chacha20poly1305::aead::{Aead, KeyInit, Payload};
use chacha20poly1305::{XChaCha20Poly1305, XNonce};
use sluice_domain::{ApprovalId, ServerId, UserId, WorkspaceId};
use uuid::Uuid;
use zeroize::Zeroizing;

use crate::Vault;
use crate::keys::MasterKey;
use crate::random::random;

const VERSION: u8 = 1;
const NONCE: usize = 24;
const WRAPPED: usize = 32 + 16;

/// The one row and column that a sealed value belongs to; moved elsewhere it does not open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    workspace: WorkspaceId,
    table: &'static str,
    row: Uuid,
    column: &'static str,
}

impl Place {
    /// A server's upstream headers.
    pub const fn upstream_headers(workspace: WorkspaceId, server: ServerId) -> Self {
        Self { workspace, table: "servers", row: server.uuid(), column: "sealed_headers" }
    }

    /// The arguments of a parked call.
    pub const fn approval_arguments(workspace: WorkspaceId, approval: ApprovalId) -> Self {
        Self { workspace, table: "approvals", row: approval.uuid(), column: "sealed_arguments" }
    }

    /// The secret that a person's authenticator app shares, which belongs to no workspace.
    pub const fn totp_secret(user: UserId) -> Self {
        let nowhere = WorkspaceId::from_uuid(Uuid::nil());
        Self::new(nowhere, "totp_factors", user.uuid(), "sealed_secret")
    }

    /// What a browser keeps while its person is at an identity provider: a cookie, in no row.
    pub const fn provider_flow() -> Self {
        let nowhere = Uuid::nil();
        Self::new(WorkspaceId::from_uuid(nowhere), "cookies", nowhere, "provider_flow")
    }

    /// Any other sealed column.
    pub const fn new(
        workspace: WorkspaceId,
        table: &'static str,
        row: Uuid,
        column: &'static str,
    ) -> Self {
        Self { workspace, table, row, column }
    }

    /// The bytes that are authenticated with the value; lengths keep the parts apart.
    fn bytes(&self, step: &str) -> Vec<u8> {
        let parts = [
            step.as_bytes(),
            self.workspace.uuid().as_bytes(),
            self.table.as_bytes(),
            self.row.as_bytes(),
            self.column.as_bytes(),
        ]
        .map(<[u8]>::to_vec);
        let mut out = Vec::new();
        for part in parts {
            out.extend((part.len() as u64).to_be_bytes());
            out.extend(part);
        }
        out
    }
}

/// Why a sealed value does not open.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SealError {
    #[error("the sealed value is damaged or of a later version")]
    Unreadable,
    #[error("the value was sealed with master key `{0}`, which is not given")]
    UnknownKey(String),
    #[error("the sealed value was changed, moved to another row, or the master key is another one")]
    Refused,
}

struct Envelope<'a> {
    key_id: &'a [u8],
    key_nonce: &'a [u8],
    wrapped: &'a [u8],
    nonce: &'a [u8],
    sealed: &'a [u8],
}

impl<'a> Envelope<'a> {
    fn read(bytes: &'a [u8]) -> Result<Self, SealError> {
        let rest = bytes.strip_prefix(&[VERSION]).ok_or(SealError::Unreadable)?;
        let (length, rest) = rest.split_first().ok_or(SealError::Unreadable)?;
        let (key_id, rest) = cut(rest, usize::from(*length))?;
        let (key_nonce, rest) = cut(rest, NONCE)?;
        let (wrapped, rest) = cut(rest, WRAPPED)?;
        let (nonce, sealed) = cut(rest, NONCE)?;
        Ok(Self { key_id, key_nonce, wrapped, nonce, sealed })
    }

    fn write(&self) -> Vec<u8> {
        // Ids have at most 32 characters.
        let length = u8::try_from(self.key_id.len()).unwrap_or(u8::MAX);
        [&[VERSION, length], self.key_id, self.key_nonce, self.wrapped, self.nonce, self.sealed]
            .concat()
    }
}

fn cut(bytes: &[u8], at: usize) -> Result<(&[u8], &[u8]), SealError> {
    bytes.split_at_checked(at).ok_or(SealError::Unreadable)
}

impl Vault {
    /// Seals a value for its place.
    pub fn seal(&self, place: Place, value: &[u8]) -> Vec<u8> {
        let data_key = Zeroizing::new(random::<32>());
        let (key_nonce, nonce) = (random::<NONCE>(), random::<NONCE>());
        let wrapped =
            encrypt(&wrapping(self.current()), &key_nonce, &*data_key, &place.bytes("key"));
        let sealed = encrypt(&data_key, &nonce, value, &place.bytes("value"));
        let key_id = self.current_key_id().as_bytes();
        Envelope {
            key_id,
            key_nonce: &key_nonce,
            wrapped: &wrapped,
            nonce: &nonce,
            sealed: &sealed,
        }
        .write()
    }

    /// Opens a value sealed for this place.
    pub fn open(&self, place: Place, sealed: &[u8]) -> Result<Zeroizing<Vec<u8>>, SealError> {
        let envelope = Envelope::read(sealed)?;
        let data_key = self.unwrap_key(place, &envelope)?;
        decrypt(&data_key, envelope.nonce, envelope.sealed, &place.bytes("value"))
    }

    /// Whether the value was sealed with a key that is no longer the current one.
    pub fn needs_rewrap(&self, sealed: &[u8]) -> bool {
        Envelope::read(sealed)
            .is_ok_and(|envelope| envelope.key_id != self.current_key_id().as_bytes())
    }

    /// Wraps the data key with the current master key; the value itself stays as it is.
    pub fn rewrap(&self, place: Place, sealed: &[u8]) -> Result<Vec<u8>, SealError> {
        let envelope = Envelope::read(sealed)?;
        let data_key = self.unwrap_key(place, &envelope)?;
        let key_nonce = random::<NONCE>();
        let wrapped =
            encrypt(&wrapping(self.current()), &key_nonce, &*data_key, &place.bytes("key"));
        let key_id = self.current_key_id().as_bytes();
        Ok(Envelope { key_id, key_nonce: &key_nonce, wrapped: &wrapped, ..envelope }.write())
    }

    fn unwrap_key(
        &self,
        place: Place,
        envelope: &Envelope<'_>,
    ) -> Result<Zeroizing<[u8; 32]>, SealError> {
        let unknown =
            || SealError::UnknownKey(String::from_utf8_lossy(envelope.key_id).into_owned());
        let master = self.key(envelope.key_id).ok_or_else(unknown)?;
        let key =
            decrypt(&wrapping(master), envelope.key_nonce, envelope.wrapped, &place.bytes("key"))?;
        let key = <[u8; 32]>::try_from(key.as_slice()).map_err(|_| SealError::Unreadable)?;
        Ok(Zeroizing::new(key))
    }
}

fn wrapping(master: &MasterKey) -> Zeroizing<[u8; 32]> {
    master.derive("wrap")
}

fn encrypt(key: &[u8; 32], nonce: &[u8; NONCE], value: &[u8], aad: &[u8]) -> Vec<u8> {
    XChaCha20Poly1305::new(key.into())
        .encrypt(&XNonce::from(*nonce), Payload { msg: value, aad })
        .expect("a value in memory is shorter than the cipher's bound of 256 GiB")
}

fn decrypt(
    key: &[u8; 32],
    nonce: &[u8],
    value: &[u8],
    aad: &[u8],
) -> Result<Zeroizing<Vec<u8>>, SealError> {
    let nonce = <[u8; NONCE]>::try_from(nonce).map_err(|_| SealError::Unreadable)?;
    XChaCha20Poly1305::new(key.into())
        .decrypt(&XNonce::from(nonce), Payload { msg: value, aad })
        .map(Zeroizing::new)
        .map_err(|_| SealError::Refused)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use secrecy::{ExposeSecret, SecretString};

    use super::*;
    use crate::generate_master_key;

    fn place() -> Place {
        Place::upstream_headers(
            WorkspaceId::from_uuid(Uuid::from_u128(1)),
            ServerId::from_uuid(Uuid::from_u128(2)),
        )
    }

    fn vault() -> Vault {
        Vault::from_keys(&generate_master_key("k1")).expect("a key")
    }

    proptest! {
        #[test]
        fn what_is_sealed_opens_in_its_place_alone(value: Vec<u8>) {
            let vault = vault();
            let sealed = vault.seal(place(), &value);
            prop_assert_eq!(&*vault.open(place(), &sealed).expect("opens"), &value);
            let others = [
                Place { workspace: WorkspaceId::from_uuid(Uuid::from_u128(9)), ..place() },
                Place { row: Uuid::from_u128(9), ..place() },
                Place { column: "other", ..place() },
                Place { table: "other", ..place() },
            ];
            for other in others {
                prop_assert_eq!(vault.open(other, &sealed), Err(SealError::Refused));
            }
        }

        #[test]
        fn a_changed_byte_never_opens(value in prop::collection::vec(any::<u8>(), 0..64), at: prop::sample::Index, bit in 0..8_u8) {
            let vault = vault();
            let mut sealed = vault.seal(place(), &value);
            let at = at.index(sealed.len());
            sealed[at] ^= 1_u8 << bit;
            prop_assert!(vault.open(place(), &sealed).is_err());
        }

        #[test]
        fn any_bytes_are_refused_without_panic(bytes: Vec<u8>) {
            prop_assert!(vault().open(place(), &bytes).is_err());
        }
    }

    #[test]
    fn rewrapping_moves_to_the_current_key_and_keeps_the_value() {
        let (old, new) = (generate_master_key("old"), generate_master_key("new"));
        let sealed = Vault::from_keys(&old).expect("a key").seal(place(), b"secret");
        let both = SecretString::from(format!("{},{}", new.expose_secret(), old.expose_secret()));
        let both = Vault::from_keys(&both).expect("two keys");
        assert!(both.needs_rewrap(&sealed));
        let moved = both.rewrap(place(), &sealed).expect("rewraps");
        assert!(!both.needs_rewrap(&moved));
        let new = Vault::from_keys(&new).expect("a key");
        assert_eq!(&**new.open(place(), &moved).expect("opens"), b"secret");
        assert_eq!(new.open(place(), &sealed), Err(SealError::UnknownKey("old".to_owned())));
        assert_eq!(vault().rewrap(place(), &moved), Err(SealError::UnknownKey("new".to_owned())));
    }

    #[test]
    fn the_same_value_never_looks_the_same() {
        let vault = vault();
        assert_ne!(vault.seal(place(), b"x"), vault.seal(place(), b"x"));
    }
}
