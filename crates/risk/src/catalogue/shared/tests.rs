use serde_json::json;

use super::NotPublic::{Host, HostKey, Parts, Path, Scheme};
use super::Withheld::{Credential, Inside, Key, Mail, Name};
use super::*;

fn tool(value: &Value) -> ToolDefinition {
    serde_json::from_value(value.clone()).expect("a definition")
}

#[test]
fn only_plain_public_addresses_have_a_place() {
    for (address, place) in [
        ("https://mcp.vendor.dev/mcp", "~mcp.vendor.dev~mcp"),
        ("https://mcp.vendor.dev/mcp/", "~mcp.vendor.dev~mcp"),
        ("https://mcp.vendor.dev/", "~mcp.vendor.dev"),
        ("https://mcp.vendor.dev", "~mcp.vendor.dev"),
        ("https://api.vendor-two.co.uk/v1/mcp/read-only", "~api.vendor-two.co.uk~v1~mcp~read-only"),
        ("https://xn--mnchen-3ya.de/mcp", "~xn--mnchen-3ya.de~mcp"),
    ] {
        assert_eq!(slug(address).as_deref(), Ok(place), "{address}");
    }
    for (address, why) in [
        ("http://mcp.vendor.dev/mcp", Scheme),
        ("https://mcp.vendor.dev/mcp?key=abc", Parts),
        ("https://mcp.vendor.dev/mcp#abc", Parts),
        ("https://user:pw@mcp.vendor.dev/mcp", Parts),
        ("https://mcp.vendor.dev:8443/mcp", Parts),
        ("https://mcp.vendor.dev/m%63p", Parts),
        ("https://127.0.0.1/mcp", Host),
        ("https://8.8.8.8/mcp", Host),
        ("https://[2606:4700::1111]/mcp", Parts),
        ("https://localhost/mcp", Host),
        ("https://intranet/mcp", Host),
        ("https://mcp.corp.internal/mcp", Host),
        ("https://nas.local/mcp", Host),
        ("https://mcp.vendor.test/mcp", Host),
        ("https://MCP.vendor.dev/mcp", Host),
        ("https:///mcp", Host),
        ("https://a1b2c3d4e5.tunnel.dev/mcp", HostKey),
        ("https://abcdefghijklmnopqrstuvwxyzabc.tunnel.dev/mcp", HostKey),
        ("https://mcp.vendor.dev/s/NmI4ZTQ2/mcp", Path),
        ("https://mcp.vendor.dev/s/6b8e46c1/mcp", Path),
        ("https://mcp.vendor.dev/accounts/118822/mcp", Path),
        ("https://mcp.vendor.dev/s/abcdefghijklmnopqrstuvwxyz/mcp", Path),
        ("https://mcp.vendor.dev/a/b/c/d/e", Path),
        ("https://mcp.vendor.dev//mcp", Path),
        ("https://mcp.vendor.dev/../mcp", Path),
        ("https://mcp.vendor.dev/~mcp", Path),
    ] {
        assert_eq!(slug(address), Err(why), "{address}");
    }
}

const PRIVATE: &[(&str, Withheld)] = &[
    ("Bearer slu-ggish-Quokka", Credential),
    ("slu-ggish-Quokka", Credential),
    ("SLU GGISH QUOKKA", Credential),
    ("region eu7", Credential),
    ("the notes of Wombat Works", Name),
    ("wombatWorks", Name),
    ("wombat_works_search", Name),
    ("zed", Name),
    ("askZed", Name),
    ("sk-1234abcd5678efgh", Key),
    ("ghp_CCCCabcdefghijklmnopqrstuvwxyz0123", Key),
    ("3f2c1a90b7d84e5f9a61c2d3", Key),
    ("project 123e4567-e89b-12d3-a456-426614174000", Key),
    ("acct-123e4567-e89b-12d3-a456-426614174000-x", Key),
    ("-----BEGIN PRIVATE KEY-----", Key),
    ("ann.b@wombat.dev", Mail),
    ("mailto:ann.b@wombat.dev", Mail),
    ("http://10.1.2.3:8080/x", Inside),
    ("192.168.0.17", Inside),
    ("https://wiki.corp/page", Inside),
    ("https://db.eu.internal", Inside),
    ("http://jenkins/job", Inside),
];

const HARMLESS: &[&str] = &[
    "an issue of a repository",
    "user@example.com",
    "https://example.com/page",
    "http://localhost:3000",
    "amazed",
    "Vendor's own documents at mcp.vendor.dev",
    "list_organization_members_v2_paginated_results",
    "@scope/package",
    "2026-11-30T12:00:00Z",
    "sk-learn",
    "risk-averse",
    "1,000,000",
];

