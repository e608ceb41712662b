//! Password and token hashes, token formats, envelope encryption.
