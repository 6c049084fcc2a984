//! The order in which rows without a bucket were written.

use std::collections::HashMap;
use std::sync::Arc;

use paimon_format::meta::DataFileMeta;

/// Puts the files of one writer in the order of their counters, whatever its clock did meanwhile; those of several writers by the times at which
/// they were made, as their clocks had it. What tells neither stays in the order given.
pub(super) fn as_written(files: Vec<Arc<DataFileMeta>>) -> Vec<Arc<DataFileMeta>> {
    let mut positions: HashMap<String, usize> = HashMap::new();
    let mut writers: Vec<Vec<(u64, Arc<DataFileMeta>)>> = Vec::new();
    for file in files {
        let (writer, counter) = writer_and_counter(&file.file_name);
        let position = *positions.entry(writer.to_owned()).or_insert(writers.len());
        match writers.get_mut(position) {
            Some(of_writer) => of_writer.push((counter, file)),
            None => writers.push(vec![(counter, file)]),
        }
    }
    let mut timed = Vec::new();
    for mut of_writer in writers {
        of_writer.sort_by_key(|(counter, _)| *counter);
        let mut latest_ms = None;
        for (_, file) in of_writer {
            // A clock that went back must not take a file before those that were there.
            latest_ms = latest_ms.max(file.creation_time_ms);
            timed.push((latest_ms, file));
        }
    }
    timed.sort_by_key(|(latest_ms, _)| *latest_ms);
    timed.into_iter().map(|(_, file)| file).collect()
}

/// `data--u-<user>-s-<number>-w-<UUID>-<counter>.<extension>`: all before the counter is the writer's. A name without a counter is a writer of its own.
fn writer_and_counter(name: &str) -> (&str, u64) {
    let parts = name.rsplit_once('-').and_then(|(writer, rest)| {
        let (counter, _) = rest.split_once('.')?;
        Some((writer, counter.parse().ok()?))
    });
    parts.unwrap_or((name, 0))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(files: &[(&str, i64)]) -> String {
        let files = files.iter().map(|(name, made_ms)| {
            let mut file = DataFileMeta::new(*name, 1);
            file.creation_time_ms = Some(*made_ms);
            Arc::new(file)
        });
        let files = as_written(files.collect());
        let names: Vec<&str> = files.iter().map(|file| file.file_name.as_str()).collect();
        names.join(" ")
    }

    #[test]
    fn writers_by_time_and_files_of_one_by_counter() {
        assert_eq!(
            order(&[("a-1.avro", 30), ("b-0.avro", 20), ("a-0.avro", 10)]),
            "a-0.avro b-0.avro a-1.avro"
        );
        assert_eq!(
            order(&[("a-10.avro", 1), ("a-9.avro", 1), ("b-2.avro", 1)]),
            "a-9.avro a-10.avro b-2.avro"
        );
        assert_eq!(order(&[("x.avro", 2), ("other", 2), ("y", 1)]), "y x.avro other");
    }

    /// The end of summer time, for one.
    #[test]
    fn a_clock_that_goes_back_does_not_change_the_order_of_one_writer() {
        assert_eq!(
            order(&[("a-0.avro", 100), ("a-1.avro", 40), ("b-0.avro", 50), ("a-2.avro", 120)]),
            "b-0.avro a-0.avro a-1.avro a-2.avro"
        );
    }
}
