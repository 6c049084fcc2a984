//! `merge_map` and `merge_map_with_keytime`.

use std::collections::BTreeMap;

use paimon_format::types::{DataField, Datum, TypeKind};

use super::function::{Accumulate, Folding};
use super::{AggregatedColumn, Aggregation, AggregatorFactory};
use crate::MergeError;

/// `merge_map`: the entries of all maps; of one key, the newest. Taking back removes keys.
///
/// Source: `org.apache.paimon.mergetree.compact.aggregate.FieldMergeMapAgg`.
#[derive(Clone, Copy, Debug)]
pub(super) struct MergeMapFactory;

/// `merge_map_with_keytime`: the entries of all maps; of one key, the one with the latest time, a field of its value; a null value
/// removes the key.
///
/// Source: `org.apache.paimon.mergetree.compact.aggregate.FieldMergeMapWithKeyTimeAgg`.
#[derive(Clone, Copy, Debug)]
pub(super) struct MergeMapWithKeyTimeFactory;

impl AggregatorFactory for MergeMapFactory {
    fn name(&self) -> &str {
        "merge_map"
    }

    fn create(&self, column: &AggregatedColumn<'_>) -> Result<Aggregation, MergeError> {
        match column.field.data_type.kind {
            TypeKind::Map(..) => Ok(Folding::new(column, MergeMap)?.into_aggregation()),
            _ => Err(column.wrong_type("MAP")),
        }
    }
}

/// A map so far.
#[derive(Debug)]
enum Held {
    /// One value, as it was written.
    Plain(Datum),
    /// Several.
    Entries(Entries),
}

impl Held {
    /// The entries; `None`: it is null.
    fn entries(&mut self) -> Option<&mut Entries> {
        if let Self::Plain(Datum::Map(entries)) = self {
            *self = Self::Entries(Entries::new(std::mem::take(entries)));
        }
        match self {
            Self::Plain(_) => None,
            Self::Entries(entries) => Some(entries),
        }
    }

    fn into_value(self) -> Datum {
        match self {
            Self::Plain(value) => value,
            Self::Entries(entries) => entries.into_map(),
        }
    }
}

/// A map in which entries can be found: entries keep the place where their key came first.
#[derive(Debug)]
struct Entries {
    entries: Vec<Option<(Datum, Datum)>>,
    places: BTreeMap<Datum, usize>,
}

impl Entries {
    fn new(entries: Vec<(Datum, Datum)>) -> Self {
        let mut all = Self {
            entries: Vec::with_capacity(entries.len()),
            places: BTreeMap::new(),
        };
        for (key, value) in entries {
            all.put(key, value);
        }
        all
    }

    fn get(&self, key: &Datum) -> Option<&Datum> {
        let place = self.places.get(key)?;
        self.entries.get(*place)?.as_ref().map(|(_, value)| value)
    }

    fn put(&mut self, key: Datum, value: Datum) {
        match self.places.get(&key) {
            Some(&place) => self.entries[place] = Some((key, value)),
            None => {
                self.places.insert(key.clone(), self.entries.len());
                self.entries.push(Some((key, value)));
            }
        }
    }

    fn remove(&mut self, key: &Datum) {
        if let Some(place) = self.places.remove(key) {
            self.entries[place] = None;
        }
    }

    fn into_map(self) -> Datum {
        Datum::Map(self.entries.into_iter().flatten().collect())
    }
}

#[derive(Debug)]
struct MergeMap;

impl Accumulate for MergeMap {
    type State = Held;

    fn begin(&self, value: Datum) -> Held {
        Held::Plain(value)
    }

    fn add(&self, acc: &mut Held, value: Datum) -> Result<(), MergeError> {
        match (acc.entries(), value) {
            (Some(all), Datum::Map(more)) => more.into_iter().for_each(|(key, value)| all.put(key, value)),
            (Some(_), _) => {}
            (None, value) => *acc = Held::Plain(value),
        }
        Ok(())
    }

    fn accepts_retract(&self) -> bool {
        true
    }

    fn retract(&self, acc: &mut Held, value: Datum) -> Option<Result<(), MergeError>> {
        if let (Some(all), Datum::Map(gone)) = (acc.entries(), value) {
            gone.iter().for_each(|(key, _)| all.remove(key));
        }
        Some(Ok(()))
    }

    fn finish(&self, acc: Held) -> Datum {
        acc.into_value()
    }
}

impl AggregatorFactory for MergeMapWithKeyTimeFactory {
    fn name(&self) -> &str {
        "merge_map_with_keytime"
    }

    fn create(&self, column: &AggregatedColumn<'_>) -> Result<Aggregation, MergeError> {
        let wrong = || column.wrong_type("MAP<K, ROW> with two fields or more in the ROW");
        let TypeKind::Map(_, value) = &column.field.data_type.kind else {
            return Err(wrong());
        };
        let TypeKind::Row(fields) = &value.kind else {
            return Err(wrong());
        };
        if fields.len() < 2 {
            return Err(wrong());
        }
        let time = match column.option("ts-field") {
            None => fields.len() - 1,
            Some(_) => match column.positions("ts-field", fields)?.as_slice() {
                [time] => *time,
                _ => {
                    return Err(column.illegal("ts-field", column.option("ts-field").unwrap_or_default(), "one field"));
                }
            },
        };
        check_time(column, fields.get(time))?;
        Ok(Folding::new(column, MergeMapWithKeyTime { time })?.into_aggregation())
    }
}

/// Java reads the time as text, whatever its type is; anything but text is nonsense there.
fn check_time(column: &AggregatedColumn<'_>, field: Option<&DataField>) -> Result<(), MergeError> {
    match field.map(|field| &field.data_type.kind) {
        Some(TypeKind::Char(_) | TypeKind::VarChar(_)) => Ok(()),
        _ => Err(column.wrong_type("MAP<K, ROW> whose time field holds text")),
    }
}

#[derive(Debug)]
struct MergeMapWithKeyTime {
    time: usize,
}

impl MergeMapWithKeyTime {
    fn time_of<'a>(&self, value: &'a Datum) -> Option<&'a Datum> {
        match value {
            Datum::Row(fields) => fields.get(self.time).filter(|time| !time.is_null()),
            _ => None,
        }
    }
}

impl Accumulate for MergeMapWithKeyTime {
    type State = Held;

    fn begin(&self, value: Datum) -> Held {
        Held::Plain(value)
    }

    fn add(&self, acc: &mut Held, value: Datum) -> Result<(), MergeError> {
        let Datum::Map(more) = value else {
            return Ok(());
        };
        let Some(all) = acc.entries() else {
            *acc = Held::Plain(Datum::Map(more));
            return Ok(());
        };
        for (key, value) in more {
            if value.is_null() {
                all.remove(&key);
                continue;
            }
            let Some(time) = self.time_of(&value) else {
                continue;
            };
            let held = all.get(&key).and_then(|held| self.time_of(held));
            if held.is_none_or(|held| time > held) {
                all.put(key, value);
            }
        }
        Ok(())
    }

    fn finish(&self, acc: Held) -> Datum {
        acc.into_value()
    }
}
