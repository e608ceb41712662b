//! The words of Sluice as types: ids, roles, risk words, limits, decisions and
//! the records that cross crates. No I/O, no clock.

mod account;
mod amount;
mod approval;
mod call;
mod decision;
mod feed;
mod ids;
mod limit;
pub mod metrics;
mod notify;
mod risk;
mod role;
mod route;
mod secrets;
mod settings;
mod tool;
mod words;
mod workspace_limits;

pub use account::LinkPurpose;
pub use amount::{Amount, AmountError};
pub use approval::ApprovalStatus;
pub use call::{CallRecord, CallTiming, SecurityEvent, SecurityKind};
pub use decision::{Code, Outcome};
pub use feed::{ActorKind, ChangeKind, ObjectKind, PolicyKind};
pub use ids::{
    ApiTokenId, ApprovalEventId, ApprovalId, ApprovalLinkId, CallId, DeliveryId, EndpointId,
    EventId, ExceptionId, FilterId, GrantId, InviteId, JoinDomainId, LoginSessionId, ParseIdError,
    PasskeyId, PolicyId, ReservationId, ServerId, ToolId, UserId, WorkspaceId,
};
pub use limit::{Charge, OnUnavailable, Reset, Scope, Window, WindowError};
pub use notify::{ApprovalEventKind, DeliveryStatus, EndpointKind, Notice};
pub use risk::{Category, Severity};
pub use role::Role;
pub use route::{RouteGrant, RoutePolicy, RouteRecord, RouteServer, RouteTool};
pub use secrets::{REDACTED, looks_secret, names_secret};
pub use settings::{
    Access, Methods, OnDrift, ServerSettings, Transport, UnknownTools, ValidateArguments,
};
pub use tool::{ToolDefinition, ToolState};
pub use words::UnknownWord;
pub use workspace_limits::WorkspaceLimits;
