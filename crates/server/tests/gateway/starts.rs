//! What `serve` says when it cannot start, and the exit codes of the commands.

use std::net::TcpListener;
use std::process::Output;

use sluice_testkit::Setup;
use sluice_testkit::db::FreshDatabase;

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
    std::fs::set_permissions(&file, std::os::unix::fs::PermissionsExt::from_mode(0o600))
        .expect("the owner may");
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
    let output = first
        .command(["serve", "--listen", "127.0.0.1:0"])
        .output()
        .await
        .expect("the binary starts");
    says(&output, 2, &["another", "what to do", "PostgreSQL and Redis"]);
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
