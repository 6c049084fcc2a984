//! The options of partial-update, checked.

use std::collections::BTreeMap;

use arrow_array::{Array, RecordBatch};
use paimon_format::kv::KvSchema;
use paimon_format::options::Options;
use paimon_format::types::DataField;

use crate::MergeError;
use crate::aggregate::Aggregators;
use crate::engine::checks::NoWayBack;
use crate::engine::columns::ColumnMerge;
use crate::engine::functions::{check_columns, column_merge, function_name, parts};
use crate::engine::{flag, ignore_delete};

const REMOVE_ON_DELETE: &str = "partial-update.remove-record-on-delete";
const REMOVE_ON_SEQUENCE_GROUP: &str = "partial-update.remove-record-on-sequence-group";
const SEQUENCE_GROUP: &str = "sequence-group";
const NON_NULL: &str = "last_non_null_value";

/// What -U and -D rows do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DeleteRule {
    /// They are an error.
    Refuse,
    /// Nothing.
    Ignore,
    /// A -D removes the key, a -U does nothing.
    Remove,
    /// They take back their sequence groups.
    Groups,
}

/// Columns whose newest version is told by sequence fields.
#[derive(Clone, Debug)]
struct Group {
    /// The sequence fields, first one first: positions in the table's fields.
    sequence: Vec<usize>,
    protected: Vec<usize>,
    /// A -D with a newer sequence removes the key.
    removes: bool,
}

/// The options, with positions in the table's fields.
#[derive(Clone, Debug)]
pub(super) struct Settings {
    pub(super) deletes: DeleteRule,
    groups: Vec<Group>,
    names: Vec<String>,
    options: Options,
    aggregators: Aggregators,
}

/// How a column of a read schema is merged.
#[derive(Debug)]
pub(super) enum Column {
    /// It belongs to the primary key: all versions have the same value.
    Key,
    /// The newest value that is not null.
    Free,
    /// A sequence field of a group, by its number among the groups read.
    Sequence(usize),
    /// Another column of a group.
    Protected(usize),
    /// Another column of a group, with a function.
    Aggregated(usize, ColumnMerge),
}

impl Column {
    /// The number of the group among the groups read, where values are taken back with it.
    pub(super) fn protecting(&self) -> Option<usize> {
        match self {
            Self::Protected(group) | Self::Aggregated(group, _) => Some(*group),
            Self::Key | Self::Free | Self::Sequence(_) => None,
        }
    }
}

/// A group whose sequence fields are all read: positions in the read schema's fields.
#[derive(Clone, Debug)]
pub(super) struct ReadGroup {
    pub(super) sequence: Vec<usize>,
    pub(super) removes: bool,
}

impl Settings {
    pub(super) fn new(schema: &KvSchema, options: &Options, aggregators: &Aggregators) -> Result<Self, MergeError> {
        check_columns(schema, options)?;
        let mut groups = Vec::new();
        for (key, text) in options.iter() {
            if let Some((sequence, SEQUENCE_GROUP)) = parts(key) {
                groups.push(Group {
                    sequence: group_columns(schema, key, sequence.into_iter())?,
                    protected: group_columns(schema, key, text.split(',').map(str::trim))?,
                    removes: false,
                });
            }
        }
        check_owners(schema, &groups)?;
        for name in options.list(REMOVE_ON_SEQUENCE_GROUP).unwrap_or_default() {
            let position = schema.position(&name);
            match groups
                .iter_mut()
                .find(|group| position.is_some_and(|position| group.sequence.contains(&position)))
            {
                Some(group) => group.removes = true,
                None => {
                    return Err(MergeError::Invalid(format!(
                        "option '{REMOVE_ON_SEQUENCE_GROUP}': {name} is the sequence field of no group"
                    )));
                }
            }
        }
        let settings = Self {
            deletes: delete_rule(options, &groups)?,
            groups,
            names: schema.fields.iter().map(|field| field.name.clone()).collect(),
            options: options.clone(),
            aggregators: aggregators.clone(),
        };
        settings.check_functions(schema)?;
        Ok(settings)
    }

