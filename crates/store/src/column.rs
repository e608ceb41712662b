//! How domain types are bound and read, the same on both databases: ids as UUIDs, words and JSON
//! as text, times cut to the microsecond that PostgreSQL keeps.

use std::borrow::Cow;

use chrono::{DateTime, Utc};
use serde::Serialize;
use sluice_domain::{
    ActorKind, ApiTokenId, ApprovalEventId, ApprovalEventKind, ApprovalId, ApprovalLinkId,
    ApprovalStatus, CallId, Category, ChangeKind, Code, DeliveryId, DeliveryStatus, EndpointId,
    EndpointKind, EventId, ExceptionId, FilterId, GrantId, InviteId, JoinDomainId, LinkPurpose,
    LoginSessionId, Notice, ObjectKind, Outcome, PasskeyId, PolicyId, PolicyKind, ReservationId,
    Role, SecurityKind, ServerId, ServerSettings, Severity, ToolId, ToolState, UserId, WorkspaceId,
    WorkspaceLimits,
};
use sqlx::error::BoxDynError;
use sqlx::postgres::PgRow;
use sqlx::sqlite::SqliteRow;
use sqlx::{Decode, FromRow, Postgres, Row, Sqlite, Type};
use uuid::Uuid;

use crate::StoreError;

/// The time as both databases keep it: to the microsecond, and of four-digit years, which alone
/// sort as text.
pub(crate) fn micros(at: DateTime<Utc>) -> DateTime<Utc> {
    const FIRST: i64 = -62_135_596_800_000_000;
    const LAST: i64 = 253_402_300_799_999_999;
    let micros = at.timestamp_micros().clamp(FIRST, LAST);
    DateTime::from_timestamp_micros(micros).unwrap_or_default()
}

/// Text as both databases keep it: PostgreSQL has no U+0000, which becomes its symbol.
pub(crate) fn text(text: &str) -> Cow<'_, str> {
    if text.contains('\0') {
        Cow::Owned(text.replace('\0', "\u{2400}"))
    } else {
        Cow::Borrowed(text)
    }
}

/// A value that can be bound.
pub(crate) trait Bind {
    type Stored;
    fn stored(self) -> Self::Stored;
}

/// A value that can be read from a column.
pub(crate) trait Column: Sized {
    type Stored: for<'r> Decode<'r, Postgres>
        + Type<Postgres>
        + for<'r> Decode<'r, Sqlite>
        + Type<Sqlite>;
    fn from_stored(stored: Self::Stored) -> Result<Self, BoxDynError>;
}

/// A row of either database.
pub(crate) trait AnyRow {
    fn column<T: Column>(&self, name: &str) -> Result<T, sqlx::Error>;
}

fn decoded<T: Column>(stored: T::Stored, name: &str) -> Result<T, sqlx::Error> {
    T::from_stored(stored)
        .map_err(|source| sqlx::Error::ColumnDecode { index: name.to_owned(), source })
}

impl AnyRow for PgRow {
    fn column<T: Column>(&self, name: &str) -> Result<T, sqlx::Error> {
        decoded(self.try_get(name)?, name)
    }
}

impl AnyRow for SqliteRow {
    fn column<T: Column>(&self, name: &str) -> Result<T, sqlx::Error> {
        decoded(self.try_get(name)?, name)
    }
}

/// A record that knows its columns.
pub(crate) trait FromColumns: Sized {
    fn from_columns<R: AnyRow>(row: &R) -> Result<Self, sqlx::Error>;
}

/// Carries a [`FromColumns`] through `sqlx::query_as`.
pub(crate) struct Record<T>(pub(crate) T);

impl<T: FromColumns> FromRow<'_, PgRow> for Record<T> {
    fn from_row(row: &PgRow) -> Result<Self, sqlx::Error> {
        T::from_columns(row).map(Self)
    }
}

impl<T: FromColumns> FromRow<'_, SqliteRow> for Record<T> {
    fn from_row(row: &SqliteRow) -> Result<Self, sqlx::Error> {
        T::from_columns(row).map(Self)
    }
}

/// Takes the records out of what a query gave.
pub(crate) trait Unwrap {
    type Inner;
    fn unwrapped(self) -> Self::Inner;
}

impl<T> Unwrap for Record<T> {
    type Inner = T;
    fn unwrapped(self) -> T {
        self.0
    }
}

impl<T> Unwrap for Option<Record<T>> {
    type Inner = Option<T>;
    fn unwrapped(self) -> Option<T> {
        self.map(|record| record.0)
    }
}

impl<T> Unwrap for Vec<Record<T>> {
    type Inner = Vec<T>;
    fn unwrapped(self) -> Vec<T> {
        self.into_iter().map(|record| record.0).collect()
    }
}

