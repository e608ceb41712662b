use proptest::prelude::*;
use serde_json::json;

use super::*;

const ORIGIN: Origin<'static> = Origin { base: OFFICIAL, proves_names: true, today: "2026-11-30" };

fn read(value: &Value) -> Record {
    record(value, ORIGIN).unwrap_or_else(|skipped| panic!("{skipped}: {value}"))
}

fn weather() -> Value {
    json!({
        "server": {
            "$schema": "https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json",
            "name": "io.github.Ann/weather", "title": "Weather", "version": "1.2.0",
            "description": "Forecasts by city.",
            "repository": {"url": "https://github.com/ann/weather", "source": "github"},
            "packages": [{"registryType": "npm", "identifier": "@ann/weather", "version": "1.2.0",
                "transport": {"type": "stdio"},
                "environmentVariables": [{"name": "WEATHER_KEY", "isSecret": true}, {"name": "x y"}]}],
        },
        "_meta": {OFFICIAL_META: {"status": "active", "publishedAt": "2026-10-01T09:00:00Z",
            "updatedAt": "2026-11-02T10:00:00Z", "isLatest": true}},
    })
}

#[test]
fn a_record_is_read_as_the_registry_writes_it() {
    let Record { entry, updated_at, superseded, tells_tools } = read(&weather());
    assert_eq!(
        (entry.owner_name.as_str(), entry.slug.as_str()),
        ("io.github.Ann/weather", "io.github.ann~weather")
    );
    assert_eq!((entry.title.as_str(), entry.summary.as_str()), ("Weather", "Forecasts by city."));
    assert_eq!(entry.stdio_command.as_deref(), Some("npx -y @ann/weather@1.2.0"));
    assert_eq!(entry.stdio_env, ["WEATHER_KEY"]);
    assert_eq!(
        (entry.identity, entry.lifecycle),
        (Identity::GithubProven, Some(Lifecycle::Active))
    );
    assert_eq!(
        entry.source,
        "https://registry.modelcontextprotocol.io/v0.1/servers/io.github.Ann%2Fweather/versions/1.2.0"
    );
    assert_eq!(
        (entry.as_of.as_str(), updated_at.as_deref()),
        ("2026-11-02", Some("2026-11-02T10:00:00Z"))
    );
    assert_eq!((superseded, tells_tools, entry.tools_complete), (false, false, false));
}

#[test]
fn a_remote_goes_before_a_package() {
    let mut value = weather();
    value["server"]["remotes"] = json!([{"type": "sse", "url": "{base}/sse"},
        {"type": "streamable-http", "url": "https://mcp.example.com/mcp", "headers": [{"name": "X-Key", "isSecret": true}]}]);
    let entry = read(&value).entry;
    assert_eq!(
        (entry.transport, entry.upstream_url.as_deref()),
        (EntryTransport::Http, Some("https://mcp.example.com/mcp"))
    );
    assert_eq!((entry.auth_needed, entry.stdio_command), (AuthNeeded::Token, None));
    value["server"]["remotes"][1]["headers"] = json!([]);
    assert_eq!(read(&value).entry.auth_needed, AuthNeeded::Unknown);
}

#[test]
fn names_are_proven_only_by_a_registry_that_proves_them() {
    let other = Origin { base: "https://registry.example.com", proves_names: false, ..ORIGIN };
    let entry = record(&weather(), other).expect("reads").entry;
    assert_eq!(entry.identity, Identity::Unverified);
    let mut value = weather();
    value["server"]["name"] = json!("com.example/weather");
    assert_eq!(read(&value).entry.identity, Identity::DomainProven);
}

#[test]
fn states_and_old_versions_are_told() {
    for (status, expected) in [
        ("deprecated", Lifecycle::Deprecated),
        ("deleted", Lifecycle::Deleted),
        ("odd", Lifecycle::Active),
    ] {
        let mut value = weather();
        value["_meta"][OFFICIAL_META]["status"] = json!(status);
        value["_meta"][OFFICIAL_META]["statusMessage"] = json!("Moved\nto <b>x</b>");
        let entry = read(&value).entry;
        assert_eq!(
            (entry.lifecycle, entry.lifecycle_note.as_deref()),
            (Some(expected), Some("Moved to <b>x</b>"))
        );
    }
    let mut value = weather();
    value["_meta"][OFFICIAL_META]["isLatest"] = json!(false);
    assert!(read(&value).superseded);
    assert_eq!(read(&weather()["server"]).entry.lifecycle, None, "a file's record has no state");
}

