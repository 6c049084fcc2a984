//! What kernels that compute share: a block's versions in one numbering, columns merged over them, and the rows that are made.

use std::cell::OnceCell;
use std::ops::Range;
use std::sync::Arc;

use arrow_array::{Array, ArrayRef, Int8Array, RecordBatch, new_null_array};
use arrow_select::interleave::interleave;
use paimon_format::kv::{KvSchema, VALUE_OFFSET};
use paimon_format::types::{DataField, RowKind};

use super::checks::NoWayBack;
use crate::MergeError;
use crate::aggregate::{Aggregation, Aggregator, Selected, Selection, Step, ValueCheck};
use crate::kernel::MergedRows;
use crate::plan::{KeyGroups, RowRef};

/// The versions of a block, numbered from 0. What an open group left behind is version 0 and the first of the first group.
pub(super) struct Flat<'a> {
    groups: KeyGroups<'a>,
    carried: Option<&'a [ArrayRef]>,
    kinds: Vec<&'a [i8]>,
}

impl<'a> Flat<'a> {
    pub(super) fn new(groups: &KeyGroups<'a>, carried: Option<&'a [ArrayRef]>) -> Self {
        Self {
            groups: *groups,
            carried,
            kinds: groups.sources.iter().map(|source| source.kinds()).collect(),
        }
    }

    /// Groups that end in this block.
    pub(super) fn closed(&self) -> usize {
        self.groups.len() - usize::from(self.groups.open)
    }

    pub(super) fn len(&self) -> usize {
        self.groups.rows.len() + self.before()
    }

    fn before(&self) -> usize {
        usize::from(self.carried.is_some())
    }

    /// The versions of each group, the open one included.
    pub(super) fn ranges(&self) -> impl Iterator<Item = Range<u32>> + use<'_, 'a> {
        let before = self.before() as u32;
        let mut start = 0;
        self.groups.ends.iter().map(move |&end| {
            let range = start..end + before;
            start = end + before;
            range
        })
    }

    /// Whether a version is what an open group left.
    #[inline]
    pub(super) fn is_carried(&self, version: u32) -> bool {
        version == 0 && self.carried.is_some()
    }

    /// Where a version is in the sources; what was carried is behind them.
    #[inline]
    fn at(&self, version: u32) -> (usize, usize) {
        match (version as usize).checked_sub(self.before()) {
            Some(row) => {
                let at = self.groups.rows[row];
                (at.batch as usize, at.row as usize)
            }
            None => (self.groups.sources.len(), 0),
        }
    }

    /// The kind of a version that is not carried. Constructors of batches have seen that kinds are valid.
    #[inline]
    pub(super) fn kind(&self, version: u32) -> RowKind {
        let (batch, row) = self.at(version);
        let kind = self.kinds.get(batch).and_then(|kinds| kinds.get(row));
        kind.and_then(|&kind| RowKind::from_byte(kind))
            .unwrap_or(RowKind::Insert)
    }

    /// A column of every source, and of what was carried.
    fn arrays(&self, column: usize) -> Vec<&dyn Array> {
        let sources = self.groups.sources.iter();
        let sources = sources.map(|source| source.columns.column(column).as_ref());
        let carried = self.carried.and_then(|columns| columns.get(column));
        sources.chain(carried.map(|column| column.as_ref())).collect()
    }

    /// Which versions are null in a column.
    pub(super) fn nulls(&self, column: usize) -> Nulls<'_> {
        let arrays = self.arrays(column);
        Nulls {
            any: arrays.iter().any(|array| array.null_count() > 0),
            arrays,
            flat: self,
        }
    }

    /// A column's values at positions that [`Steps::positions`] gave.
    fn gather_at(&self, column: usize, positions: &[(usize, usize)]) -> Result<ArrayRef, MergeError> {
        interleave(&self.arrays(column), positions).map_err(MergeError::internal)
    }

    /// A column's values of some versions; `None` is null.
    pub(super) fn gather(
        &self,
        column: usize,
        versions: impl Iterator<Item = Option<u32>>,
    ) -> Result<ArrayRef, MergeError> {
        self.gather_with(column, None, versions.map(|version| version.map(Picked::Version)))
    }

    /// As [`gather`](Self::gather), some of the values being computed ones.
    fn gather_with(
        &self,
        column: usize,
        computed: Option<&ArrayRef>,
        picks: impl Iterator<Item = Option<Picked>>,
    ) -> Result<ArrayRef, MergeError> {
        let mut arrays = self.arrays(column);
        let Some(data_type) = arrays.first().map(|array| array.data_type().clone()) else {
            return Err(MergeError::internal("a block without batches"));
        };
        let (null, null_at) = (new_null_array(&data_type, 1), arrays.len());
        arrays.push(null.as_ref());
        arrays.extend(computed.map(|array| array.as_ref()));
        let picks: Vec<(usize, usize)> = picks
            .map(|pick| match pick {
                None => (null_at, 0),
                Some(Picked::Version(version)) => self.at(version),
                Some(Picked::Computed(row)) => (null_at + 1, row as usize),
            })
            .collect();
        interleave(&arrays, &picks).map_err(MergeError::internal)
    }
}