/// A struct whose fields are read from the columns of the same names.
macro_rules! record {
    ($(#[$meta:meta])* $vis:vis struct $name:ident {
        $($(#[$fmeta:meta])* $fvis:vis $field:ident: $type:ty),+ $(,)?
    }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, PartialEq)]
        $vis struct $name { $($(#[$fmeta])* $fvis $field: $type),+ }

        impl $crate::column::FromColumns for $name {
            fn from_columns<R: $crate::column::AnyRow>(row: &R) -> Result<Self, sqlx::Error> {
                Ok(Self { $($field: row.column(stringify!($field))?),+ })
            }
        }
    };
}
pub(crate) use record;

/// One column, for queries that want a single value; it must be called `value`.
pub(crate) struct Value<T>(pub(crate) T);

impl<T: Column> FromColumns for Value<T> {
    fn from_columns<R: AnyRow>(row: &R) -> Result<Self, sqlx::Error> {
        row.column("value").map(Self)
    }
}

macro_rules! plain {
    ($($type:ty),+) => { $(
        impl Bind for $type {
            type Stored = Self;
            fn stored(self) -> Self { self }
        }
        impl Column for $type {
            type Stored = Self;
            fn from_stored(stored: Self) -> Result<Self, BoxDynError> { Ok(stored) }
        }
    )+ };
}
plain!(bool, i32, i64, Vec<u8>, Uuid);

impl Bind for String {
    type Stored = String;
    fn stored(self) -> String {
        match text(&self) {
            Cow::Borrowed(_) => self,
            Cow::Owned(clean) => clean,
        }
    }
}

impl Column for String {
    type Stored = String;
    fn from_stored(stored: String) -> Result<Self, BoxDynError> {
        Ok(stored)
    }
}

impl<'a> Bind for &'a str {
    type Stored = Cow<'a, str>;
    fn stored(self) -> Cow<'a, str> {
        text(self)
    }
}

impl<'a> Bind for &'a String {
    type Stored = Cow<'a, str>;
    fn stored(self) -> Cow<'a, str> {
        text(self)
    }
}

impl<'a> Bind for &'a [u8] {
    type Stored = &'a [u8];
    fn stored(self) -> &'a [u8] {
        self
    }
}

impl<T: Bind> Bind for Option<T> {
    type Stored = Option<T::Stored>;
    fn stored(self) -> Self::Stored {
        self.map(Bind::stored)
    }
}

impl<T: Column> Column for Option<T> {
    type Stored = Option<T::Stored>;
    fn from_stored(stored: Self::Stored) -> Result<Self, BoxDynError> {
        stored.map(T::from_stored).transpose()
    }
}

impl Bind for DateTime<Utc> {
    type Stored = Self;
    fn stored(self) -> Self {
        micros(self)
    }
}

impl Column for DateTime<Utc> {
    type Stored = Self;
    fn from_stored(stored: Self) -> Result<Self, BoxDynError> {
        Ok(stored)
    }
}

macro_rules! ids {
    ($($type:ty),+ $(,)?) => { $(
        impl Bind for $type {
            type Stored = Uuid;
            fn stored(self) -> Uuid { self.uuid() }
        }
        impl Column for $type {
            type Stored = Uuid;
            fn from_stored(stored: Uuid) -> Result<Self, BoxDynError> { Ok(Self::from_uuid(stored)) }
        }
    )+ };
}
ids!(
    ApiTokenId,
    ApprovalEventId,
    ApprovalId,
    ApprovalLinkId,
    CallId,
    DeliveryId,
    EndpointId,
    EventId,
    ExceptionId,
    GrantId,
    InviteId,
    FilterId,
    JoinDomainId,
    LoginSessionId,
    PasskeyId,
    PolicyId,
    ReservationId,
    ServerId,
    ToolId,
    UserId,
    WorkspaceId,
);

macro_rules! word_columns {
    ($($type:ty),+ $(,)?) => { $(
        impl Bind for $type {
            type Stored = &'static str;
            fn stored(self) -> &'static str { self.as_str() }
        }
        impl Column for $type {
            type Stored = String;
            fn from_stored(stored: String) -> Result<Self, BoxDynError> { Ok(stored.parse()?) }
        }
    )+ };
}
word_columns!(
    ActorKind,
    ApprovalEventKind,
    ApprovalStatus,
    Category,
    ChangeKind,
    Code,
    DeliveryStatus,
    EndpointKind,
    LinkPurpose,
    Notice,
    ObjectKind,
    Outcome,
    PolicyKind,
    Role,
    SecurityKind,
    Severity,
    ToolState,
);

macro_rules! json_columns {
    ($($type:ty),+ $(,)?) => { $(
        /// JSON kept as text, so that key order and digits stay.
        impl Column for $type {
            type Stored = String;
            fn from_stored(stored: String) -> Result<Self, BoxDynError> {
                Ok(serde_json::from_str(&stored)?)
            }
        }
    )+ };
}
json_columns!(ServerSettings, WorkspaceLimits, Vec<String>, Vec<Notice>, serde_json::Value);

/// JSON text to bind.
pub(crate) fn json<T: Serialize>(what: &'static str, value: &T) -> Result<String, StoreError> {
    serde_json::to_string(value)
        .map_err(|source| StoreError::Unreadable { what, source: source.into() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_cut_and_kept_among_four_digit_years() {
        let at = DateTime::from_timestamp(1, 123_456_789).expect("a time");
        assert_eq!(micros(at).to_rfc3339(), "1970-01-01T00:00:01.123456+00:00");
        let last = micros(DateTime::<Utc>::MAX_UTC).to_rfc3339();
        assert_eq!(last, "9999-12-31T23:59:59.999999+00:00");
        let first = micros(DateTime::<Utc>::MIN_UTC).to_rfc3339();
        assert_eq!(first, "0001-01-01T00:00:00+00:00");
    }

    #[test]
    fn a_nul_becomes_its_symbol() {
        assert_eq!(text("delete_note\0"), "delete_note\u{2400}");
        assert_eq!(String::from("a\0b").stored(), "a\u{2400}b");
        assert!(matches!(text("plain"), Cow::Borrowed("plain")));
    }
}
