//! The little language of `--where`: `status = 'paid' AND (amount >= 10 OR city IN ('Wien', 'Praha'))`.

mod lower;
mod parse;
mod token;

pub(crate) use lower::predicate;
