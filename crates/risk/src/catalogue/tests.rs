use std::collections::HashSet;

use sluice_domain::{Category, Severity};

use super::*;
use crate::{classify, findings};

#[test]
fn the_starter_set_is_read_and_well_formed() {
    let entries: Vec<ServerEntry> =
        serde_json::from_str(SERVERS).expect("servers.json fits its type");
    assert_eq!(entries.len(), starter().len());
    let mut slugs = HashSet::new();
    for entry in starter() {
        let expected: String = entry
            .owner_name
            .to_lowercase()
            .chars()
            .map(|c| if c.is_ascii_alphanumeric() { c } else { '-' })
            .collect();
        assert_eq!(entry.slug, expected);
        assert!(slugs.insert(&entry.slug), "{} twice", entry.slug);
        assert!(entry.homepage.starts_with("https://") && entry.source.starts_with("https://"));
        assert!(entry.summary.ends_with('.') && entry.summary.len() < 200, "{}", entry.slug);
        match entry.transport {
            EntryTransport::Http => {
                assert!(
                    entry.upstream_url.as_deref().is_some_and(|url| url.starts_with("https://"))
                );
                assert!(entry.stdio_command.is_none() && bridge_command(entry).is_none());
            }
            EntryTransport::Stdio => {
                assert!(entry.stdio_command.is_some() && entry.upstream_url.is_none());
            }
        }
    }
}

#[test]
fn no_tool_of_the_starter_set_is_named_twice_or_looks_poisoned() {
    for entry in starter() {
        let mut names = HashSet::new();
        for tool in &entry.tools {
            assert!(names.insert(&tool.name), "{} of {}", tool.name, entry.slug);
            assert_eq!(findings(tool), [], "{} of {}", tool.name, entry.slug);
            assert!(!classify(tool).is_unknown(), "{} of {}", tool.name, entry.slug);
        }
    }
}

#[test]
fn the_two_tools_the_project_began_with_are_execute_and_high() {
    for (owner_name, tool) in
        [("leghis/smart-e2b", "executePython"), ("CoWork-OS/CoWork-OS", "execute_code")]
    {
        let entry =
            starter().iter().find(|entry| entry.owner_name == owner_name).expect(owner_name);
        let tool = entry.tools.iter().find(|it| it.name == tool).expect(tool);
        let rating = classify(tool);
        assert_eq!((rating.category, rating.severity), (Category::Execute, Severity::High));
    }
}

/// One generator: commands differ in the server's own start command and nothing else.
#[test]
fn the_bridge_is_started_by_the_runner_that_the_server_needs() {
    for entry in starter() {
        let Some(bridge) = bridge_command(entry) else { continue };
        let server = entry.stdio_command.as_deref().expect("a command");
        let head = if server.starts_with("uvx ") {
            "uvx mcp-proxy@0.13.0 --port 8808 --pass-environment -- "
        } else {
            "npx -y mcp-proxy@6.7.19 --host 127.0.0.1 --port 8808 -- "
        };
        assert_eq!(bridge.command, format!("{head}{server}"), "{}", entry.slug);
        assert_eq!(bridge.upstream_url, "http://127.0.0.1:8808/mcp");
        // What a shell would read otherwise has no place in a command that people paste.
        assert!(!server.contains(['"', '\'', '$', '`', ';', '&', '|', '<', '>']), "{server}");
    }
}

#[test]
fn every_category_is_met_in_the_starter_set() {
    for category in Category::ALL {
        let met = starter()
            .iter()
            .flat_map(|entry| &entry.tools)
            .any(|tool| classify(tool).category == *category);
        assert!(met, "{category}");
    }
}

#[test]
fn search_finds_tools_and_servers() {
    for (query, slug, tool) in [
        ("executePython", "leghis-smart-e2b", Some("executePython")),
        ("exectue_code", "cowork-os-cowork-os", Some("execute_code")),
        ("github", "github-github-mcp-server", None),
        ("strpe", "stripe-stripe", None),
        ("delete project", "neondatabase-mcp-server-neon", Some("delete_project")),
    ] {
        let hits = search(query, 5);
        let first = hits.first().unwrap_or_else(|| panic!("nothing for {query}"));
        assert_eq!(
            (first.server.slug.as_str(), first.tool.map(|it| it.name.as_str())),
            (slug, tool),
            "{query}"
        );
    }
    assert!(search("zzzzzzzz", 5).is_empty());
}
