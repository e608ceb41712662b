//! The catalogue through the binary: a registry that misbehaves, files, and pages of what they told.

use ::http::Method;
use serde_json::{Value, json};
use sluice_testkit::fake_registry::{FakeRegistry, RegistryAnswer};
use sluice_testkit::{Setup, Sluice};

use crate::world::setup;

const MARKUP: &str = "</script><img src=x onerror=alert(1)>";
const META: &str = "io.modelcontextprotocol.registry/official";

fn item(name: &str, title: &str) -> Value {
    json!({"server": {"name": name, "title": title, "version": "1.0.0",
            "description": format!("Keeps notes. {MARKUP} [x](javascript:alert(1))\u{202e}"),
            "websiteUrl": "javascript:alert(1)",
            "remotes": [{"type": "streamable-http", "url": "https://mcp.example.com/notes"}]},
        "_meta": {META: {"status": "active", "updatedAt": "2026-10-01T00:00:00Z", "isLatest": true}}})
}

fn page(items: &[Value], next: Option<&str>) -> RegistryAnswer {
    RegistryAnswer::Page(json!({"servers": items, "metadata": {"nextCursor": next}}).to_string())
}

async fn run(setup: &Setup, arguments: &[&str]) -> (Option<i32>, String) {
    let all: Vec<&str> = ["catalogue"].iter().chain(arguments).copied().collect();
    let output = setup.output(&all).await;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code(), text(&output.stdout) + &text(&output.stderr))
}

async fn read(sluice: &Sluice, path: &str) -> (u16, String) {
    let answer = sluice.send(Method::GET, path, &[("accept", "text/html")], "").await;
    (answer.status.as_u16(), answer.text())
}

/// Waits until the served index has followed.
async fn found(sluice: &Sluice, query: &str) -> Value {
    let deadline = tokio::time::Instant::now() + std::time::Duration::from_secs(30);
    loop {
        let answer =
            sluice.send(Method::GET, &format!("/tools.json?q={query}"), &[], "").await.json();
        if answer["tools"].as_array().is_some_and(|tools| !tools.is_empty()) {
            return answer;
        }
        assert!(tokio::time::Instant::now() < deadline, "{query} was not found: {answer}");
        // The server looks every few seconds, and tells nobody.
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    }
}

#[tokio::test]
async fn a_registry_that_misbehaves_is_read_as_far_as_it_goes() {
    let (setup, registry) = (setup(), FakeRegistry::start().await);
    let base = registry.url();
    let sync = ["sync", "--registry", base.as_str()];
    registry.on(
        "",
        page(
            &[item("com.example/notes", "Notes"), json!({"server": {"name": MARKUP}})],
            Some("two"),
        ),
    );
    registry.on("two", RegistryAnswer::Cut(json!({"servers": []}).to_string()));
    let (code, said) = run(&setup, &sync).await;
    assert_eq!(code, Some(3), "{said}");
    assert!(said.contains("page 2") && said.contains("goes on at this page"), "{said}");
    for (answer, words) in [
        (RegistryAnswer::Status(503), "HTTP 503"),
        (RegistryAnswer::Status(429), "come back later"),
        (RegistryAnswer::Redirect("http://169.254.169.254/".to_owned()), "redirects"),
    ] {
        registry.on("two", answer);
        let (code, said) = run(&setup, &sync).await;
        assert_eq!(code, Some(3), "{said}");
        assert!(said.contains(words), "{said}");
    }
    registry.on("two", RegistryAnswer::Page("<html>".to_owned()));
    assert_eq!(run(&setup, &sync).await.0, Some(1));
    registry.on("two", page(&[item("com.example/other", "Other")], Some("two")));
    let (code, said) = run(&setup, &sync).await;
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("has no end"), "{said}");
    assert!(
        registry.asked().iter().filter(|query| !query.contains("cursor=")).count() == 1,
        "it resumed"
    );
    registry.on("", page(&[item("com.example/notes", "Notes")], None));
    let (code, said) = run(&setup, &sync).await;
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("1 as they were"), "{said}");
    let (code, said) = run(&setup, &["show", "com.example/notes"]).await;
    assert_eq!(code, Some(0), "{said}");
    assert!(
        said.contains("Identity: unverified")
            && said.contains("not graded") | said.contains("Not graded"),
        "{said}"
    );
    assert!(!said.contains('\u{202e}'), "{said}");
    assert_eq!(run(&setup, &["show", "com.example/none"]).await.0, Some(1));
    assert_eq!(run(&setup, &["sync", "--registry", "ftp://x"]).await.0, Some(2));
    assert_eq!(run(&setup, &["sync", "--registry", "https://u:p@x.example"]).await.0, Some(2));
}

