//! The wire: JSON-RPC over raw bytes, protocol versions, SSE framing, bounds. Knows no policy.