/// Where a value comes from.
#[derive(Clone, Copy)]
enum Picked {
    Version(u32),
    Computed(u32),
}

/// Which versions are null in a column.
pub(super) struct Nulls<'a> {
    flat: &'a Flat<'a>,
    arrays: Vec<&'a dyn Array>,
    any: bool,
}

impl Nulls<'_> {
    #[inline]
    pub(super) fn is_null(&self, version: u32) -> bool {
        if !self.any {
            return false;
        }
        let (batch, row) = self.flat.at(version);
        self.arrays[batch].is_null(row)
    }
}

/// Which versions count for a column, and how: an entry a value, and where each group's end, the open group included.
#[derive(Clone, Debug, Default)]
pub(super) struct Steps {
    pub(super) versions: Vec<u32>,
    pub(super) steps: Vec<Step>,
    pub(super) ends: Vec<u32>,
    /// The first group goes on from what was carried.
    pub(super) continued: bool,
    /// Where the versions are: the same for all columns.
    positions: OnceCell<Vec<(usize, usize)>>,
}

impl Steps {
    fn positions(&self, flat: &Flat<'_>) -> &[(usize, usize)] {
        self.positions
            .get_or_init(|| self.versions.iter().map(|&version| flat.at(version)).collect())
    }

    #[inline]
    pub(super) fn push(&mut self, version: u32, step: Step) {
        self.versions.push(version);
        self.steps.push(step);
    }

    pub(super) fn end_group(&mut self) {
        self.ends.push(self.versions.len() as u32);
    }

    /// Without retracts. Rows that begin as copies of them still do, as in Java.
    fn added(&self) -> Self {
        let mut added = Self {
            continued: self.continued,
            ..Self::default()
        };
        let mut start = 0;
        for &end in &self.ends {
            for entry in start..end as usize {
                if self.steps[entry] != Step::Retract {
                    added.push(self.versions[entry], self.steps[entry]);
                }
            }
            start = end as usize;
            added.end_group();
        }
        added
    }
}

/// How one column is merged, and what it knows of an open group.
#[derive(Debug)]
pub(super) struct ColumnMerge {
    rule: Rule,
    ignore_retract: bool,
    column: String,
    is_nullable: bool,
    function: String,
}

#[derive(Debug)]
enum Rule {
    /// The flag: whether an open group has seen its first value.
    Select(Selection, bool),
    Compute(Box<dyn Aggregator>),
}

/// A merged column.
pub(super) enum Merged {
    /// A version for every group, the open one included.
    Picked(Vec<Option<u32>>),
    /// A value for every closed group.
    Computed(ArrayRef),
}

impl ColumnMerge {
    pub(super) fn new(aggregation: Aggregation, ignore_retract: bool, field: &DataField, function: &str) -> Self {
        Self {
            rule: match aggregation {
                Aggregation::Select(selection) => Rule::Select(selection, false),
                Aggregation::Compute(aggregator) => Rule::Compute(aggregator),
            },
            ignore_retract,
            column: field.name.clone(),
            is_nullable: field.data_type.nullable,
            function: function.to_owned(),
        }
    }

