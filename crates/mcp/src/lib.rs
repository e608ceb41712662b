//! The wire: JSON-RPC over raw bytes, protocol versions, SSE framing, bounds.
//!
//! Nothing here re-serialises what a peer wrote: a request is scanned once and
//! handed on as slices of the bytes that were received, an answer passes as it
//! came. Knows no policy and does no I/O.

mod answers;
mod envelope;
mod era;
mod error;
mod fold;
mod hello;
mod id;
mod lists;
mod methods;
mod peek;
mod scan;
mod sse;
mod text;

pub use answers::{
    ApprovalNote, DecisionNote, ErrorNote, error_answer, input_required, refused_result,
    relabelled, sse_event,
};
pub use envelope::{Envelope, Kind, ToolCall, read};
pub use era::{Era, HeaderProblem, RoutingHeaders, decide_era, decode_header};
pub use error::{Malformed, codes};
pub use hello::{without_capabilities, without_members};
pub use id::RawId;
pub use lists::{ListProblem, SplicedList, ToolEntry, splice_tools};
pub use methods::{MethodGroup, MethodKind, classify_method, folds_to_tools_call};
pub use peek::{Message, MessageKind, Peek};
pub use scan::MAX_DEPTH;
pub use sse::{Event, EventStream, TooLarge, event_data, event_id, event_name, with_data};
pub use text::{batch_texts, element_texts, member_text, string_value};
