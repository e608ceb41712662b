//! Bounds, timeouts and how long things are kept.

use std::time::Duration;

use clap::Args;

use super::words::LogUnavailable;

/// Bounds, timeouts and retention.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Bounds, timeouts, retention")]
pub(crate) struct BoundsArgs {
    /// The largest request body that the proxy takes; more is 413.
    #[arg(long, env = "SLUICE_MAX_REQUEST_BYTES", default_value = "4MiB", value_parser = bytes, value_name = "SIZE")]
    pub(crate) max_request: Bytes,
    /// The largest single message of an upstream; streams as a whole have no bound.
    #[arg(long, env = "SLUICE_MAX_UPSTREAM_MESSAGE_BYTES", default_value = "64MiB", value_parser = bytes, value_name = "SIZE")]
    pub(crate) max_upstream_message: Bytes,
    /// Connections that each listen address holds at once.
    #[arg(long, env = "SLUICE_MAX_CONNECTIONS", default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(1..=1_000_000), value_name = "N")]
    pub(crate) max_connections: u32,
    /// How long a connection may wait for the head of its next request.
    #[arg(long, env = "SLUICE_HEADER_TIMEOUT", default_value = "75s", value_parser = duration, value_name = "TIME")]
    pub(crate) header_timeout: Duration,
    /// How long calls in flight may go on after a stop signal.
    #[arg(long, env = "SLUICE_SHUTDOWN_GRACE", default_value = "30s", value_parser = duration, value_name = "TIME")]
    pub(crate) shutdown_grace: Duration,
    /// How long a replica goes on taking requests after a stop signal while `/readyz` says no: longer than
    /// whoever sends requests here takes to look.
    #[arg(long, env = "SLUICE_STOP_NOTICE", default_value = "1s", value_parser = duration, value_name = "TIME")]
    pub(crate) stop_notice: Duration,
    /// How long cached grants go on while the database is down; a revocation may take as long to arrive then.
    #[arg(long, env = "SLUICE_STALE_ROUTES", default_value = "10m", value_parser = duration, value_name = "TIME")]
    pub(crate) stale_routes: Duration,
    /// Log rows that wait in memory for the database; what is more waits in files (`--log-spill`).
    #[arg(long, env = "SLUICE_LOG_QUEUE", default_value_t = 20_000, value_parser = clap::value_parser!(u32).range(100..=1_000_000), value_name = "N")]
    pub(crate) log_queue: u32,
    /// Log rows that wait in files of the data directory while the database is away, in bytes; `0`: none.
    #[arg(long, env = "SLUICE_LOG_SPILL", default_value = "256MiB", value_parser = spill, value_name = "SIZE")]
    pub(crate) log_spill: Bytes,
    /// What becomes of a call whose log row has no room in memory nor in files.
    #[arg(long, env = "SLUICE_LOG_UNAVAILABLE", value_enum, default_value_t = LogUnavailable::Deny)]
    pub(crate) log_unavailable: LogUnavailable,
    /// How long the call log and closed approvals are kept; `0s` keeps it for ever.
    #[arg(long, env = "SLUICE_CALL_RETENTION", default_value = "90d", value_parser = duration, value_name = "TIME")]
    pub(crate) call_retention: Duration,
    /// How long the security log is kept; `0s` keeps it for ever.
    #[arg(long, env = "SLUICE_SECURITY_RETENTION", default_value = "90d", value_parser = duration, value_name = "TIME")]
    pub(crate) security_retention: Duration,
}

/// A size in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Bytes(pub(crate) usize);

/// A size, or nothing at all.
fn spill(text: &str) -> Result<Bytes, String> {
    if text.trim() == "0" { Ok(Bytes(0)) } else { bytes(text) }
}

