//! Lookup files on local disk, and parts of them in memory.
//!
//! | File | What it holds |
//! |---|---|
//! | `lru` | what was used last stays, up to a weight |
//! | `local_file` | a file that goes when nobody uses it any more |
//! | `file_cache` | the local files of all buckets: weight, idle time, one disk budget, one build at a time a file |
//! | `memory` | indexes, filters and blocks in memory, and pages of data files |

mod file_cache;
mod local_file;
mod lru;
mod memory;

pub use file_cache::LookupFileCache;
pub(crate) use file_cache::{FileKey, LookupFile};
pub(crate) use local_file::{LocalFile, LocalFileWriter};
pub(crate) use memory::LookupMemory;
