use proptest::prelude::*;

use super::*;
use crate::peek::MessageKind;

type Seen = (Option<MessageKind>, Vec<u8>, bool);

/// Feeds a stream in pieces; returns what came out and the messages seen.
fn run(stream: &[u8], cuts: &[usize]) -> (Vec<u8>, Vec<Seen>) {
    let mut events = EventStream::new(1 << 20);
    let mut out = Vec::new();
    let mut at = 0;
    for cut in cuts.iter().copied().chain([stream.len()]) {
        let cut = cut.clamp(at, stream.len());
        events.feed(&Bytes::copy_from_slice(&stream[at..cut]), &mut out).expect("small");
        at = cut;
    }
    out.extend(events.finish());
    let bytes = out.iter().flat_map(Event::concat).collect();
    let seen = out
        .iter()
        .filter(|event| event.message.is_some() || event.resumable)
        .map(|event| {
            (event.message.as_ref().map(|m| m.kind), event_data(&event.concat()), event.resumable)
        })
        .collect();
    (bytes, seen)
}

#[test]
fn every_line_end_and_field_is_understood() {
    let result = MessageKind::Result;
    let table: [(&str, &str, bool); 8] = [
        ("data: {\"id\":1,\"result\":{}}\n\n", "{\"id\":1,\"result\":{}}", false),
        (
            ": c\r\n\r\nevent: message\r\ndata:{\"id\":1,\"result\":2}\r\n\r\n",
            "{\"id\":1,\"result\":2}",
            false,
        ),
        ("event: message\rdata: {\"id\":1,\"result\":3}\r\r", "{\"id\":1,\"result\":3}", false),
        (
            "id: e1\nretry: 5\ndata: {\"id\":1,\ndata:\"result\":4}\n\n",
            "{\"id\":1,\n\"result\":4}",
            true,
        ),
        ("\u{feff}data: {\"id\":1,\"result\":5}\n\n", "{\"id\":1,\"result\":5}", false),
        ("database: x\ndata: {\"id\":1,\"result\":6}\n\n", "{\"id\":1,\"result\":6}", false),
        ("data:  {\"id\":1,\"result\":7}\ndata\n\n", " {\"id\":1,\"result\":7}\n", false),
        ("data: {\"id\":1,\"result\":8}", "{\"id\":1,\"result\":8}", false),
    ];
    for (stream, data, resumable) in table {
        let (bytes, seen) = run(stream.as_bytes(), &[]);
        assert_eq!(bytes, stream.as_bytes(), "{stream:?}");
        assert_eq!(seen, [(Some(result), data.as_bytes().to_vec(), resumable)], "{stream:?}");
    }
}

#[test]
fn priming_events_and_comments_pass_without_a_message() {
    let stream = "id: e0\nretry: 3000\ndata: \n\n: keepalive\n\nid:\ndata:\n\n";
    let (bytes, seen) = run(stream.as_bytes(), &[]);
    assert_eq!(bytes, stream.as_bytes());
    assert_eq!(seen, [(None, Vec::new(), true)]);
}

#[test]
fn the_last_id_of_an_event_counts() {
    for (raw, id) in [
        ("id: e1\ndata: x\n\n", Some("e1")),
        ("id:a\r\nid:  b \r\ndata:\r\n\r\n", Some(" b ")),
        ("id: a\nid: b\0\n\n", Some("a")),
        ("id:\n\n", None),
        ("data: id: x\n\n", None),
    ] {
        assert_eq!(event_id(raw.as_bytes()), id.map(str::as_bytes), "{raw:?}");
    }
}

#[test]
fn data_is_replaced_and_the_rest_kept() {
    let raw = b"id: 7\r\n: c\r\nevent: message\r\ndata: {\r\ndata: }\r\nretry: 9\r\n\r\n";
    let new = with_data(raw, b"{\"a\":\n1}");
    assert_eq!(
        new,
        b"id: 7\r\n: c\r\nevent: message\r\ndata: {\"a\":\r\ndata: 1}\r\nretry: 9\r\n\r\n"
    );
    assert_eq!(event_data(&new), b"{\"a\":\n1}");
}

#[test]
fn an_event_over_the_bound_is_an_error_even_when_it_was_let_go() {
    let mut events = EventStream::new(100);
    let chunk = Bytes::from(vec![b'd'; 60]);
    let mut out = Vec::new();
    assert_eq!(events.feed(&chunk, &mut out), Ok(()));
    assert_eq!(events.take_held().len(), 1);
    assert_eq!(events.feed(&chunk, &mut out), Err(TooLarge));
}

proptest! {
    #[test]
    fn bytes_pass_and_cuts_do_not_matter(
        parts in proptest::collection::vec(
            prop_oneof![
                Just("data: {\"id\":1,\"result\":\"é\"}"), Just("data:"), Just("data"), Just("id: 5"),
                Just(": c"), Just("event: message"), Just("\n"), Just("\r"), Just("\r\n"), Just("\n\n"),
                Just("\r\r"), Just("x"), Just("\u{feff}"), Just("{\"id\":2,\"method\":\"a\"}"),
            ],
            0..30,
        ),
        cuts in proptest::collection::vec(0_usize..300, 0..8),
    ) {
        let stream = parts.concat();
        let mut cuts = cuts;
        cuts.sort_unstable();
        let (bytes, seen) = run(stream.as_bytes(), &cuts);
        prop_assert_eq!(&bytes, stream.as_bytes());
        let (_, whole) = run(stream.as_bytes(), &[]);
        prop_assert_eq!(seen, whole);
    }
}
