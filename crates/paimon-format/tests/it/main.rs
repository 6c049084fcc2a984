//! Behaviour of the format crate, one module a behaviour.

mod options_doc;
