//! The public catalogue: many rows at once, pages in order, and plans that use indexes.

use sluice_domain::{Category, Severity};
use sluice_store::catalogue::{self, CatalogueChange, CatalogueServer, CatalogueTool, Sync, sql};
use sluice_store::{Conn, Db};
use sluice_testkit::on_both;
use sqlx::{AssertSqlSafe, Row};
use uuid::Uuid;

use crate::support::{kept, later, now};

fn server(slug: &str) -> CatalogueServer {
    CatalogueServer {
        id: Uuid::now_v7(),
        slug: slug.to_owned(),
        origin: "file".to_owned(),
        entry: "{}".to_owned(),
        is_deleted: false,
        is_proven: false,
        record_updated_at: Some(kept(now())),
        tools_first_at: None,
        tools_last_at: None,
        first_seen_at: kept(now()),
        changed_at: kept(now()),
    }
}

fn tool(server: Uuid, name: &str, place: i64) -> CatalogueTool {
    CatalogueTool {
        server_id: server,
        name: name.to_owned(),
        place,
        definition: format!("{{\"name\":\"{name}\"}}"),
        about: "Does it.".to_owned(),
        category: Category::Read,
        poisoned: false,
        severity: Severity::Low,
    }
}

/// The plan of a statement with `count` parameters that stand for nothing.
async fn plan(conn: &mut Conn<'_>, sql: &str) -> String {
    let id = Uuid::nil();
    let mut lines = Vec::new();
    match conn {
        Conn::Sqlite(conn) => {
            let sql = AssertSqlSafe(format!("EXPLAIN QUERY PLAN {sql}"));
            for row in sqlx::query(sql).fetch_all(&mut **conn).await.expect("a plan") {
                lines.push(row.get::<String, _>("detail"));
            }
        }
        Conn::Postgres(conn) => {
            // Small tables are scanned whatever indexes there are; this asks whether one could serve.
            sqlx::query("SET LOCAL enable_seqscan = off").execute(&mut **conn).await.expect("set");
            let sql = sql
                .replace("slug = $1", "slug = 'a'")
                .replace("slug > $1", "slug > 'a'")
                .replace("server_id = $1", &format!("server_id = '{id}'"))
                .replace("($1, $2)", &format!("('{id}', 'a')"))
                .replace("LIMIT $2", "LIMIT 10")
                .replace("LIMIT $3", "LIMIT 10");
            let sql = AssertSqlSafe(format!("EXPLAIN {sql}"));
            for row in sqlx::query(sql).fetch_all(&mut **conn).await.expect("a plan") {
                lines.push(row.get::<String, _>(0));
            }
        }
    }
    lines.join("\n")
}

on_both! {
    async fn many_rows_are_kept_and_read_in_order(db: Db) {
        let mut tx = db.begin().await.unwrap();
        let conn = &mut tx.conn();
        let servers: Vec<_> = (0..900).map(|n| server(&format!("a~{n:04}"))).collect();
        catalogue::insert_servers(conn, &servers).await.unwrap();
        let tools: Vec<_> = servers.iter().flat_map(|it| [tool(it.id, "b", 0), tool(it.id, "a\0", 1)]).collect();
        catalogue::insert_tools(conn, &tools).await.unwrap();
        let (mut after, mut seen) = (String::new(), 0);
        loop {
            let piece = catalogue::next_servers(conn, &after, 400).await.unwrap();
            let Some(last) = piece.last() else { break };
            after.clone_from(&last.slug);
            seen += piece.len();
        }
        assert_eq!(seen, 900);
        let (mut after, mut seen) = ((Uuid::nil(), String::new()), 0);
        loop {
            let piece = catalogue::next_tools(conn, (after.0, &after.1), 700).await.unwrap();
            let Some(last) = piece.last() else { break };
            after = (last.server_id, last.name.clone());
            seen += piece.len();
        }
        assert_eq!(seen, 1_800);
        let found = catalogue::find(conn, "a~0007").await.unwrap().unwrap();
        assert_eq!(found, servers[7]);
        let names: Vec<_> = catalogue::tools(conn, found.id).await.unwrap().into_iter().map(|it| it.name).collect();
        assert_eq!(names, ["b", "a\u{2400}"], "in the server's own order");
        assert_eq!(catalogue::find(conn, "A~0007").await.unwrap(), None);
    }

    async fn changes_counts_and_progress_are_kept(db: Db) {
        let mut tx = db.begin().await.unwrap();
        let conn = &mut tx.conn();
        let one = server("a~b");
        catalogue::insert_servers(conn, std::slice::from_ref(&one)).await.unwrap();
        let change = |kind: &str, what: &str, seconds| CatalogueChange { id: Uuid::now_v7(), server_id: one.id, at: later(seconds), kind: kind.to_owned(), what: what.to_owned() };
        let all = [change("added", "x", 1), change("changed", "x", 2), change("removed", "y", 3), change("record", "version", 4)];
        catalogue::insert_changes(conn, &all).await.unwrap();
        let told: Vec<_> = catalogue::changes(conn, one.id, 3).await.unwrap().into_iter().map(|it| it.kind).collect();
        assert_eq!(told, ["record", "removed", "changed"], "newest first");
        assert_eq!(catalogue::count_changed(conn, one.id, now()).await.unwrap(), 2, "a tool counts once, a record not at all");
        assert_eq!(catalogue::count_changed(conn, one.id, later(3)).await.unwrap(), 1);
        let revision = catalogue::revision(conn).await.unwrap();
        catalogue::note_change(conn).await.unwrap();
        assert_eq!(catalogue::revision(conn).await.unwrap(), revision + 1);
        let sync = Sync { origin: "https://r.example".to_owned(), page_cursor: Some("c".to_owned()), since: None, began_at: kept(now()), complete_at: None, pages: 3 };
        catalogue::put_sync(conn, &sync).await.unwrap();
        let done = Sync { page_cursor: None, complete_at: Some(kept(now())), ..sync };
        catalogue::put_sync(conn, &done).await.unwrap();
        assert_eq!(catalogue::find_sync(conn, "https://r.example").await.unwrap(), Some(done));
        assert_eq!(catalogue::find_sync(conn, "https://other.example").await.unwrap(), None);
    }

    async fn what_pages_wait_for_is_found_by_an_index(db: Db) {
        let mut tx = db.begin().await.unwrap();
        let conn = &mut tx.conn();
        for sql in [sql::FIND, sql::TOOLS, sql::CHANGES, sql::NEXT_SERVERS, sql::NEXT_TOOLS] {
            let plan = plan(conn, sql).await;
            assert!(!plan.contains("SCAN ") && !plan.contains("Seq Scan"), "{sql}\n{plan}");
            assert!(plan.to_lowercase().contains("index"), "{sql}\n{plan}");
        }
        // The measure itself tells a scan from an index.
        let scan = plan(conn, "SELECT entry FROM catalogue_servers WHERE entry = 'x'").await;
        assert!(scan.contains("SCAN ") || scan.contains("Seq Scan"), "{scan}");
    }
}
