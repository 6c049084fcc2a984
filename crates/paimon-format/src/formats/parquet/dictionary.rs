//! Which columns are written without a dictionary.

use std::collections::HashSet;
use std::hash::Hash;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef};
use arrow_schema::DataType as ArrowType;

/// So many rows of a row group's first batch decide; with fewer a dictionary is tried, unless they are more than it holds.
const SAMPLE_ROWS: usize = 8192;
/// With fewer than one in so many values repeated there are hundreds of thousands of distinct ones, more than a dictionary page holds.
const ONE_REPEATED_IN: usize = 100;

/// Whether the values of a column, by its first rows, hardly repeat: a dictionary would be filled, then given up. Only flat columns are
/// judged. `dictionary_bytes`: what a dictionary may hold.
///
/// Source: `org.apache.parquet.column.values.fallback.FallbackValuesWriter`, which decides after the first page.
pub(super) fn hardly_repeats(column: &ArrayRef, dictionary_bytes: usize) -> bool {
    let is_long = column.len() >= SAMPLE_ROWS;
    (is_long && are_distinct(&sample(column))) || overfills(column, dictionary_bytes)
}

/// Whether the first rows of a column are more than a dictionary may hold, and hardly repeat. A single wide value in it would be held by
/// every reader of the row group.
pub(super) fn overfills(column: &ArrayRef, dictionary_bytes: usize) -> bool {
    let sample = sample(column);
    let bytes = sample.to_data().get_slice_memory_size();
    bytes.is_ok_and(|bytes| bytes > dictionary_bytes) && are_distinct(&sample)
}

fn sample(column: &ArrayRef) -> ArrayRef {
    column.slice(0, column.len().min(SAMPLE_ROWS))
}

fn are_distinct(sample: &ArrayRef) -> bool {
    let most = sample.len() / ONE_REPEATED_IN;
    match sample.data_type() {
        ArrowType::Utf8 => at_most_repeated(sample.as_string::<i32>().iter(), most),
        ArrowType::Binary => at_most_repeated(sample.as_binary::<i32>().iter(), most),
        other => other.primitive_width().is_some_and(|width| {
            let data = sample.to_data();
            let bytes = data.buffers().first().map(|buffer| buffer.as_slice());
            let bytes = bytes.and_then(|bytes| bytes.get(data.offset() * width..));
            bytes.is_some_and(|bytes| at_most_repeated(bytes.chunks_exact(width).take(sample.len()), most))
        }),
    }
}

