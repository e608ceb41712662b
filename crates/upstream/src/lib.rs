//! The one way out: SSRF-safe connections, upstream credentials, reading a server's tools.
