//! The data path: authenticate, decide, reserve, forward, stream, log. Holds
//! no SQL: what it needs from the store it names as ports, and a call on a
//! cached route touches none of them.

mod call_log;
mod options;
mod ports;

pub use call_log::{CallLog, LogFull, LogPlace};
pub use options::ProxyOptions;
pub use ports::{
    Approval, ApprovalKey, Approvals, ParkError, ParkedCall, Released, Routes, SecurityLog,
    StoreUnavailable, ToolsSeen,
};
