//! Which files of a run may hold which keys.

use std::cmp::Ordering;
use std::ops::Range;
use std::sync::Arc;

use paimon_format::FormatError;
use paimon_format::kv::{KeyCodec, Keys, KvSchema};
use paimon_format::meta::DataFileMeta;
use paimon_format::row::BinaryRow;
use paimon_format::types::{DataField, DataType, Datum, array_from_datums};

/// The key bounds of a run's files, in key order, normalized.
#[derive(Debug)]
pub(crate) struct Bounds {
    min: Keys,
    max: Keys,
}

impl Bounds {
    /// Errors: `Corrupt`, naming the file whose bounds are no keys.
    pub(crate) fn new(schema: &KvSchema, codec: &KeyCodec, files: &[Arc<DataFileMeta>]) -> Result<Self, FormatError> {
        Ok(Self {
            min: keys_of(schema, codec, files, |file| &file.min_key)?,
            max: keys_of(schema, codec, files, |file| &file.max_key)?,
        })
    }

    /// For each file that may hold some of the keys (`pending`: their numbers, ascending) its position, and which of `pending`. Files do not
    /// overlap, so a key has one file at most; that is found by binary search.
    pub(crate) fn candidates(&self, keys: &Keys, pending: &[u32]) -> Vec<(usize, Range<usize>)> {
        let mut candidates = Vec::new();
        let (mut file, mut start) = (0, 0);
        while let Some(&key) = pending.get(start) {
            // The first file that does not end before the key.
            file = self.max.lower_bound(file, keys, key as usize);
            if file == self.max.len() {
                break;
            }
            let rest = pending.get(start..).unwrap_or_default();
            let is_before = |&key: &u32| keys.compare(key as usize, &self.min, file) == Ordering::Less;
            let is_within = |&key: &u32| keys.compare(key as usize, &self.max, file) != Ordering::Greater;
            let first = start + rest.partition_point(is_before);
            let end = start + rest.partition_point(is_within);
            if first < end {
                candidates.push((file, first..end));
            }
            start = end;
        }
        candidates
    }
}

fn keys_of(
    schema: &KvSchema,
    codec: &KeyCodec,
    files: &[Arc<DataFileMeta>],
    bound: impl Fn(&DataFileMeta) -> &BinaryRow,
) -> Result<Keys, FormatError> {
    let fields: Vec<&DataField> = schema.key_fields().collect();
    let types: Vec<DataType> = fields.iter().map(|field| field.data_type.clone()).collect();
    let mut columns: Vec<Vec<Datum>> = vec![Vec::with_capacity(files.len()); fields.len()];
    for file in files {
        let values = bound(file)
            .to_datums(&types)
            .map_err(|error| FormatError::corrupt(&file.file_name, format_args!("its key bounds: {error}")))?;
        for (column, value) in columns.iter_mut().zip(values) {
            column.push(value);
        }
    }
    let arrays = fields
        .iter()
        .zip(&columns)
        .map(|(field, values)| array_from_datums(field, values));
    codec.keys_of_columns(&arrays.collect::<Result<Vec<_>, _>>()?)
}

#[cfg(test)]
mod tests {
    use paimon_format::types::TypeKind;
    use paimon_lsm::testing::keyed_file;

    use super::*;

    #[test]
    fn keys_go_to_the_file_that_spans_them() {
        let field = DataField::new(0, "k", DataType::not_null(TypeKind::Int));
        let schema = Arc::new(KvSchema::new(0, vec![field.clone()], vec![0], None).unwrap());
        let codec = KeyCodec::new(&schema).unwrap();
        let keys = |values: &[i32]| {
            let values: Vec<Datum> = values.iter().map(|value| Datum::Int32(*value)).collect();
            codec
                .keys_of_columns(&[array_from_datums(&field, &values).unwrap()])
                .unwrap()
        };
        let files: Vec<_> = [(0, 9), (20, 29), (30, 30)]
            .into_iter()
            .map(|bounds| Arc::new(keyed_file("f", 1, bounds, 1)))
            .collect();
        let bounds = Bounds::new(&schema, &codec, &files).unwrap();
        let asked = keys(&[-1, 0, 5, 9, 10, 15, 25, 30, 31, 99]);
        let all: Vec<u32> = (0..10).collect();
        assert_eq!(bounds.candidates(&asked, &all), [(0, 1..4), (1, 6..7), (2, 7..8)]);
        assert_eq!(bounds.candidates(&asked, &[0, 4, 6]), [(1, 2..3)]);
        assert_eq!(bounds.candidates(&asked, &[]), []);
        let none = Bounds::new(&schema, &codec, &[]).unwrap();
        assert_eq!(none.candidates(&asked, &all), []);
    }
}