#[test]
fn hostile_text_is_cleaned_and_bounded() {
    let value = json!({"server": {
        "name": "com.evil/x", "title": "\u{202e}evil\u{200b}\u{e0041}\n# Title", "version": "1 && rm",
        "description": format!("a\u{0}\u{1b}[31m b {}", "z".repeat(100_000)),
        "websiteUrl": "javascript:alert(1)", "repository": {"url": "https://user:pw@evil.example/"},
        "packages": [{"registryType": "npm", "identifier": "x; rm -rf /", "version": "1"},
                     {"registryType": "npm", "identifier": "--eval=x"},
                     {"registryType": "pypi", "identifier": "ok", "version": "$(x)"}],
        "remotes": [{"url": "https://e.example/\"><script>"}, {"url": 7}, 3],
    }});
    let entry = read(&value).entry;
    assert_eq!(entry.title, "evil # Title");
    assert!(
        entry.summary.starts_with("a[31m b z") && entry.summary.chars().count() <= MOST_SUMMARY + 1
    );
    assert_eq!((entry.homepage.as_str(), entry.repository), ("", None));
    assert_eq!((entry.upstream_url, entry.stdio_command.as_deref()), (None, Some("uvx ok")));
}

#[test]
fn names_that_are_none_are_left_out() {
    for name in
        ["", "x", "/", "a/", "/b", "a/b/c", "a b/c", "a/<b>", "../..", "a/..", "a/b\n", "ä/b"]
    {
        assert_eq!(record(&json!({"name": name}), ORIGIN), Err(Skipped::NoName), "{name}");
    }
    assert_eq!(
        record(&json!({"name": format!("a/{}", "b".repeat(300))}), ORIGIN),
        Err(Skipped::NoName)
    );
    assert_eq!(record(&json!(7), ORIGIN), Err(Skipped::NotAnObject));
    assert_eq!(record(&json!({"server": []}), ORIGIN), Err(Skipped::NotAnObject));
}

#[test]
fn a_pages_end_is_told_apart_from_its_faults() {
    let with = |cursor: Value| json!({"servers": [weather(), 5], "metadata": {"count": 2, "nextCursor": cursor}});
    let read = |value: &Value| page(value.to_string().as_bytes(), ORIGIN);
    let first = read(&with(json!("a:1"))).expect("a page");
    assert_eq!(
        (first.records.len(), first.skipped.as_slice(), first.next.as_deref()),
        (1, &[Skipped::NotAnObject][..], Some("a:1"))
    );
    for last in [with(Value::Null), with(json!("")), json!({"servers": []})] {
        assert_eq!(read(&last).expect("a page").next, None);
    }
    assert_eq!(read(&with(json!(7))), Err(PageError::Cursor));
    assert_eq!(read(&with(json!("x".repeat(3_000)))), Err(PageError::Cursor));
    assert_eq!(read(&json!({"servers": {}})), Err(PageError::NoServers));
    assert!(matches!(page(b"{\"servers\": [", ORIGIN), Err(PageError::NotJson(_))));
}

#[test]
fn tools_of_a_file_are_read_as_far_as_they_go() {
    let mut value = weather();
    value["tools"] = json!([{"name": "get", "description": "Gets.", "inputSchema": {"type": "object"}},
        {"name": "get"}, {"name": ""}, {"title": "x"}, 3, {"name": "odd", "description": 7, "inputSchema": []}]);
    let record = read(&value);
    assert!(record.tells_tools && record.entry.tools_complete);
    let names: Vec<_> = record.entry.tools.iter().map(|tool| tool.name.as_str()).collect();
    assert_eq!(names, ["get", "odd"]);
    assert_eq!(record.entry.tools[1].description, None);
}

proptest! {
    #[test]
    fn no_text_breaks_the_reader(text in "\\PC{0,200}", name in "[a-z.]{1,8}/[a-z_-]{1,8}") {
        let value = json!({"server": {"name": name, "title": text, "description": text, "version": text,
            "websiteUrl": text, "packages": [{"registryType": "npm", "identifier": text, "version": text}],
            "remotes": [{"url": format!("https://{text}")}]}, "_meta": {OFFICIAL_META: {"updatedAt": text, "status": text}}});
        if let Ok(record) = record(&value, ORIGIN) {
            prop_assert!(record.entry.title.chars().count() <= MOST_TITLE + 1);
            prop_assert!(!record.entry.title.chars().any(is_unseen));
            prop_assert!(record.entry.stdio_command.is_none_or(|it| !it.contains([';', '$', '`', '&', '|', '<'])));
        }
    }

    #[test]
    fn two_names_never_share_a_place(a in "[a-z.~-]{1,4}/[a-z.~_-]{1,4}", b in "[a-z.~-]{1,4}/[a-z.~_-]{1,4}") {
        if is_name(&a) && is_name(&b) {
            prop_assert_eq!(slug(&a) == slug(&b), a == b);
        }
    }
}
