//! What api and dashboard share over HTTP: who is calling, CSRF protection, security headers, hosts,
//! request ids, problem+json and the readers of bodies, queries and paths. Renders no page.

mod address;
mod bearer;
mod cookies;
mod csrf;
mod cursor;
mod etag;
pub mod export;
mod fields;
mod form;
mod headers;
mod host;
mod json;
mod path;
mod problem;
mod query;
mod request_id;
mod session;
mod state;

pub use address::{ClientAddress, UserAgent};
pub use bearer::{As, Bearer};
pub use cookies::{
    end_flow, end_session, flow_cookie, half_token, start_flow, start_half, start_session,
};
pub use csrf::{CSRF_FIELD, Csrf, OwnSite};
pub use cursor::{Cursor, CursorError};
pub use etag::{IfMatch, MaybeIfMatch, etag};
pub use form::{Form, FormFields};
pub use headers::Csp;
pub use json::{JsonBody, MaybeJson};
pub use path::PathId;
pub use problem::{Parts as ProblemParts, Problem, method_not_allowed, not_found};
pub use query::Queried;
pub use request_id::RequestId;
pub use session::{In, MaybeActor, SignedIn, login_redirect, safe_next};
pub use state::{Guard, WebSettings, WebState, wrap};
