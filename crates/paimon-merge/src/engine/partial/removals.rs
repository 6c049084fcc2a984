//! Which versions of a key count, once deletes have removed what was before them.

use std::ops::Range;

use paimon_format::types::RowKind;

use super::groups::GroupOrder;
use super::settings::DeleteRule;
use super::{HINT, NAME};
use crate::MergeError;
use crate::engine::columns::Flat;
use crate::engine::refused;

/// What an open group's earlier parts have said.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Earlier {
    /// Its last version that counts is a delete that removed the key.
    pub(super) removed: bool,
    /// There was an add.
    pub(super) inserted: bool,
    /// There was an add that counts.
    pub(super) live: bool,
}

/// The versions of a key that count.
#[derive(Clone, Debug)]
pub(super) struct Kept {
    /// The first version of the merge that is not carried from an earlier block; `None` if there is such a block.
    first: Option<u32>,
    /// What counts: `start..end`.
    pub(super) start: u32,
    pub(super) end: u32,
    /// The last version that counts, or the delete that removed the key: the result's sequence number is its.
    pub(super) newest: u32,
    /// The delete that removed the key, if nothing brought it back.
    pub(super) tombstone: Option<u32>,
    /// There is an add, before a removal or after.
    pub(super) inserted: bool,
    /// There is an add that counts.
    pub(super) live: bool,
    /// There is an add that counts in what was carried.
    pub(super) carried_live: bool,
    ignore_deletes: bool,
}

impl Kept {
    /// The result's kind.
    pub(super) fn kind(&self) -> RowKind {
        match self.tombstone.is_some() || !self.inserted {
            true => RowKind::Delete,
            false => RowKind::Insert,
        }
    }

    /// Whether a version says nothing.
    #[inline]
    pub(super) fn skips(&self, flat: &Flat<'_>, version: u32) -> bool {
        self.ignore_deletes && flat.kind(version).is_retract()
    }

    /// Whether the merge begins with a version.
    #[inline]
    pub(super) fn begins_with(&self, version: u32) -> bool {
        self.first == Some(version)
    }

    /// The versions `range` of one key. `removing` are the orders of the groups that remove keys.
    ///
    /// Errors: `Retract` for a retract where none is allowed.
    pub(super) fn new(
        flat: &Flat<'_>,
        range: Range<u32>,
        rule: DeleteRule,
        removing: &[&GroupOrder],
        earlier: Earlier,
    ) -> Result<Self, MergeError> {
        let mut key = Self {
            first: None,
            start: range.start,
            end: range.end,
            newest: range.start,
            tombstone: None,
            inserted: false,
            live: false,
            carried_live: false,
            ignore_deletes: rule == DeleteRule::Ignore,
        };
        let mut held: Vec<Option<u32>> = vec![None; removing.len()];
        for version in range.clone() {
            if flat.is_carried(version) {
                key.inserted = earlier.inserted;
                key.live = earlier.live;
                key.carried_live = earlier.live;
                if earlier.removed {
                    key.tombstone = Some(version);
                    key.start = version + 1;
                }
                hold(&mut held, removing, version);
                continue;
            }
            if version == range.start {
                key.first = Some(version);
            }
            let kind = flat.kind(version);
            if kind.is_add() {
                if key.tombstone.take().is_some() {
                    key.start = version;
                    held.fill(None);
                }
                (key.inserted, key.live, key.newest) = (true, true, version);
                advance(&mut held, removing, version);
                continue;
            }
            match rule {
                DeleteRule::Refuse => return Err(refused(NAME, kind, HINT)),
                DeleteRule::Ignore => {
                    if !key.inserted {
                        key.newest = version;
                    }
                    continue;
                }
                DeleteRule::Remove => {
                    if kind == RowKind::Delete {
                        key.remove(version);
                    } else if key.tombstone.is_some() {
                        key.start = version + 1;
                    }
                }
                DeleteRule::Groups => {
                    let moves = removing
                        .iter()
                        .zip(&held)
                        .any(|(order, &held)| !order.is_empty(version) && order.is_newer(version, held));
                    match (kind == RowKind::Delete, moves, key.tombstone.is_some()) {
                        (true, true, _) => {
                            key.remove(version);
                            hold(&mut held, removing, version);
                        }
                        // A newer -U brings the row back, as in Java.
                        (false, true, true) => {
                            key.tombstone = None;
                            key.start = version;
                            held.fill(None);
                            advance(&mut held, removing, version);
                        }
                        (_, _, true) => key.start = version + 1,
                        (_, _, false) => advance(&mut held, removing, version),
                    }
                }
            }
            key.newest = version;
        }
        Ok(key)
    }

    fn remove(&mut self, version: u32) {
        self.tombstone = Some(version);
        self.start = version + 1;
        self.live = false;
    }
}

/// Every group holds the sequence fields of one version.
fn hold(held: &mut [Option<u32>], removing: &[&GroupOrder], version: u32) {
    for (held, order) in held.iter_mut().zip(removing) {
        *held = (!order.is_empty(version)).then_some(version);
    }
}

/// Every group that a version is newer in moves to it.
fn advance(held: &mut [Option<u32>], removing: &[&GroupOrder], version: u32) {
    for (held, order) in held.iter_mut().zip(removing) {
        if !order.is_empty(version) && order.is_newer(version, *held) {
            *held = Some(version);
        }
    }
}
