//! Arrays of rows that have keys of their own: `nested_update`, `nested_partial_update`.

use paimon_format::types::Datum;

use super::functions::elements;

/// A function with its options.
#[derive(Debug)]
pub(super) struct Nested {
    pub(super) key: Vec<usize>,
    pub(super) sequence: Vec<usize>,
    pub(super) limit: usize,
    pub(super) nulls: String,
}

impl Nested {
    /// The key of a row; `None`: the row is left out.
    fn key(&self, row: &[Datum]) -> Result<Option<Vec<Datum>>, String> {
        let key: Vec<Datum> = self.key.iter().map(|&field| row[field].clone()).collect();
        match key.iter().any(Datum::is_null) {
            true if self.nulls == "ignore" => Ok(None),
            true if self.nulls == "error" => Err("a null in a nested key".to_owned()),
            _ => Ok(Some(key)),
        }
    }

    fn put(&self, all: &mut Vec<Vec<Datum>>, row: Vec<Datum>, limit: usize) -> Result<(), String> {
        let Some(key) = self.key(&row)? else { return Ok(()) };
        for held in all.iter_mut() {
            if self.key(held)?.as_ref() == Some(&key) {
                let sequence =
                    |row: &[Datum]| -> Vec<Datum> { self.sequence.iter().map(|&field| row[field].clone()).collect() };
                if sequence(&row) >= sequence(held) {
                    *held = row;
                }
                return Ok(());
            }
        }
        if all.len() < limit {
            all.push(row);
        }
        Ok(())
    }

    pub(super) fn update(&self, acc: Datum, value: Datum) -> Result<Datum, String> {
        if value.is_null() {
            return Ok(acc);
        }
        if self.key.is_empty() {
            let mut all = rows(acc);
            for row in rows(value) {
                if all.len() < self.limit {
                    all.push(row);
                }
            }
            return Ok(array(all));
        }
        let mut all = Vec::new();
        for row in rows(acc) {
            self.put(&mut all, row, usize::MAX)?;
        }
        for row in rows(value) {
            self.put(&mut all, row, self.limit)?;
        }
        Ok(array(all))
    }

    pub(super) fn partial_update(&self, acc: Datum, value: Datum) -> Result<Datum, String> {
        if value.is_null() {
            return Ok(acc);
        }
        let mut all: Vec<Vec<Datum>> = Vec::new();
        'rows: for row in rows(acc).into_iter().chain(rows(value)) {
            let Some(key) = self.key(&row)? else { continue };
            for held in &mut all {
                if self.key(held)?.as_ref() == Some(&key) {
                    for (held, field) in held.iter_mut().zip(row) {
                        if !field.is_null() {
                            *held = field;
                        }
                    }
                    continue 'rows;
                }
            }
            all.push(row);
        }
        Ok(array(all))
    }

    pub(super) fn retract(&self, acc: Datum, value: Datum) -> Result<Datum, String> {
        let gone = rows(value);
        let mut left = Vec::new();
        if self.key.is_empty() {
            left = rows(acc);
            left.retain(|row| !gone.contains(row));
            return Ok(array(left));
        }
        for row in rows(acc) {
            self.put(&mut left, row, usize::MAX)?;
        }
        let mut gone_keys = Vec::new();
        for row in &gone {
            gone_keys.extend(self.key(row)?);
        }
        let mut kept = Vec::new();
        for row in left {
            if !self.key(&row)?.is_some_and(|key| gone_keys.contains(&key)) {
                kept.push(row);
            }
        }
        Ok(array(kept))
    }
}

fn rows(array: Datum) -> Vec<Vec<Datum>> {
    let rows = elements(array).into_iter().filter_map(|element| match element {
        Datum::Row(fields) => Some(fields),
        _ => None,
    });
    rows.collect()
}

fn array(rows: Vec<Vec<Datum>>) -> Datum {
    Datum::Array(rows.into_iter().map(Datum::Row).collect())
}
