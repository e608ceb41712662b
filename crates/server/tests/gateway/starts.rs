//! What `serve` says when it cannot start, and the exit codes of the commands.

use std::net::TcpListener;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::Path;
use std::process::{Output, Stdio};

use sluice_testkit::Setup;
use sluice_testkit::db::FreshDatabase;
use sluice_testkit::redis_server::free_port;
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::Command;

use crate::world::setup;

/// Runs `serve`, which must end with this code and say all of this.
async fn refuses(setup: &Setup, code: i32, words: &[&str]) {
    says(&setup.output(&["serve"]).await, code, words);
}

fn says(output: &Output, code: i32, words: &[&str]) {
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{said}");
    for word in words {
        assert!(said.contains(word), "`{word}` is missing in:\n{said}");
    }
    assert!(!said.contains("panicked"), "{said}");
}

/// What a newcomer's terminal shows: where to go, where the data is, and how to stop.
#[tokio::test]
async fn it_says_where_to_go() {
    let setup = setup();
    let mut child = setup
        .command(["serve"])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("the binary starts");
    let mut lines = BufReader::new(child.stdout.take().expect("piped")).lines();
    let mut said = String::new();
    while let Some(line) = lines.next_line().await.expect("readable") {
        said.push_str(&line);
        if line.contains("Ctrl-C") {
            break;
        }
        said.push('\n');
    }
    let port = setup.address().port();
    for words in [
        "is ready".to_owned(),
        format!("Open http://localhost:{port}/ in a browser"),
        format!("Agents connect to http://localhost:{port}/mcp/<server>"),
        format!("data in {}", setup.data_dir().display()),
        "Ctrl-C stops it".to_owned(),
    ] {
        assert!(said.contains(&words), "`{words}` is missing in:\n{said}");
    }
    child.kill().await.expect("it can be killed");
}

/// With nothing said, `sluice` is `sluice serve` on port 8080 with SQLite in `./sluice-data`.
#[tokio::test]
async fn nothing_has_to_be_set() {
    let place = tempfile::tempdir().expect("a temporary directory");
    let like = setup().command(["serve", "--help"]);
    let program = like.as_std().get_program().to_owned();
    let help = Command::new(&program)
        .args(["serve", "--help"])
        .env_clear()
        .output()
        .await
        .expect("the binary starts");
    let help = String::from_utf8_lossy(&help.stdout).into_owned();
    for default in ["127.0.0.1:8080", "http://localhost:8080", "sluice-data", "default: open"] {
        assert!(help.contains(default), "`{default}` is missing in:\n{help}");
    }
    let address = format!("127.0.0.1:{}", free_port());
    let mut child = Command::new(&program)
        .args(["--listen", &address])
        .env_clear()
        .current_dir(place.path())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .expect("the binary starts");
    let mut lines = BufReader::new(child.stdout.take().expect("piped")).lines();
    assert!(lines.next_line().await.expect("readable").is_some_and(|line| line.contains("ready")));
    for file in ["sluice-data/sluice.db", "sluice-data/master.keys"] {
        assert!(place.path().join(file).is_file(), "{file}");
    }
}

/// Root may write anywhere, so the program runs as somebody else where the tests run as root.
#[tokio::test]
async fn a_read_only_data_directory_is_named_with_the_way_out() {
    let mode = |path: &Path, mode| {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).expect("ours");
    };
    let place = tempfile::tempdir().expect("a temporary directory");
    let data = place.path().join("data");
    std::fs::create_dir(&data).expect("a directory can be made");
    let setup = setup().with("SLUICE_DATA_DIR", data.display().to_string());
    let like = setup.command(["serve"]);
    let program = place.path().join("sluice");
    std::fs::copy(like.as_std().get_program(), &program).expect("the binary can be copied");
    mode(place.path(), 0o755);
    mode(&program, 0o755);
    mode(&data, 0o555);
    let mut command = Command::new(&program);
    command
        .args(like.as_std().get_args())
        .envs(like.as_std().get_envs().filter_map(|(name, value)| Some((name, value?))))
        .current_dir("/");
    if std::fs::metadata(&data).expect("it is there").uid() == 0 {
        const NOBODY: u32 = 65_534;
        command.uid(NOBODY).gid(NOBODY);
    }
    let output = command.output().await.expect("the binary starts");
    let path = data.display().to_string();
    let words = ["cannot write to the data directory", &path, "what to do", "--data-dir"];
    says(&output, 2, &words);
    assert_eq!(std::fs::read_dir(&data).expect("readable").count(), 0, "nothing was left there");
}

#[tokio::test]
async fn a_taken_port_is_named_with_the_way_out() {
    let setup = setup();
    let _taken = TcpListener::bind(setup.address()).expect("the port is free");
    let address = setup.address().to_string();
    refuses(&setup, 2, &["cannot listen on", &address, "what to do", "--listen"]).await;
}

#[tokio::test]
async fn a_data_directory_that_is_a_file_is_named_with_the_way_out() {
    let setup = setup();
    std::fs::write(setup.data_dir(), "in the way").expect("a file can be written");
    let path = setup.data_dir().display().to_string();
    refuses(&setup, 2, &["data directory", &path, "--data-dir"]).await;
}

#[tokio::test]
async fn a_data_directory_that_takes_no_files_is_named() {
    // `/proc` takes no files from anybody, root included.
    let setup = setup().with("SLUICE_DATA_DIR", "/proc/self");
    refuses(&setup, 2, &["cannot write to the data directory", "/proc/self", "what to do"]).await;
}

