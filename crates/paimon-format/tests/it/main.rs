//! Behaviour of this crate from outside.

mod s3_answers;
mod s3_server;
