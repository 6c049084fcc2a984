//! Rows as JSON, compared as typed values.

use std::collections::{BTreeMap, BTreeSet};

use paimon::format::types::{DataField, DataType, Datum, TypeKind};
use serde_json::Value;

/// Changes of each key, as text.
pub(crate) type ChangesByKey = BTreeMap<String, Vec<String>>;

/// The columns that rows are compared by.
#[derive(Clone)]
pub(crate) struct Columns {
    fields: Vec<DataField>,
    /// Columns whose arrays are sets: their order is the reference's hash order.
    unordered: BTreeSet<String>,
    /// Names of the primary key.
    key: Vec<String>,
}

impl Columns {
    /// All columns of a table with these options.
    pub(crate) fn new<'a>(
        fields: &[DataField],
        key: &[String],
        options: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> Self {
        let sets = ["collect", "nested_update", "nested_partial_update"];
        let unordered = options.into_iter().filter_map(|(name, value)| {
            let column = name.strip_prefix("fields.")?.strip_suffix(".aggregate-function")?;
            sets.contains(&value).then(|| column.to_owned())
        });
        Self {
            unordered: unordered.collect(),
            fields: fields.to_vec(),
            key: key.to_vec(),
        }
    }

    /// Some of them, by name and order. Errors: the name that is none.
    pub(crate) fn select(&self, names: &[&str]) -> Result<Self, String> {
        let field = |name: &&str| self.fields.iter().find(|field| field.name == **name).cloned();
        let fields = names
            .iter()
            .map(|name| field(name).ok_or_else(|| format!("no column {name}")));
        Ok(Self {
            fields: fields.collect::<Result<_, _>>()?,
            ..self.clone()
        })
    }

    /// The same columns with other types.
    pub(crate) fn with_types(mut self, map: impl Fn(&DataType) -> DataType) -> Self {
        for field in &mut self.fields {
            field.data_type = map(&field.data_type);
        }
        self
    }

    /// One form for equal values: read as typed values and written again.
    pub(crate) fn canonical(&self, values: &[Value]) -> Result<Vec<Value>, String> {
        if values.len() != self.fields.len() {
            return Err(format!("{} values for {} columns", values.len(), self.fields.len()));
        }
        let columns = values.iter().zip(&self.fields);
        let canonical = columns.map(|(value, field)| {
            let datum = Datum::from_json(value, &field.data_type).map_err(|error| error.to_string())?;
            let mut json = datum.to_json(&field.data_type);
            if self.unordered.contains(&field.name)
                && let (Value::Array(elements), TypeKind::Array(_)) = (&mut json, &field.data_type.kind)
            {
                elements.sort_by_cached_key(Value::to_string);
            }
            Ok(json)
        });
        canonical.collect()
    }

    /// Rows as a multiset, sorted. With `kinds` the first value of each row is its kind, which is left out.
    pub(crate) fn multiset(&self, rows: &[Value], kinds: bool) -> Result<Vec<String>, String> {
        let mut texts = Vec::with_capacity(rows.len());
        for row in rows {
            let values = values_of(row)?.get(usize::from(kinds)..).unwrap_or_default();
            texts.push(Value::Array(self.canonical(values)?).to_string());
        }
        texts.sort();
        Ok(texts)
    }

    /// Changes in order, by key: only the order of one key's changes counts.
    pub(crate) fn changes_by_key(&self, rows: &[Value]) -> Result<ChangesByKey, String> {
        let mut changes = ChangesByKey::new();
        for row in rows {
            let [kind, values @ ..] = values_of(row)? else {
                return Err("a change without kind".to_owned());
            };
            let values = self.canonical(values)?;
            let key: Vec<&Value> = self
                .fields
                .iter()
                .zip(&values)
                .filter(|(field, _)| self.key.contains(&field.name))
                .map(|(_, value)| value)
                .collect();
            let key = serde_json::to_string(&key).map_err(|error| error.to_string())?;
            let change = format!("{} {}", kind.as_str().unwrap_or("?"), Value::Array(values));
            changes.entry(key).or_default().push(change);
        }
        Ok(changes)
    }
}

/// The members of a JSON array.
pub(crate) fn values_of(row: &Value) -> Result<&[Value], String> {
    row.as_array()
        .map(Vec::as_slice)
        .ok_or_else(|| format!("{row} is no row"))
}

/// Values of a few columns without a table, such as a partition or a key, in one form.
pub(crate) fn canonical_values(values: &[Value], types: &[DataType]) -> Result<Vec<Value>, String> {
    if values.len() != types.len() {
        return Err(format!("{} values for {} columns", values.len(), types.len()));
    }
    let values = values.iter().zip(types).map(|(value, data_type)| {
        let datum = Datum::from_json(value, data_type).map_err(|error| error.to_string())?;
        Ok(datum.to_json(data_type))
    });
    values.collect()
}

/// What two sorted multisets do not share.
pub(crate) fn multiset_difference(what: &str, expected: &[String], actual: &[String]) -> Option<String> {
    if expected == actual {
        return None;
    }
    let mut counts: BTreeMap<&str, i64> = BTreeMap::new();
    for row in expected {
        *counts.entry(row).or_default() += 1;
    }
    for row in actual {
        *counts.entry(row).or_default() -= 1;
    }
    let part = |wanted: fn(i64) -> bool| {
        let rows: Vec<&str> = counts
            .iter()
            .filter(|(_, count)| wanted(**count))
            .map(|(row, _)| *row)
            .collect();
        let shown = rows.iter().take(4).copied().collect::<Vec<_>>().join(" ");
        format!("{} ({shown}{})", rows.len(), if rows.len() > 4 { " …" } else { "" })
    };
    Some(format!(
        "{what}: missing {}, too many {}",
        part(|count| count > 0),
        part(|count| count < 0)
    ))
}
