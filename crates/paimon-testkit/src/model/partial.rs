//! `partial-update`.

use std::cmp::Ordering;

use paimon_format::options::Options;
use paimon_format::types::{DataField, Datum, RowKind};

use super::functions::{Accumulator, Function};
use super::{Row, positions};

/// Columns by their own orders.
#[derive(Debug)]
pub(super) struct PartialUpdate {
    columns: Vec<Column>,
    groups: Vec<Group>,
    deletes: Deletes,
}

#[derive(Debug)]
enum Column {
    /// It belongs to the primary key.
    Key,
    /// A column of no group.
    Free,
    /// A sequence field.
    Sequence,
    /// A column of the group of this number.
    Protected(usize, Option<Function>),
}

#[derive(Debug)]
struct Group {
    sequence: Vec<usize>,
    removes: bool,
}

/// What retracts do.
#[derive(Debug, PartialEq)]
enum Deletes {
    Refused,
    Ignored,
    RemoveRecord,
    Groups,
}

/// What a key is so far.
#[derive(Clone)]
struct State {
    columns: Vec<Accumulator>,
    /// The sequence fields that each group is at.
    sequences: Vec<Option<Vec<Datum>>>,
    /// There was an add since the last removal.
    live: bool,
}

impl PartialUpdate {
    pub(super) fn new(fields: &[DataField], key: &[usize], options: &Options) -> Result<Self, String> {
        let mut columns: Vec<Column> = fields.iter().map(|_| Column::Free).collect();
        let mut groups = Vec::new();
        let removing = options
            .get("partial-update.remove-record-on-sequence-group")
            .unwrap_or_default();
        let removing = positions(fields, removing)?;
        for (option, protected) in options.iter() {
            let Some(names) = option
                .strip_prefix("fields.")
                .and_then(|key| key.strip_suffix(".sequence-group"))
            else {
                continue;
            };
            let sequence = positions(fields, names)?;
            for &position in &sequence {
                columns[position] = Column::Sequence;
            }
            for position in positions(fields, protected)? {
                let field = &fields[position];
                let own = options.get(&format!("fields.{}.aggregate-function", field.name));
                let name = own.or_else(|| options.get("fields.default-aggregate-function"));
                let function = name.map(|name| Function::new(name, field, options)).transpose()?;
                columns[position] = Column::Protected(groups.len(), function);
            }
            groups.push(Group {
                removes: sequence.iter().any(|field| removing.contains(field)),
                sequence,
            });
        }
        for &position in key {
            match columns[position] {
                Column::Free => columns[position] = Column::Key,
                _ => return Err("a key column in a group".to_owned()),
            }
        }
        let is_set = |option: &str| options.get(option) == Some("true");
        let deletes = if is_set("ignore-delete") {
            Deletes::Ignored
        } else if is_set("partial-update.remove-record-on-delete") {
            Deletes::RemoveRecord
        } else if groups.is_empty() {
            Deletes::Refused
        } else {
            Deletes::Groups
        };
        Ok(Self {
            columns,
            groups,
            deletes,
        })
    }

    fn fresh(&self) -> State {
        State {
            columns: vec![Accumulator::default(); self.columns.len()],
            sequences: vec![None; self.groups.len()],
            live: false,
        }
    }

