//! Who follows a changelog.

use std::collections::BTreeMap;
use std::fmt;

use paimon_format::types::{Datum, RowKind};

/// A table made of its changes. It takes only changes of what it holds: a changelog that it takes tells everything, once.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Replay {
    rows: BTreeMap<Vec<Datum>, Vec<Datum>>,
    /// The key of a -U whose +U must come next.
    open: Option<Vec<Datum>>,
}

/// A change that does not fit what is there.
#[derive(Clone, Debug, PartialEq)]
pub struct Misfit {
    /// The change.
    pub kind: RowKind,
    /// Its row.
    pub row: Vec<Datum>,
    /// The row that is there under its key.
    pub held: Option<Vec<Datum>>,
}

impl fmt::Display for Misfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {:?}, but there is {:?}", self.kind, self.row, self.held)
    }
}

impl Replay {
    /// Takes a change of the row with this key.
    ///
    /// Errors: +I of a key that is there, -U and -D of a row that is not there as it is given, +U that does not follow its -U, anything
    /// else after a -U.
    pub fn apply(&mut self, kind: RowKind, key: Vec<Datum>, row: Vec<Datum>) -> Result<(), Misfit> {
        let held = self.rows.get(&key);
        let is_held = held == Some(&row);
        let fits = match (kind, self.open.take()) {
            (RowKind::Insert, None) => held.is_none(),
            (RowKind::UpdateBefore | RowKind::Delete, None) => is_held,
            (RowKind::UpdateAfter, Some(open)) => open == key,
            _ => false,
        };
        if !fits {
            let held = held.cloned();
            return Err(Misfit { kind, row, held });
        }
        match kind {
            RowKind::UpdateBefore => self.open = Some(key),
            RowKind::Delete => {
                self.rows.remove(&key);
            }
            RowKind::Insert | RowKind::UpdateAfter => {
                self.rows.insert(key, row);
            }
        }
        Ok(())
    }

    /// The rows, by key.
    pub fn rows(&self) -> &BTreeMap<Vec<Datum>, Vec<Datum>> {
        &self.rows
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_must_fit() {
        use RowKind::{Delete, Insert, UpdateAfter, UpdateBefore};
        let mut replay = Replay::default();
        let mut apply = |kind, key, value| {
            let (key, value) = (Datum::Int32(key), Datum::Int32(value));
            replay.apply(kind, vec![key.clone()], vec![key, value]).is_ok()
        };
        assert!(apply(Insert, 1, 10));
        assert!(!apply(Insert, 1, 10));
        assert!(!apply(Delete, 1, 11));
        assert!(!apply(Delete, 2, 10));
        assert!(!apply(UpdateAfter, 1, 11));
        assert!(apply(UpdateBefore, 1, 10));
        assert!(!apply(UpdateAfter, 2, 11));
        assert!(apply(UpdateBefore, 1, 10));
        assert!(apply(UpdateAfter, 1, 11));
        assert!(apply(Insert, 2, 20));
        assert!(apply(Delete, 1, 11));
        let expected = BTreeMap::from([(vec![Datum::Int32(2)], vec![Datum::Int32(2), Datum::Int32(20)])]);
        assert_eq!(*replay.rows(), expected);
    }
}
