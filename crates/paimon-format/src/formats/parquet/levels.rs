//! Definition and repetition levels of INT96 columns, for which the Parquet library has no Arrow writer.

use arrow_array::cast::AsArray;
use arrow_array::types::TimestampNanosecondType;
use arrow_array::{Array, ArrayRef};
use arrow_schema::{DataType as ArrowType, Field};
use parquet::data_type::Int96;

use super::int96::int96;

/// The way from a column down to a leaf: one step a level of nesting.
#[derive(Clone, Debug)]
pub(super) struct LeafPath {
    steps: Vec<Step>,
    pub(super) is_int96: bool,
}

#[derive(Clone, Copy, Debug)]
enum Step {
    /// Into a field of a row.
    Field { index: usize, nullable: bool },
    /// Into the elements of an array.
    Element { nullable: bool },
    /// Into the keys (0) or the values (1) of a map.
    Entry { index: usize, nullable: bool },
    /// The leaf itself.
    Leaf { nullable: bool },
}

/// The leaves of a column, in the order of Parquet's columns.
pub(super) fn leaf_paths(field: &Field) -> Vec<LeafPath> {
    fn collect(field: &Field, steps: &mut Vec<Step>, into: &mut Vec<LeafPath>) {
        let nullable = field.is_nullable();
        let mut child = |step: Step, field: &Field, into: &mut Vec<LeafPath>| {
            steps.push(step);
            collect(field, steps, into);
            steps.pop();
        };
        match field.data_type() {
            ArrowType::List(element) => child(Step::Element { nullable }, element, into),
            ArrowType::Map(entries, _) => {
                if let ArrowType::Struct(pair) = entries.data_type() {
                    for (index, field) in pair.iter().enumerate() {
                        child(Step::Entry { index, nullable }, field, into);
                    }
                }
            }
            ArrowType::Struct(fields) => {
                for (index, field) in fields.iter().enumerate() {
                    child(Step::Field { index, nullable }, field, into);
                }
            }
            flat => {
                steps.push(Step::Leaf { nullable });
                into.push(LeafPath {
                    steps: steps.clone(),
                    is_int96: matches!(flat, ArrowType::Timestamp(arrow_schema::TimeUnit::Nanosecond, _)),
                });
                steps.pop();
            }
        }
    }
    let mut paths = Vec::new();
    collect(field, &mut Vec::new(), &mut paths);
    paths
}

/// An INT96 column chunk that is collected until its row group ends.
#[derive(Debug, Default)]
pub(super) struct Int96Column {
    pub(super) values: Vec<Int96>,
    pub(super) definition: Vec<i16>,
    pub(super) repetition: Vec<i16>,
}

impl Int96Column {
    /// Appends the rows of a column whose leaf is at `path`. `false`: the column has another shape.
    #[must_use]
    pub(super) fn append(&mut self, column: &ArrayRef, path: &LeafPath) -> bool {
        (0..column.len()).all(|row| self.value(column, &path.steps, row, 0, 0, 0).is_some())
    }

    /// Bytes in memory.
    pub(super) fn memory_size(&self) -> usize {
        self.values.len() * size_of::<Int96>() + (self.definition.len() + self.repetition.len()) * size_of::<i16>()
    }

    /// One value: `definition` is the level if it is null here, `repetition` that of its first entry, `depth` the lists entered.
    fn value(
        &mut self,
        array: &ArrayRef,
        steps: &[Step],
        i: usize,
        definition: i16,
        repetition: i16,
        depth: i16,
    ) -> Option<()> {
        let (step, rest) = steps.split_first()?;
        let nullable = match *step {
            Step::Field { nullable, .. }
            | Step::Element { nullable }
            | Step::Entry { nullable, .. }
            | Step::Leaf { nullable } => nullable,
        };
        if nullable && array.is_null(i) {
            self.absent(definition, repetition);
            return Some(());
        }
        let definition = definition + i16::from(nullable);
        match *step {
            Step::Leaf { .. } => {
                let values = array.as_primitive_opt::<TimestampNanosecondType>()?;
                self.values.push(int96(values.value(i)));
                self.absent(definition, repetition);
                Some(())
            }
            Step::Field { index, .. } => {
                let child = array.as_struct_opt()?.columns().get(index)?;
                self.value(child, rest, i, definition, repetition, depth)
            }
            Step::Element { .. } => {
                let list = array.as_list_opt::<i32>()?;
                let offsets = list.value_offsets().get(i..i + 2)?;
                self.entries(list.values(), rest, offsets, definition, repetition, depth)
            }
            Step::Entry { index, .. } => {
                let map = array.as_map_opt()?;
                let offsets = map.value_offsets().get(i..i + 2)?;
                let child = map.entries().columns().get(index)?;
                self.entries(child, rest, offsets, definition, repetition, depth)
            }
        }
    }

    fn entries(
        &mut self,
        child: &ArrayRef,
        rest: &[Step],
        offsets: &[i32],
        definition: i16,
        repetition: i16,
        depth: i16,
    ) -> Option<()> {
        let &[start, end] = offsets else { return None };
        if start == end {
            self.absent(definition, repetition);
        }
        for i in start..end {
            let repetition = if i == start { repetition } else { depth + 1 };
            self.value(
                child,
                rest,
                usize::try_from(i).ok()?,
                definition + 1,
                repetition,
                depth + 1,
            )?;
        }
        Some(())
    }

    fn absent(&mut self, definition: i16, repetition: i16) {
        self.definition.push(definition);
        self.repetition.push(repetition);
    }
}
