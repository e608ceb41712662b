//! The data path: authenticate, decide, reserve, forward, stream, log. Holds
//! no SQL: what it needs from the store it names as ports, and a call on a
//! cached route touches none of them.

mod approve;
mod approved;
mod arguments;
mod bridge;
mod budget;
mod cache;
mod call;
mod call_log;
mod canonical;
mod carry;
mod decide;
#[cfg(test)]
mod documented;
mod exchange;
mod failure;
mod filter;
mod follow;
mod forward;
mod gate;
mod headers;
mod hold;
mod methods;
mod mirror;
mod notes;
mod open_count;
mod options;
mod origin;
mod page;
mod park;
mod pass;
mod ports;
mod post;
mod prepared;
mod pump;
mod record;
mod release;
mod remote;
mod respond;
mod route;
mod router;
mod seen;
mod serve;
mod session;
mod state;
mod streams;
mod trace;
mod watch;

pub use cache::Change;
pub use call_log::{CallLog, LogFull, LogPlace};
pub use gate::ClientAddress;
pub use options::ProxyOptions;
pub use ports::{
    Approval, ApprovalKey, Approvals, Exception, ParkError, ParkedCall, Released, Routes,
    SecurityLog, ShownTool, Spans, StoreUnavailable, ToolsSeen,
};
pub use router::{router, server_of};
pub use state::{ProxyParts, ProxyState, Sizes};
pub use trace::{CallSpan, Current, TraceContext, current_request, within_request};
