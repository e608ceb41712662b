//! Holds the crate table of ARCHITECTURE.md against what `cargo metadata` says.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

type Arrows = BTreeMap<String, BTreeSet<String>>;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .and_then(Path::parent)
        .expect("crates/server lies two deep")
}

/// The table's rows: crate name to the crates it may use.
fn table() -> Arrows {
    let page = std::fs::read_to_string(root().join("ARCHITECTURE.md")).expect("it is there");
    let rows: Vec<Vec<&str>> = page
        .lines()
        .filter(|line| line.starts_with("| `"))
        .map(|line| line.trim_matches('|').split('|').map(str::trim).collect())
        .collect();
    let ticked = |cell: &str| -> BTreeSet<String> {
        cell.split('`').skip(1).step_by(2).map(str::to_owned).collect()
    };
    let all: BTreeSet<String> = rows.iter().flat_map(|row| ticked(row[0])).collect();
    rows.iter()
        .map(|row| {
            let name = row[0].trim_matches('`').to_owned();
            let named = ticked(row[2]);
            let mut uses = if row[2].starts_with("all but") { &all - &named } else { named };
            uses.remove(&name);
            (name, uses)
        })
        .collect()
}

/// The workspace's crates and their normal and build dependencies on each other.
fn metadata() -> Arrows {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--no-deps", "--offline"])
        .current_dir(root())
        .output()
        .expect("cargo runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let metadata: serde_json::Value =
        serde_json::from_slice(&output.stdout).expect("cargo prints JSON");
    let short = |name: &str| name.strip_prefix("sluice-").map(str::to_owned);
    let packages = metadata["packages"].as_array().expect("packages");
    packages
        .iter()
        .filter_map(|package| {
            let name = short(package["name"].as_str()?)?;
            let uses = package["dependencies"]
                .as_array()?
                .iter()
                .filter(|dependency| dependency["kind"].as_str() != Some("dev"))
                .filter_map(|dependency| short(dependency["name"].as_str()?))
                .collect();
            Some((name, uses))
        })
        .collect()
}

#[test]
fn crates_use_only_what_their_row_names() {
    let (allowed, real) = (table(), metadata());
    assert_eq!(
        allowed.keys().collect::<Vec<_>>(),
        real.keys().collect::<Vec<_>>(),
        "the table and the workspace name the same crates"
    );
    for (name, uses) in &real {
        let beyond: Vec<_> = uses.difference(&allowed[name]).collect();
        assert!(beyond.is_empty(), "`{name}` uses {beyond:?}, which its row does not name");
    }
}

#[test]
fn only_store_names_a_database() {
    for name in metadata().into_keys() {
        let path = root().join("crates").join(&name).join("Cargo.toml");
        let manifest = std::fs::read_to_string(path).expect("each crate has a manifest");
        let may = ["store", "testkit"].contains(&name.as_str());
        assert!(may || !manifest.contains("sqlx"), "`{name}` depends on sqlx; only `store` may");
    }
}