    pub(super) fn merge(&self, versions: &[&Row]) -> Result<Row, String> {
        let mut state = self.fresh();
        let mut removed: Option<Vec<Datum>> = None;
        // The first retract: if there is never an add, the result is a delete with its values.
        let mut first_retract: Option<&Vec<Datum>> = None;
        let mut inserted = false;
        for (at, (kind, values)) in versions.iter().enumerate() {
            if kind.is_add() {
                if removed.take().is_some() {
                    state = self.fresh();
                }
                self.add(&mut state, values)?;
                (inserted, state.live) = (true, true);
                continue;
            }
            first_retract = first_retract.or(Some(values));
            match self.deletes {
                Deletes::Refused => return Err("partial-update takes no retracts".to_owned()),
                Deletes::Ignored => {}
                Deletes::RemoveRecord if *kind == RowKind::Delete => removed = Some(values.clone()),
                Deletes::RemoveRecord => {}
                Deletes::Groups => {
                    let removes = (0..self.groups.len())
                        .any(|group| self.groups[group].removes && self.is_newer(&state, group, values) == Some(true));
                    match (*kind == RowKind::Delete, removes, removed.is_some()) {
                        (true, true, _) => {
                            removed = Some(values.clone());
                            state = self.fresh();
                            state.sequences = (0..self.groups.len())
                                .map(|group| self.sequence(group, values))
                                .collect();
                        }
                        (false, true, true) => {
                            removed = None;
                            state = self.fresh();
                            first_retract = Some(values);
                            self.retract(&mut state, values, false)?;
                        }
                        (_, _, true) => {}
                        (_, _, false) => self.retract(&mut state, values, at == 0)?,
                    }
                }
            }
        }
        if let Some(values) = removed {
            return Ok((RowKind::Delete, values));
        }
        let mut row: Vec<Datum> = state.columns.into_iter().map(|column| column.value).collect();
        let fill = |row: &mut Vec<Datum>, from: &[Datum]| {
            for ((column, value), from) in self.columns.iter().zip(row).zip(from) {
                if matches!(column, Column::Key | Column::Free) && value.is_null() {
                    *value = from.clone();
                }
            }
        };
        if !inserted {
            fill(&mut row, first_retract.map_or(&[], |values| values.as_slice()));
            if self.deletes == Deletes::Ignored
                && let Some(values) = first_retract
            {
                row = values.clone();
            }
            return Ok((RowKind::Delete, row));
        }
        Ok((RowKind::Insert, row))
    }

    /// A version's sequence fields; `None`: all are null, it says nothing about the group.
    fn sequence(&self, group: usize, values: &[Datum]) -> Option<Vec<Datum>> {
        let fields: Vec<Datum> = self.groups[group]
            .sequence
            .iter()
            .map(|&field| values[field].clone())
            .collect();
        fields.iter().any(|field| !field.is_null()).then_some(fields)
    }

    /// Whether a version is at least as new as what the group holds; `None`: it says nothing about it.
    fn is_newer(&self, state: &State, group: usize, values: &[Datum]) -> Option<bool> {
        let sequence = self.sequence(group, values)?;
        let held = state.sequences[group].as_ref();
        Some(held.is_none_or(|held| sequence.cmp(held) != Ordering::Less))
    }

    /// [`is_newer`](Self::is_newer) of every group.
    fn newer(&self, state: &State, values: &[Datum]) -> Vec<Option<bool>> {
        (0..self.groups.len())
            .map(|group| self.is_newer(state, group, values))
            .collect()
    }

    fn add(&self, state: &mut State, values: &[Datum]) -> Result<(), String> {
        let newer = self.newer(state, values);
        for (position, column) in self.columns.iter().enumerate() {
            let (held, value) = (&mut state.columns[position], &values[position]);
            match column {
                Column::Key => held.value = value.clone(),
                Column::Free if !value.is_null() => held.value = value.clone(),
                Column::Free | Column::Sequence => {}
                Column::Protected(group, function) => match (newer[*group], function) {
                    (None, _) | (Some(false), None) => {}
                    (Some(true), None) => held.value = value.clone(),
                    (Some(true), Some(function)) => function.add(held, value)?,
                    (Some(false), Some(function)) => function.add_late(held, value)?,
                },
            }
        }
        self.advance(state, &newer, values);
        Ok(())
    }

    fn retract(&self, state: &mut State, values: &[Datum], is_oldest: bool) -> Result<(), String> {
        let newer = self.newer(state, values);
        for (position, column) in self.columns.iter().enumerate() {
            let (held, value) = (&mut state.columns[position], &values[position]);
            match column {
                Column::Key => held.value = value.clone(),
                Column::Free | Column::Sequence => {}
                Column::Protected(group, function) => match (newer[*group], function) {
                    (None, _) | (Some(false), None) => {}
                    (Some(true), None) => held.value = Datum::Null,
                    (Some(_), Some(function)) => {
                        if is_oldest {
                            // The row begins as a copy.
                            held.value = value.clone();
                        }
                        function.retract(held, value)?;
                    }
                },
            }
        }
        self.advance(state, &newer, values);
        Ok(())
    }

    /// Groups that a version is newer in take its sequence fields, nulls too.
    fn advance(&self, state: &mut State, newer: &[Option<bool>], values: &[Datum]) {
        for (group, newer) in newer.iter().enumerate() {
            if *newer == Some(true) {
                state.sequences[group] = self.sequence(group, values);
                for &field in &self.groups[group].sequence {
                    state.columns[field].value = values[field].clone();
                }
            }
        }
    }
}
