//! The structure of the public pages: headings, landmarks, forms, columns, and what machines read, held against what
//! is checked in. Words may change with the text; `SLUICE_WRITE_OUTLINES=1` writes them anew, to be looked at.

use std::fmt::Write as _;
use std::path::Path;

use http::StatusCode;

use crate::browser::plain;
use crate::world::World;

const PAGES: &[(&str, &str)] = &[
    ("home", "/"),
    ("search", "/tools?q=execute_code"),
    ("server", "/tools/cowork-os-cowork-os"),
    ("tool", "/tools/cowork-os-cowork-os/execute_code"),
    ("severity", "/risk/critical"),
    ("category", "/categories/financial"),
    ("attacks", "/attacks"),
    ("attack", "/attacks/tool-poisoning"),
    ("guides", "/guides"),
    ("guide", "/guides/code-and-ci-agents"),
    ("report", "/report?page=/tools"),
    ("missing", "/tools/no-such-server"),
];

fn attribute<'a>(tag: &'a str, name: &str) -> &'a str {
    let of = |rest: &'a str| rest.split('"').next();
    tag.split(&format!(" {name}=\"")).nth(1).and_then(of).unwrap_or("")
}

/// One line for each tag that a reader finds their way by.
fn outline(html: &str) -> String {
    let mut out = String::new();
    for piece in html.split('<').skip(1) {
        let (tag, rest) = piece.split_once('>').unwrap_or((piece, ""));
        let name = tag.split([' ', '/']).next().unwrap_or_default();
        let whole = || {
            let from = html.find(piece).unwrap_or(0) + tag.len() + 1;
            let end = html[from..].find(&format!("</{name}>")).unwrap_or(0);
            plain(&html[from..from + end])
        };
        let line = match name {
            "title" | "h1" | "h2" | "th" | "summary" => format!("{name} {}", whole()),
            "header" | "main" | "aside" | "footer" => name.to_owned(),
            "nav" => format!("nav {}", attribute(tag, "aria-label")),
            "form" => format!("form {} {}", attribute(tag, "method"), attribute(tag, "action")),
            "input" | "textarea" | "select" if attribute(tag, "type") != "hidden" => {
                format!("field {}", attribute(tag, "name"))
            }
            "link" if attribute(tag, "rel") == "alternate" => {
                format!("alternate {}", attribute(tag, "type"))
            }
            "script" if attribute(tag, "type") == "application/ld+json" => {
                let types = rest.split("\"@type\":\"").skip(1);
                let types: Vec<_> = types.filter_map(|rest| rest.split('"').next()).collect();
                format!("structured {}", types.join(" "))
            }
            _ => continue,
        };
        // A list that grows with the catalogue is not a change of structure.
        if out.lines().last() != Some(line.trim_end()) {
            let _ = writeln!(out, "{}", line.trim_end());
        }
    }
    out
}

#[tokio::test]
async fn the_public_pages_keep_their_structure() {
    let world = World::new().await;
    let mut browser = world.browser();
    let mut found = String::new();
    for (name, path) in PAGES {
        let page = browser.get(path).await;
        let expected = if *name == "missing" { StatusCode::NOT_FOUND } else { StatusCode::OK };
        assert_eq!(page.status, expected, "{path}");
        let _ = writeln!(found, "# {name}\n{}", outline(&page.body));
    }
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/outlines.txt");
    if std::env::var_os("SLUICE_WRITE_OUTLINES").is_some() {
        std::fs::write(&file, &found).expect("writes");
    }
    let kept = std::fs::read_to_string(&file).expect("is checked in");
    let differs = found.lines().zip(kept.lines()).find(|(found, kept)| found != kept);
    assert!(found == kept, "the structure changed, first here (now, before): {differs:?}");
}
