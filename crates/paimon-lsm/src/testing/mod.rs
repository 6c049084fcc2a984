//! Conformance checks and stand-ins for tests (feature `test-util`).

mod lookup_source;
mod memory_files;
mod pick_replay;
mod runs;
mod scan_lookup;
mod strategy;

pub use lookup_source::check_lookup;
pub use memory_files::MemoryKvFiles;
pub use pick_replay::{PickAnswer, PickCase};
pub use runs::{file, int_keys, keyed_file, parse_runs, print_runs};
pub use scan_lookup::ScanLookup;
#[cfg(test)]
pub(crate) use strategy::apply;
pub use strategy::check_strategy;
