//! What changed: stages of compaction, case by case, and the law that they keep.

mod laws;
mod many_runs;
mod model;
mod play;
mod worked;
