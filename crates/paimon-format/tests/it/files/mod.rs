//! Data files: those that Java wrote, and ours.

mod golden;
mod table;
