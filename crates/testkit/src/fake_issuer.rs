//! An identity provider on loopback: OIDC with ES256, and GitHub's way besides. It plays by the
//! rules until it is told to break one.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, Uri, header};
use axum::response::{IntoResponse as _, Response};
use axum::routing::{get, post};
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use parking_lot::Mutex;
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair as _};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use url::Url;

/// What the client is known by.
pub const CLIENT_ID: &str = "sluice-client";
pub const CLIENT_SECRET: &str = "a secret of the client";

type Tamper = Box<dyn Fn(&mut Value, &mut Value) + Send>;

struct Key {
    id: String,
    pair: EcdsaKeyPair,
}

struct Script {
    base: String,
    now: i64,
    key: Key,
    keys_made: usize,
    /// What was asked for, by the code that was given for it.
    codes: HashMap<String, HashMap<String, String>>,
    claims: Value,
    tamper: Option<Tamper>,
    discovery: Option<Value>,
    emails: Value,
    basic_alone: bool,
    asked: Vec<String>,
}

/// A scripted identity provider on a loopback port; ends with the value.
pub struct FakeIssuer {
    address: SocketAddr,
    script: Arc<Mutex<Script>>,
    task: JoinHandle<()>,
}

impl std::fmt::Debug for FakeIssuer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FakeIssuer").field("address", &self.address).finish_non_exhaustive()
    }
}

fn new_key(number: usize) -> Key {
    let random = SystemRandom::new();
    let document = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &random)
        .expect("ring makes keys");
    let pair =
        EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, document.as_ref(), &random)
            .expect("ring reads what it wrote");
    Key { id: format!("key-{number}"), pair }
}

impl FakeIssuer {
    /// Vouches for a person `ann`, as of `now` in seconds.
    pub async fn start(now: i64) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("loopback has a free port");
        let address = listener.local_addr().expect("a bound socket has an address");
        let script = Arc::new(Mutex::new(Script {
            base: format!("http://{address}"),
            now,
            key: new_key(1),
            keys_made: 1,
            codes: HashMap::new(),
            claims: json!({"sub": "ann-1", "email": "ann@example.test", "email_verified": true, "name": "Ann"}),
            tamper: None,
            discovery: None,
            emails: json!([{"email": "ann@example.test", "primary": true, "verified": true}]),
            basic_alone: false,
            asked: Vec::new(),
        }));
        let app = Router::new()
            .route("/.well-known/openid-configuration", get(discovery))
            .route("/keys", get(keys))
            .route("/token", post(token))
            .route("/login/oauth/access_token", post(token))
            .route("/api/v3/user", get(user))
            .route("/api/v3/user/emails", get(emails))
            .with_state(Arc::clone(&script));
        let task = tokio::spawn(async move {
            axum::serve(listener, app).await.ok();
        });
        Self { address, script, task }
    }

    /// What it calls itself.
    pub fn url(&self) -> String {
        self.script.lock().base.clone()
    }

    /// Vouches for this from now on: `sub`, `email`, `email_verified`, `name`, for GitHub `id`.
    pub fn person(&self, claims: Value) -> &Self {
        self.script.lock().claims = claims;
        self
    }

    /// The addresses of GitHub's person.
    pub fn emails(&self, emails: Value) -> &Self {
        self.script.lock().emails = emails;
        self
    }

    /// Changes header and claims before they are signed; with `alg` `none` nothing is signed.
    pub fn tamper(&self, change: impl Fn(&mut Value, &mut Value) + Send + 'static) -> &Self {
        self.script.lock().tamper = Some(Box::new(change));
        self
    }

    /// Plays by the rules again.
    pub fn honest(&self) -> &Self {
        let mut script = self.script.lock();
        (script.tamper, script.discovery) = (None, None);
        drop(script);
        self
    }

    /// Describes itself like this.
    pub fn describes(&self, document: Value) -> &Self {
        self.script.lock().discovery = Some(document);
        self
    }

    /// Takes the client's secret in the `Authorization` header alone.
    pub fn takes_basic_alone(&self) -> &Self {
        self.script.lock().basic_alone = true;
        self
    }

    /// Signs with a new key, and shows that one alone.
    pub fn rotate(&self) -> &Self {
        let mut script = self.script.lock();
        script.keys_made += 1;
        script.key = new_key(script.keys_made);
        drop(script);
        self
    }

    /// Moves its clock.
    pub fn at(&self, now: i64) -> &Self {
        self.script.lock().now = now;
        self
    }

    /// Every path that was asked for.
    pub fn asked(&self) -> Vec<String> {
        self.script.lock().asked.clone()
    }

    /// The person consents: what the browser brings back, as a query.
    pub fn consent(&self, url: &str) -> String {
        let url = Url::parse(url).expect("an address");
        let wanted: HashMap<String, String> = url.query_pairs().into_owned().collect();
        assert_eq!(wanted["client_id"], CLIENT_ID);
        assert_eq!(wanted["response_type"], "code");
        assert_eq!(wanted["code_challenge_method"], "S256");
        let mut script = self.script.lock();
        let code = format!("code-{}", script.codes.len() + 1);
        let state = wanted["state"].clone();
        script.codes.insert(code.clone(), wanted);
        format!("code={code}&state={state}")
    }
}