    /// Whether a row says something about a group: one of its sequence fields is not null. `rows`: the table's columns.
    pub(super) fn tells(&self, group: usize, rows: &RecordBatch, row: usize) -> bool {
        let sequence = self.groups.get(group).map_or(&[][..], |group| &group.sequence);
        let mut columns = sequence.iter().filter_map(|&column| rows.columns().get(column));
        columns.any(|column| column.is_valid(row))
    }

    /// Whether a -D may remove its key: it says something about a group that removes keys.
    pub(super) fn may_remove(&self, rows: &RecordBatch, row: usize) -> bool {
        let mut groups = self.groups.iter().enumerate();
        groups.any(|(number, group)| group.removes && self.tells(number, rows, row))
    }

    /// Whether a delete can remove what is older.
    pub(super) fn removes(&self) -> bool {
        self.deletes == DeleteRule::Remove || self.removes_by_group()
    }

    /// Whether a delete can remove what is older, if it is newer by a group.
    pub(super) fn removes_by_group(&self) -> bool {
        self.groups.iter().any(|group| group.removes)
    }

    /// Why rows of a group cannot be taken back from one of its columns; `None`: they can be.
    pub(super) fn no_way_back(&self, column: &Column, field: &DataField) -> Option<NoWayBack> {
        match column {
            Column::Aggregated(_, merge) => merge.no_way_back(),
            Column::Protected(group) if !field.data_type.nullable => {
                let sequence = self.groups.get(*group).and_then(|group| group.sequence.first());
                let sequence = sequence.and_then(|&position| self.names.get(position));
                Some(NoWayBack {
                    deletes_only: true,
                    why: format!(
                        "column {}: it is NOT NULL, and null once a -D row takes its sequence group back; {REMOVE_ON_SEQUENCE_GROUP} = {} lets \
                         the row remove the record",
                        field.name,
                        sequence.map_or("", String::as_str)
                    ),
                })
            }
            _ => None,
        }
    }

    /// Columns outside of the groups have no function, but for the one that is the rule anyway.
    fn check_functions(&self, schema: &KvSchema) -> Result<(), MergeError> {
        let is_sequence = |position: &usize| {
            let user_defined = schema.sequence.iter().flat_map(|sequence| &sequence.columns);
            let of_groups = self.groups.iter().flat_map(|group| &group.sequence);
            user_defined.chain(of_groups).any(|column| column == position)
        };
        for (position, field) in schema.fields.iter().enumerate() {
            let is_protected = self.groups.iter().any(|group| group.protected.contains(&position));
            let function = function_name(&self.options, &field.name).unwrap_or(NON_NULL);
            if function != NON_NULL && !is_protected && !is_sequence(&position) && !schema.is_primary_key(position) {
                return Err(MergeError::Invalid(format!(
                    "column {}: aggregate function {function} needs a sequence group that the column is in",
                    field.name
                )));
            }
        }
        Ok(())
    }

    /// The columns that a merge reads to answer for `wanted`: the sequence fields of their groups, and those of groups that remove keys.
    pub(super) fn needs(&self, wanted: &[usize]) -> Vec<usize> {
        let mut needs = wanted.to_vec();
        for group in &self.groups {
            let is_wanted = |column: &usize| group.protected.contains(column) || group.sequence.contains(column);
            if group.removes || wanted.iter().any(is_wanted) {
                needs.extend(&group.sequence);
            }
        }
        needs.sort_unstable();
        needs.dedup();
        needs
    }

    /// The groups whose sequence fields are all in a read schema, with their numbers here.
    fn groups_in(&self, read: &KvSchema) -> Vec<(usize, ReadGroup)> {
        let position = |&column: &usize| read.position(self.names.get(column)?);
        let groups = self.groups.iter().enumerate().filter_map(|(number, group)| {
            let sequence: Option<Vec<usize>> = group.sequence.iter().map(position).collect();
            let removes = group.removes;
            sequence.map(|sequence| (number, ReadGroup { sequence, removes }))
        });
        groups.collect()
    }

