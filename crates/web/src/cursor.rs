//! Opaque cursors: a list's key as URL-safe text.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::Serialize;
use serde::de::DeserializeOwned;
use sluice_control::Fault;
use sluice_control::codes;

use crate::Problem;

/// A cursor that this Sluice did not make.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the cursor is none of ours; take `next_cursor` of the page before, unchanged")]
pub struct CursorError;

impl From<CursorError> for Problem {
    fn from(error: CursorError) -> Self {
        Self::invalid(Fault::new("/cursor", codes::INVALID_CURSOR, error.to_string()))
    }
}

/// Writes and reads cursors.
#[derive(Debug)]
pub struct Cursor;

impl Cursor {
    /// The text of a key.
    pub fn write<K: Serialize>(key: &K) -> String {
        URL_SAFE_NO_PAD.encode(serde_json::to_vec(key).unwrap_or_default())
    }

    /// The key of a text; an empty text is the first page.
    pub fn read<K: DeserializeOwned>(text: Option<&str>) -> Result<Option<K>, CursorError> {
        let Some(text) = text.filter(|text| !text.is_empty()) else { return Ok(None) };
        let bytes = URL_SAFE_NO_PAD.decode(text).map_err(|_| CursorError)?;
        serde_json::from_slice(&bytes).map(Some).map_err(|_| CursorError)
    }
}