impl Drop for FakeIssuer {
    fn drop(&mut self) {
        self.task.abort();
    }
}

type Shared = State<Arc<Mutex<Script>>>;

fn json_answer(value: &Value) -> Response {
    ([(header::CONTENT_TYPE, "application/json")], value.to_string()).into_response()
}

async fn discovery(State(script): Shared, uri: Uri) -> Response {
    let mut script = script.lock();
    script.asked.push(uri.path().to_owned());
    let base = &script.base;
    let methods = if script.basic_alone {
        json!(["client_secret_basic"])
    } else {
        json!(["client_secret_post"])
    };
    let plain = json!({
        "issuer": base,
        "authorization_endpoint": format!("{base}/authorize"),
        "token_endpoint": format!("{base}/token"),
        "jwks_uri": format!("{base}/keys"),
        "token_endpoint_auth_methods_supported": methods,
    });
    json_answer(script.discovery.as_ref().unwrap_or(&plain))
}

async fn keys(State(script): Shared, uri: Uri) -> Response {
    let mut script = script.lock();
    script.asked.push(uri.path().to_owned());
    let point = script.key.pair.public_key().as_ref();
    let (x, y) = (URL_SAFE_NO_PAD.encode(&point[1..33]), URL_SAFE_NO_PAD.encode(&point[33..]));
    let key =
        json!({"kty": "EC", "crv": "P-256", "use": "sig", "kid": script.key.id, "x": x, "y": y});
    json_answer(&json!({"keys": [key]}))
}

fn refused(code: &str) -> Response {
    (StatusCode::BAD_REQUEST, json_answer(&json!({"error": code}))).into_response()
}

async fn token(State(script): Shared, uri: Uri, headers: HeaderMap, body: Bytes) -> Response {
    let mut script = script.lock();
    script.asked.push(uri.path().to_owned());
    let form: HashMap<String, String> = url::form_urlencoded::parse(&body).into_owned().collect();
    let field = |name: &str| form.get(name).map_or("", String::as_str);
    let encoded =
        |text: &str| url::form_urlencoded::byte_serialize(text.as_bytes()).collect::<String>();
    let basic = STANDARD.encode(format!("{}:{}", encoded(CLIENT_ID), encoded(CLIENT_SECRET)));
    let by_header = headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok())
        == Some(&format!("Basic {basic}"));
    let by_form = field("client_id") == CLIENT_ID && field("client_secret") == CLIENT_SECRET;
    if !(by_header || by_form && !script.basic_alone) {
        return refused("invalid_client");
    }
    // A code is good once.
    let Some(wanted) = script.codes.remove(field("code")) else { return refused("invalid_grant") };
    let challenge = URL_SAFE_NO_PAD.encode(Sha256::digest(field("code_verifier")));
    if wanted["code_challenge"] != challenge || wanted["redirect_uri"] != field("redirect_uri") {
        return refused("invalid_grant");
    }
    let mut answer = json!({"access_token": "access", "token_type": "bearer"});
    if uri.path() == "/token" {
        answer["id_token"] = json!(id_token(&script, wanted.get("nonce")));
    }
    json_answer(&answer)
}

fn id_token(script: &Script, nonce: Option<&String>) -> String {
    let mut head = json!({"alg": "ES256", "kid": script.key.id, "typ": "JWT"});
    let mut claims = script.claims.clone();
    claims["iss"] = json!(script.base);
    claims["aud"] = json!(CLIENT_ID);
    claims["iat"] = json!(script.now);
    claims["exp"] = json!(script.now + 300);
    claims["nonce"] = json!(nonce);
    if let Some(tamper) = &script.tamper {
        tamper(&mut head, &mut claims);
    }
    let part = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
    let message = format!("{}.{}", part(&head), part(&claims));
    if head["alg"] == "none" {
        return format!("{message}.");
    }
    let signature =
        script.key.pair.sign(&SystemRandom::new(), message.as_bytes()).expect("ring signs");
    format!("{message}.{}", URL_SAFE_NO_PAD.encode(signature))
}

fn may(headers: &HeaderMap) -> bool {
    headers.get(header::AUTHORIZATION).is_some_and(|value| value == "Bearer access")
}

async fn user(State(script): Shared, headers: HeaderMap) -> Response {
    if !may(&headers) {
        return StatusCode::UNAUTHORIZED.into_response();
    }
    json_answer(&script.lock().claims)
}

async fn emails(State(script): Shared, headers: HeaderMap) -> Response {
    if !may(&headers) {
        return StatusCode::UNAUTHORIZED.into_response();
    }
    json_answer(&script.lock().emails)
}
