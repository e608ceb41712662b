//! The public catalogue: records that may replace others, registries read to their end, cut short, hostile.

use std::collections::HashMap;
use std::sync::Mutex;

use chrono::TimeDelta;
use serde_json::{Value, json};
use sluice_control::catalogue::{Fetch, FetchError, Keeper, Kept, ShelfHit, SyncError};
use sluice_risk::catalogue::registry::{OFFICIAL, Origin, Record, record};
use sluice_risk::catalogue::{Identity, Lifecycle, shared, starter};
use sluice_risk::grade::{GradeSignal, Letter};
use sluice_testkit::on_both;

use crate::common::World;

const META: &str = "io.modelcontextprotocol.registry/official";

fn item(name: &str, version: &str, updated: &str) -> Value {
    json!({"server": {"name": name, "version": version, "description": format!("Does {name}."),
        "remotes": [{"type": "streamable-http", "url": format!("https://mcp.example.com/{name}")}]},
        "_meta": {META: {"status": "active", "updatedAt": updated, "isLatest": true}}})
}

fn page(items: &[Value], next: Option<&str>) -> String {
    json!({"servers": items, "metadata": {"count": items.len(), "nextCursor": next}}).to_string()
}

fn read(value: &Value, base: &'static str) -> Record {
    let origin = Origin { base, proves_names: base == OFFICIAL, today: "2026-11-30" };
    record(value, origin).expect("a record")
}

/// Answers by cursor, and remembers what it was asked.
#[derive(Default)]
struct Script {
    pages: HashMap<String, String>,
    asked: Mutex<Vec<String>>,
}

impl Script {
    fn new(pages: &[(&str, String)]) -> Self {
        let pages =
            pages.iter().map(|(cursor, body)| ((*cursor).to_owned(), body.clone())).collect();
        Self { pages, asked: Mutex::default() }
    }

    fn asked(&self) -> Vec<String> {
        self.asked.lock().expect("unpoisoned").clone()
    }
}

impl Fetch for Script {
    async fn fetch(&self, address: &str) -> Result<Vec<u8>, FetchError> {
        self.asked.lock().expect("unpoisoned").push(address.to_owned());
        let cursor = address.split_once("&cursor=").map_or("", |(_, cursor)| cursor);
        match self.pages.get(cursor) {
            Some(body) => Ok(body.clone().into_bytes()),
            None => Err(FetchError("the registry answered with HTTP 503".to_owned())),
        }
    }
}

fn keeper(world: &World) -> Keeper {
    Keeper::new(world.db.clone(), world.clock.function())
}

