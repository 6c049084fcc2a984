//! Options that decide where new files lie, and which of two rows is the newer one.

use std::sync::Arc;

use arrow_array::{ArrayRef, Int32Array, RecordBatch, StringArray};
use paimon::format::meta::DataFileMeta;
use paimon::{ErrorKind, Selection, Table, TableSchema, TimeTravel};

use crate::faulty_place::FaultyPlace;
use crate::support::{Place, commit, kv, kv_schema, rows, with};

async fn files(table: &Table) -> Vec<Arc<DataFileMeta>> {
    let buckets = table.buckets(&TimeTravel::Latest, &Selection::all()).await.unwrap();
    let runs = buckets.iter().flat_map(|bucket| bucket.runs().to_vec());
    runs.flat_map(|run| run.run.files().to_vec()).collect()
}

/// Names of files below a folder, with their paths.
fn below(folder: &std::path::Path) -> Vec<String> {
    let Ok(entries) = std::fs::read_dir(folder) else {
        return Vec::new();
    };
    let mut found = Vec::new();
    for entry in entries {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => found.extend(below(&path)),
            false => found.push(path.to_str().unwrap().to_owned()),
        }
    }
    found
}

#[tokio::test]
async fn new_files_go_to_external_paths_in_turn() {
    let place = Place::new();
    let folders = ["one", "two"].map(|name| place.dir.path().join(name));
    let urls = folders.each_ref().map(|folder| format!("file://{}", folder.display()));
    let schema = kv_schema()
        .option("data-file.external-paths", urls.join(","))
        .option("data-file.external-paths.strategy", "round-robin")
        .option("num-sorted-run.compaction-trigger", "3")
        .option("deletion-vectors.enabled", "true");
    let table = place.create(schema).await;
    for round in 0..3 {
        commit(&table, &[("+I", round, "a"), ("+U", 100, "b")]).await;
    }
    let expected = ["0 a", "1 a", "100 b", "2 a"];
    assert_eq!(rows(&table).await, expected);
    table.compact_builder().full(true).run().await.unwrap();
    assert_eq!(rows(&table).await, expected);
    for file in files(&table).await {
        let path = file.external_path.clone().unwrap();
        assert!(
            urls.iter()
                .any(|url| path == format!("{url}/bucket-0/{}", file.file_name)),
            "{path}"
        );
    }
    assert!(folders.iter().all(|folder| !below(folder).is_empty()));
    let own = below(&std::path::Path::new(table.location()).join("bucket-0"));
    assert_eq!(own, [""; 0]);

    // What is given up is removed there, too.
    let before = folders.each_ref().map(|folder| below(folder).len());
    let builder = table.write_builder();
    let mut write = builder.new_write().unwrap();
    let (batch, kinds) = kv(&[("+I", 7, "c")]);
    write.write_with_kinds(&batch, &kinds).await.unwrap();
    let messages = write.prepare_commit(true).await.unwrap();
    write.write_with_kinds(&batch, &kinds).await.unwrap();
    let (partition, bucket) = write.open_buckets().remove(0);
    write.compact(&partition, bucket, true).await.unwrap();
    assert!(folders.each_ref().map(|folder| below(folder).len()) > before);
    write.abort().await;
    builder.new_commit().unwrap().abort(&messages).await.unwrap();
    assert_eq!(folders.each_ref().map(|folder| below(folder).len()), before);
    assert_eq!(rows(&table).await, expected);
}

#[tokio::test]
async fn external_paths_that_cannot_be_are_refused() {
    let place = Place::new();
    let wrong = |key: &'static str, value: &'static str| {
        kv_schema()
            .option("data-file.external-paths", "s3://a/b")
            .option("data-file.external-paths.strategy", "specific-fs")
            .option(key, value)
    };
    for (schema, kind, message) in [
        (
            wrong("data-file.external-paths.strategy", "entropy-inject"),
            ErrorKind::Unsupported,
            "'entropy-inject'",
        ),
        (
            wrong("data-file.external-paths.strategy", "round-robin").option("data-file.external-paths", "/a"),
            ErrorKind::Invalid,
            "without a scheme",
        ),
        (
            wrong("data-file.external-paths.specific-fs", "oss"),
            ErrorKind::Invalid,
            "none of them is of the file system 'oss'",
        ),
    ] {
        let error = Table::create(&place.location("t"), schema, &place.context)
            .await
            .unwrap_err();
        assert_eq!(error.kind(), kind, "{error}");
        assert!(error.to_string().contains(message), "{error}");
    }
}