#[tokio::test]
async fn a_damaged_key_file_is_never_replaced() {
    let setup = setup();
    std::fs::create_dir(setup.data_dir()).expect("a directory can be made");
    let file = setup.data_dir().join("master.keys");
    std::fs::write(&file, "k1:short").expect("a file can be written");
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).expect("the owner may");
    refuses(&setup, 2, &["key file", "damaged", "backup"]).await;
    assert_eq!(std::fs::read_to_string(&file).expect("still there"), "k1:short");
}

#[tokio::test]
async fn a_newer_database_is_left_alone() {
    for database in [None, Some(FreshDatabase::postgres().await)] {
        let setup = match &database {
            Some(database) => setup().with("SLUICE_DATABASE_URL", database.url()),
            None => setup(),
        };
        says(&setup.output(&["migrate"]).await, 0, &[]);
        let url = match &database {
            Some(database) => database.url().to_owned(),
            None => format!("sqlite://{}", setup.data_dir().join("sluice.db").display()),
        };
        sluice_testkit::newer_schema::pretend(&url).await;
        refuses(&setup, 2, &["newer", "what to do", "backup"]).await;
        says(&setup.output(&["migrate"]).await, 2, &["newer"]);
        if let Some(database) = database {
            database.remove().await;
        }
    }
}

#[tokio::test]
async fn a_file_that_is_no_database_is_named() {
    let setup = setup();
    std::fs::create_dir(setup.data_dir()).expect("a directory can be made");
    std::fs::write(setup.data_dir().join("sluice.db"), "x".repeat(8_192)).expect("written");
    refuses(&setup, 2, &["not Sluice's", "sluice.db"]).await;
}

#[tokio::test]
async fn a_second_serve_on_the_same_file_is_refused() {
    let first = setup();
    let running = first.serve().await;
    for role in ["all", "proxy", "control"] {
        let output = first
            .command(["serve", "--listen", "127.0.0.1:0", "--role", role])
            .output()
            .await
            .expect("the binary starts");
        says(&output, 2, &["another", "what to do", "PostgreSQL and Redis"]);
    }
    running.stop().await;
}

#[tokio::test]
async fn settings_that_contradict_each_other_are_refused() {
    let redis = setup().with("SLUICE_REDIS_URL", "redis://127.0.0.1:1");
    refuses(&redis, 2, &["Redis", "SQLite", "SLUICE_DATABASE_URL"]).await;
    let secret = setup().with("SLUICE_MASTER_KEYS", "k1:c2VjcmV0LXNlY3JldA==");
    let output = secret.output(&["serve"]).await;
    says(&output, 2, &["k1", "SLUICE_MASTER_KEYS"]);
    assert!(!String::from_utf8_lossy(&output.stderr).contains("c2VjcmV0"), "no key in the words");
    refuses(&setup().with("SLUICE_ROLE", "both"), 2, &["both", "proxy"]).await;
}

#[tokio::test]
async fn a_database_that_is_down_is_exit_code_3() {
    let setup = setup().with("SLUICE_DATABASE_URL", "postgres://ann:hush@127.0.0.1:1/sluice");
    let output = setup.output(&["serve"]).await;
    says(&output, 3, &["SLUICE_DATABASE_URL", "PostgreSQL"]);
    assert!(!String::from_utf8_lossy(&output.stderr).contains("hush"), "no password in the words");
    says(&setup.output(&["doctor"]).await, 3, &[]);
    says(&setup.output(&["healthcheck"]).await, 3, &["no Sluice answers"]);
}

/// The second wall between workspaces does not hold every role, and whoever runs Sluice as such is told.
#[tokio::test]
async fn a_role_that_passes_row_level_security_by_is_told_at_start_and_by_doctor() {
    let fresh = FreshDatabase::postgres().await;
    let ordinary = setup().with("SLUICE_DATABASE_URL", fresh.url());
    says(&ordinary.output(&["migrate"]).await, 0, &[]);
    let output = ordinary.output(&["doctor"]).await;
    let report = String::from_utf8_lossy(&output.stdout);
    assert!(report.contains("ok    row security"), "{report}");
    let (url, user) = fresh.superuser().expect("a server");
    let passes = setup().with("SLUICE_DATABASE_URL", &url);
    let output = passes.output(&["doctor"]).await;
    says(&output, 0, &[]);
    let report = String::from_utf8_lossy(&output.stdout);
    let warning = format!("the role `{user}` passes PostgreSQL's row-level security by");
    assert!(report.contains(&format!("warn  row security: {warning}")), "{report}");
    let mut child = passes
        .command(["serve"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary starts");
    let mut lines = BufReader::new(child.stdout.take().expect("piped")).lines();
    while let Some(line) = lines.next_line().await.expect("readable") {
        if line.contains("Ctrl-C") {
            break;
        }
    }
    child.start_kill().expect("it can be killed");
    let output = child.wait_with_output().await.expect("it ends");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains(&warning) && !said.contains(&url), "{said}");
    fresh.remove().await;
}

#[tokio::test]
async fn doctor_and_healthcheck_find_a_good_installation_good() {
    let setup = setup();
    let running = setup.serve().await;
    says(&setup.output(&["healthcheck"]).await, 0, &[]);
    let output = setup.output(&["doctor"]).await;
    says(&output, 0, &[]);
    let report = String::from_utf8_lossy(&output.stdout);
    for line in ["ok    settings", "ok    keys", "ok    database", "ok    clock", "ok    counters"]
    {
        assert!(report.contains(line), "`{line}` is missing in:\n{report}");
    }
    running.stop().await;
}
