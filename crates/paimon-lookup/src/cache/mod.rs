//! Lookup files on local disk, and parts of them in memory.
//!
//! | File | What it holds |
//! |---|---|
//! | `lru` | what was used last stays, up to a weight |
//! | `local_file` | a file that goes when nobody uses it any more |
//! | `file_cache` | the local files of all buckets: weight, idle time, one disk budget, one build at a time a file |
//! | `block_cache` | blocks, indexes and filters in memory |

mod block_cache;
mod file_cache;
mod local_file;
mod lru;

pub(crate) use block_cache::BlockCache;
pub use file_cache::LookupFileCache;
pub(crate) use file_cache::{FileKey, LookupFile};
pub(crate) use local_file::{LocalFile, LocalFileWriter};
