//! REST, described by an OpenAPI 3.1 document generated from the code.