/// Two writers begin at the same state; the first to write is the last to commit.
async fn overtaken(table: &Table) {
    let builders = [table.write_builder(), table.write_builder()];
    let [mut early, mut late] = builders.each_ref().map(|builder| builder.new_write().unwrap());
    let (batch, kinds) = kv(&[("+I", 1, "late")]);
    late.write_with_kinds(&batch, &kinds).await.unwrap();
    let (batch, kinds) = kv(&[("+I", 2, "early"), ("+I", 3, "early"), ("+I", 1, "early")]);
    early.write_with_kinds(&batch, &kinds).await.unwrap();
    for (builder, write) in builders.iter().zip([&mut early, &mut late]) {
        let messages = write.prepare_commit(true).await.unwrap();
        builder.new_commit().unwrap().commit(1, messages).await.unwrap();
    }
    early.abort().await;
    late.abort().await;
}

#[tokio::test]
async fn the_later_snapshot_wins_where_snapshots_order_rows() {
    for (ordering, winner) in [("false", "1 early"), ("true", "1 late")] {
        let place = Place::new();
        let schema = kv_schema()
            .option("write-only", "true")
            .option("sequence.snapshot-ordering", ordering);
        let table = place.create(schema).await;
        overtaken(&table).await;
        let expected = [winner, "2 early", "3 early"];
        assert_eq!(rows(&table).await, expected, "{ordering}");
        if ordering == "true" {
            let sequences: Vec<_> = files(&table)
                .await
                .iter()
                .map(|file| (file.min_sequence_number, file.max_sequence_number))
                .collect();
            assert_eq!(sequences, [(2, 2), (1, 1)], "the ids of their snapshots");
        }
        // A compaction writes the numbers down, and what comes later is newer still.
        table.compact_builder().full(true).run().await.unwrap();
        assert_eq!(rows(&table).await, expected, "{ordering}");
        commit(&table, &[("-D", 2, "x"), ("+I", 1, "last")]).await;
        assert_eq!(rows(&table).await, ["1 last", "3 early"], "{ordering}");
        table.compact_builder().full(true).run().await.unwrap();
        assert_eq!(rows(&table).await, ["1 last", "3 early"], "{ordering}");
    }
}

#[tokio::test]
async fn commits_that_meet_bear_their_own_ids() {
    let place = FaultyPlace::new();
    let schema = kv_schema()
        .option("write-only", "true")
        .option("sequence.snapshot-ordering", "true");
    let table = place.create(schema).await;
    let builders = [table.write_builder(), table.write_builder()];
    let mut prepared = Vec::new();
    for builder in &builders {
        let mut write = builder.new_write().unwrap();
        let (batch, kinds) = kv(&[("+I", 1, builder.user())]);
        write.write_with_kinds(&batch, &kinds).await.unwrap();
        prepared.push(write.prepare_commit(true).await.unwrap());
        write.abort().await;
    }
    let second = prepared.pop().unwrap();
    let [one, other] = builders.each_ref().map(|builder| builder.new_commit().unwrap());
    place.slow();
    let (first, second) = futures::join!(one.commit(1, prepared.remove(0)), other.commit(1, second));
    place.heal();
    let (first, second) = (first.unwrap()[0], second.unwrap()[0]);
    let last = if first < second { &builders[1] } else { &builders[0] };
    assert_eq!(rows(&table).await, [format!("1 {}", last.user())]);
    let mut sequences: Vec<_> = files(&table)
        .await
        .iter()
        .map(|file| file.max_sequence_number)
        .collect();
    sequences.sort_unstable();
    assert_eq!(sequences, [1, 2]);
}

#[tokio::test]
async fn snapshot_ordering_excludes_what_contradicts_it() {
    let place = Place::new();
    let base = || kv_schema().option("sequence.snapshot-ordering", "true");
    for (schema, message) in [
        (base(), "needs 'write-only' = 'true'"),
        (
            base().option("write-only", "true").option("sequence.field", "v"),
            "not together with 'sequence.field'",
        ),
    ] {
        let error = Table::create(&place.location("t"), schema, &place.context)
            .await
            .unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid);
        assert!(error.to_string().contains(message), "{error}");
    }
    let table = place.create(base().option("write-only", "true")).await;
    let error = with(&table, "write-only", "false")
        .write_builder()
        .new_write()
        .unwrap_err();
    assert!(error.to_string().contains("needs 'write-only' = 'true'"), "{error}");
}

fn partitioned(rows: &[(&str, i32)]) -> RecordBatch {
    let p: ArrayRef = Arc::new(StringArray::from_iter_values(rows.iter().map(|row| row.0)));
    let k: ArrayRef = Arc::new(Int32Array::from_iter_values(rows.iter().map(|row| row.1)));
    RecordBatch::try_from_iter([("p", p), ("k", k)]).unwrap()
}

