//! The same messages and streams, read by what real servers and clients are made of: Node.js with the
//! parser of the TypeScript SDK, and Python with the one of its SDK.

use std::io::Write as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::generate::{Random, edit, message, stream};
use crate::mcp_envelope::{Reading, Tree, kept, ours};
use crate::mcp_events::standard;

const MESSAGES: usize = 6_000;
const STREAMS: usize = 2_000;

/// The installed copy of `e2e/`, see `cargo xtask test`.
fn e2e() -> PathBuf {
    std::env::var_os("SLUICE_E2E")
        .map(PathBuf::from)
        .expect("SLUICE_E2E names the installed readers; run the tests by `cargo xtask test`")
}

fn runtimes() -> [(&'static str, Command); 2] {
    let node = std::env::var_os("SLUICE_TEST_NODE").unwrap_or_else(|| "node".into());
    let (mut javascript, mut python) =
        (Command::new(node), Command::new(e2e().join(".venv/bin/python")));
    javascript.arg("readers.mjs");
    python.arg("readers.py");
    [("Node.js", javascript), ("Python", python)]
}

/// What a runtime makes of each line.
fn ask(mut command: Command, lines: &[Value]) -> Vec<Value> {
    let mut child = command
        .current_dir(e2e())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the runtime starts");
    let mut input = child.stdin.take().expect("standard input is piped");
    let text = lines.iter().map(Value::to_string).collect::<Vec<_>>().join("\n");
    let writer = std::thread::spawn(move || input.write_all(text.as_bytes()));
    let output = child.wait_with_output().expect("it ends");
    writer.join().expect("it does not panic").expect("all was read");
    assert!(output.status.success(), "{}", output.status);
    let text = String::from_utf8(output.stdout).expect("UTF-8");
    let answers: Vec<Value> =
        text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert_eq!(answers.len(), lines.len());
    answers
}

fn tree(value: &Value) -> Tree {
    match value {
        Value::Null => Tree::Null,
        Value::Bool(value) => Tree::Bool(*value),
        Value::String(text) => Tree::Text(text.clone()),
        Value::Array(items) => Tree::List(items.iter().map(tree).collect()),
        Value::Object(kind) => match (kind.get("number"), kind.get("members")) {
            (Some(Value::String(hex)), _) => {
                Tree::Number(f64::from_bits(u64::from_str_radix(hex, 16).expect("a double")))
            }
            (_, Some(Value::Array(pairs))) => {
                let pair =
                    |pair: &Value| (pair[0].as_str().expect("a name").to_owned(), tree(&pair[1]));
                let mut pairs: Vec<_> = pairs.iter().map(pair).collect();
                pairs.sort_by(|left, right| left.0.cmp(&right.0));
                Tree::Members(pairs)
            }
            _ => panic!("not a value: {value}"),
        },
        Value::Number(_) => panic!("not a value: {value}"),
    }
}

fn reading(answer: &Value) -> Reading {
    let at = |name: &str| answer.get(name).map(tree);
    Reading {
        id: at("id"),
        method: at("method"),
        name: at("name"),
        arguments: at("arguments"),
        uri: at("uri"),
        task: at("task"),
        version: at("version"),
        token: at("token"),
        state: at("state"),
    }
}

#[test]
fn what_the_scanner_takes_javascript_and_python_read_alike() {
    let mut random = Random::new(17);
    let mut taken = Vec::new();
    while taken.len() < MESSAGES {
        let mut bytes = message(&mut random).into_bytes();
        for _ in 0..random.below(3) {
            edit(&mut random, &mut bytes);
        }
        if sluice_mcp::read(&bytes).is_ok() {
            taken.push(bytes);
        }
    }
    let lines: Vec<Value> =
        taken.iter().map(|bytes| json!({ "message": STANDARD.encode(bytes) })).collect();
    for (name, command) in runtimes() {
        let answers = ask(command, &lines);
        let mut read = 0;
        for (bytes, answer) in taken.iter().zip(&answers).filter(|(_, answer)| !answer.is_null()) {
            let envelope = sluice_mcp::read(bytes).expect("it was taken");
            let theirs = kept(&envelope, reading(answer));
            assert_eq!(theirs, ours(&envelope), "{name} on {}", String::from_utf8_lossy(bytes));
            read += 1;
        }
        assert!(read > MESSAGES * 9 / 10, "{name} refused all but {read}");
    }
}

#[test]
fn the_events_of_a_stream_are_those_that_both_sdks_see() {
    let mut random = Random::new(19);
    let mut streams = Vec::new();
    while streams.len() < STREAMS {
        let mut bytes = stream(&mut random)[1..].to_vec();
        // An unfinished event is dropped by one and taken by the other; a mark at the start likewise.
        bytes.extend_from_slice(b"\n\n");
        if !bytes.starts_with(b"\xef\xbb\xbf") {
            streams.push(bytes);
        }
    }
    let lines: Vec<Value> = streams
        .iter()
        .map(|bytes| {
            let size = 1 + random.below(40);
            let pieces: Vec<String> =
                bytes.chunks(size).map(|piece| STANDARD.encode(piece)).collect();
            json!({ "events": pieces })
        })
        .collect();
    let lossy = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    for (name, command) in runtimes() {
        for (bytes, answer) in streams.iter().zip(ask(command, &lines)) {
            let theirs: Vec<String> = answer
                .as_array()
                .expect("a stream is never refused")
                .iter()
                .map(|event| event[1].as_str().expect("its data").to_owned())
                .filter(|data| !data.is_empty())
                .collect();
            let ours: Vec<String> = standard(bytes)
                .iter()
                .filter_map(|event| event.data.as_deref().map(lossy))
                .filter(|data| !data.is_empty())
                .collect();
            assert_eq!(theirs, ours, "{name} on {}", lossy(bytes));
        }
    }
}
