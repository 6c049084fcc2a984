//! Behaviour of plans, kernels and engines.
#![expect(clippy::panic, clippy::unwrap_used, reason = "a test ends at the first surprise")]

mod changelog;
mod engines;
mod laws;
mod many_versions;
mod models;
mod plans;
mod table;
mod worked_aggregation;
mod worked_first_row;
mod worked_partial_update;

use std::sync::Arc;

use paimon_format::kv::{KvSchema, SequenceOrder};
use paimon_format::types::{DataField, DataType, TypeKind};

/// A table `k` (the key), `a` INT, `s` STRING, `score` BIGINT.
fn schema(key: TypeKind, sequence: Option<SequenceOrder>) -> Arc<KvSchema> {
    let fields = vec![
        DataField::new(0, "k", DataType::not_null(key)),
        DataField::new(1, "a", DataType::nullable(TypeKind::Int)),
        DataField::new(2, "s", DataType::nullable(TypeKind::VarChar(i32::MAX as u32))),
        DataField::new(3, "score", DataType::nullable(TypeKind::BigInt)),
    ];
    Arc::new(KvSchema::new(0, fields, vec![0], sequence).unwrap())
}

/// Every kind of key, and a sequence field in both directions.
fn schemas() -> Vec<Arc<KvSchema>> {
    let sequence = |descending| {
        Some(SequenceOrder {
            columns: vec![1],
            descending,
        })
    };
    vec![
        schema(TypeKind::Int, None),
        schema(TypeKind::BigInt, sequence(false)),
        schema(TypeKind::VarChar(40), None),
        schema(TypeKind::VarChar(40), sequence(true)),
    ]
}
