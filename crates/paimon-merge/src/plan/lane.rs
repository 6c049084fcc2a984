//! The keys of one batch, typed, so that the merge loop has no dynamic dispatch.

use std::cmp::Ordering;
use std::fmt::Debug;
use std::sync::Arc;

use arrow_buffer::{ArrowNativeType, ScalarBuffer};
use arrow_row::Rows;
use paimon_format::kv::Keys;

/// The keys of one batch. A key's `Head` is a copied value that decides most comparisons without touching the batch again.
pub(crate) trait KeyLane: Clone + Debug + Send + Sized {
    /// Ordered as the keys are, as far as it tells them apart.
    type Head: Copy + Ord + Debug + Send;

    /// The keys, if they are of this kind.
    fn from_keys(keys: &Keys) -> Option<Self>;

    /// Rows.
    fn len(&self) -> usize;

    /// The head of one key.
    fn head(&self, row: usize) -> Self::Head;

    /// Compares two keys whose heads are equal.
    fn compare_tails(&self, row: usize, other: &Self, other_row: usize) -> Ordering;

    /// Compares two keys.
    fn compare(&self, row: usize, other: &Self, other_row: usize) -> Ordering {
        self.head(row)
            .cmp(&other.head(other_row))
            .then_with(|| self.compare_tails(row, other, other_row))
    }

    /// The order of each key to the next: `Less` when all ascend, `Equal` when some repeat, `Greater` when one descends.
    fn order(&self) -> Ordering {
        (1..self.len())
            .map(|row| self.compare(row - 1, self, row))
            .max()
            .unwrap_or(Ordering::Less)
    }
}

/// Native integers: the head is the key.
#[derive(Clone, Debug)]
pub(crate) struct IntLane<T: ArrowNativeType>(ScalarBuffer<T>);

macro_rules! int_lane {
    ($native:ty, $variant:ident) => {
        impl KeyLane for IntLane<$native> {
            type Head = $native;

            fn from_keys(keys: &Keys) -> Option<Self> {
                match keys {
                    Keys::$variant(values) => Some(Self(values.clone())),
                    _ => None,
                }
            }

            fn len(&self) -> usize {
                self.0.len()
            }

            #[inline]
            fn head(&self, row: usize) -> $native {
                self.0[row]
            }

            #[inline]
            fn compare_tails(&self, _: usize, _: &Self, _: usize) -> Ordering {
                Ordering::Equal
            }
        }
    };
}

int_lane!(i32, Int32);
int_lane!(i64, Int64);

/// Row-encoded keys: the head is the first eight bytes, big-endian.
#[derive(Clone, Debug)]
pub(crate) struct RowLane {
    rows: Arc<Rows>,
    start: usize,
    len: usize,
}

impl KeyLane for RowLane {
    type Head = u64;

    fn from_keys(keys: &Keys) -> Option<Self> {
        match keys {
            Keys::Rows { rows, start, len } => Some(Self {
                rows: Arc::clone(rows),
                start: *start,
                len: *len,
            }),
            _ => None,
        }
    }

    fn len(&self) -> usize {
        self.len
    }

    #[inline]
    fn head(&self, row: usize) -> u64 {
        let bytes = self.rows.row(self.start + row).data();
        match bytes.first_chunk::<8>() {
            Some(chunk) => u64::from_be_bytes(*chunk),
            // Padded with zeros, a key that is the beginning of another is never above it.
            None => {
                let mut head = [0; 8];
                head[..bytes.len()].copy_from_slice(bytes);
                u64::from_be_bytes(head)
            }
        }
    }

    #[inline]
    fn compare_tails(&self, row: usize, other: &Self, other_row: usize) -> Ordering {
        self.rows
            .row(self.start + row)
            .data()
            .cmp(other.rows.row(other.start + other_row).data())
    }
}
