//! `merge_map` and `merge_map_with_keytime`.

use std::collections::{BTreeMap, BTreeSet};

use paimon_format::types::{DataField, Datum, TypeKind};

use super::{AggregateFunction, AggregatedColumn, Aggregation, AggregatorFactory, FunctionAggregator};
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
            TypeKind::Map(..) => Ok(FunctionAggregator::new(column, MergeMap)?.into_aggregation()),
            _ => Err(column.wrong_type("MAP")),
        }
    }
}

/// A map in which entries can be found: entries keep the place where their key came first.
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

impl AggregateFunction for MergeMap {
    fn add(&self, acc: Datum, value: Datum) -> Result<Datum, MergeError> {
        Ok(match (acc, value) {
            (Datum::Map(all), Datum::Map(more)) => {
                let mut all = Entries::new(all);
                for (key, value) in more {
                    all.put(key, value);
                }
                all.into_map()
            }
            (Datum::Null, value) => value,
            (acc, _) => acc,
        })
    }

    fn retract(&self, acc: Datum, value: Datum) -> Option<Result<Datum, MergeError>> {
        Some(Ok(match (acc, value) {
            (Datum::Map(mut all), Datum::Map(gone)) => {
                let gone: BTreeSet<Datum> = gone.into_iter().map(|(key, _)| key).collect();
                all.retain(|(key, _)| !gone.contains(key));
                Datum::Map(all)
            }
            (acc, _) => acc,
        }))
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
        Ok(FunctionAggregator::new(column, MergeMapWithKeyTime { time })?.into_aggregation())
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

impl AggregateFunction for MergeMapWithKeyTime {
    fn add(&self, acc: Datum, value: Datum) -> Result<Datum, MergeError> {
        Ok(match (acc, value) {
            (Datum::Map(all), Datum::Map(more)) => {
                let mut all = Entries::new(all);
                for (key, value) in more {
                    if value.is_null() {
                        all.remove(&key);
                        continue;
                    }
                    let Some(time) = self.time_of(&value) else {
                        continue;
                    };
                    let is_later = all
                        .get(&key)
                        .and_then(|held| self.time_of(held))
                        .is_none_or(|held| time > held);
                    if is_later {
                        all.put(key, value);
                    }
                }
                all.into_map()
            }
            (Datum::Null, value) => value,
            (acc, _) => acc,
        })
    }
}
