//! Whoever has a permission works behind the wall of their workspace: their transactions say whose they
//! are. Held against the source, since a transaction over all workspaces works as well and is only not safe.

use std::path::{Path, PathBuf};

fn sources(folder: &Path, out: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            sources(&path, out);
        } else if path.extension().is_some_and(|ext| ext == "rs") {
            out.push(path);
        }
    }
}

/// The functions of a file: what stands before the body, and the body.
fn functions(text: &str) -> impl Iterator<Item = (&str, &str)> {
    text.split("fn ").skip(1).filter_map(|function| function.split_once('{'))
}

#[test]
fn what_a_member_does_is_done_in_their_workspace() {
    const PERMISSIONS: [&str; 4] = [": &Viewer", ": &PolicyManager", ": &Admin", ": &Access"];
    let mut files = Vec::new();
    sources(Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/src")), &mut files);
    let (mut inside, mut outside) = (0, Vec::new());
    for file in files {
        let text = std::fs::read_to_string(&file).expect("a source file");
        for (head, body) in functions(&text) {
            if !PERMISSIONS.iter().any(|permission| head.contains(permission)) {
                continue;
            }
            inside += body.matches(".begin_in(").count() + body.matches(".read_in(").count();
            if body.contains(".begin()") || body.contains(".read().await") {
                let name = head.split(['(', '<']).next().unwrap_or_default();
                if name == "change_workspace" {
                    // Addresses are one space for all workspaces.
                    continue;
                }
                outside.push(format!("{}: {name}", file.display()));
            }
        }
    }
    assert!(inside > 60, "the source was read: {inside}");
    assert!(outside.is_empty(), "over all workspaces, although somebody is in one: {outside:#?}");
}
