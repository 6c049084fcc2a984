//! Behaviour tests of the crate, one binary.

mod pick_tables;
