//! Policy as code through the binary: beside a running server, between installations, and through
//! the REST API with nothing but a token.

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Output;
use std::time::{Duration, Instant};

use ::http::Method;
use serde_json::{Value, json};
use sluice_testkit::db::FreshDatabase;
use sluice_testkit::mcp_server::tool;
use sluice_testkit::{FakeServer, Setup};
use tempfile::TempDir;

use crate::world::{Agent, World, passed, setup};

/// The page that shows the example.
const PAGE: &str = include_str!("../../../dashboard/docs/policy-as-code.md");

async fn upstream() -> FakeServer {
    let upstream = FakeServer::start().await;
    upstream.tools(vec![
        tool("executePython", "Execute Python code in a sandbox"),
        tool("read_note", "Read a note"),
    ]);
    upstream
}

/// The first code block of the page in a language.
fn block(language: &str) -> &'static str {
    let fence = format!("```{language}\n");
    let (_, rest) = PAGE.split_once(&fence).expect("the page has such a block");
    rest.split("```").next().expect("it ends")
}

/// The page's example, with the fake upstream in the place of its server.
fn example(upstream: &FakeServer) -> TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    let main = block("yaml").replace("https://mcp.example.com/mcp", &upstream.url());
    std::fs::write(folder.path().join("workspace.yaml"), main).expect("writes");
    let policies = folder.path().join("policies/sandbox");
    std::fs::create_dir_all(&policies).expect("makes");
    std::fs::write(policies.join("python.json"), block("json")).expect("writes");
    folder
}

fn ended(output: &Output, code: i32) -> String {
    let (out, err) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert_eq!(output.status.code(), Some(code), "{out}\n{err}");
    assert!(!err.contains("panicked"), "{err}");
    format!("{out}{err}")
}

/// Runs `sluice apply` on the folder.
async fn apply(setup: &Setup, folder: &Path, more: &[&str]) -> Output {
    let folder = folder.display().to_string();
    let mut arguments = vec!["apply", "-f", &folder, "--workspace", "acme"];
    arguments.extend(more);
    setup.output(&arguments).await
}

/// Every file below a folder with its bytes.
fn tree(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut all = BTreeMap::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in std::fs::read_dir(&next).expect("lists") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                folders.push(path);
            } else {
                let name = path.strip_prefix(folder).expect("inside").display().to_string();
                all.insert(name, std::fs::read(&path).expect("reads"));
            }
        }
    }
    all
}

fn tokens(file: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(file).expect("reads");
    text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
}

fn agent(token: &Value) -> Agent {
    let server = token["server_id"].as_str().expect("an id");
    let bearer = format!("Bearer {}", token["token"].as_str().expect("a token"));
    Agent { path: format!("/mcp/{server}"), bearer }
}

