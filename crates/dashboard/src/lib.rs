//! Pages, forms, catalogue and docs, rendered on the server.
