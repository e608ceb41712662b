//! Mail by SMTP, to the one server that the operator names. TLS unless the operator says otherwise;
//! a password never goes over an open line to another machine.

use std::time::{Duration, SystemTime};

use chrono::{DateTime, Utc};
use lettre::message::header::{HeaderName, HeaderValue};
use lettre::message::{Mailbox, MultiPart};
use lettre::transport::smtp::authentication::Credentials;
use lettre::transport::smtp::client::{Certificate, Tls, TlsParameters};
use lettre::transport::smtp::extension::ClientId;
use lettre::{Address, AsyncSmtpTransport, AsyncTransport as _, Message, Tokio1Executor};
use percent_encoding::percent_decode_str;
use secrecy::{ExposeSecret, SecretString};
use url::{Host, Url};

/// Longer than any server that means to answer.
const PATIENCE: Duration = Duration::from_secs(30);

/// How mail is sent.
#[derive(Debug, Clone)]
pub struct MailerOptions {
    /// `smtp://user:password@host:587` (STARTTLS) or `smtps://…` (TLS from the start);
    /// `?tls=none` for an open line, which is also what a loopback host gets.
    pub url: SecretString,
    /// `Sluice <sluice@example.com>`
    pub from: String,
    /// What we call ourselves, a host name.
    pub hello: String,
    /// Certificate authorities (DER) that are trusted besides the public ones.
    pub extra_roots: Vec<Vec<u8>>,
}

/// What is wrong with a mail setting. No password is ever in the words.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MailSettingError {
    #[error("the mail server's address is not one like smtp://user:password@mail.example.com:587")]
    Url,
    #[error(
        "the mail server's address has `tls={0}`; only `tls=none` and `tls=starttls` are known"
    )]
    Tls(String),
    #[error(
        "a password must not go over an open line to {0}; use smtps://, or leave `tls=none` out"
    )]
    OpenLine(String),
    #[error("`{0}` is not a sender such as Sluice <sluice@example.com>")]
    From(String),
    #[error("TLS cannot be set up for the mail server: {0}")]
    Setup(String),
}

/// One mail: text, and the same as HTML.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mail {
    pub to: String,
    pub subject: String,
    pub text: String,
    pub html: String,
    /// The left part of the `Message-ID`; the same mail sent again has the same.
    pub id: String,
    pub at: DateTime<Utc>,
}

/// Why a mail was not taken.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MailError {
    /// It will never be: the address is none, or the server said so for good.
    #[error("the mail cannot be delivered: {0}")]
    Refused(String),
    /// The server wants this mail later.
    #[error("the mail server wants it later: {0}")]
    Later(String),
    /// No mail gets through at the moment.
    #[error("the mail server does not answer: {0}")]
    Unreachable(String),
}

/// The mail server's other end. Cheap to clone.
#[derive(Clone)]
pub struct Mailer {
    transport: AsyncSmtpTransport<Tokio1Executor>,
    from: Mailbox,
    hello: String,
}

impl std::fmt::Debug for Mailer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Mailer").field("from", &self.from.to_string()).finish_non_exhaustive()
    }
}

impl Mailer {
    /// Reads the settings; connects to nothing yet.
    pub fn new(options: &MailerOptions) -> Result<Self, MailSettingError> {
        let from: Mailbox =
            options.from.parse().map_err(|_| MailSettingError::From(options.from.clone()))?;
        let server = Server::read(options.url.expose_secret())?;
        let mut builder = AsyncSmtpTransport::<Tokio1Executor>::builder_dangerous(&server.host)
            .port(server.port)
            .timeout(Some(PATIENCE))
            .hello_name(ClientId::Domain(options.hello.clone()));
        builder = builder.tls(match server.line {
            Line::Open => Tls::None,
            Line::StartTls => Tls::Required(parameters(&server.host, &options.extra_roots)?),
            Line::Tls => Tls::Wrapper(parameters(&server.host, &options.extra_roots)?),
        });
        if let Some(credentials) = server.credentials {
            builder = builder.credentials(credentials);
        }
        Ok(Self { transport: builder.build(), from, hello: options.hello.clone() })
    }

    /// Sends one mail and waits until the server has taken it.
    pub async fn send(&self, mail: &Mail) -> Result<(), MailError> {
        let message = self.message(mail)?;
        let sending = tokio::time::timeout(PATIENCE * 2, self.transport.send(message));
        match sending.await {
            Ok(Ok(_)) => Ok(()),
            Ok(Err(error)) => Err(explain(&error)),
            Err(_) => Err(MailError::Unreachable("no answer in time".to_owned())),
        }
    }

    /// Whether the server can be reached and lets us in.
    pub async fn probe(&self) -> Result<(), MailError> {
        match tokio::time::timeout(PATIENCE, self.transport.test_connection()).await {
            Ok(Ok(true)) => Ok(()),
            Ok(Ok(false)) => Err(MailError::Unreachable("it hung up".to_owned())),
            Ok(Err(error)) => Err(explain(&error)),
            Err(_) => Err(MailError::Unreachable("no answer in time".to_owned())),
        }
    }

