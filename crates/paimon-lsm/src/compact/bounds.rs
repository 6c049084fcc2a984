//! Part of a bucket's keys.

use paimon_format::kv::{KeyCodec, KeyRange, Keys, KvBatch, KvSchema};
use paimon_format::row::BinaryRow;
use paimon_format::types::{DataType, array_from_datums};
use serde::{Deserialize, Serialize};

use crate::LsmError;

/// Keys from one up to, but without, another. Bounds are trimmed primary keys as file metadata has them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeyBounds {
    /// The first key; `None`: from the smallest.
    pub from: Option<BinaryRow>,
    /// The first key that is not wanted any more; `None`: to the largest.
    pub to: Option<BinaryRow>,
}

impl KeyBounds {
    /// Whether every key is in it.
    pub fn is_all(&self) -> bool {
        self.from.is_none() && self.to.is_none()
    }

    /// What a read may leave out: rows at `to` may still come.
    ///
    /// Errors: `Corrupt` when a bound is no key.
    pub(crate) fn range(&self, schema: &KvSchema) -> Result<KeyRange, LsmError> {
        let types: Vec<DataType> = schema.key_fields().map(|field| field.data_type.clone()).collect();
        let datums = |bound: &Option<BinaryRow>| bound.as_ref().map(|key| key.to_datums(&types)).transpose();
        Ok(KeyRange {
            min: datums(&self.from)?,
            max: datums(&self.to)?,
        })
    }
}

/// Bounds that batches are cut at.
#[derive(Clone, Debug, Default)]
pub(crate) struct KeyCut {
    from: Option<Keys>,
    to: Option<Keys>,
}

impl KeyCut {
    /// Errors: `Corrupt` when a bound is no key.
    pub(crate) fn new(bounds: &KeyBounds, schema: &KvSchema) -> Result<Self, LsmError> {
        let codec = KeyCodec::new(schema)?;
        let range = bounds.range(schema)?;
        let keys = |values: Option<Vec<_>>| -> Result<Option<Keys>, LsmError> {
            let Some(values) = values else { return Ok(None) };
            let columns = schema.key_fields().zip(&values);
            let columns = columns.map(|(field, value)| array_from_datums(field, [value]));
            Ok(Some(codec.keys_of_columns(&columns.collect::<Result<Vec<_>, _>>()?)?))
        };
        Ok(Self {
            from: keys(range.min)?,
            to: keys(range.max)?,
        })
    }

    /// The rows within, not copied, and whether later batches of the run have none.
    pub(crate) fn cut(&self, batch: &KvBatch) -> (KvBatch, bool) {
        let len = batch.len();
        let position = |bound: &Option<Keys>, or| match bound {
            Some(bound) => batch.keys.lower_bound(0, bound, 0),
            None => or,
        };
        let (start, end) = (position(&self.from, 0), position(&self.to, len));
        (batch.slice(start, end.saturating_sub(start)), end < len)
    }
}
