//! Data files: those that Java wrote, and ours.

mod damaged;
mod foreign;
mod golden;
mod round_trip;
mod sinks;
mod table;
mod windows;
mod written;