on_both! {
    async fn a_registry_is_read_to_its_end_and_later_asked_for_what_changed(world: World) {
        let keeper = keeper(&world);
        let script = Script::new(&[
            ("", page(&[item("com.a/x", "1", "2026-10-01T00:00:00Z"), json!({"server": {"name": "<b>"}})], Some("com.a/x:1"))),
            ("com%2Ea%2Fx%3A1", page(&[item("io.github.b/y", "2", "2026-10-02T00:00:00Z")], None)),
        ]);
        let first = keeper.sync(OFFICIAL, false, false, &script).await.expect("reads");
        assert_eq!((first.pages, first.kept.added, first.skipped, first.since), (2, 2, 1, None));
        assert!(script.asked()[0].starts_with(&format!("{OFFICIAL}/v0.1/servers?limit=100")), "{:?}", script.asked());
        let found = keeper.find("io.github.b/y").await.expect("reads").expect("is there");
        assert_eq!((found.entry.identity, found.entry.lifecycle), (Identity::GithubProven, Some(Lifecycle::Active)));
        assert_eq!(found.grade().letter, None, "no tools are known");
        world.clock.advance(TimeDelta::days(1));
        let script = Script::new(&[("", page(&[item("com.a/x", "2", "2026-11-01T00:00:00Z")], None))]);
        let script = Script { pages: HashMap::from([(String::new(), script.pages[""].clone())]), ..Script::default() };
        let second = keeper.sync(&format!("{OFFICIAL}/v0.1/servers/"), false, false, &script).await.expect("reads");
        assert!(second.since.is_some() && script.asked()[0].contains("&updated_since="), "{:?}", script.asked());
        assert_eq!((second.kept.added, second.kept.changed), (0, 1));
        let found = keeper.find("com.a/x").await.expect("reads").expect("is there");
        assert_eq!(found.entry.version.as_deref(), Some("2"));
        assert_eq!(found.changes[0].what, "version 1 became 2");
        let again = keeper.sync(OFFICIAL, false, false, &script).await.expect("reads");
        assert_eq!((again.kept.changed, again.kept.unchanged), (0, 1), "twice is once");
        let full = keeper.sync(OFFICIAL, false, true, &script).await.expect("reads");
        assert_eq!(full.since, None);
    }

    async fn a_run_that_was_cut_short_goes_on_where_it_stood(world: World) {
        let keeper = keeper(&world);
        let first = page(&[item("com.a/x", "1", "2026-10-01T00:00:00Z")], Some("2"));
        let cut = Script::new(&[("", first.clone())]);
        let error = keeper.sync("https://r.example/", false, false, &cut).await.expect_err("is cut");
        assert!(matches!(error, SyncError::Fetch { page: 2, .. }), "{error}");
        assert!(keeper.find("com.a/x").await.expect("reads").is_some(), "what was read is kept");
        let torn = Script::new(&[("", first), ("2", "{\"servers\": [{".to_owned())]);
        let error = keeper.sync("https://r.example", false, false, &torn).await.expect_err("is torn");
        assert!(matches!(error, SyncError::Page { page: 2, .. }), "{error}");
        let rest = Script::new(&[("2", page(&[item("com.a/y", "1", "2026-10-01T00:00:00Z")], None))]);
        let done = keeper.sync("https://r.example", false, false, &rest).await.expect("reads");
        assert_eq!((done.resumed, done.pages, done.kept.added), (true, 1, 1));
        assert_eq!(rest.asked().len(), 1, "the first page is not asked for again");
        let found = keeper.find("com.a/y").await.expect("reads").expect("is there");
        assert_eq!(found.entry.identity, Identity::Unverified, "another registry proves nothing");
    }

    async fn a_list_without_end_ends(world: World) {
        let keeper = keeper(&world);
        let one = || item("com.a/x", "1", "2026-10-01T00:00:00Z");
        let round = Script::new(&[("", page(&[one()], Some("2"))), ("2", page(&[one()], Some("3"))), ("3", page(&[one()], Some("2")))]);
        let error = keeper.sync("https://r.example", false, false, &round).await.expect_err("is endless");
        assert!(matches!(error, SyncError::Endless { page: 3 }), "{error}");
        assert_eq!(round.asked().len(), 3);
        let next = Script::new(&[("", page(&[one()], None))]);
        let again = keeper.sync("https://r.example", false, false, &next).await.expect("reads");
        assert_eq!((again.resumed, again.since), (false, None), "it begins anew, with all records");
    }

    async fn a_better_record_is_not_replaced_by_a_worse(world: World) {
        let keeper = keeper(&world);
        let official = read(&item("com.a/x", "2", "2026-10-02T00:00:00Z"), OFFICIAL);
        keeper.keep(OFFICIAL, vec![official]).await.expect("keeps");
        let refused = Kept { refused: 1, ..Kept::default() };
        let older = read(&item("com.a/x", "1", "2026-10-01T00:00:00Z"), OFFICIAL);
        assert_eq!(keeper.keep(OFFICIAL, vec![older]).await.expect("keeps"), refused);
        let other = read(&item("com.a/x", "9", "2026-11-01T00:00:00Z"), "https://evil.example");
        assert_eq!(keeper.keep("https://evil.example", vec![other]).await.expect("keeps"), refused);
        let mut old = read(&item("com.a/x", "3", "2026-11-01T00:00:00Z"), OFFICIAL);
        old.superseded = true;
        assert_eq!(keeper.keep(OFFICIAL, vec![old]).await.expect("keeps"), refused);
        let future = read(&item("com.a/x", "4", "9999-01-01T00:00:00Z"), OFFICIAL);
        assert_eq!(keeper.keep(OFFICIAL, vec![future]).await.expect("keeps").changed, 1);
        world.clock.advance(TimeDelta::seconds(60));
        let mut gone = item("com.a/x", "5", "2030-01-01T00:00:00Z");
        gone["_meta"][META]["status"] = json!("deleted");
        assert_eq!(keeper.keep(OFFICIAL, vec![read(&gone, OFFICIAL)]).await.expect("keeps").changed, 1, "a time to come shuts nobody out");
        let found = keeper.find("com.a/x").await.expect("reads").expect("is there");
        assert_eq!((found.entry.version.as_deref(), found.entry.lifecycle), (Some("5"), Some(Lifecycle::Deleted)));
    }

    async fn tools_of_a_file_join_the_registrys_record_and_are_watched(world: World) {
        let keeper = keeper(&world);
        keeper.keep(OFFICIAL, vec![read(&item("com.a/x", "1", "2026-10-01T00:00:00Z"), OFFICIAL)]).await.expect("keeps");
        let with = |tools: Value| {
            let mut item = item("com.a/x", "7", "2026-10-01T00:00:00Z");
            item.as_object_mut().expect("an object").remove("_meta");
            item["tools"] = tools;
            read(&item, "file")
        };
        let get = json!({"name": "get_note", "description": "Gets a note.", "inputSchema": {"type": "object"}});
        let kept = keeper.keep("file", vec![with(json!([get, {"name": "list_notes", "description": "Lists notes.", "inputSchema": {}}]))]).await.expect("keeps");
        assert_eq!((kept.changed, kept.tools), (1, 2));
        let found = keeper.find("com.a/x").await.expect("reads").expect("is there");
        assert_eq!((found.entry.identity, found.entry.version.as_deref()), (Identity::DomainProven, Some("1")), "the registry's words stand");
        assert_eq!((found.changes.len(), found.watched), (0, None), "a first list is no change");
        world.clock.advance(TimeDelta::days(1));
        let send = json!({"name": "send_note", "description": "Sends a note.", "inputSchema": {}});
        let get = json!({"name": "get_note", "description": "Gets a note, and deletes it.", "inputSchema": {}});
        keeper.keep("file", vec![with(json!([get, send]))]).await.expect("keeps");
        let found = keeper.find("com.a~x").await.expect("reads").expect("is there");
        let mut told: Vec<_> = found.changes.iter().map(|it| format!("{} {}", it.kind, it.what)).collect();
        told.sort();
        assert_eq!(told, ["added send_note", "changed get_note", "removed list_notes"]);
        assert_eq!(found.watched.map(|it| (it.days, it.changes)), Some((1, 3)));
        let grade = found.grade();
        let stability = grade.signals.iter().find(|it| it.signal == GradeSignal::Stability).expect("is there");
        assert_eq!(stability.points, Some(4));
        assert!(grade.letter > Some(Letter::A), "{}", grade.sentence());
        let same = keeper.keep("file", vec![with(json!([get, send]))]).await.expect("keeps");
        assert_eq!((same.unchanged, same.tools), (1, 0));
    }

    async fn what_workspaces_give_joins_the_record_that_speaks_for_the_address(world: World) {
        let keeper = keeper(&world);
        let tools = |names: &[&str]| -> Vec<sluice_domain::ToolDefinition> {
            let all: Vec<Value> = names.iter().map(|name| json!({"name": name, "description": format!("{name} as given."), "inputSchema": {}})).collect();
            serde_json::from_value(json!(all)).expect("definitions")
        };
        let given = |address: &str, names: &[&str]| shared::record(address, tools(names), "2026-11-30").expect("public");
        let mut own = item("dev.vendor/notes", "1", "2026-10-01T00:00:00Z");
        own["server"]["remotes"] = json!([{"type": "streamable-http", "url": "https://mcp.vendor.dev/mcp"}]);
        own["tools"] = json!([{"name": "get_zebra", "description": "Gets a zebra."}]);
        // Another who names the same address, but proved another domain.
        let mut other = item("com.evil/notes", "1", "2026-10-01T00:00:00Z");
        other["server"]["remotes"] = own["server"]["remotes"].clone();
        keeper.keep(OFFICIAL, vec![read(&own, OFFICIAL), read(&other, OFFICIAL)]).await.expect("keeps");
        let neon = starter().iter().find(|one| shared::joins(one).is_some() && !one.tools.is_empty()).expect("a public server");
        let records = vec![
            given("https://mcp.vendor.dev/mcp", &["get_zebra", "tame_zebra"]),
            given(neon.upstream_url.as_deref().expect("an address"), &["stripe_zebra"]),
            given("https://mcp.nobody.dev/mcp", &["lone_zebra"]),
        ];
        keeper.keep("shared", records).await.expect("keeps");
        let record = |slug: &'static str| async { world.control.catalogue_record(slug).await.expect("reads").expect("is there") };
        let joined = record("dev.vendor~notes").await;
        let told: Vec<_> = joined.entry.tools.iter().map(|tool| (tool.name.as_str(), tool.description.as_deref().unwrap_or_default())).collect();
        assert_eq!(told, [("get_zebra", "Gets a zebra."), ("tame_zebra", "tame_zebra as given.")], "its own words stand");
        assert_eq!((joined.given, joined.entry.tools_complete), (1, false));
        let evil = record("com.evil~notes").await;
        assert_eq!((evil.given, evil.entry.tools.len()), (0, 0), "nobody gets tools by naming an address");
        let known = world.control.catalogue_record(&neon.slug).await.expect("reads").expect("is there");
        assert_eq!((known.given, known.entry.tools.len()), (1, neon.tools.len() + 1));
        assert!(world.control.refresh_shelf().await.expect("reads"));
        let shelf = world.control.shelf();
        assert_eq!(shelf.servers().len(), starter().len() + 3, "one page a server");
        let at = |query: &str| match shelf.search(query, 1).first() {
            Some(ShelfHit::Tool(server, tool)) => format!("{}/{}", server.slug, tool.name),
            other => format!("{other:?}"),
        };
        assert_eq!(at("tame zebra"), "dev.vendor~notes/tame_zebra");
        assert_eq!(at("stripe zebra"), format!("{}/stripe_zebra", neon.slug));
        assert_eq!(at("lone zebra"), "~mcp.nobody.dev~mcp/lone_zebra");
        assert_eq!(shelf.tools().iter().filter(|tool| &*tool.name == "get_zebra").count(), 1);
        assert_eq!(shelf.joined("~mcp.vendor.dev~mcp"), Some("dev.vendor~notes"));
        assert_eq!((shelf.joined("~mcp.nobody.dev~mcp"), shelf.has_joined(&neon.slug), shelf.has_joined("com.evil~notes")), (None, true, false));
    }

    async fn the_shelf_holds_both_sets_and_follows_changes(world: World) {
        let keeper = keeper(&world);
        let before = world.control.shelf();
        assert!(matches!(before.search("executePython", 5).first(), Some(ShelfHit::Tool(_, tool)) if &*tool.name == "executePython"), "the starter set is there at once");
        assert_eq!(before.servers().len(), starter().len());
        let mut new = item("com.zebra/stripes", "1", "2026-10-01T00:00:00Z");
        new["tools"] = json!([{"name": "paint_zebra", "description": "Paints a zebra."}]);
        let mut gone = item("com.gone/x", "1", "2026-10-01T00:00:00Z");
        gone["_meta"][META]["status"] = json!("deleted");
        keeper.keep("file", vec![read(&new, "file"), read(&gone, "file")]).await.expect("keeps");
        assert!(world.control.refresh_shelf().await.expect("reads"));
        assert!(!world.control.refresh_shelf().await.expect("reads"), "nothing changed since");
        let shelf = world.control.shelf();
        assert!(matches!(shelf.search("paint zbra", 5).first(), Some(ShelfHit::Tool(server, tool)) if &*tool.name == "paint_zebra" && &*server.slug == "com.zebra~stripes"));
        assert_eq!(shelf.servers().len(), starter().len() + 1, "what was deleted is not on it");
        let (total, part) = shelf.tools_where(|_| true, 2, 3);
        assert_eq!((total, part.len()), (shelf.tools().len(), 3));
    }
}
