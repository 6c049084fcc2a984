//! Filters over rows: written as text or built, evaluated on batches and partition values, tested against statistics.
//!
//! Logic is SQL's: a comparison with null is neither true nor false, and a row passes when the whole is true. Values compare in Java's
//! order ([`Datum::compare`](crate::types::Datum::compare)). Source: `org.apache.paimon.predicate`.

mod ast;
mod evaluate;
mod like;
mod parser;
mod statistics;
mod test;
mod tokens;

pub use ast::Predicate;
pub use like::LikePattern;
pub use statistics::ColumnStatistics;
pub use test::Test;

#[cfg(test)]
mod tests;
