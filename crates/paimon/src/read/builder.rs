//! What a read wants.

use std::sync::Arc;

use paimon_format::predicate::Predicate;
use paimon_format::types::DataField;
use paimon_manifest::snapshot::TimeTravel;

use crate::error::{Error, Result};
use crate::partition::Selection;
use crate::read::{TableRead, TableScan};
use crate::table::Table;

/// Collects what a read wants; makes its scan and its readers, which may run in different processes.
///
/// Source: `org.apache.paimon.table.source.ReadBuilder`.
#[derive(Clone, Debug)]
pub struct ReadBuilder {
    pub(crate) table: Table,
    /// Positions in the table's fields.
    pub(crate) columns: Arc<[usize]>,
    fields: Arc<[DataField]>,
    pub(crate) filter: Option<Arc<Predicate>>,
    pub(super) limit: Option<usize>,
    pub(super) travel: Option<TimeTravel>,
    pub(crate) selection: Selection,
}

impl ReadBuilder {
    pub(crate) fn new(table: Table) -> Self {
        let fields: Arc<[DataField]> = table.schema().fields.as_slice().into();
        Self {
            columns: (0..fields.len()).collect(),
            fields,
            filter: None,
            limit: None,
            travel: None,
            selection: Selection::all(),
            table,
        }
    }

    /// Only these columns, in this order.
    ///
    /// Errors: `Invalid` naming a column that the table does not have, or that is given twice.
    pub fn projection<S: AsRef<str>>(self, names: &[S]) -> Result<Self> {
        let mut columns = Vec::with_capacity(names.len());
        for name in names {
            let name = name.as_ref();
            let Some(position) = self.table.schema().position(name) else {
                let known: Vec<&str> = self
                    .table
                    .schema()
                    .fields
                    .iter()
                    .map(|field| field.name.as_str())
                    .collect();
                return Err(Error::invalid(format!(
                    "column {name}: the table has no such column; it has {}",
                    known.join(", ")
                )));
            };
            if columns.contains(&position) {
                return Err(Error::invalid(format!("column {name} is asked for twice")));
            }
            columns.push(position);
        }
        let fields = columns
            .iter()
            .filter_map(|&position| self.table.schema().fields.get(position));
        Ok(Self {
            fields: fields.cloned().collect(),
            columns: columns.into(),
            ..self
        })
    }

    /// Only rows that pass the filter, which sees them merged. Several filters must all be passed.
    ///
    /// A condition on key or partition columns saves reading; one on other columns saves it where no file overlaps another.
    #[must_use]
    pub fn filter(self, filter: Predicate) -> Self {
        let filter = match self.filter.as_deref() {
            Some(earlier) => earlier.clone().and(filter),
            None => filter,
        };
        Self {
            filter: Some(Arc::new(filter)),
            ..self
        }
    }

    /// At most so many rows. Which ones is not said.
    #[must_use]
    pub fn limit(self, rows: usize) -> Self {
        Self {
            limit: Some(rows),
            ..self
        }
    }

    /// Another snapshot than the one that the table's options (`scan.snapshot-id`, …) name, or the latest.
    #[must_use]
    pub fn time_travel(self, travel: TimeTravel) -> Self {
        Self {
            travel: Some(travel),
            ..self
        }
    }

    /// Only these partitions and buckets.
    #[must_use]
    pub fn select(self, selection: Selection) -> Self {
        Self { selection, ..self }
    }

    /// The columns of the batches that come out.
    pub fn fields(&self) -> &[DataField] {
        &self.fields
    }

    /// The scan, which makes the plan.
    pub fn new_scan(&self) -> TableScan {
        TableScan::new(self.clone())
    }

    /// The reader of splits.
    pub fn new_read(&self) -> TableRead {
        TableRead::new(self.clone())
    }
}