fn bytes(text: &str) -> Result<Bytes, String> {
    let (digits, unit) = split(text);
    let factor = match unit {
        "" | "B" => 1,
        "KiB" | "k" | "K" => 1024,
        "MiB" | "m" | "M" => 1024 * 1024,
        "GiB" | "g" | "G" => 1024 * 1024 * 1024,
        _ => return Err("write a size such as `512KiB` or `4MiB`".to_owned()),
    };
    let count: usize = digits.parse().map_err(|_| "write a size such as `4MiB`".to_owned())?;
    match count.checked_mul(factor) {
        Some(size) if (1024..=4 * 1024 * 1024 * 1024).contains(&size) => Ok(Bytes(size)),
        _ => Err("a size is from 1 KiB to 4 GiB".to_owned()),
    }
}

fn duration(text: &str) -> Result<Duration, String> {
    let (digits, unit) = split(text);
    let factor = match unit {
        "" | "s" => 1,
        "m" => 60,
        "h" => 3_600,
        "d" => 86_400,
        _ => return Err("write a time such as `30s`, `10m`, `6h` or `90d`".to_owned()),
    };
    let count: u64 = digits.parse().map_err(|_| "write a time such as `30s`".to_owned())?;
    match count.checked_mul(factor) {
        Some(seconds) if seconds <= 100 * 366 * 86_400 => Ok(Duration::from_secs(seconds)),
        _ => Err("a time is at most 100 years".to_owned()),
    }
}

fn split(text: &str) -> (&str, &str) {
    let text = text.trim();
    let end = text.bytes().position(|byte| !byte.is_ascii_digit()).unwrap_or(text.len());
    (&text[..end], text[end..].trim())
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use sluice_proxy::ProxyOptions;
    use sluice_testkit::bounds;

    use super::*;

    #[derive(Debug, Parser)]
    struct Only {
        #[command(flatten)]
        own: BoundsArgs,
    }

    #[test]
    fn the_protocol_page_tells_the_bounds_of_the_listeners() {
        let own = Only::try_parse_from(["sluice"]).expect("nothing is asked for").own;
        let connections = usize::try_from(own.max_connections).expect("it fits");
        bounds::hold(
            "server",
            &[
                // hyper's own bound on their number; `attacks` in the end-to-end tests holds it.
                (
                    "a request's head",
                    format!("{} and 100 headers", bounds::bytes(crate::listen::MAX_HEAD)),
                ),
                ("time for a request's head", bounds::time(own.header_timeout)),
                ("an answer that its agent does not take", bounds::time(crate::wire::UNREAD_FOR)),
                ("connections", bounds::grouped(connections)),
                ("a request's body", bounds::bytes(own.max_request.0)),
                ("one message of a server", bounds::bytes(own.max_upstream_message.0)),
                ("known grants while the database is down", bounds::time(own.stale_routes)),
                ("calls in flight after a stop signal", bounds::time(own.shutdown_grace)),
            ],
        );
        let inside = ProxyOptions::default();
        assert_eq!(inside.max_request_bytes, own.max_request.0);
        assert_eq!(inside.max_message_bytes, own.max_upstream_message.0);
        assert_eq!(inside.stale_routes, own.stale_routes);
    }

    #[test]
    fn sizes_and_times_are_read_with_their_units() {
        assert_eq!(bytes("4MiB"), Ok(Bytes(4 * 1024 * 1024)));
        assert_eq!(bytes("2048"), Ok(Bytes(2048)));
        assert_eq!((spill("0"), spill("1MiB")), (Ok(Bytes(0)), Ok(Bytes(1024 * 1024))));
        for bad in ["", "MiB", "-1", "4 parsecs", "1", "99999999999999999999", "8GiB"] {
            assert!(bytes(bad).is_err(), "{bad}");
        }
        assert_eq!(duration("10m"), Ok(Duration::from_mins(10)));
        assert_eq!(duration("0s"), Ok(Duration::ZERO));
        for bad in ["", "s", "1w", "-1s", "99999999999999999d"] {
            assert!(duration(bad).is_err(), "{bad}");
        }
    }
}
