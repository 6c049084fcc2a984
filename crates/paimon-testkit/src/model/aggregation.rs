//! `aggregation`.

use paimon_format::options::Options;
use paimon_format::types::{DataField, Datum, RowKind};

use super::Row;
use super::functions::{Accumulator, Function};

/// A function for each column.
#[derive(Debug)]
pub(super) struct Aggregation {
    functions: Vec<Function>,
    remove_on_delete: bool,
}

impl Aggregation {
    pub(super) fn new(
        fields: &[DataField],
        key: &[usize],
        sequence: &[usize],
        options: &Options,
    ) -> Result<Self, String> {
        let function = |(position, field): (usize, &DataField)| {
            let own = options.get(&format!("fields.{}.aggregate-function", field.name));
            let name = own.or_else(|| options.get("fields.default-aggregate-function"));
            match (key.contains(&position), sequence.contains(&position)) {
                (true, _) => Function::new("primary-key", field, options),
                (_, true) => Function::new("last_value", field, options),
                _ => Function::new(name.unwrap_or("last_non_null_value"), field, options),
            }
        };
        Ok(Self {
            functions: fields.iter().enumerate().map(function).collect::<Result<_, _>>()?,
            remove_on_delete: options.get("aggregation.remove-record-on-delete") == Some("true"),
        })
    }

    pub(super) fn merge(&self, versions: &[&Row]) -> Result<Row, String> {
        let fresh = || vec![Accumulator::default(); self.functions.len()];
        let mut accumulators = fresh();
        let mut removed = None;
        for (kind, values) in versions {
            if self.remove_on_delete && *kind == RowKind::Delete {
                removed = Some(values.clone());
                accumulators = fresh();
                continue;
            }
            removed = None;
            for ((function, accumulator), value) in self.functions.iter().zip(&mut accumulators).zip(values) {
                match kind.is_add() {
                    true => function.add(accumulator, value)?,
                    false => function.retract(accumulator, value)?,
                }
            }
        }
        Ok(match removed {
            Some(values) => (RowKind::Delete, values),
            None => (
                RowKind::Insert,
                accumulators
                    .into_iter()
                    .map(|accumulator| accumulator.value)
                    .collect::<Vec<Datum>>(),
            ),
        })
    }
}