/// The page's example is applied beside a running server, which obeys from then on; applied again it
/// changes nothing; exported, imported into an empty installation and exported again it is the same.
async fn the_example_goes_all_the_way(setup: Setup, other: Setup) {
    let (world, upstream) = (World::start(setup).await, upstream().await);
    let folder = example(&upstream);
    let kept = folder.path().join("tokens.ndjson");
    let kept_name = kept.display().to_string();
    let installed = world.sluice.setup().clone().with("SANDBOX_TOKEN", "UP-1234");

    let dry = ended(&apply(&installed, folder.path(), &["--dry-run"]).await, 0);
    for words in
        ["+ server sandbox", "+ policy sandbox / python", "+ grant sandbox / intern", "5 to create"]
    {
        assert!(dry.contains(words), "`{words}` is missing in:\n{dry}");
    }
    assert!(!dry.contains("UP-1234"), "{dry}");
    let refused = ended(&apply(&installed, folder.path(), &[]).await, 1);
    assert!(refused.contains("--tokens-file"), "{refused}");
    let done = ended(&apply(&installed, folder.path(), &["--tokens-file", &kept_name]).await, 0);
    assert!(done.contains("Applied: 5 created"), "{done}");
    assert_eq!(kept.metadata().expect("made").permissions().mode() & 0o777, 0o600);
    let again = ended(&apply(&installed, folder.path(), &["--tokens-file", &kept_name]).await, 0);
    assert!(again.contains("Nothing to change: 6 objects"), "{again}");

    let tokens = tokens(&kept);
    assert_eq!(
        tokens.iter().map(|one| one["grant"].clone()).collect::<Vec<_>>(),
        ["support-bot", "intern"]
    );
    let agent = agent(&tokens[0]);
    assert!(passed(&agent.call(&world.sluice, "executePython", json!({})).await));
    let file = folder.path().join("policies/sandbox/python.json");
    std::fs::write(&file, r#"{"version":"1","default":"deny"}"#).expect("writes");
    let diff = ended(&apply(&installed, folder.path(), &["--note", "no more Python"]).await, 0);
    assert!(diff.contains("~ policy sandbox / python") && diff.contains("- /tools"), "{diff}");
    let since = Instant::now();
    while passed(&agent.call(&world.sluice, "executePython", json!({})).await) {
        assert!(since.elapsed() < Duration::from_secs(1), "the server still obeys the old policy");
    }
    moves_to_another_installation(&installed, other).await;
    world.sluice.stop().await;
}

async fn moves_to_another_installation(installed: &Setup, other: Setup) {
    let (first, second) =
        (tempfile::tempdir().expect("a folder"), tempfile::tempdir().expect("a folder"));
    let place = |folder: &TempDir| folder.path().display().to_string();
    let (from, to) = (place(&first), place(&second));
    ended(&installed.output(&["export", "--workspace", "acme", "--to", &from]).await, 0);
    let files = tree(first.path());
    assert_eq!(files["policies/sandbox/locked.json"], br#"{"version": "1", "default": "deny"}"#.to_vec().into_iter().chain(*b"\n").collect::<Vec<_>>());
    let main = String::from_utf8_lossy(&files["workspace.yaml"]).into_owned();
    assert!(
        main.contains("SLUICE_SECRET_SANDBOX_AUTHORIZATION") && !main.contains("UP-1234"),
        "{main}"
    );
    let other = other.with("SLUICE_SECRET_SANDBOX_AUTHORIZATION", "Bearer UP-1234");
    let arguments = [
        "import",
        &from,
        "--workspace",
        "Acme",
        "--create",
        "--email",
        "new@example.com",
        "--tokens-file",
        "-",
    ];
    let done = ended(&other.output(&arguments).await, 0);
    assert_eq!(done.matches("slg_").count(), 2, "{done}");
    ended(&other.output(&["export", "--workspace", "acme", "--to", &to]).await, 0);
    assert_eq!(tree(second.path()), files);
    // An import only adds.
    let main = main.replace("on_drift: deny", "on_drift: allow_and_flag");
    std::fs::write(first.path().join("workspace.yaml"), main).expect("writes");
    let arguments = ["import", &from, "--workspace", "acme"];
    let refused = ended(&other.output(&arguments).await, 1);
    assert!(
        refused.contains("server sandbox (exists, and is different)")
            && refused.contains("--overwrite"),
        "{refused}"
    );
}

#[tokio::test]
async fn the_example_goes_all_the_way_on_sqlite() {
    the_example_goes_all_the_way(setup(), setup()).await;
}

#[tokio::test]
async fn the_example_goes_all_the_way_on_postgresql() {
    let databases = [FreshDatabase::postgres().await, FreshDatabase::postgres().await];
    let [one, two] = [0, 1].map(|n| setup().with("SLUICE_DATABASE_URL", databases[n].url()));
    the_example_goes_all_the_way(one, two).await;
    for database in databases {
        database.remove().await;
    }
}

#[tokio::test]
async fn a_pipeline_applies_with_nothing_but_a_token() {
    let (world, upstream) = (World::start(setup()).await, upstream().await);
    let folder = example(&upstream);
    let url = world.sluice.url();
    // No database, no key: another machine.
    let pipeline =
        setup().with("SANDBOX_TOKEN", "UP-1234").with("SLUICE_API_TOKEN", world.token.clone());
    let asked = ["--url", &url, "--tokens-file", "-", "--json"];
    let output = apply(&pipeline, folder.path(), &asked).await;
    ended(&output, 0);
    let applied: Value = serde_json::from_slice(&output.stdout).expect("one JSON object");
    assert_eq!(applied["plan"]["summary"]["create"], 5, "{applied:#}");
    let agent = agent(&applied["tokens"][0]);
    assert!(passed(&agent.call(&world.sluice, "executePython", json!({})).await));
    assert_eq!(
        upstream.seen().last().map(|one| one.headers["authorization"].clone()),
        Some("Bearer UP-1234".parse().expect("a value"))
    );
    assert!(!pipeline.data_dir().exists(), "nothing was made here");

    // A hand on the dashboard is seen, and wins until somebody says otherwise.
    let servers = world.must(Method::GET, "/servers", Value::Null, 200).await;
    let path = format!("/servers/{}", servers["items"][0]["id"].as_str().expect("an id"));
    world.must(Method::PATCH, &path, json!({"on_drift": "allow_and_flag"}), 200).await;
    let refused = ended(&apply(&pipeline, folder.path(), &["--url", &url]).await, 1);
    assert!(
        refused.contains("changed by hand") && refused.contains("--overwrite-drift"),
        "{refused}"
    );
    ended(&apply(&pipeline, folder.path(), &["--url", &url, "--overwrite-drift"]).await, 0);
    assert_eq!(world.must(Method::GET, &path, Value::Null, 200).await["on_drift"], "deny");

    let out = folder.path().join("out").display().to_string();
    ended(
        &pipeline.output(&["export", "--workspace", "acme", "--to", &out, "--url", &url]).await,
        0,
    );
    assert_eq!(tree(Path::new(&out)).len(), 3);
    let bad = pipeline.clone().with("SLUICE_API_TOKEN", "slu_nonsense");
    let refused = ended(&apply(&bad, folder.path(), &["--url", &url, "--dry-run"]).await, 2);
    assert!(refused.contains("401") && !refused.contains("slu_nonsense"), "{refused}");
    let nowhere = ["--url", "http://127.0.0.1:1", "--dry-run"];
    ended(&apply(&pipeline, folder.path(), &nowhere).await, 3);
    let clear = ["--url", "http://sluice.example.com", "--dry-run"];
    assert!(ended(&apply(&pipeline, folder.path(), &clear).await, 2).contains("https"));
    world.sluice.stop().await;
}

#[tokio::test]
async fn a_wrong_file_is_told_line_by_line_on_both_ways() {
    let (world, upstream) = (World::start(setup()).await, upstream().await);
    let folder = example(&upstream);
    let main = folder.path().join("workspace.yaml");
    let text = std::fs::read_to_string(&main).expect("reads").replace("on_drift", "on_drfit");
    std::fs::write(&main, text).expect("writes");
    std::fs::write(folder.path().join("policies/sandbox/python.json"), "{\"version\": \"1\",\n}")
        .expect("writes");
    let url = world.sluice.url();
    let installed = world.sluice.setup().clone().with("SLUICE_API_TOKEN", world.token.clone());
    for more in [&[][..], &["--url", &url]] {
        let told = ended(&apply(&installed, folder.path(), more).await, 1);
        for words in [
            "workspace.yaml:10:7: /servers/0/settings/on_drfit: ",
            "did you mean `on_drift`?",
            "python.json:2:1: ",
            "env:SANDBOX_TOKEN",
        ] {
            assert!(told.contains(words), "`{words}` is missing in:\n{told}");
        }
    }
    assert_eq!(world.must(Method::GET, "/servers", Value::Null, 200).await["items"], json!([]));
    ended(
        &installed.output(&["apply", "-f", "/nowhere/at/all.yaml", "--workspace", "acme"]).await,
        2,
    );
    let missing = ["apply", "-f", &folder.path().display().to_string(), "--workspace", "nowhere"];
    let told = ended(&installed.output(&missing).await, 1);
    assert!(told.contains("no such workspace"), "{told}");
    world.sluice.stop().await;
}
