//! Mail, to a server that keeps it.

use std::sync::Arc;

use chrono::DateTime;
use secrecy::SecretString;
use sluice_testkit::SmtpServer;
use sluice_upstream::{Mail, MailError, Mailer, MailerOptions};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpListener;

use crate::tls::acceptor;

fn mailer(url: &str, roots: Vec<Vec<u8>>) -> Mailer {
    let options = MailerOptions {
        url: SecretString::from(url.to_owned()),
        from: "Sluice <sluice@example.com>".to_owned(),
        hello: "sluice.example.com".to_owned(),
        extra_roots: roots,
    };
    Mailer::new(&options).expect("the settings are good")
}

fn mail() -> Mail {
    Mail {
        to: "ann@example.test".to_owned(),
        subject: "Approve `pay`?\r\nBcc: eve@example.test".to_owned(),
        text: "A call waits.\n\nhttps://sluice.example.com/approve/x=y\n\n.\nÄnd more".to_owned(),
        html: "<p>A call waits.</p>".to_owned(),
        id: "0192".to_owned(),
        at: DateTime::from_timestamp(1_796_000_000, 0).expect("a time"),
    }
}

#[tokio::test]
async fn a_mail_arrives_whole_and_its_subject_stays_one_line() {
    let server = SmtpServer::start().await;
    mailer(&server.url(), Vec::new()).send(&mail()).await.expect("it is taken");
    let [got] = &server.mails()[..] else { panic!("one mail") };
    assert_eq!((got.from.as_str(), got.to.as_str()), ("sluice@example.com", "ann@example.test"));
    let head = got.raw.split("\r\n\r\n").next().expect("a head").replace("\r\n ", " ");
    assert!(!head.lines().any(|line| line.starts_with("Bcc:")), "{head}");
    for line in [
        "Message-ID: <0192@sluice.example.com>",
        "Auto-Submitted: auto-generated",
        "To: ann@example.test",
    ] {
        assert!(head.lines().any(|found| found == line), "{line} in {head}");
    }
    assert_eq!(got.link("/approve/").as_deref(), Some("https://sluice.example.com/approve/x=y"));
    assert!(got.text().contains("Änd more"), "{}", got.text());
}

#[tokio::test]
async fn what_a_server_says_is_told_apart() {
    let server = SmtpServer::start().await;
    let mailer = mailer(&server.url(), Vec::new());
    mailer.probe().await.expect("it answers");
    server.refuse(Some("550 no such user"));
    let refused = mailer.send(&mail()).await.expect_err("refused");
    assert!(
        matches!(&refused, MailError::Refused(words) if words.contains("no such user")),
        "{refused:?}"
    );
    server.refuse(Some("451 later"));
    assert!(matches!(mailer.send(&mail()).await, Err(MailError::Later(_))));
    let nobody = Mail { to: "no address".to_owned(), ..mail() };
    assert!(matches!(mailer.send(&nobody).await, Err(MailError::Refused(_))));
    drop(server);
    let gone = crate::mail::mailer("smtp://127.0.0.1:9", Vec::new());
    assert!(matches!(gone.send(&mail()).await, Err(MailError::Unreachable(_))));
}

/// A mail server in TLS: from the start, or after STARTTLS. Its port and authority.
async fn secure(name: &str, starttls: bool) -> (u16, Vec<u8>, Arc<SmtpServer>) {
    let (acceptor, authority) = acceptor(name);
    let server = Arc::new(SmtpServer::start().await);
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let port = listener.local_addr().expect("an address").port();
    let keeps = Arc::clone(&server);
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let mut stream = BufReader::new(stream);
            if starttls {
                for answer in ["220 test\r\n", "250-test\r\n250 STARTTLS\r\n", "220 go on\r\n"] {
                    stream.write_all(answer.as_bytes()).await.expect("written");
                    if !answer.starts_with("220 go") {
                        stream.read_line(&mut String::new()).await.expect("a line");
                    }
                }
            }
            let Ok(stream) = acceptor.accept(stream).await else { continue };
            keeps.talk(stream, !starttls).await;
        }
    });
    (port, authority, server)
}

#[tokio::test]
async fn over_tls_only_the_right_certificate_gets_mail() {
    for (scheme, starttls) in [("smtps", false), ("smtp", true)] {
        let (port, authority, server) = secure("localhost", starttls).await;
        let tls = if starttls { "?tls=starttls" } else { "" };
        let url = format!("{scheme}://localhost:{port}{tls}");
        mailer(&url, vec![authority.clone()]).send(&mail()).await.expect("it is taken");
        assert_eq!(server.mails().len(), 1);
        let other = format!("{scheme}://127.0.0.1:{port}{tls}");
        for (url, roots) in [(url, Vec::new()), (other, vec![authority])] {
            let refused = mailer(&url, roots).send(&mail()).await;
            assert!(matches!(refused, Err(MailError::Unreachable(_))), "{url}: {refused:?}");
        }
        assert_eq!(server.mails().len(), 1);
    }
}

#[tokio::test]
async fn a_server_without_starttls_gets_nothing_when_tls_is_asked_for() {
    let server = SmtpServer::start().await;
    let url = format!("{}?tls=starttls", server.url());
    assert!(mailer(&url, Vec::new()).send(&mail()).await.is_err());
    assert!(server.mails().is_empty());
}
