//! Which rows can be wanted, by the statistics of the first key column.

use std::ops::Range;

use parquet::data_type::ByteArray;
use parquet::file::page_index::column_index::ColumnIndexMetaData;
use parquet::file::statistics::Statistics;

use super::decode::OpenFile;
use crate::formats::KeyBounds;
use crate::types::{DataField, Datum, TypeKind};

/// The row groups that can have wanted rows, each with a range of rows that covers them.
pub(super) fn wanted_rows(
    file: &OpenFile,
    fields: &[DataField],
    bounds: Option<&KeyBounds>,
) -> Vec<(usize, Range<u64>)> {
    let bounds = bounds.and_then(|bounds| LeafBounds::new(file, fields, bounds));
    let groups = (0..file.metadata.num_row_groups()).filter_map(|i| {
        let (_, rows) = file.row_group(i)?;
        let wanted = match &bounds {
            Some(bounds) => bounds.wanted(file, i, rows),
            None => 0..rows,
        };
        (wanted.start < wanted.end).then_some((i, wanted))
    });
    groups.collect()
}

/// Bounds in the physical form of a leaf column.
struct LeafBounds {
    leaf: usize,
    min: Option<Physical>,
    max: Option<Physical>,
}

/// A value as statistics hold it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Physical {
    Int(i64),
    Bytes(Vec<u8>),
}

impl LeafBounds {
    /// `None` when the column is of a type whose statistics are not looked at.
    fn new(file: &OpenFile, fields: &[DataField], bounds: &KeyBounds) -> Option<Self> {
        let field = fields.get(bounds.column)?;
        if !file.holds(field) {
            return None;
        }
        let descriptor = file.metadata.file_metadata().schema_descr();
        let leaf = (0..descriptor.num_columns()).find(|&leaf| {
            descriptor.get_column_root(leaf).name() == field.name && descriptor.get_column_root(leaf).is_primitive()
        })?;
        let physical = |value: &Option<Datum>| value.as_ref().and_then(|value| physical(value, &field.data_type.kind));
        Some(Self {
            leaf,
            min: physical(&bounds.min),
            max: physical(&bounds.max),
        })
    }

    /// Whether values between `low` and `high` can be wanted.
    fn overlaps(&self, low: Option<&Physical>, high: Option<&Physical>) -> bool {
        let below = matches!((high, &self.min), (Some(high), Some(min)) if high < min);
        let above = matches!((low, &self.max), (Some(low), Some(max)) if low > max);
        !below && !above
    }

    fn wanted(&self, file: &OpenFile, row_group: usize, rows: u64) -> Range<u64> {
        let column = file
            .metadata
            .row_groups()
            .get(row_group)
            .and_then(|group| group.columns().get(self.leaf));
        let (low, high) = column
            .and_then(|column| column.statistics())
            .map_or((None, None), chunk_bounds);
        if !self.overlaps(low.as_ref(), high.as_ref()) {
            return 0..0;
        }
        let page_index = file
            .metadata
            .column_index()
            .and_then(|index| index.get(row_group)?.get(self.leaf));
        let offsets = file
            .metadata
            .offset_index()
            .and_then(|index| index.get(row_group)?.get(self.leaf));
        let (Some(page_index), Some(offsets)) = (page_index, offsets) else {
            return 0..rows;
        };
        let locations = offsets.page_locations();
        // A column without an index (its type has no order, or a page has no bounds) has no pages to ask for either.
        let without = matches!(page_index, ColumnIndexMetaData::NONE);
        if without || page_index.num_pages() != locations.len() as u64 {
            return 0..rows;
        }
        let wanted = |page: &usize| {
            let (low, high) = page_bounds(page_index, *page);
            self.overlaps(low.as_ref(), high.as_ref())
        };
        let first_row = |page: usize| {
            locations
                .get(page)
                .map_or(rows, |location| location.first_row_index as u64)
        };
        let first = (0..locations.len()).find(wanted);
        let last = (0..locations.len()).rev().find(wanted);
        match (first, last) {
            (Some(first), Some(last)) => first_row(first)..first_row(last + 1),
            _ => 0..0,
        }
    }
}

/// A bound as the statistics of its type hold it.
fn physical(value: &Datum, kind: &TypeKind) -> Option<Physical> {
    match value {
        Datum::Int8(value) => Some(Physical::Int(i64::from(*value))),
        Datum::Int16(value) => Some(Physical::Int(i64::from(*value))),
        Datum::Int32(value) | Datum::Date(value) | Datum::Time(value) => Some(Physical::Int(i64::from(*value))),
        Datum::Int64(value) => Some(Physical::Int(*value)),
        Datum::String(value) => Some(Physical::Bytes(value.clone().into_bytes())),
        Datum::Bytes(value) => Some(Physical::Bytes(value.clone())),
        Datum::Timestamp { millis, nanos } => match kind {
            TypeKind::Timestamp(0..=3) | TypeKind::LocalZonedTimestamp(0..=3) => Some(Physical::Int(*millis)),
            TypeKind::Timestamp(4..=6) | TypeKind::LocalZonedTimestamp(4..=6) => Some(Physical::Int(
                millis.checked_mul(1000)?.checked_add(i64::from(*nanos / 1000))?,
            )),
            _ => None,
        },
        _ => None,
    }
}

fn chunk_bounds(statistics: &Statistics) -> (Option<Physical>, Option<Physical>) {
    if statistics.is_min_max_deprecated() {
        return (None, None);
    }
    let int = |value: Option<&i32>| value.map(|value| Physical::Int(i64::from(*value)));
    let long = |value: Option<&i64>| value.map(|value| Physical::Int(*value));
    let bytes = |value: Option<&ByteArray>| value.map(|value| Physical::Bytes(value.data().to_vec()));
    match statistics {
        Statistics::Int32(values) => (int(values.min_opt()), int(values.max_opt())),
        Statistics::Int64(values) => (long(values.min_opt()), long(values.max_opt())),
        Statistics::ByteArray(values) => (bytes(values.min_opt()), bytes(values.max_opt())),
        _ => (None, None),
    }
}

fn page_bounds(index: &ColumnIndexMetaData, page: usize) -> (Option<Physical>, Option<Physical>) {
    let int = |value: Option<&i32>| value.map(|value| Physical::Int(i64::from(*value)));
    let long = |value: Option<&i64>| value.map(|value| Physical::Int(*value));
    let bytes = |value: Option<&[u8]>| value.map(|value| Physical::Bytes(value.to_vec()));
    match index {
        ColumnIndexMetaData::INT32(index) => (int(index.min_value(page)), int(index.max_value(page))),
        ColumnIndexMetaData::INT64(index) => (long(index.min_value(page)), long(index.max_value(page))),
        ColumnIndexMetaData::BYTE_ARRAY(index) => (bytes(index.min_value(page)), bytes(index.max_value(page))),
        _ => (None, None),
    }
}
