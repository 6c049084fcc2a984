//! Sorted string tables: the files in which keys are looked up.
//!
//! | Bytes | What |
//! |---|---|
//! | data blocks | each with a trailer; entries in key order |
//! | bloom filter | optional, without a trailer |
//! | index block | with a trailer: last key of each data block → its place |
//! | 36 | footer: places of filter and index, magic |
//!
//! Numbers are little endian, lengths are varints. Everything here is a plain function over bytes: who has a file reads the ranges that
//! [`SstFooter`], [`SstIndex`] and [`BlockProbe`] name, and hands the bytes in. Keys and values are opaque, but for the order of keys:
//! that of compacted rows ([`CompactedKeyOrder`](crate::row::compacted::CompactedKeyOrder)).
//!
//! | File | What it holds |
//! |---|---|
//! | `block` | entries, their offsets, binary search |
//! | `compress` | codecs, checksums |
//! | `bloom` | the filter |
//! | `footer` | the last 36 bytes |
//! | `writer` | a file from sorted entries |
//! | `reader` | which blocks may hold which of many keys, and what they hold |
//!
//! Source: `org.apache.paimon.sst`, `org.apache.paimon.lookup.sort`.

mod block;
mod bloom;
mod compress;
mod footer;
mod reader;
mod writer;

use crate::FormatError;

pub use block::SstBlock;
pub use compress::SstCompression;
pub use footer::{BlockHandle, SstFooter};
pub use reader::{BlockProbe, SstIndex};
pub use writer::{SstSettings, SstWriter};

/// The caller names the file.
fn corrupt(message: impl std::fmt::Display) -> FormatError {
    FormatError::corrupt("lookup file", message)
}

#[cfg(test)]
mod tests;