#[test]
fn nothing_private_is_in_what_is_published_wherever_it_stands() {
    let private = Private {
        values: vec!["Bearer slu-ggish-Quokka".to_owned(), "eu7".to_owned()],
        names: vec![
            "Wombat Works".to_owned(),
            "wombat-works".to_owned(),
            "Zed".to_owned(),
            "Vendor".to_owned(),
        ],
    };
    let why = |text: &str| {
        let places = [
            json!({"name": "t", "description": format!("Reads {text} for you.")}),
            json!({"name": "t", "title": text}),
            json!({"name": text}),
            json!({"name": "t", "inputSchema": {"type": "object", "properties": {text: {"type": "string"}}}}),
            json!({"name": "t", "inputSchema": {"properties": {"a": {"enum": ["x", text]}}}}),
            json!({"name": "t", "inputSchema": {"properties": {"a": {"default": {"deep": [text]}}}}}),
            json!({"name": "t", "outputSchema": {"description": text}}),
            json!({"name": "t", "annotations": {"title": text}}),
        ];
        let found = places.map(|place| withheld(&tool(&place), "mcp.vendor.dev", &private));
        assert!(found.iter().all(|one| *one == found[0]), "{text}: {found:?}");
        found[0]
    };
    for (text, reason) in PRIVATE {
        assert_eq!(why(text), Some(*reason), "{text}");
    }
    for text in HARMLESS {
        assert_eq!(why(text), None, "{text}");
    }
    assert_eq!(format!("{private:?}"), "Private");
}

#[test]
fn what_stays_at_home_is_counted_and_the_rest_is_bounded() {
    let long = "x ".repeat(MOST_DEFINITION);
    let tools = [
        tool(&json!({"name": "a", "description": "Reads."})),
        tool(&json!({"name": "b", "description": "Asks ann@wombat.dev."})),
        tool(&json!({"name": "c", "description": long})),
    ];
    let (kept, left) = published(&tools, "mcp.vendor.dev", &Private::default());
    assert_eq!((kept.len(), kept[0].name.as_str(), left), (1, "a", 2));
    let few = vec![tool(&json!({"name": "a", "description": "Reads a note."})); 3];
    let one = serde_json::to_string(&few[0]).expect("writes").len();
    let (kept, left) = within(&few, "mcp.vendor.dev", &Private::default(), 2 * one);
    assert_eq!((kept.len(), left), (2, 1));
}

#[test]
fn a_record_names_the_address_and_nothing_else() {
    let made = record("https://mcp.vendor.dev/mcp", Vec::new(), "2026-11-30").expect("public");
    let entry = made.entry;
    assert_eq!(
        (entry.owner_name.as_str(), entry.title.as_str()),
        ("mcp.vendor.dev/mcp", "mcp.vendor.dev")
    );
    assert_eq!(entry.upstream_url.as_deref(), Some("https://mcp.vendor.dev/mcp"));
    assert_eq!((entry.identity, entry.auth_needed), (Identity::Unverified, AuthNeeded::Unknown));
    assert!(
        !super::super::registry::is_name(&entry.slug.replacen('~', "/", 1)),
        "no registry's record has its place"
    );
    assert!(record("https://10.0.0.1/mcp", Vec::new(), "2026-11-30").is_err());
}

#[test]
fn only_who_owns_an_address_speaks_for_it() {
    let given = record("https://mcp.vendor.dev/mcp", Vec::new(), "2026-11-30").expect("public");
    let claims = |owner_name: &str, identity: Identity, address: &str| {
        joins(&ServerEntry {
            owner_name: owner_name.to_owned(),
            slug: owner_name.replace('/', "~"),
            identity,
            upstream_url: Some(address.to_owned()),
            ..given.entry.clone()
        })
    };
    let (address, slug) = ("https://mcp.vendor.dev/mcp", Some(given.entry.slug.clone()));
    assert_eq!(claims("dev.vendor/notes", Identity::DomainProven, address), slug);
    assert_eq!(claims("dev.vendor.mcp/notes", Identity::DomainProven, address), slug);
    for (owner_name, identity, address) in [
        // Whoever proved another domain, or nothing, may name the address but not speak for it.
        ("dev.dor/notes", Identity::DomainProven, address),
        ("com.evil/notes", Identity::DomainProven, address),
        ("dev/notes", Identity::DomainProven, address),
        ("vendor", Identity::DomainProven, address),
        ("dev.vendor/notes", Identity::Unverified, address),
        ("io.github.vendor/notes", Identity::GithubProven, address),
        ("dev.vendor/notes", Identity::DomainProven, "https://mcp.vendor.dev/mcp?key=1"),
        ("dev.vendor/notes", Identity::DomainProven, "http://mcp.vendor.dev/mcp"),
    ] {
        assert_eq!(claims(owner_name, identity, address), None, "{owner_name} {address}");
    }
    // We wrote the starter set ourselves.
    let joined = crate::catalogue::starter().iter().filter(|entry| joins(entry).is_some()).count();
    assert!(joined > 5, "{joined}");
}
