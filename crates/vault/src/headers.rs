//! A server's upstream headers, sealed as one JSON object in the order given.

use std::fmt;

use secrecy::{ExposeSecret, SecretString};
use sluice_domain::{ServerId, WorkspaceId};
use zeroize::Zeroizing;

use crate::{Place, SealError, Vault};

/// Header names and their secret values.
#[derive(Default, Clone)]
pub struct UpstreamHeaders(pub Vec<(String, SecretString)>);

impl fmt::Debug for UpstreamHeaders {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.names()).finish()
    }
}

impl UpstreamHeaders {
    /// The names alone, which may be shown.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|(name, _)| name.as_str())
    }
}

impl Vault {
    /// Seals a server's upstream headers.
    pub fn seal_headers(
        &self,
        workspace: WorkspaceId,
        server: ServerId,
        headers: &UpstreamHeaders,
    ) -> Vec<u8> {
        let object: serde_json::Map<_, _> = headers
            .0
            .iter()
            .map(|(name, value)| (name.clone(), value.expose_secret().into()))
            .collect();
        let text = Zeroizing::new(serde_json::Value::Object(object).to_string());
        self.seal(Place::upstream_headers(workspace, server), text.as_bytes())
    }

    /// Opens a server's upstream headers.
    pub fn open_headers(
        &self,
        workspace: WorkspaceId,
        server: ServerId,
        sealed: &[u8],
    ) -> Result<UpstreamHeaders, SealError> {
        let text = self.open(Place::upstream_headers(workspace, server), sealed)?;
        let object: serde_json::Map<String, serde_json::Value> =
            serde_json::from_slice(&text).map_err(|_| SealError::Unreadable)?;
        let pairs = object.into_iter().map(|(name, value)| match value {
            serde_json::Value::String(value) => Ok((name, SecretString::from(value))),
            _ => Err(SealError::Unreadable),
        });
        pairs.collect::<Result<_, _>>().map(UpstreamHeaders)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generate_master_key;

    #[test]
    fn headers_come_back_in_order_and_debug_hides_values() {
        let vault = Vault::from_keys(&generate_master_key("k")).expect("a key");
        let (workspace, server) = (WorkspaceId::new(), ServerId::new());
        let pairs = [("X-Key", "UP-1234"), ("Authorization", "Bearer \"q\"")];
        let headers = UpstreamHeaders(
            pairs
                .map(|(name, value)| (name.to_owned(), SecretString::from(value.to_owned())))
                .into(),
        );
        let sealed = vault.seal_headers(workspace, server, &headers);
        let opened = vault.open_headers(workspace, server, &sealed).expect("opens");
        let shown: Vec<_> = opened.0.iter().map(|(n, v)| (n.as_str(), v.expose_secret())).collect();
        assert_eq!(shown, pairs);
        assert!(!format!("{opened:?}").contains("UP-1234"));
        assert!(vault.open_headers(workspace, ServerId::new(), &sealed).is_err());
    }
}
