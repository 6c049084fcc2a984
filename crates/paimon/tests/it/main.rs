//! Behaviour of tables, through the public API.

#![expect(clippy::panic, clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod alter;
mod bad_input;
mod bucket_laws;
mod cancellation;
mod changelog;
mod changes;
mod commit_cases;
mod commits;
mod compaction;
mod compaction_service;
mod concurrency;
mod cross_partition;
mod deletion_vector_laws;
mod deletion_vectors;
mod dynamic_buckets;
mod engine_options;
mod faults;
mod faulty_place;
mod java_tables;
mod lookups;
mod merge_engines;
mod observed;
mod overwrite;
mod partitions;
mod postpone;
mod reading;
mod refused_rows;
mod rescale;
mod s3;
mod s3_busy;
mod stops;
mod support;
mod time_travel;
mod two_compactors;
mod write_load;
mod write_options;
mod writing;
