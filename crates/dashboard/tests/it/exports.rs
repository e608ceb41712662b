//! The log and the audit log as files, from their pages.

use http::StatusCode;
use sluice_domain::CallRecord;
use sluice_store::calls::{self, CallFilter};

use crate::browser::{MARKUP, piece, plain};
use crate::logs::{with_calls, write};
use crate::world::World;

const NIL: &str = "00000000-0000-0000-0000-000000000000";

fn ids(csv: &str) -> Vec<&str> {
    csv.lines().skip(1).filter_map(|line| line.split(',').next()).collect()
}

#[tokio::test]
async fn the_logs_page_gives_what_its_filters_leave_as_files() {
    let world = World::new().await;
    let (mut browser, calls) = with_calls(&world, 3).await;
    let page = browser.get("/w/acme/logs?outcome=limited&tool=executePython").await;
    let links = page.links();
    let link = |end: &str| {
        let found = links.iter().find(|link| link.starts_with(&format!("/w/acme/logs.{end}")));
        found.unwrap_or_else(|| panic!("no {end} among {links:?}")).clone()
    };
    let file = browser.get(&link("csv")).await;
    assert_eq!(file.status, StatusCode::OK);
    assert_eq!(file.headers["content-type"], "text/csv; charset=utf-8");
    assert_eq!(file.headers["content-disposition"], "attachment; filename=\"calls.csv\"");
    let limited: Vec<String> = calls[..3].iter().rev().map(|call| call.id.to_string()).collect();
    assert_eq!(ids(&file.body), limited, "newest first, and only what the filters leave");
    assert!(file.body.contains("2026-11-30T10:00:00Z"), "times are UTC and say so: {}", file.body);

    let ndjson = browser.get(&link("ndjson")).await;
    assert_eq!(ndjson.headers["content-type"], "application/x-ndjson");
    let first = ndjson.body.lines().next().expect("a line");
    let first: serde_json::Value = serde_json::from_str(first).expect("JSON");
    assert_eq!(first["id"], limited[0]);
    assert_eq!(first["client_name"], MARKUP, "as it was, for programs");
    assert_eq!(ndjson.body.lines().count(), 3);
}

#[tokio::test]
async fn a_filter_that_is_not_understood_gives_no_file_of_everything() {
    let world = World::new().await;
    let (mut browser, _) = with_calls(&world, 1).await;
    let refused = browser.get("/w/acme/logs.csv?outcome=odd").await;
    assert_eq!(refused.status, StatusCode::UNPROCESSABLE_ENTITY);
    refused.says("outcome odd is not understood");
}

#[tokio::test]
async fn a_foreign_page_starts_no_export() {
    let world = World::new().await;
    let (mut browser, _) = with_calls(&world, 1).await;
    for path in
        ["/w/acme/logs.csv", "/w/acme/logs.ndjson", "/w/acme/audit.csv", "/w/acme/audit.ndjson"]
    {
        let refused = browser.get_from(path, "cross-site").await;
        assert_eq!(refused.status, StatusCode::FORBIDDEN, "{path}");
        for site in ["same-origin", "none"] {
            assert_eq!(browser.get_from(path, site).await.status, StatusCode::OK, "{path}");
        }
        let mut nobody = world.browser();
        assert_eq!(nobody.get(path).await.status, StatusCode::SEE_OTHER, "{path}");
    }
}

/// What was not asked for yet is not in memory: the reader sets the pace.
#[tokio::test]
async fn an_export_reads_a_page_of_rows_when_it_is_asked_for_more() {
    let world = World::new().await;
    let (mut browser, calls) = with_calls(&world, 1_200).await;
    let (answer, mut body) = browser.first_piece("/w/acme/logs.ndjson?outcome=limited").await;
    assert_eq!(answer.body.lines().count(), 500, "a page and no more");
    // A row that comes below what was sent: a file that was read at once would not have it.
    let fields = (calls[0].workspace, calls[0].server);
    let late = CallRecord { id: NIL.parse().expect("an id"), ..calls[0].clone() };
    write(&world, &[&late]).await;
    let mut rest = String::new();
    loop {
        let more = piece(&mut body).await;
        if more.is_empty() {
            break;
        }
        assert!(more.lines().count() <= 500, "never more than a page");
        rest.push_str(&more);
    }
    assert_eq!(rest.lines().count(), 701);
    assert!(rest.contains(&late.id.to_string()));
    let mut tx = world.db.begin().await.expect("begins");
    let all = calls::list(&mut tx.conn(), fields.0, &CallFilter::default(), None, 2_000).await;
    assert_eq!(all.expect("reads").len(), 1_202);
}

#[tokio::test]
async fn the_audit_log_is_a_file_too_and_holds_its_chain() {
    let world = World::new().await;
    let (mut browser, _) = world.connected().await;
    let page = browser.get("/w/acme/audit?action=server.create").await;
    let csv = "/w/acme/audit.csv?action=server.create";
    assert!(page.links().iter().any(|link| link == csv), "{:?}", page.links());
    let file = browser.get(csv).await;
    assert_eq!(file.headers["content-disposition"], "attachment; filename=\"audit.csv\"");
    let mut lines = file.body.lines();
    let head = "seq,at,id,actor_kind,actor_name,address,action,object_kind,object_id,object_name,before,after,hash";
    assert_eq!(lines.next(), Some(head));
    assert!(lines.all(|line| line.contains("server.create")), "{}", plain(&file.body));
    let all = browser.get("/w/acme/audit.ndjson").await;
    let events: Vec<serde_json::Value> =
        all.body.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert!(events.len() > 1 && events.iter().all(|event| event["hash"].is_string()));
    let seqs: Vec<i64> = events.iter().filter_map(|event| event["seq"].as_i64()).collect();
    assert!(seqs.windows(2).all(|two| two[0] == two[1] + 1), "{seqs:?}");
}
