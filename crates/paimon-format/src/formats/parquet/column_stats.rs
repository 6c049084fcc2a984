//! File statistics from the statistics of column chunks.
//!
//! Source: `org.apache.paimon.format.parquet.ParquetSimpleStatsExtractor`.

use parquet::file::statistics::Statistics;

use super::bounds::chunk_bounds;
use crate::formats::ColumnStats;
use crate::formats::stats::Bounds;
use crate::types::{Datum, TypeKind};

/// The statistics of one top-level column, row group by row group.
pub(super) struct LeafStats {
    kind: TypeKind,
    bounds: Bounds,
    null_count: i64,
}

impl LeafStats {
    pub(super) fn new(kind: &TypeKind) -> Self {
        Self {
            kind: kind.clone(),
            bounds: Bounds::Empty,
            null_count: 0,
        }
    }

    /// Adds a column chunk. `nan`: it has a NaN, which the chunk's own bounds leave out and Java puts above all.
    pub(super) fn add(&mut self, chunk: Option<&Statistics>, nan: bool) {
        let Some(chunk) = chunk else {
            self.bounds = Bounds::Unknown;
            return;
        };
        self.add_nulls(
            chunk
                .null_count_opt()
                .and_then(|count| usize::try_from(count).ok())
                .unwrap_or(0),
        );
        let largest = match chunk {
            Statistics::Float(_) if nan => Some(Datum::Float32(f32::NAN)),
            Statistics::Double(_) if nan => Some(Datum::Float64(f64::NAN)),
            _ => None,
        };
        match (chunk_bounds(&self.kind, chunk), largest) {
            (Some((min, max)), largest) => self.bounds.widen(min, largest.unwrap_or(max)),
            (None, Some(nan)) => self.bounds.widen(nan.clone(), nan),
            // All null: nothing to widen by.
            (None, None) if chunk.min_bytes_opt().is_none() => {}
            (None, None) => self.bounds = Bounds::Unknown,
        }
    }

    /// Adds a column chunk of which only the nulls are known.
    pub(super) fn add_nulls(&mut self, count: usize) {
        self.null_count = self.null_count.saturating_add(i64::try_from(count).unwrap_or(i64::MAX));
    }

    /// Nested columns have no statistics at all.
    pub(super) fn finish(self) -> ColumnStats {
        match self.kind {
            TypeKind::Array(_)
            | TypeKind::Map(..)
            | TypeKind::Multiset(_)
            | TypeKind::Row(_)
            | TypeKind::Variant
            | TypeKind::Vector(..) => ColumnStats::default(),
            _ => ColumnStats {
                bounds: self.bounds.into_option(),
                null_count: Some(self.null_count),
            },
        }
    }
}
