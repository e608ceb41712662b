//! What an error of the client or of the server means for the operator.

use redis::{ErrorKind, RedisError, ServerErrorKind};

use crate::unavailable::{Reason, Unavailable};

/// Whether a fresh connection may help: the link broke, or leads to a server that takes no writes.
pub(crate) fn link_is_useless(error: &RedisError) -> bool {
    matches!(reason(error), Reason::Unreachable | Reason::ReadOnly)
}

/// Whether every other call must fail alike, so that asking again would only cost time.
pub(crate) const fn concerns_all(reason: &Reason) -> bool {
    !matches!(reason, Reason::Other(_) | Reason::TooManyCounters)
}

pub(crate) fn is_unknown_script(error: &RedisError) -> bool {
    error.kind() == ErrorKind::Server(ServerErrorKind::NoScript)
}

/// The server answers errors before the script changes anything; a broken link says nothing.
pub(crate) fn unavailable(error: &RedisError) -> Unavailable {
    let reason = reason(error);
    let doubtful = matches!(reason, Reason::Unreachable | Reason::TimedOut);
    Unavailable { reason, doubtful }
}

fn reason(error: &RedisError) -> Reason {
    use ServerErrorKind as Server;
    match error.kind() {
        ErrorKind::AuthenticationFailed => Reason::Credentials,
        ErrorKind::MasterNameNotFoundBySentinel | ErrorKind::NoValidReplicasFoundBySentinel => {
            Reason::NoMaster
        }
        ErrorKind::ClusterConnectionNotFound => Reason::ClusterDown,
        ErrorKind::Server(Server::BusyLoading) => Reason::Loading,
        ErrorKind::Server(Server::ReadOnly) => Reason::ReadOnly,
        ErrorKind::Server(Server::Moved | Server::Ask | Server::CrossSlot) => Reason::IsCluster,
        ErrorKind::Server(Server::ClusterDown | Server::MasterDown | Server::TryAgain) => {
            Reason::ClusterDown
        }
        ErrorKind::Io if error.is_timeout() => Reason::TimedOut,
        ErrorKind::Io => Reason::Unreachable,
        kind => match error.code() {
            Some("OOM") => Reason::OutOfMemory,
            Some("MISCONF" | "NOREPLICAS") => Reason::ReadOnly,
            Some("NOAUTH" | "WRONGPASS" | "NOPERM") => Reason::Credentials,
            Some(code) => Reason::Other(code.to_owned()),
            // The link breaks in the midst of an answer.
            None if kind == ErrorKind::Parse => Reason::Unreachable,
            None => Reason::Other(format!("{kind:?}")),
        },
    }
}
