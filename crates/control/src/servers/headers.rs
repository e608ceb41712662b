//! Upstream headers as they are typed. A mask that is sent back keeps the value behind it.

use secrecy::{ExposeSecret, SecretString};
use sluice_store::servers::Server;
use sluice_upstream::Target;
use sluice_vault::UpstreamHeaders;
use url::Url;

use crate::codes::{self, ProblemCode};
use crate::{Admin, Control, Fault};

/// What is shown in the place of a secret.
pub const MASK: &str = "********";

const MAX_HEADERS: usize = 20;
const MAX_NAME_BYTES: usize = 128;
const MAX_VALUE_BYTES: usize = 8 * 1024;

/// How Sluice shows itself to the upstream.
#[derive(Debug, Default)]
pub enum AuthForm {
    #[default]
    None,
    /// Names and values; the value [`MASK`] keeps what is stored under the name.
    Headers(Vec<(String, SecretString)>),
}

impl AuthForm {
    fn pairs(&self) -> &[(String, SecretString)] {
        match self {
            Self::None => &[],
            Self::Headers(pairs) => pairs,
        }
    }
}

fn pointer(name: &str) -> String {
    format!("/auth/headers/{}", name.replace('~', "~0").replace('/', "~1"))
}

fn is_mask(value: &SecretString) -> bool {
    value.expose_secret() == MASK
}

/// The headers of a new server.
pub(crate) fn new(form: &AuthForm) -> Result<UpstreamHeaders, Fault> {
    let pairs = form.pairs();
    check(pairs)?;
    match pairs.iter().find(|(_, value)| is_mask(value)) {
        Some((name, _)) => Err(nothing_behind(name)),
        None => Ok(UpstreamHeaders(pairs.to_vec())),
    }
}

fn nothing_behind(name: &str) -> Fault {
    let detail = format!("there is no stored value behind the mask of `{name}`; type the value");
    Fault::new(pointer(name), codes::MASKED, detail)
}

pub(crate) fn check(pairs: &[(String, SecretString)]) -> Result<(), Fault> {
    if pairs.len() > MAX_HEADERS {
        let detail = format!("a server has at most {MAX_HEADERS} headers");
        return Err(Fault::new("/auth/headers", codes::TOO_MANY, detail));
    }
    for (index, (name, value)) in pairs.iter().enumerate() {
        let at = |code: ProblemCode, detail: String| Err(Fault::new(pointer(name), code, detail));
        if name.len() > MAX_NAME_BYTES || value.expose_secret().len() > MAX_VALUE_BYTES {
            return at(codes::TOO_LONG, "the header is too long".to_owned());
        }
        if value.expose_secret().is_empty() {
            return at(codes::REQUIRED, format!("give `{name}` a value"));
        }
        if Target::header(name, value).is_none() {
            return at(
                codes::BAD_HEADER,
                format!("`{name}` cannot be sent as a header with this value"),
            );
        }
        if pairs[..index].iter().any(|(other, _)| other.eq_ignore_ascii_case(name)) {
            return at(codes::DUPLICATE, format!("`{name}` is there twice"));
        }
    }
    Ok(())
}

/// Credentials belong to the server they were typed for: another origin needs them typed anew.
pub(super) fn stay_home(before: &Server, url: Option<&str>) -> Result<(), Fault> {
    let origin = |url: &str| Url::parse(url).map(|url| url.origin()).ok();
    let moves = url.is_some_and(|url| origin(url) != origin(&before.upstream_url));
    if moves && before.sealed_headers.is_some() {
        let detail = "the new address is another server, which must not get the stored \
                      credentials: type them again, or remove them";
        return Err(Fault::new("/auth", codes::CREDENTIALS_WOULD_MOVE, detail));
    }
    Ok(())
}

impl Control {
    /// What is stored after an edit: values typed now, and stored ones behind masks.
    pub(super) fn merged_headers(
        &self,
        admin: &Admin,
        before: &Server,
        url: Option<&str>,
        form: &AuthForm,
    ) -> Result<UpstreamHeaders, Fault> {
        let pairs = form.pairs();
        check(pairs)?;
        if pairs.iter().any(|(_, value)| is_mask(value)) {
            stay_home(before, url)?;
        }
        let stored = match &before.sealed_headers {
            Some(sealed) if pairs.iter().any(|(_, value)| is_mask(value)) => self
                .inner
                .vault
                .open_headers(admin.workspace, before.id, sealed)
                .map_err(|error| Fault::new("/auth", codes::SEALED, error.to_string()))?,
            _ => UpstreamHeaders::default(),
        };
        let kept = |(name, value): &(String, SecretString)| {
            if !is_mask(value) {
                return Ok((name.clone(), value.clone()));
            }
            let behind = stored.0.iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
            behind
                .map(|(_, value)| (name.clone(), value.clone()))
                .ok_or_else(|| nothing_behind(name))
        };
        pairs.iter().map(kept).collect::<Result<_, _>>().map(UpstreamHeaders)
    }
}
