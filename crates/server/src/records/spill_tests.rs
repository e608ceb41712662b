use std::os::unix::fs::PermissionsExt as _;

use tempfile::TempDir;

use super::*;

const ROOM: u64 = 64 * 1024 * 1024;

fn open(folder: &TempDir) -> Spill {
    Spill::open(&folder.path().join("spill"), "call", ROOM).expect("opens")
}

fn files(folder: &TempDir) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder.path().join("spill")).expect("a folder");
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.expect("an entry").path()).collect();
    files.retain(|file| file.extension().is_some_and(|end| end == "rows"));
    files.sort();
    files
}

/// Everything that is put aside, taken out.
fn all(spill: &mut Spill) -> Vec<String> {
    let mut all = Vec::new();
    loop {
        let rows = spill.oldest::<String>(3).expect("reads");
        if rows.is_empty() {
            return all;
        }
        all.extend(rows);
        spill.done();
    }
}

fn texts(numbers: std::ops::Range<u32>) -> Vec<String> {
    numbers.map(|number| format!("row {number}\nof two lines")).collect()
}

#[test]
fn rows_come_back_in_order_across_files_and_while_more_are_written() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut spill = open(&folder);
    assert!(spill.is_empty());
    spill.append(&texts(0..5), false).expect("room");
    let first = spill.oldest::<String>(3).expect("reads");
    assert_eq!(first, texts(0..3));
    assert_eq!(spill.oldest::<String>(3).expect("reads"), first, "until they are done");
    spill.append(&texts(5..7), false).expect("room");
    spill.done();
    spill.append(&texts(7..9), false).expect("room");
    assert_eq!(all(&mut spill), texts(3..9));
    assert!(spill.is_empty() && files(&folder).is_empty());
    spill.append(&texts(9..10), false).expect("room");
    assert_eq!(all(&mut spill), texts(9..10));
}

#[test]
fn after_a_crash_every_row_is_there_and_a_torn_one_hurts_nobody() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut spill = open(&folder);
    spill.append(&texts(0..4), false).expect("room");
    spill.oldest::<String>(2).expect("reads");
    spill.done();
    spill.append(&texts(4..8), false).expect("room");
    drop(spill);
    let last = files(&folder).pop().expect("a file");
    let text = std::fs::read(&last).expect("reads");
    std::fs::write(&last, &text[..text.len() - 7]).expect("tears");
    let mut spill = open(&folder);
    spill.append(&texts(8..9), false).expect("room");
    // How far reading was is forgotten; the tables keep one row an id.
    assert_eq!(all(&mut spill), [texts(0..7), texts(8..9)].concat());
}

#[test]
fn a_changed_byte_costs_its_row_alone() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut spill = open(&folder);
    spill.append(&texts(0..3), false).expect("room");
    let file = files(&folder).pop().expect("a file");
    let mut text = std::fs::read(&file).expect("reads");
    let at = text.len() / 2;
    text[at] ^= 1;
    std::fs::write(&file, text).expect("writes");
    assert_eq!(all(&mut spill), [texts(0..1), texts(2..3)].concat());
}

#[test]
fn it_is_bounded_in_bytes_and_room_comes_back() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut spill = Spill::open(&folder.path().join("spill"), "call", 200).expect("opens");
    spill.append(&texts(0..4), false).expect("room");
    let before = spill.bytes();
    let full = spill.append(&texts(4..8), false);
    assert!(matches!(full, Err(SpillError::Full)), "{full:?}");
    assert_eq!(spill.bytes(), before);
    spill.append(&texts(4..8), true).expect("at the end of the process");
    assert_eq!(all(&mut spill), texts(0..8));
    spill.append(&texts(8..12), false).expect("there is room again");
}

#[test]
fn files_are_closed_at_their_size_and_go_one_by_one() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut spill = open(&folder);
    let big = vec!["x".repeat(1024 * 1024); 3];
    for _ in 0..3 {
        spill.append(&big, false).expect("room");
    }
    assert_eq!(files(&folder).len(), 2);
    let whole = spill.bytes();
    for _ in 0..2 {
        assert_eq!(spill.oldest::<String>(3).expect("reads").len(), 3);
        spill.done();
    }
    assert_eq!(files(&folder).len(), 1);
    assert!(spill.bytes() < whole / 2, "what is in the database takes no room");
}

#[test]
fn nobody_else_reads_the_files_or_uses_them_at_once() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut spill = open(&folder);
    spill.append(&texts(0..1), false).expect("room");
    let mode = |path: &Path| std::fs::metadata(path).expect("there").permissions().mode() & 0o777;
    assert_eq!(mode(&folder.path().join("spill")), 0o700);
    assert_eq!(mode(&files(&folder)[0]), 0o600);
    let second = Spill::open(&folder.path().join("spill"), "call", ROOM);
    assert!(second.is_err_and(|error| error.kind() == io::ErrorKind::ResourceBusy));
    Spill::open(&folder.path().join("spill"), "security", ROOM).expect("another log");
    drop(spill);
    assert_eq!(all(&mut open(&folder)), texts(0..1));
}