/// Whether at most so many of the values came before. Looks no further than it must: most columns repeat soon.
fn at_most_repeated<T: Copy + Hash + Eq>(values: impl Iterator<Item = T>, most: usize) -> bool {
    let mut seen = HashSet::with_capacity(SAMPLE_ROWS);
    let repeated = values.filter(|value| !seen.insert(*value));
    repeated.take(most + 1).count() <= most
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::{BooleanArray, Int32Array, Int64Array, RecordBatch, StringArray};

    use super::*;
    use crate::formats::FileEncoder;
    use crate::formats::parquet::footer::footer_of;
    use crate::formats::parquet::settings::ParquetSettings;
    use crate::formats::parquet::write::ParquetEncoder;
    use crate::types::{DataField, DataType, TypeKind, arrow_schema};

    const MIB: usize = 1 << 20;

    #[test]
    fn long_columns_of_distinct_values_alone_go_without() {
        let rows = || 0..3 * SAMPLE_ROWS as i64;
        let distinct: ArrayRef = Arc::new(Int64Array::from_iter_values(rows()));
        assert!(hardly_repeats(&distinct, MIB));
        assert!(hardly_repeats(&distinct.slice(SAMPLE_ROWS, SAMPLE_ROWS), MIB));
        assert!(
            !hardly_repeats(&distinct.slice(0, SAMPLE_ROWS - 1), MIB),
            "too few to tell"
        );
        let texts: ArrayRef = Arc::new(StringArray::from_iter_values(rows().map(|row| format!("text {row}"))));
        assert!(hardly_repeats(&texts, MIB));
        let few: ArrayRef = Arc::new(Int32Array::from_iter_values(rows().map(|row| row as i32 % 5000)));
        assert!(!hardly_repeats(&few, MIB));
        let nulls: ArrayRef = Arc::new(Int64Array::from_iter(rows().map(|row| (row % 2 == 0).then_some(row))));
        assert!(!hardly_repeats(&nulls, MIB), "nulls repeat");
        let wide = |length: usize| -> ArrayRef {
            Arc::new(StringArray::from_iter_values(
                (0..20).map(|row| format!("{row}{}", "x".repeat(length))),
            ))
        };
        assert!(
            hardly_repeats(&wide(MIB / 10), MIB),
            "a dictionary does not hold even the first rows"
        );
        assert!(!hardly_repeats(&wide(MIB / 100), MIB));
        let flags: ArrayRef = Arc::new(BooleanArray::from_iter(rows().map(|row| Some(row > 9))));
        assert!(!hardly_repeats(&flags, MIB));
    }

    /// Whether each column of a file has a dictionary: an INT that repeats, and two whose values are distinct.
    fn dictionaries(settings: &ParquetSettings) -> Vec<bool> {
        let field = |(id, name): (i32, &str)| DataField::new(id, name, DataType::not_null(TypeKind::Int));
        let fields: Vec<DataField> = (0..).zip(["few", "all", "asked"]).map(field).collect();
        let column =
            |modulo: i32| Arc::new(Int32Array::from_iter_values((0..10_000).map(|row| row % modulo))) as ArrayRef;
        let columns = vec![column(10), column(i32::MAX), column(i32::MAX)];
        let batch = RecordBatch::try_new(Arc::new(arrow_schema(&fields).unwrap()), columns).unwrap();
        let mut encoder = Box::new(ParquetEncoder::new(&fields, settings).unwrap());
        encoder.write(&batch).unwrap();
        let bytes = encoder.finish().unwrap().bytes;
        let footer = footer_of("memory", &bytes).unwrap();
        let columns = footer.metadata.row_group(0).columns().iter();
        columns
            .map(|column| column.dictionary_page_offset().is_some())
            .collect()
    }

    /// Per row group of a file of one text column, written in these batches: its rows, and whether it has a dictionary.
    fn row_groups(batches: &[Vec<String>], settings: &ParquetSettings) -> Vec<(i64, bool)> {
        let text = DataField::new(0, "text", DataType::not_null(TypeKind::VarChar(1 << 30)));
        let schema = Arc::new(arrow_schema(std::slice::from_ref(&text)).unwrap());
        let mut encoder = Box::new(ParquetEncoder::new(&[text], settings).unwrap());
        for texts in batches {
            let column = Arc::new(StringArray::from_iter_values(texts)) as ArrayRef;
            let batch = RecordBatch::try_new(Arc::clone(&schema), vec![column]).unwrap();
            encoder.write(&batch).unwrap();
        }
        let bytes = encoder.finish().unwrap().bytes;
        let footer = footer_of("memory", &bytes).unwrap();
        let groups = footer.metadata.row_groups().iter();
        groups
            .map(|group| (group.num_rows(), group.column(0).dictionary_page_offset().is_some()))
            .collect()
    }

    #[test]
    fn a_wide_value_after_narrow_ones_is_not_put_into_their_dictionary() {
        let narrow = || (0..100).map(|row| format!("narrow {row}")).collect::<Vec<_>>();
        let wide = || vec!["w".repeat(2 * MIB)];
        let mut settings = ParquetSettings::default();
        let batches = [narrow(), narrow(), wide(), wide(), narrow()];
        assert_eq!(row_groups(&batches, &settings), [(200, true), (102, false)]);
        // What repeats is held once.
        let repeated = vec!["w".repeat(2 * MIB); 3];
        assert_eq!(row_groups(&[narrow(), repeated], &settings), [(103, true)]);
        settings.dictionary.columns.push(("text".to_owned(), true));
        assert_eq!(row_groups(&batches, &settings), [(302, true)]);
        settings.dictionary.columns[0].1 = false;
        assert_eq!(row_groups(&batches, &settings), [(302, false)]);
    }

    #[test]
    fn a_dictionary_that_is_asked_for_is_made() {
        let mut settings = ParquetSettings::default();
        assert_eq!(dictionaries(&settings), [true, false, false]);
        settings.dictionary.columns.push(("asked".to_owned(), true));
        assert_eq!(dictionaries(&settings), [true, false, true]);
        settings.dictionary.default = false;
        assert_eq!(dictionaries(&settings), [false, false, true]);
    }
}
