//! The table of bounds on the protocol page, held against the code by each crate for what it owns.

use std::path::Path;
use std::time::Duration;

/// Which crate holds which row.
const OWNERS: &[(&str, &[&str])] = &[
    (
        "server",
        &[
            "a request's head",
            "time for a request's head",
            "an answer that its agent does not take",
            "connections",
            "a request's body",
            "one message of a server",
            "known grants while the database is down",
            "calls in flight after a stop signal",
        ],
    ),
    (
        "proxy",
        &[
            "time for a request's body",
            "depth of JSON",
            "messages held until they are complete, all calls together",
            "open requests and streams of a grant, at each replica",
            "sessions of a grant",
            "an idle session",
            "connecting to a server; its silence; one request in all",
            "how long a task's owner is known",
            "how long a call may wait for input; how often in a row",
            "how long a server may wait for its client's answer",
            "tools beyond the reviewed ones that a grant was shown",
            "an HTTP+SSE server's first event",
            "messages of an HTTP+SSE stream that wait for an agent",
            "an input schema; the steps of a check",
            "compiled grants kept in memory",
        ],
    ),
    (
        "upstream",
        &[
            "tools of a server; pages of its list",
            "idle connections kept to a server; for how long",
        ],
    ),
];

/// Rows of the table: bound and default.
fn rows() -> Vec<(String, String)> {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../dashboard/docs/protocol.md");
    let page = std::fs::read_to_string(page).expect("the page is there");
    let table = page.split("## Bounds and their defaults").nth(1).expect("the table's heading");
    let lines = table.lines().skip_while(|line| !line.starts_with("| ---"));
    let rows = lines.skip(1).take_while(|line| line.starts_with('|'));
    rows.map(|row| {
        let mut cells = row.trim_matches('|').split('|').map(str::trim);
        let (bound, default) = (cells.next(), cells.next());
        (bound.unwrap_or_default().to_owned(), default.unwrap_or_default().to_owned())
    })
    .collect()
}

/// Fails unless the page has these rows, and `owner` looks at all that are its own.
pub fn hold(owner: &str, rows_of_code: &[(&str, String)]) {
    let page = rows();
    let (_, own) = OWNERS.iter().find(|(name, _)| *name == owner).expect("an owner");
    let mut seen: Vec<&str> = rows_of_code.iter().map(|(bound, _)| *bound).collect();
    let mut own = own.to_vec();
    seen.sort_unstable();
    own.sort_unstable();
    assert_eq!(seen, own, "the rows that `{owner}` looks at");
    for (bound, default) in rows_of_code {
        let row = page.iter().find(|(name, _)| name == bound);
        let (_, told) = row.unwrap_or_else(|| panic!("the page has no row `{bound}`"));
        assert_eq!(told, default, "{bound}: the page and the code");
    }
}

/// `4 MiB`.
pub fn bytes(count: usize) -> String {
    match count {
        _ if count.is_multiple_of(1 << 20) => format!("{} MiB", count >> 20),
        _ if count.is_multiple_of(1 << 10) => format!("{} KiB", count >> 10),
        _ => format!("{} bytes", grouped(count)),
    }
}

/// `10 min`; short ones in seconds.
pub fn time(time: Duration) -> String {
    match time.as_secs() {
        s if s >= 3_600 && s.is_multiple_of(3_600) => format!("{} h", s / 3_600),
        s if s >= 120 && s.is_multiple_of(60) => format!("{} min", s / 60),
        s => format!("{s} s"),
    }
}

/// `10,000`.
pub fn grouped(count: usize) -> String {
    let digits = count.to_string();
    let groups: Vec<_> = digits.as_bytes().rchunks(3).rev().map(String::from_utf8_lossy).collect();
    groups.join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_of_the_page_has_an_owner() {
        let mut owned: Vec<&str> = OWNERS.iter().flat_map(|(_, own)| *own).copied().collect();
        let page = rows();
        let mut told: Vec<&str> = page.iter().map(|(bound, _)| bound.as_str()).collect();
        owned.sort_unstable();
        told.sort_unstable();
        assert_eq!(told, owned);
    }

    #[test]
    fn sizes_and_times_are_written_as_on_the_page() {
        assert_eq!(
            (bytes(4 << 20), bytes(64 << 10), bytes(1_000)),
            ("4 MiB".into(), "64 KiB".into(), "1,000 bytes".into())
        );
        let times = [5, 75, 120, 600, 3_600, 86_400].map(|s| time(Duration::from_secs(s)));
        assert_eq!(times, ["5 s", "75 s", "2 min", "10 min", "1 h", "24 h"]);
        assert_eq!((grouped(7), grouped(1_234_567)), ("7".to_owned(), "1,234,567".to_owned()));
    }
}
