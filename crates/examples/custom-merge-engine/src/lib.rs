//! A merge engine and an aggregate function of one's own.

use paimon_format::types::{Datum, TypeKind};
use paimon_merge::MergeError;
use paimon_merge::aggregate::{
    AggregateFunction, AggregatedColumn, Aggregation, AggregatorFactory, FunctionAggregator,
};
use paimon_merge::engine::{Promises, Registry};
use paimon_merge::kernel::{MergeFunction, Merged, RowEngine, Versions, value_index};

/// Keeps the version with the highest `score`; ties go to the newer. Insert-only: a delete between two runs could not be remembered, so
/// it would break associativity.
struct HighestScore {
    score: usize,
}

impl MergeFunction for HighestScore {
    fn merge(&mut self, versions: &Versions<'_>) -> Result<Merged, MergeError> {
        let (mut best, mut best_score) = (0, None);
        for (i, version) in versions.iter().enumerate() {
            if version.kind().is_retract() {
                return Err(MergeError::retract("highest-score", &version));
            }
            let score = version.get::<i64>(self.score)?;
            if score >= best_score {
                (best, best_score) = (i, score);
            }
        }
        Ok(Merged::Version(best))
    }
}

/// `merge-engine = highest-score`; the table has a column `score BIGINT`.
pub fn highest_score() -> RowEngine {
    RowEngine::new(
        "highest-score",
        Promises::insert_only(),
        ["score"],
        |schema, _options| {
            let score = value_index(schema, "score", &TypeKind::BigInt)?;
            Ok(Box::new(HighestScore { score }))
        },
    )
}

/// `fields.<column>.aggregate-function = bit_or`, for BIGINT columns.
#[derive(Debug)]
pub struct BitOr;

impl AggregateFunction for BitOr {
    fn add(&self, acc: Datum, value: Datum) -> Result<Datum, MergeError> {
        Ok(match (acc, value) {
            (Datum::Int64(acc), Datum::Int64(value)) => Datum::Int64(acc | value),
            (Datum::Null, value) => value,
            (acc, _) => acc,
        })
    }
}

impl AggregatorFactory for BitOr {
    fn name(&self) -> &str {
        "bit_or"
    }

    fn create(&self, column: &AggregatedColumn<'_>) -> Result<Aggregation, MergeError> {
        match column.field.data_type.kind {
            TypeKind::BigInt => Ok(FunctionAggregator::new(column, Self)?.into_aggregation()),
            _ => Err(column.wrong_type("BIGINT")),
        }
    }
}

/// What is built in, and these two.
pub fn registry() -> Registry {
    let mut registry = Registry::default();
    registry.engine(highest_score()).aggregator(BitOr);
    registry
}