    /// The groups of a read schema.
    pub(super) fn read_groups(&self, read: &KvSchema) -> Vec<ReadGroup> {
        self.groups_in(read).into_iter().map(|(_, group)| group).collect()
    }

    /// How each column of a read schema is merged.
    ///
    /// Errors: `Invalid`, naming the column; `Internal` when a column is read without the sequence fields that it needs.
    pub(super) fn columns(&self, read: &KvSchema) -> Result<Vec<Column>, MergeError> {
        let mut owners: BTreeMap<&str, (usize, bool)> = BTreeMap::new();
        for (number, group) in self.groups.iter().enumerate() {
            let columns = group.protected.iter().map(|column| (column, false));
            for (&column, is_sequence) in columns.chain(group.sequence.iter().map(|column| (column, true))) {
                if let Some(name) = self.names.get(column) {
                    owners.insert(name, (number, is_sequence));
                }
            }
        }
        let groups = self.groups_in(read);
        let column = |(position, name): (usize, &str)| {
            if read.is_primary_key(position) {
                return Ok(Column::Key);
            }
            let Some(&(number, is_sequence)) = owners.get(name) else {
                return Ok(Column::Free);
            };
            let Some(group) = groups.iter().position(|(of, _)| *of == number) else {
                return Err(MergeError::internal(format!(
                    "column {name} is read without the sequence fields of its group"
                )));
            };
            if is_sequence {
                return Ok(Column::Sequence(group));
            }
            match function_name(&self.options, name) {
                None => Ok(Column::Protected(group)),
                Some(function) => column_merge(read, position, function, &self.options, &self.aggregators)
                    .map(|merge| Column::Aggregated(group, merge)),
            }
        };
        let names = read.fields.iter().map(|field| field.name.as_str());
        names.enumerate().map(column).collect()
    }
}

fn group_columns<'a>(
    schema: &KvSchema,
    key: &str,
    names: impl Iterator<Item = &'a str>,
) -> Result<Vec<usize>, MergeError> {
    names
        .map(|name| {
            let position = schema
                .position(name)
                .ok_or_else(|| MergeError::Invalid(format!("option '{key}': the table has no column {name}")))?;
            match schema.is_primary_key(position) {
                true => Err(MergeError::Invalid(format!(
                    "option '{key}': {name} belongs to the primary key, which no sequence group may hold"
                ))),
                false => Ok(position),
            }
        })
        .collect()
}

/// A column is in one group.
fn check_owners(schema: &KvSchema, groups: &[Group]) -> Result<(), MergeError> {
    let mut seen = vec![false; schema.fields.len()];
    for &position in groups
        .iter()
        .flat_map(|group| group.protected.iter().chain(&group.sequence))
    {
        if std::mem::replace(&mut seen[position], true) {
            return Err(MergeError::Invalid(format!(
                "sequence groups: column {} is named more than once",
                schema.fields[position].name
            )));
        }
    }
    Ok(())
}

fn delete_rule(options: &Options, groups: &[Group]) -> Result<DeleteRule, MergeError> {
    let ignore = ignore_delete(options)?;
    let remove = flag(options, REMOVE_ON_DELETE)?;
    let conflict = |one: &str, other: &str| {
        Err(MergeError::Invalid(format!(
            "options '{one}' and '{other}' contradict each other"
        )))
    };
    if ignore && remove {
        return conflict("ignore-delete", REMOVE_ON_DELETE);
    }
    if ignore && groups.iter().any(|group| group.removes) {
        return conflict("ignore-delete", REMOVE_ON_SEQUENCE_GROUP);
    }
    if remove && !groups.is_empty() {
        return conflict("sequence-group", REMOVE_ON_DELETE);
    }
    Ok(match (ignore, remove, groups.is_empty()) {
        (true, ..) => DeleteRule::Ignore,
        (_, true, _) => DeleteRule::Remove,
        (_, _, false) => DeleteRule::Groups,
        _ => DeleteRule::Refuse,
    })
}