    /// Why rows cannot be taken back from the column; `None`: they can be.
    pub(super) fn no_way_back(&self) -> Option<NoWayBack> {
        let (accepts, leaves_null) = match &self.rule {
            _ if self.ignore_retract => return None,
            Rule::Select(selection, _) => (selection.accepts_retract(), !self.is_nullable),
            Rule::Compute(aggregator) => (aggregator.accepts_retract(), false),
        };
        let (deletes_only, why) = match (accepts, leaves_null) {
            (true, false) => return None,
            (false, _) => (false, unretractable(&self.column, &self.function).to_string()),
            (true, true) => (true, self.leaves_null()),
        };
        Some(NoWayBack { deletes_only, why })
    }

    fn leaves_null(&self) -> String {
        let (column, function) = (&self.column, &self.function);
        format!(
            "column {column}: it is NOT NULL, and {function} makes it null when a -D row is taken back; fields.{column}.ignore-retract = true \
             lets it keep its value"
        )
    }

    /// Ignores retracts if they [cannot be taken back](Self::no_way_back).
    pub(super) fn keep_what_has_no_way_back(&mut self) {
        self.ignore_retract = self.ignore_retract || self.no_way_back().is_some();
    }

    /// What the column's values must be; `None`: any will do.
    pub(super) fn value_check(&self) -> Option<Arc<dyn ValueCheck>> {
        match &self.rule {
            Rule::Select(..) => None,
            Rule::Compute(aggregator) => aggregator.value_check(),
        }
    }

    pub(super) fn ignores_retract(&self) -> bool {
        self.ignore_retract
    }

    /// Merges column `column` of the batches.
    pub(super) fn merge(&mut self, flat: &Flat<'_>, column: usize, steps: &Steps) -> Result<Merged, MergeError> {
        let added;
        let steps = match self.ignore_retract {
            true => {
                added = steps.added();
                &added
            }
            false => steps,
        };
        match &mut self.rule {
            Rule::Select(selection, seen) => {
                let nulls = flat.nulls(column);
                let mut state = Selected::default();
                if steps.continued {
                    state = Selected {
                        at: (!nulls.is_null(0)).then_some(0),
                        seen: *seen,
                    };
                }
                let mut picks = Vec::with_capacity(steps.ends.len());
                let mut start = 0;
                for &end in &steps.ends {
                    for entry in start..end as usize {
                        let (version, step) = (steps.versions[entry], steps.steps[entry]);
                        state = selection
                            .step(state, version, nulls.is_null(version), step)
                            .ok_or_else(|| unretractable(&self.column, &self.function))?;
                    }
                    start = end as usize;
                    *seen = state.seen;
                    picks.push(state.at);
                    state = Selected::default();
                }
                Ok(Merged::Picked(picks))
            }
            Rule::Compute(aggregator) => {
                if !steps.continued {
                    aggregator.reset();
                }
                let values = flat.gather_at(column, steps.positions(flat))?;
                let merged = aggregator.fold(&values, &steps.steps, &steps.ends, flat.groups.open)?;
                if merged.len() != flat.closed() || merged.data_type() != values.data_type() {
                    return Err(MergeError::internal(format!(
                        "column {}: aggregate function {} made {} values of {} for {} keys of {}",
                        self.column,
                        self.function,
                        merged.len(),
                        merged.data_type(),
                        flat.closed(),
                        values.data_type()
                    )));
                }
                Ok(Merged::Computed(merged))
            }
        }
    }
}

fn unretractable(column: &str, function: &str) -> MergeError {
    MergeError::Unretractable {
        column: column.to_owned(),
        function: function.to_owned(),
    }
}

/// The rows that a block's groups become: one a closed group, and what is carried of an open one. A NOT NULL column of which no value is
/// left has that of the newest version, be it a retract: until a -U is followed by its +U, the old value stays.
pub(super) struct MadeRows<'a> {
    flat: &'a Flat<'a>,
    schema: &'a KvSchema,
    /// The version that each group's sequence number is from.
    newest: Vec<u32>,
    /// Groups that become this version, whole.
    whole: Vec<Option<u32>>,
    columns: Vec<ArrayRef>,
    carried: Vec<ArrayRef>,
}