    fn message(&self, mail: &Mail) -> Result<Message, MailError> {
        let bad = |what: &str| MailError::Refused(what.to_owned());
        let to: Address = mail.to.parse().map_err(|_| bad("its address is not one"))?;
        // One line, whatever a tool is called.
        let subject: String =
            mail.subject.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
        let automatic = HeaderName::new_from_ascii_str("Auto-Submitted");
        Message::builder()
            .from(self.from.clone())
            .to(Mailbox::new(None, to))
            .subject(subject)
            .date(SystemTime::from(mail.at))
            .message_id(Some(format!("<{}@{}>", mail.id, self.hello)))
            .raw_header(HeaderValue::new(automatic, "auto-generated".to_owned()))
            .multipart(MultiPart::alternative_plain_html(mail.text.clone(), mail.html.clone()))
            .map_err(|_| bad("it cannot be written"))
    }
}

fn explain(error: &lettre::transport::smtp::Error) -> MailError {
    let words = error.to_string();
    let words: String =
        words.chars().map(|c| if c.is_control() { ' ' } else { c }).take(200).collect();
    if error.is_permanent() {
        return MailError::Refused(words);
    }
    if error.is_transient() {
        return MailError::Later(words);
    }
    MailError::Unreachable(words)
}

fn parameters(host: &str, roots: &[Vec<u8>]) -> Result<TlsParameters, MailSettingError> {
    let setup = |error: lettre::transport::smtp::Error| MailSettingError::Setup(error.to_string());
    let mut builder = TlsParameters::builder(host.to_owned());
    for root in roots {
        builder = builder.add_root_certificate(Certificate::from_der(root.clone()).map_err(setup)?);
    }
    builder.build().map_err(setup)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Line {
    Open,
    StartTls,
    Tls,
}

struct Server {
    host: String,
    port: u16,
    line: Line,
    credentials: Option<Credentials>,
}

impl Server {
    fn read(text: &str) -> Result<Self, MailSettingError> {
        let url = Url::parse(text.trim()).map_err(|_| MailSettingError::Url)?;
        let host = url.host_str().filter(|host| !host.is_empty()).ok_or(MailSettingError::Url)?;
        let bare = host.trim_start_matches('[').trim_end_matches(']').to_owned();
        let loopback = is_loopback(&bare);
        let asked = url.query_pairs().find(|(name, _)| name == "tls").map(|(_, value)| value);
        let line = match (url.scheme(), asked.as_deref()) {
            ("smtps", None) => Line::Tls,
            ("smtp", Some("none")) => Line::Open,
            ("smtp", Some("starttls")) => Line::StartTls,
            ("smtp", None) => {
                if loopback {
                    Line::Open
                } else {
                    Line::StartTls
                }
            }
            ("smtp" | "smtps", Some(other)) => return Err(MailSettingError::Tls(other.to_owned())),
            _ => return Err(MailSettingError::Url),
        };
        let part = |text: &str| percent_decode_str(text).decode_utf8_lossy().into_owned();
        let credentials = (!url.username().is_empty())
            .then(|| Credentials::new(part(url.username()), part(url.password().unwrap_or(""))));
        if credentials.is_some() && line == Line::Open && !loopback {
            return Err(MailSettingError::OpenLine(bare));
        }
        let usual = match line {
            Line::Open => 25,
            Line::StartTls => 587,
            Line::Tls => 465,
        };
        Ok(Self { host: bare, port: url.port().unwrap_or(usual), line, credentials })
    }
}

fn is_loopback(host: &str) -> bool {
    match Host::parse(host) {
        Ok(Host::Domain(name)) => name == "localhost",
        Ok(Host::Ipv4(address)) => address.is_loopback(),
        Ok(Host::Ipv6(address)) => address.is_loopback(),
        Err(_) => host.parse::<std::net::Ipv6Addr>().is_ok_and(|address| address.is_loopback()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<(String, u16, Line, bool), MailSettingError> {
        Server::read(text).map(|s| (s.host, s.port, s.line, s.credentials.is_some()))
    }

    #[test]
    fn addresses_of_mail_servers_are_read_safely() {
        let table = [
            ("smtp://u:p@mail.example.com", ("mail.example.com", 587, Line::StartTls, true)),
            ("smtps://u:p%40x@mail.example.com", ("mail.example.com", 465, Line::Tls, true)),
            ("smtp://mail.example.com:2525", ("mail.example.com", 2525, Line::StartTls, false)),
            ("smtp://mail.example.com?tls=none", ("mail.example.com", 25, Line::Open, false)),
            ("smtp://127.0.0.1:1025", ("127.0.0.1", 1025, Line::Open, false)),
            ("smtp://u:p@localhost:1025", ("localhost", 1025, Line::Open, true)),
            ("smtp://[::1]:1025", ("::1", 1025, Line::Open, false)),
            ("smtp://localhost?tls=starttls", ("localhost", 587, Line::StartTls, false)),
        ];
        for (text, (host, port, line, login)) in table {
            assert_eq!(read(text), Ok((host.to_owned(), port, line, login)), "{text}");
        }
        for text in ["", "mail.example.com", "http://mail.example.com", "smtp://", "smtp:x"] {
            assert_eq!(read(text), Err(MailSettingError::Url), "{text}");
        }
        let open = read("smtp://u:secret@mail.example.com?tls=none").expect_err("refused");
        assert_eq!(open, MailSettingError::OpenLine("mail.example.com".to_owned()));
        assert!(!open.to_string().contains("secret"));
        assert!(matches!(read("smtp://a.example?tls=maybe"), Err(MailSettingError::Tls(_))));
    }
}
