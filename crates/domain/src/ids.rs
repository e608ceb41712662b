//! Ids are types, and plain lower-case UUIDs (version 7) outside.

use chrono::{DateTime, Utc};
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// A text that is not a plain lower-case UUID.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a plain lower-case UUID")]
pub struct ParseIdError;

/// Reads only the form that we print: 36 characters, hyphens, lower case.
fn parse_plain(text: &str) -> Result<Uuid, ParseIdError> {
    let plain = text.len() == 36 && !text.bytes().any(|b| b.is_ascii_uppercase());
    if !plain {
        return Err(ParseIdError);
    }
    Uuid::try_parse(text).map_err(|_| ParseIdError)
}

macro_rules! id {
    ($($(#[$meta:meta])* $name:ident),+ $(,)?) => { $(
        $(#[$meta])*
        #[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(Uuid);

        impl $name {
            /// A new id; later ids sort later (UUID version 7, RFC 9562).
            #[expect(clippy::new_without_default, reason = "an id is made, not defaulted")]
            pub fn new() -> Self {
                Self(Uuid::now_v7())
            }

            /// The id as stored.
            pub const fn uuid(self) -> Uuid {
                self.0
            }

            /// Wraps what the database gave.
            pub const fn from_uuid(uuid: Uuid) -> Self {
                Self(uuid)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(self.0.as_hyphenated(), f)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!(stringify!($name), "({})"), self.0)
            }
        }

        impl FromStr for $name {
            type Err = ParseIdError;
            fn from_str(text: &str) -> Result<Self, Self::Err> {
                parse_plain(text).map(Self)
            }
        }
    )+ };
}

id!(
    /// A workspace: the tenant.
    WorkspaceId,
    /// A person with an account.
    UserId,
    /// One upstream MCP server of a workspace.
    ServerId,
    /// A tool of a server, as last read.
    ToolId,
    /// A policy within a workspace.
    PolicyId,
    /// A labelled bearer token for one server.
    GrantId,
    /// One request through the proxy; the `X-Request-Id` and the log row's id.
    CallId,
    /// A call parked for a person.
    ApprovalId,
    /// Something that happened to a parked call.
    ApprovalEventId,
    /// A link by which one parked call can be decided.
    ApprovalLinkId,
    /// A call that a person lets pass for a while.
    ExceptionId,
    /// Where a workspace is told of things.
    EndpointId,
    /// One message on its way out.
    DeliveryId,
    /// A REST token of a workspace.
    ApiTokenId,
    /// A person's login in one browser.
    LoginSessionId,
    /// A row of the admin audit log.
    EventId,
    /// An invitation to a workspace.
    InviteId,
    /// An e-mail domain whose people may join a workspace.
    JoinDomainId,
    /// A person's passkey.
    PasskeyId,
    /// A member's saved filter of the log.
    FilterId,
    /// One atomic charge of a call's limits.
    ReservationId,
);

impl CallId {
    /// Before every id that is made at `at` or later, as far as milliseconds tell.
    pub fn floor(at: DateTime<Utc>) -> Self {
        let millis = u128::try_from(at.timestamp_millis()).unwrap_or(0) & 0xffff_ffff_ffff;
        // Version 7 and the variant of RFC 9562, and nothing random.
        Self(Uuid::from_u128(millis << 80 | 0x7 << 76 | 0b10 << 62))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn later_ids_sort_later_and_text_round_trips() {
        let (a, b) = (PolicyId::new(), PolicyId::new());
        assert!(a < b);
        assert_eq!(a.to_string().parse::<PolicyId>(), Ok(a));
    }

    #[test]
    fn the_floor_of_a_time_is_below_its_ids_and_above_those_before() {
        let before = CallId::new();
        let (seconds, nanos) = before.uuid().get_timestamp().expect("it has a time").to_unix();
        let at = DateTime::<Utc>::from_timestamp(seconds.cast_signed(), nanos).expect("a time");
        assert!(CallId::floor(at) <= before);
        assert!(before < CallId::floor(at + chrono::TimeDelta::milliseconds(1)));
        assert_eq!(CallId::floor(at).uuid().get_version_num(), 7);
        assert!(CallId::floor(DateTime::<Utc>::MIN_UTC) < before);
    }

    #[test]
    fn only_the_printed_form_is_an_id() {
        let id = ServerId::new();
        for odd in [
            id.to_string().to_uppercase(),
            id.uuid().simple().to_string(),
            format!("{{{id}}}"),
            format!("urn:uuid:{id}"),
            format!(" {id}"),
            String::new(),
        ] {
            assert_eq!(odd.parse::<ServerId>(), Err(ParseIdError), "{odd}");
        }
    }
}