impl<'a> MadeRows<'a> {
    /// `newest` and `whole` have an entry a group, the open one included.
    pub(super) fn new(
        flat: &'a Flat<'a>,
        schema: &'a KvSchema,
        newest: Vec<u32>,
        whole: Vec<Option<u32>>,
    ) -> Result<Self, MergeError> {
        let mut made = Self {
            flat,
            schema,
            newest,
            whole,
            columns: Vec::with_capacity(schema.fields.len() + VALUE_OFFSET),
            carried: Vec::new(),
        };
        let sequence = Merged::Picked(made.newest.iter().copied().map(Some).collect());
        made.add(0, sequence, false)?;
        // A placeholder for the kinds, which are known at the end.
        made.columns.push(Arc::new(Int8Array::from(vec![0; flat.closed()])));
        if flat.groups.open {
            made.carried.push(Arc::new(Int8Array::from(vec![0])));
        }
        Ok(made)
    }

    /// The next value column, merged.
    pub(super) fn add_column(&mut self, merged: Merged) -> Result<(), MergeError> {
        self.add(self.columns.len(), merged, true)
    }

    /// The newest version's value, in the next value column.
    pub(super) fn add_newest(&mut self) -> Result<(), MergeError> {
        let newest = Merged::Picked(self.newest.iter().copied().map(Some).collect());
        self.add(self.columns.len(), newest, true)
    }

    fn add(&mut self, column: usize, merged: Merged, is_value: bool) -> Result<(), MergeError> {
        let closed = self.flat.closed();
        let whole = |group: usize| self.whole.get(group).copied().flatten().filter(|_| is_value);
        let array = match &merged {
            Merged::Picked(picks) => {
                let pick = |group: usize| whole(group).or_else(|| picks.get(group).copied().flatten());
                match self.is_nullable(column) {
                    true => self.flat.gather(column, (0..closed).map(pick))?,
                    false => {
                        let nulls = self.flat.nulls(column);
                        let value = |group| pick(group).filter(|&version| !nulls.is_null(version));
                        let newest = |group| self.newest.get(group).copied();
                        let picks = (0..closed).map(|group| value(group).or_else(|| newest(group)));
                        self.flat.gather(column, picks)?
                    }
                }
            }
            Merged::Computed(values) if (0..closed).all(|group| whole(group).is_none()) => Arc::clone(values),
            Merged::Computed(values) => {
                let pick = |group: usize| match whole(group) {
                    Some(version) => Picked::Version(version),
                    None => Picked::Computed(group as u32),
                };
                let picks = (0..closed).map(|group| Some(pick(group)));
                self.flat.gather_with(column, Some(values), picks)?
            }
        };
        self.check_nulls(column, &array)?;
        self.columns.push(array);
        if self.flat.groups.open {
            let pick = match &merged {
                Merged::Picked(picks) => whole(closed).or_else(|| picks.get(closed).copied().flatten()),
                Merged::Computed(_) => whole(closed),
            };
            self.carried.push(self.flat.gather(column, std::iter::once(pick))?);
        }
        Ok(())
    }

    fn is_nullable(&self, column: usize) -> bool {
        let field = self.schema.arrow.fields().get(column);
        field.is_none_or(|field| field.is_nullable())
    }

    fn check_nulls(&self, column: usize, array: &ArrayRef) -> Result<(), MergeError> {
        if self.is_nullable(column) || array.null_count() == 0 {
            return Ok(());
        }
        let field = self.schema.arrow.fields().get(column);
        Err(MergeError::Value {
            column: field.map_or_else(String::new, |field| field.name().clone()),
            reason: "it is NOT NULL, but the merged value is null".to_owned(),
        })
    }

    /// The made rows with a kind for each closed group go to `out`; the columns of the open group, if there is one, are given back.
    pub(super) fn finish(
        mut self,
        kinds: &[RowKind],
        out: &mut MergedRows,
    ) -> Result<Option<Vec<ArrayRef>>, MergeError> {
        let closed = self.flat.closed();
        if closed > 0 {
            self.columns[1] = Arc::new(Int8Array::from_iter_values(kinds.iter().map(|&kind| kind as i8)));
            let made = RecordBatch::try_new(Arc::clone(&self.schema.arrow), self.columns);
            out.made = Some(made.map_err(MergeError::internal)?);
            out.reserve(closed);
            for (group, &kind) in kinds.iter().enumerate() {
                let row = RowRef {
                    batch: self.flat.groups.sources.len() as u32,
                    row: group as u32,
                };
                out.push(row, kind, group);
            }
        }
        Ok(self.flat.groups.open.then_some(self.carried))
    }
}
