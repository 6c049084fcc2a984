//! Merging files and moving them up.
//!
//! A pick becomes a [`CompactTask`], plain data that may run anywhere; its [`CompactStep`]s are known before any byte is read.

mod drop_delete;
mod expire_rows;
pub mod pipeline;
mod result;
mod settings;
mod task;
mod upgrade;

pub use drop_delete::drop_delete;
pub use expire_rows::RecordLevelExpire;
pub use result::CompactResult;
pub use settings::CompactSettings;
pub use task::CompactTask;
pub use upgrade::{CompactStep, StepRules, plan_steps};
