//! What the reader of messages and the reader beside streams see, other readers see as well: over the
//! inputs of the fuzz targets, and over seeded mutations of sound texts, the same on every run.

mod generate;
mod runtimes;

#[path = "../../../../fuzz/oracles/mcp_envelope.rs"]
mod mcp_envelope;
#[path = "../../../../fuzz/oracles/mcp_events.rs"]
mod mcp_events;

use std::panic::catch_unwind;
use std::path::Path;

use generate::{Random, edit, message, stream};

const MESSAGES: usize = 12_000;
const STREAMS: usize = 6_000;

/// Every file of a target's folders through its oracle; how many there were.
fn every_file(target: &str, holds: fn(&[u8])) -> usize {
    let fuzz = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz");
    let mut count = 0;
    for folder in ["seeds", "regressions"] {
        // There may be no regressions yet.
        let Ok(files) = std::fs::read_dir(fuzz.join(folder).join(target)) else { continue };
        for file in files {
            let path = file.expect("a file").path();
            let bytes = std::fs::read(&path).expect("its bytes");
            assert!(catch_unwind(|| holds(&bytes)).is_ok(), "{}", path.display());
            count += 1;
        }
    }
    count
}

/// The other parsers want more stack than a test has for what is nested deeply, unless they are optimised.
fn with_room(test: fn()) {
    let roomy = std::thread::Builder::new().stack_size(64 << 20).spawn(test);
    assert!(roomy.expect("a thread").join().is_ok());
}

#[test]
fn the_inputs_of_the_fuzz_targets_hold() {
    with_room(|| {
        assert!(every_file("mcp_envelope", mcp_envelope::holds) >= 20);
        assert!(every_file("mcp_events", mcp_events::holds) >= 12);
    });
}

#[test]
fn what_the_scanner_takes_every_other_parser_reads_alike() {
    let mut random = Random::new(11);
    let mut taken = 0;
    let mut read = vec![0; mcp_envelope::READERS.len()];
    for _ in 0..MESSAGES {
        let mut bytes = message(&mut random).into_bytes();
        for _ in 0..random.below(6).saturating_sub(2) {
            edit(&mut random, &mut bytes);
        }
        mcp_envelope::holds(&bytes);
        if sluice_mcp::read(&bytes).is_ok() {
            taken += 1;
            for (count, (_, reader)) in read.iter_mut().zip(mcp_envelope::READERS) {
                *count += usize::from(reader(&bytes).is_some());
            }
        }
    }
    // The agreement is worth something only where many messages are taken, and by all.
    assert!(taken > MESSAGES / 4 && taken < MESSAGES * 3 / 4, "{taken}");
    assert!(read.iter().all(|count| *count > taken / 2), "{read:?} of {taken}");
}

#[test]
fn however_a_stream_is_cut_the_same_events_are_seen() {
    let mut random = Random::new(13);
    let mut messages = 0;
    for _ in 0..STREAMS {
        let mut bytes = stream(&mut random);
        for _ in 0..random.below(3) {
            edit(&mut random, &mut bytes);
        }
        mcp_events::holds(&bytes);
        messages += mcp_events::feed(&bytes, 0).iter().filter(|e| e.message.is_some()).count();
    }
    assert!(messages > STREAMS, "{messages}");
}
