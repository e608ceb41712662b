//! The logs as files, for REST, pages and commands alike. Rows are read a page at a time and only when the
//! reader takes more, so that the size of a log does not matter.

mod calls;
mod events;

use std::fmt::Write as _;

use axum::body::Body;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures_util::stream::{self, Stream, StreamExt};
use http::header;
use serde::Serialize;
use serde_json::Value;
use sluice_control::{Admin, CallsOf, Control, ControlError, EventFilter, Page, PageOf, Viewer};

pub use calls::{CallBody, Timing};
pub use events::EventBody;

/// Rows that are in memory at once.
const PAGE: u32 = 500;

/// How a file is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// RFC 4180, with a head.
    Csv,
    /// One JSON object a line.
    Ndjson,
}

/// What can be a row of a file.
pub trait Row: Serialize {
    /// Columns of the CSV, and where each value stands in the JSON, as a JSON Pointer.
    const COLUMNS: &'static [(&'static str, &'static str)];
}

impl Format {
    const fn kind(self) -> &'static str {
        match self {
            Self::Csv => "text/csv; charset=utf-8",
            Self::Ndjson => "application/x-ndjson",
        }
    }

    const fn extension(self) -> &'static str {
        match self {
            Self::Csv => "csv",
            Self::Ndjson => "ndjson",
        }
    }

    /// What stands above the rows, without the end of the line.
    pub fn head<R: Row>(self) -> Option<String> {
        let names = || R::COLUMNS.iter().map(|(name, _)| *name).collect::<Vec<_>>();
        (self == Self::Csv).then(|| names().join(","))
    }

    /// One row, without the end of the line.
    pub fn line<R: Row>(self, row: &R) -> String {
        let value = serde_json::to_value(row).unwrap_or_default();
        if self == Self::Ndjson {
            return serde_json::to_string(row).unwrap_or_default();
        }
        let cell = |(_, at): &(_, &str)| match value.pointer(at) {
            None | Some(Value::Null) => String::new(),
            Some(Value::String(text)) => cell(text),
            Some(other) => cell(&other.to_string()),
        };
        R::COLUMNS.iter().map(cell).collect::<Vec<_>>().join(",")
    }

    const fn line_end(self) -> &'static str {
        match self {
            Self::Csv => "\r\n",
            Self::Ndjson => "\n",
        }
    }

    fn file<R: Row>(
        self,
        name: &str,
        rows: impl Stream<Item = Result<Vec<R>, ControlError>> + Send + 'static,
    ) -> Response {
        let head = self.head::<R>().map(|head| Ok(Bytes::from(head + self.line_end())));
        let pieces = rows.map(move |rows| {
            let mut text = String::new();
            for row in rows? {
                let _ = write!(text, "{}{}", self.line(&row), self.line_end());
            }
            Ok::<_, ControlError>(Bytes::from(text))
        });
        let name = format!("attachment; filename=\"{name}.{}\"", self.extension());
        let headers =
            [(header::CONTENT_TYPE, self.kind().to_owned()), (header::CONTENT_DISPOSITION, name)];
        (headers, Body::from_stream(stream::iter(head).chain(pieces))).into_response()
    }
}

/// A cell of CSV. Text that a spreadsheet would run as a formula is made plain: agents choose it.
fn cell(text: &str) -> String {
    let formula = text.starts_with(['=', '+', '-', '@', '\t', '\r']);
    let text = if formula { format!("'{text}") } else { text.to_owned() };
    if text.contains([',', '"', '\n', '\r']) {
        return format!("\"{}\"", text.replace('"', "\"\""));
    }
    text
}

/// The calls that fit, newest first.
pub fn calls(control: Control, viewer: Viewer, filter: CallsOf, format: Format) -> Response {
    let rows = paged(move |page| {
        let (control, viewer, filter) = (control.clone(), viewer.clone(), filter.clone());
        async move { control.calls(&viewer, &filter, page).await }
    });
    format.file("calls", rows.map(|rows| Ok(rows?.into_iter().map(CallBody::from).collect())))
}

/// The events of the audit log that fit, newest first.
pub fn events(control: Control, admin: Admin, filter: EventFilter, format: Format) -> Response {
    let rows = paged(move |page| {
        let (control, admin, filter) = (control.clone(), admin.clone(), filter.clone());
        async move { control.admin_events(&admin, &filter, page).await }
    });
    format.file("audit", rows.map(|rows| Ok(rows?.into_iter().map(EventBody::from).collect())))
}

/// Pages one after the other, each when it is asked for.
fn paged<T, K, F, R>(read: F) -> impl Stream<Item = Result<Vec<T>, ControlError>>
where
    F: Fn(Page<K>) -> R,
    R: Future<Output = Result<PageOf<T, K>, ControlError>>,
{
    // Where the next page begins; `None` after the last.
    let first: Option<Option<K>> = Some(None);
    stream::unfold((first, read), |(next, read)| async move {
        let after = next?;
        match read(Page { after, limit: PAGE }).await {
            Ok(found) => Some((Ok(found.items), (found.next.map(Some), read))),
            Err(error) => Some((Err(error), (None, read))),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cell_is_neither_broken_nor_run() {
        for (text, expected) in [
            ("plain", "plain"),
            ("a,b", "\"a,b\""),
            ("say \"hi\"", "\"say \"\"hi\"\"\""),
            ("=HYPERLINK(1)", "'=HYPERLINK(1)"),
            ("@SUM(1,2)", "\"'@SUM(1,2)\""),
        ] {
            assert_eq!(cell(text), expected);
        }
    }
}
