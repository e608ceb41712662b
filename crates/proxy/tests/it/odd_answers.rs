//! A server whose answers are odd: what passes is whole, what does not is told, and nothing of its own
//! plumbing reaches the client.

use crate::gateway::{ALLOW_ALL, Gateway};
use crate::stage::{Received, Stage, Wire};

const RESULT: &str =
    r#"{"jsonrpc":"2.0","id":1,"result":{"tools":[{"name":"echo"},{"name":"purge_all"}]}}"#;
const KEPT: &str = r#"{"jsonrpc":"2.0","id":1,"result":{"tools":[{"name":"echo"}]}}"#;
const LIST: &str = r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#;
const POLICY: &str = r#"{"version":"1","default":"allow","hide":["purge_all"]}"#;

/// A whole answer with these lines in its head.
fn answer(status: &str, lines: &str, body: &[u8]) -> Vec<u8> {
    let head = format!("HTTP/1.1 {status}\r\nconnection: close\r\n{lines}\r\n");
    [head.as_bytes(), body].concat()
}

fn sized(status: &str, lines: &str, body: &str) -> Vec<u8> {
    let lines = format!("content-length: {}\r\n{lines}", body.len());
    answer(status, &lines, body.as_bytes())
}

const JSON: &str = "content-type: application/json\r\n";
const EVENTS: &str = "content-type: text/event-stream\r\n";

async fn asked(bytes: Vec<u8>) -> sluice_testkit::http::Answer {
    let stage = Stage::start(move |received: Received, mut wire: Wire| {
        let bytes = bytes.clone();
        async move {
            assert_eq!(received.text(), LIST);
            wire.raw(bytes).await;
        }
    })
    .await;
    let gateway = Gateway::start().await;
    let answer = gateway.grant(&stage.url(), POLICY).post(&gateway, &[], LIST).await;
    assert_eq!(stage.count(), 1, "it is asked once");
    answer
}

#[tokio::test]
async fn answers_in_unusual_forms_pass_whole_and_filtered() {
    let chunked = |pieces: &[&str]| {
        let piece = |piece: &&str| format!("{:x};ext=1\r\n{piece}\r\n", piece.len());
        let body: String = pieces.iter().map(piece).collect();
        let lines = format!("transfer-encoding: chunked\r\n{JSON}");
        answer("200 OK", &lines, format!("{body}0\r\nx-trailer: y\r\n\r\n").as_bytes())
    };
    let (first, second) = RESULT.split_at(40);
    let early = "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\n";
    let odd = [
        chunked(&[RESULT]),
        chunked(&[first, second]),
        answer("200 OK", JSON, RESULT.as_bytes()),
        answer("200", JSON, RESULT.as_bytes()),
        sized("200 OK", "Content-Type: APPLICATION/JSON ; charset=utf-8\r\n", RESULT),
        sized("200 OK", &format!("{JSON}content-encoding: identity\r\n"), RESULT),
        [early.as_bytes(), &sized("200 OK", JSON, RESULT)].concat(),
        sized("200 OK", JSON, &format!("\r\n\t {RESULT}\n")),
        sized("200 OK", EVENTS, &format!("\u{feff}data: {RESULT}\n\n")),
        sized(
            "200 OK",
            "content-type: Text/Event-Stream;charset=utf-8\r\n",
            &format!("data:{RESULT}\n\n"),
        ),
        sized("404 Not Found", JSON, RESULT),
        sized("400 Bad Request", JSON, RESULT),
    ];
    for bytes in odd {
        let shown = String::from_utf8_lossy(&bytes).into_owned();
        let came = asked(bytes).await.text();
        assert!(came.contains(KEPT) && !came.contains("purge_all"), "{shown}: {came}");
    }
}

