//! Commands as users type them; their output as users see it.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

mod changelog;
mod commands;
mod compaction_lost;
mod ingest;
mod ingest_faults;
mod inputs;
mod kill_loop;
mod killed;
mod processes;
mod replace;
mod s3;
mod service;
mod stopped;
mod support;
mod table_files;
mod tasks;
mod write_only;
mod wrong;
