//! Behaviour of this crate's public API.

mod files;
mod options_doc;
mod s3_answers;
mod s3_server;