#[tokio::test]
async fn answers_that_cannot_be_read_in_one_way_are_told_and_not_passed() {
    let wide: Vec<u8> = RESULT.encode_utf16().flat_map(u16::to_le_bytes).collect();
    let many = (0..300).fold(String::new(), |all, n| all + &format!("x-{n}: y\r\n"));
    let large = format!("x-a: {}\r\n", "y".repeat(1 << 20));
    let two = format!("content-length: 5\r\ncontent-length: {}\r\n{JSON}", RESULT.len());
    let coded = |coding: &str| format!("{JSON}content-encoding: {coding}\r\n");
    let odd = [
        answer("200 OK", JSON, &wide),
        answer("200 OK", "content-type: application/json; charset=utf-16\r\n", &wide),
        sized("200 OK", JSON, &format!("\u{feff}{RESULT}")),
        sized("200 OK", JSON, &format!("[{RESULT}]")),
        sized("404 Not Found", JSON, &format!("[{RESULT}]")),
        sized("200 OK", JSON, &format!("{RESULT}{RESULT}")),
        sized("200 OK", JSON, &format!("{RESULT} x")),
        sized("200 OK", JSON, &RESULT.replace("\"id\":1", "\"id\":2")),
        sized("200 OK", JSON, &RESULT.replace("\"id\":1", "\"id\":\"1\"")),
        sized("200 OK", JSON, "null"),
        sized("200 OK", JSON, ""),
        sized("200 OK", "", RESULT),
        sized("200 OK", "content-type: text/plain\r\n", RESULT),
        sized("200 OK", "content-type: application/json-seq\r\n", RESULT),
        sized("201 Created", JSON, RESULT),
        sized("202 Accepted", JSON, RESULT),
        sized("206 Partial Content", JSON, RESULT),
        answer("204 No Content", "", b""),
        answer("304 Not Modified", JSON, b""),
        sized("500 Oops", EVENTS, &format!("data: {RESULT}\n\n")),
        sized("200 OK", &coded("gzip"), RESULT),
        sized("200 OK", &coded("identity, br"), RESULT),
        sized("200 OK", &format!("{}content-encoding: deflate\r\n", coded("identity")), RESULT),
        answer("200 OK", &two, RESULT.as_bytes()),
        sized("200 OK", &format!("{JSON}{many}"), RESULT),
        sized("200 OK", &format!("{JSON}{large}"), RESULT),
        sized("200 OK", &format!("{JSON}x y: z\r\n"), RESULT),
        sized("2OO OK", JSON, RESULT),
        format!("HTTP/9.9 200 OK\r\n{JSON}\r\n{RESULT}").into_bytes(),
        RESULT.as_bytes().to_vec(),
    ];
    for bytes in odd {
        let shown: String = String::from_utf8_lossy(&bytes).chars().take(300).collect();
        let came = asked(bytes).await;
        let code = came.json()["error"]["data"]["code"].clone();
        assert_eq!(code, "upstream_not_mcp", "{shown}: {}", came.text());
        assert!(!came.text().contains("purge_all"), "{shown}: {}", came.text());
    }
}

/// A session that nobody opened, a cookie, a challenge: they are the server's business.
#[tokio::test]
async fn nothing_of_the_servers_own_plumbing_reaches_the_client() {
    let lines = format!(
        "{JSON}mcp-session-id: theirs\r\nset-cookie: a=b\r\nwww-authenticate: Bearer\r\nlocation: http://x/\r\n\
         server: s\r\nx-powered-by: p\r\nstrict-transport-security: max-age=1\r\naccess-control-allow-origin: *\r\n\
         alt-svc: h3=\":1\"\r\nlink: <x>\r\nkeep-alive: timeout=1\r\nvia: 1.1 v\r\ncache-control: no-store\r\n"
    );
    for status in ["200 OK", "400 Bad Request", "404 Not Found"] {
        let came = asked(sized(status, &lines, RESULT)).await;
        let mut names: Vec<&str> = came.headers.keys().map(http::HeaderName::as_str).collect();
        names.sort_unstable();
        let expected = [
            "cache-control",
            "content-length",
            "content-type",
            "date",
            "x-content-type-options",
            "x-request-id",
        ];
        assert_eq!(names, expected, "{status}");
    }
    let gateway = Gateway::start().await;
    let silent = Stage::start(|_, wire: Wire| async move { wire.cut() }).await;
    let cut = gateway.grant(&silent.url(), ALLOW_ALL).post(&gateway, &[], LIST).await;
    assert_eq!(cut.json()["error"]["data"]["code"], "upstream_cut");
}
