//! `listagg`.

use std::collections::HashSet;
use std::fmt::Write;
use std::sync::Arc;

use arrow_array::builder::StringBuilder;
use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef};
use paimon_format::types::{MAX_LENGTH, TypeKind};

use super::column::Site;
use super::{AggregatedColumn, Aggregation, Aggregator, AggregatorFactory, Step, fold_groups, plain_groups, step_of};
use crate::MergeError;

/// `listagg`: texts joined by a delimiter; blank ones count as nothing. With `distinct` a token joins that is not there yet.
///
/// Source: `org.apache.paimon.mergetree.compact.aggregate.FieldListaggAgg`.
#[derive(Clone, Copy, Debug)]
pub(super) struct ListaggFactory;

impl AggregatorFactory for ListaggFactory {
    fn name(&self) -> &str {
        "listagg"
    }

    fn create(&self, column: &AggregatedColumn<'_>) -> Result<Aggregation, MergeError> {
        if column.field.data_type.kind != TypeKind::VarChar(MAX_LENGTH) {
            return Err(column.wrong_type("STRING"));
        }
        let delimiter = column.option("list-agg-delimiter").unwrap_or(",").to_owned();
        let distinct = column.flag("distinct")?;
        if distinct && delimiter.is_empty() {
            return Err(column.illegal("list-agg-delimiter", "", "a text that tells distinct tokens apart"));
        }
        Ok(Aggregation::Compute(Box::new(Listagg {
            delimiter,
            distinct,
            site: column.site()?,
            kept: None,
        })))
    }
}

#[derive(Debug)]
struct Listagg {
    delimiter: String,
    distinct: bool,
    site: Site,
    /// An open group's text.
    kept: Option<Joined>,
}

/// A text so far.
#[derive(Debug)]
struct Joined {
    text: String,
    /// Its tokens, once they were asked for.
    known: Option<HashSet<String>>,
}

impl From<&str> for Joined {
    fn from(text: &str) -> Self {
        Self {
            text: text.to_owned(),
            known: None,
        }
    }
}

/// `agg(acc, value)`.
fn join(delimiter: &str, distinct: bool, acc: Option<Joined>, value: Option<&str>) -> Option<Joined> {
    let Some(value) = value.filter(|value| !is_blank(value)) else {
        return acc;
    };
    let Some(mut acc) = acc.filter(|acc| !is_blank(&acc.text)) else {
        return Some(value.into());
    };
    if !distinct {
        acc.text.push_str(delimiter);
        acc.text.push_str(value);
        return Some(acc);
    }
    let Joined { text, known } = &mut acc;
    let known = known.get_or_insert_with(|| text.split(delimiter).map(str::to_owned).collect());
    for token in value.split(delimiter) {
        if !is_blank(token) && !known.contains(token) {
            known.insert(token.to_owned());
            text.push_str(delimiter);
            text.push_str(token);
        }
    }
    Some(acc)
}

fn is_blank(text: &str) -> bool {
    text.chars().all(is_whitespace)
}

/// `java.lang.Character.isWhitespace`.
fn is_whitespace(c: char) -> bool {
    match c {
        '\u{1c}'..='\u{1f}' => true,
        '\u{85}' | '\u{a0}' | '\u{2007}' | '\u{202f}' => false,
        _ => c.is_whitespace(),
    }
}

impl Aggregator for Listagg {
    fn fold(&mut self, values: &ArrayRef, steps: &[Step], ends: &[u32], open: bool) -> Result<ArrayRef, MergeError> {
        let (delimiter, distinct, site) = (self.delimiter.as_str(), self.distinct, &self.site);
        let Some(values) = values.as_string_opt::<i32>() else {
            return Err(site.wrong_array(values.data_type()));
        };
        let mut results = StringBuilder::with_capacity(ends.len(), values.values().len() + values.len());
        if !distinct
            && self.kept.is_none()
            && let Some(groups) = plain_groups(0, steps, ends, open)
        {
            // Written in place: no text of its own for each key.
            for group in groups {
                let texts = group.filter(|&row| values.is_valid(row)).map(|row| values.value(row));
                let mut is_empty = true;
                for text in texts.filter(|text| !is_blank(text)) {
                    let written = results.write_str(if is_empty { "" } else { delimiter });
                    written
                        .and_then(|()| results.write_str(text))
                        .map_err(MergeError::internal)?;
                    is_empty = false;
                }
                if is_empty {
                    results.append_null();
                } else {
                    results.append_value("");
                }
            }
            return Ok(Arc::new(results.finish()));
        }
        fold_groups(
            &mut self.kept,
            ends,
            open,
            |acc, row| {
                let value = values.is_valid(row).then(|| values.value(row));
                let held = acc.take();
                *acc = match step_of(steps, row) {
                    Step::Add => join(delimiter, distinct, held, value),
                    Step::Late => {
                        let held = held.as_ref().map(|held| held.text.as_str());
                        join(delimiter, distinct, value.map(Joined::from), held)
                    }
                    Step::Start => value.map(Joined::from),
                    Step::Retract => return Err(site.unretractable()),
                };
                Ok(())
            },
            |acc| results.append_option(acc.map(|acc| acc.text)),
        )?;
        Ok(Arc::new(results.finish()))
    }

    fn reset(&mut self) {
        self.kept = None;
    }
}
