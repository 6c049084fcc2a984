//! The old value of a key.