#[tokio::test]
async fn a_file_is_imported_beside_a_running_server_and_its_text_stays_text() {
    let setup = setup();
    let sluice = setup.serve().await;
    let mut notes = item("com.example/notes", &format!("Notes {MARKUP}"));
    notes["tools"] = json!([
        {"name": "get_zebra", "description": format!("Gets a zebra. {MARKUP}"), "inputSchema": {"type": "object", "properties": {"id": {"type": "string"}}}},
        {"name": "delete_zebra.md", "description": "Deletes a zebra for ever.", "inputSchema": {"type": "object"}}]);
    let lines = format!("{notes}\n\n{}\n", item("io.github.ann/more", "More"));
    let file = setup.data_dir().join("records.jsonl");
    std::fs::write(&file, lines).expect("written");
    let import = ["import", file.to_str().expect("UTF-8")];
    let (code, said) = run(&setup, &import).await;
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("2 records are new") && said.contains("2 tools"), "{said}");
    let (_, again) = run(&setup, &import).await;
    assert!(again.contains("0 records are new, 0 changed, 2 as they were"), "{again}");
    let hits = found(&sluice, "zbera").await;
    assert_eq!(hits["tools"][0]["server"], "com.example~notes", "{hits}");
    for path in [
        "/tools/com.example~notes",
        "/tools/com.example~notes/get_zebra",
        "/tools/com.example~notes/delete_zebra.md",
        "/tools?q=zebra",
        "/categories/destructive",
    ] {
        let (status, body) = read(&sluice, path).await;
        assert_eq!(status, 200, "{path}");
        assert!(!body.contains("<img") && !body.contains("href=\"javascript:"), "{path}: {body}");
        let blocks = body.matches("application/ld+json").count();
        assert!(
            blocks == 0 || body.matches("</script>").count() == blocks + 1,
            "a data block ends early on {path}"
        );
    }
    let (_, text) = read(&sluice, "/tools/com.example~notes.md").await;
    assert!(
        text.contains("- Grade: ") && !text.contains("<img") && !text.contains("[x](java"),
        "{text}"
    );
    let json: Value = serde_json::from_str(&read(&sluice, "/tools/com.example~notes.json").await.1)
        .expect("JSON");
    assert_eq!(
        (json["identity"].as_str(), json["tools"].as_array().map(Vec::len)),
        (Some("unverified"), Some(2))
    );
    assert!(
        json["token_weight"].as_u64() > Some(10)
            && json["grade"]["signals"].as_array().map(Vec::len) == Some(8),
        "{json}"
    );
    let shown: Value =
        serde_json::from_str(&run(&setup, &["show", "com.example/notes", "--json"]).await.1)
            .expect("JSON");
    assert_eq!(shown["grade"], json["grade"], "one source of truth");
    std::fs::write(&file, "{\"a\": 1}\nnot json").expect("written");
    assert_eq!(run(&setup, &import).await.0, Some(1));
    std::fs::write(&file, json!({"servers": [item("com.example/page", "Page")]}).to_string())
        .expect("written");
    assert!(run(&setup, &import).await.1.contains("1 records are new"));
    sluice.stop().await;
}
