//! What api and dashboard share over HTTP: sessions, CSRF, headers, problem+json.
