//! What a member may do: authorise, validate, write, record the admin event. Every operation asks
//! for the permission that it needs as an argument, and writes in one transaction.

mod access;
mod accounts;
mod api_tokens;
mod apply;
mod approvals;
mod audit;
mod calls;
pub mod catalogue;
pub mod codes;
pub mod configuration;
mod control;
mod error;
mod find;
mod glance;
mod grants;
mod idempotency;
mod join_domains;
mod limits;
mod members;
mod notices;
pub mod operator;
mod page;
mod policies;
mod providers;
mod requests;
mod saved_filters;
mod servers;
mod text;
mod throttle;
mod tools;
mod trial;
mod upkeep;
mod workspaces;

pub use access::{Access, Actor, Admin, Permission, PolicyManager, Proof, Viewer};
pub use accounts::{
    Confirmed, Enrolment, Entry, HalfIn, LOGIN_AT_MOST, LOGIN_IDLE, LinkCard, LoggedIn, LoginView,
    MAX_PASSKEYS, Origin, PasskeyAnswer, PasskeyQuestion, PasskeyRegistration, PasskeyView,
    SecondFactorView, SignUp, SignedUp,
};
pub use api_tokens::{ApiTokenForm, ApiTokenView, NewToken};
pub use apply::{Applied, Apply, Preview, RestOf, Undone};
pub use approvals::{
    ApprovalEventView, ApprovalNews, ApprovalView, ApprovalsOf, Choice, Decided, DecisionView,
    ExceptionState, ExceptionView, InboxKey, LinkView, MAX_ALLOW, OpenLink, PastDecisions,
};
pub use audit::{EventFilter, EventView};
pub use calls::{CallsOf, LOOKED_AT, Overview, Span};
pub use codes::ProblemCode;
pub use control::{Bounds, Control, ControlParts, ControlSettings, Signup};
pub use error::{ControlError, Fault};
pub use glance::{Glance, ServerGlance};
pub use grants::{GrantForm, GrantPatch, GrantView, Granted, GrantsOf, MAX_OVERLAP};
pub use idempotency::{Headers, REMEMBERED, Repeat};
pub use join_domains::{JoinDomainView, JoinableView, MAX_JOIN_DOMAINS};
pub use limits::{
    CounterForm, LimitKey, LimitView, LimitsOf, MOST_LOOKED_AT, NEAR_PERCENT, Nearest,
};
pub use members::{INVITE_DAYS, InviteCard, InviteView, Invited, MemberView};
pub use notices::{
    DeliveriesOf, DeliveryView, EndpointForm, EndpointPatch, EndpointView, Letter, MAX_ESCALATION,
    MadeEndpoint, NoticeSettings, Try,
};
pub use page::{Page, PageOf};
pub use policies::{PolicyForm, PolicyView, SavedPolicy, VersionView};
pub use providers::{
    IdentityView, Provider, ProviderAnswer, ProviderFlow, ProviderKind, ProviderOutcome,
    RequiredProvider,
};
pub use requests::{Allowance, REQUEST_WINDOW_S};
pub use servers::{
    AuthForm, Connected, MASK, ReadFailure, ReadReport, ServerForm, ServerPatch, ServerView,
    SettingsPatch,
};
pub use sluice_store::calls::{Breakdown, DaySpan, OfDay, Reason, ToolUse};
pub use sluice_store::grants::{GrantsToLookAt, Look};
pub use sluice_store::saved_filters::SavedFilter;
pub use sluice_store::security_events::Attempts;
pub use sluice_store::servers::ServerName;
pub use sluice_store::tools::Attention;
pub use text::{MAX_NAME_CHARS, MAX_NOTE_CHARS, span};
pub use tools::{Effect, Standing, ToolView};
pub use trial::{ChangedTrial, Compared, MAX_TRIALS, Sums, Trial, TrialCall, Trials, TrialsOf};
pub use upkeep::{ARGUMENTS_KEPT, Swept};
pub use workspaces::{ClosedView, GRACE, WorkspaceCard, WorkspacePatch, WorkspaceView};
