//! The protocol page tells of the bounds that hold.

use std::time::Duration;

use sluice_domain::ServerSettings;
use sluice_policy::InputSchema;
use sluice_testkit::bounds::{bytes, grouped, hold, time};

use crate::options::ProxyOptions;
use crate::{bridge, budget, follow, notes, seen};

#[test]
fn the_protocol_page_tells_the_bounds_of_the_data_path() {
    let options = ProxyOptions::default();
    let server = ServerSettings::default();
    let seconds = |s: u32| format!("{} s", grouped(s as usize));
    let patience = [server.connect_timeout_s, server.idle_timeout_s, server.total_timeout_s];
    let held = (bytes(options.max_held_bytes), bytes(budget::FREE));
    let waits = (grouped(bridge::QUEUE), grouped(bridge::BACKLOG));
    let cached = usize::try_from(options.cached_routes).expect("it fits");
    hold(
        "proxy",
        &[
            ("time for a request's body", time(options.request_timeout)),
            ("depth of JSON", format!("{} levels", sluice_mcp::MAX_DEPTH)),
            (
                "messages held until they are complete, all calls together",
                format!("{}, and {} for each", held.0, held.1),
            ),
            (
                "open requests and streams of a grant, at each replica",
                grouped(options.max_open_per_grant),
            ),
            (
                "sessions of a grant",
                format!(
                    "{}; the one unused for longest makes room",
                    grouped(options.sessions_per_grant)
                ),
            ),
            ("an idle session", time(options.session_idle)),
            (
                "connecting to a server; its silence; one request in all",
                format!("{}, each set per server", patience.map(seconds).join("; ")),
            ),
            ("how long a task's owner is known", time(follow::TASK_FOR)),
            (
                "how long a call may wait for input; how often in a row",
                format!("{}; {} times", time(follow::INPUT_WITHIN), follow::MAX_ROUNDS),
            ),
            ("how long a server may wait for its client's answer", time(notes::ISSUED_FOR)),
            (
                "tools beyond the reviewed ones that a grant was shown",
                format!("{}, for {}", grouped(seen::MAX_NAMES), time(seen::REMEMBERED_FOR)),
            ),
            ("an HTTP+SSE server's first event", time(bridge::ENDPOINT_WAIT)),
            (
                "messages of an HTTP+SSE stream that wait for an agent",
                format!("{}, or {} while no agent listens", waits.0, waits.1),
            ),
            (
                "an input schema; the steps of a check",
                format!("{}; {}", bytes(InputSchema::MOST_BYTES), grouped(InputSchema::MOST_STEPS)),
            ),
            ("compiled grants kept in memory", grouped(cached)),
        ],
    );
    assert_eq!(options.stale_routes, Duration::from_mins(10), "`server` documents its own");
}
