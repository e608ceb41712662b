//! The data path: authenticate, decide, reserve, forward, stream, log. Holds no SQL.