#[tokio::test]
async fn numbers_go_on_from_what_the_snapshot_notes() {
    for (mode, numbers) in [
        ("scan", [(0, 2), (0, 0), (1, 1)]),
        ("snapshot", [(0, 2), (3, 3), (4, 4)]),
    ] {
        let place = Place::new();
        let schema = TableSchema::builder()
            .column("p", "STRING".parse().unwrap())
            .column("k", "INT".parse().unwrap())
            .primary_key(["p", "k"])
            .partition_keys(["p"])
            .option("bucket", "1")
            .option("write.sequence-number-init-mode", mode);
        let table = place.create(schema).await;
        let mut seen = Vec::new();
        for rows in [&[("a", 1), ("a", 2), ("a", 3)][..], &[("b", 1)], &[("b", 2)]] {
            let builder = table.write_builder();
            let mut write = builder.new_write().unwrap();
            write.write(&partitioned(rows)).await.unwrap();
            let messages = write.prepare_commit(true).await.unwrap();
            let file = &messages[0].increment.data.new_files[0];
            seen.push((file.min_sequence_number, file.max_sequence_number));
            write.abort().await;
            builder.new_commit().unwrap().commit(1, messages).await.unwrap();
        }
        assert_eq!(seen, numbers, "{mode}");
        // Compactions and commits without files keep the number.
        table.compact_builder().full(true).run().await.unwrap();
        table
            .write_builder()
            .new_commit()
            .unwrap()
            .with_empty_commits()
            .commit(9, Vec::new())
            .await
            .unwrap();
        let noted = table.snapshots(1).await.unwrap()[0].max_sequence_number().unwrap();
        assert_eq!(noted, (mode == "snapshot").then_some(4));
    }
}

/// Each key is written 50 times. What comes out is the same with and without merging first; what reaches the buckets is not.
#[tokio::test]
async fn equal_keys_are_merged_before_they_are_buffered() {
    let engines: [&[(&str, &str)]; 4] = [
        &[],
        &[("merge-engine", "first-row")],
        &[
            ("merge-engine", "aggregation"),
            ("fields.v.aggregate-function", "listagg"),
        ],
        &[("merge-engine", "deduplicate"), ("sequence.field", "v")],
    ];
    for options in engines {
        let mut results = Vec::new();
        for local in [None, Some("4 mb"), Some("1 kb")] {
            let place = Place::new();
            let schema = kv_schema().option("bucket", "2").option("write-only", "true");
            let schema = options
                .iter()
                .fold(schema, |schema, (key, value)| schema.option(*key, *value));
            let schema = local
                .iter()
                .fold(schema, |schema, size| schema.option("local-merge-buffer-size", *size));
            let table = place.create(schema).await;
            let builder = table.write_builder();
            let mut write = builder.new_write().unwrap();
            for round in 0..50 {
                let value = format!("{}", (round * 37) % 50);
                let rows: Vec<_> = (0..20).map(|key| ("+I", key, value.as_str())).collect();
                let (batch, kinds) = kv(&rows);
                write.write_with_kinds(&batch, &kinds).await.unwrap();
            }
            let messages = write.prepare_commit(true).await.unwrap();
            write.abort().await;
            let numbers = messages.iter().flat_map(|message| &message.increment.data.new_files);
            let last = numbers.map(|file| file.max_sequence_number).max().unwrap();
            builder.new_commit().unwrap().commit(1, messages).await.unwrap();
            let keeps_first = options.first().is_some_and(|(_, engine)| *engine == "first-row");
            match local {
                Some("4 mb") => assert!(last < 20, "{options:?}: {last} rows reached the bucket"),
                // The first row of a key has a small number in any case.
                _ => assert!(keeps_first || last > 20, "{options:?}: {last}"),
            }
            if keeps_first {
                // Reads do not see its level 0.
                table.compact_builder().full(true).run().await.unwrap();
            }
            results.push(rows(&table).await);
        }
        assert_eq!(results[0].len(), 20, "{options:?}");
        assert!(
            results.iter().all(|rows| *rows == results[0]),
            "{options:?}: {results:?}"
        );
    }
}

#[tokio::test]
async fn deletes_and_dropped_writers_of_a_local_merge() {
    let place = Place::new();
    let table = place
        .create(kv_schema().option("local-merge-buffer-size", "1 mb"))
        .await;
    commit(
        &table,
        &[("+I", 1, "a"), ("+I", 2, "a"), ("-D", 1, "a"), ("+I", 3, "a")],
    )
    .await;
    assert_eq!(rows(&table).await, ["2 a", "3 a"]);
    commit(&table, &[("-D", 2, "a"), ("+I", 4, "a"), ("-D", 4, "a")]).await;
    assert_eq!(rows(&table).await, ["3 a"]);
}
