//! Schema changes: races, and what the files that are there forbid.

use paimon::{ErrorKind, SchemaChange, Table, TimeTravel};

use crate::support::{Place, commit, kv_schema, rows, rows_of, shape, with};

fn set(key: &str, value: &str) -> [SchemaChange; 1] {
    [SchemaChange::SetOption {
        key: key.to_owned(),
        value: value.to_owned(),
    }]
}

/// A table of all values of a key, joined, with these options.
async fn listing(place: &Place, options: &[(&str, &str)]) -> Table {
    let schema = kv_schema()
        .option("merge-engine", "aggregation")
        .option("fields.v.aggregate-function", "listagg");
    let schema = options
        .iter()
        .fold(schema, |schema, (key, value)| schema.option(*key, *value));
    place.create(schema).await
}

/// `1 a` on the top level below many larger rows, then `1 b` on a level between.
async fn on_two_levels(table: &Table) {
    let texts: Vec<String> = (10..60).map(|k| format!("{k:0>200}")).collect();
    let large: Vec<_> = (10..).zip(&texts).map(|(k, text)| ("+I", k, text.as_str())).collect();
    commit(table, &large).await;
    commit(table, &[("+I", 1, "a")]).await;
    table.compact_builder().full(true).run().await.unwrap();
    commit(table, &[("+I", 1, "b")]).await;
}

async fn row_1(table: &Table) -> String {
    rows(table).await.swap_remove(0)
}

#[tokio::test]
async fn complete_states_do_not_become_parts() {
    let place = Place::new();
    let table = listing(&place, &[("changelog-producer", "lookup")]).await;
    on_two_levels(&table).await;
    assert_eq!(shape(&table).await, "L4:1 L5:51");
    assert_eq!(row_1(&table).await, "1 a,b");
    let before = table.snapshot_store().latest_id().await.unwrap().unwrap();

    let error = table.alter(&set("changelog-producer", "none")).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid);
    let message = error.to_string();
    let end = "on level 4 holds complete states of its keys, and would be taken for changes with 'changelog-producer' = 'none': run a full \
               compaction with the options of schema 0 before they change";
    assert!(
        message.starts_with("bucket-0: data-") && message.ends_with(end),
        "{message}"
    );
    assert_eq!(table.schemas().list_ids().await.unwrap(), [0], "nothing has changed");

    table.compact_builder().full(true).run().await.unwrap();
    let table = table.alter(&set("changelog-producer", "none")).await.unwrap();
    assert_eq!(row_1(&table).await, "1 a,b");
    commit(&table, &[("+I", 1, "c")]).await;
    assert_eq!(row_1(&table).await, "1 a,b,c");

    // The old snapshot still has its meaning, which the new options do not know.
    let read = table.read_builder().time_travel(TimeTravel::SnapshotId(before));
    let error = read.new_scan().plan().await.unwrap_err().to_string();
    assert!(error.ends_with(end), "{error}");
    let table = table.alter(&set("changelog-producer", "lookup")).await.unwrap();
    let read = table.read_builder().time_travel(TimeTravel::SnapshotId(before));
    assert!(rows_of(read).await.contains(&"1 a,b".to_owned()));
}

#[tokio::test]
async fn parts_do_not_become_complete_states() {
    let place = Place::new();
    let table = listing(&place, &[("compaction.force-up-level-0", "true")]).await;
    on_two_levels(&table).await;
    assert_eq!(shape(&table).await, "L4:1 L5:51");
    let to_lookup = set("changelog-producer", "lookup");
    let error = table.alter(&to_lookup).await.unwrap_err().to_string();
    assert!(
        error.contains("on level 4 holds changes of its keys, and would be taken for complete states"),
        "{error}"
    );
    table.compact_builder().full(true).run().await.unwrap();
    let lookup = table.alter(&to_lookup).await.unwrap();
    assert_eq!(row_1(&lookup).await, "1 a,b");

    // A writer that does not know of the change yet: what it compacts is not misread, and not built upon.
    commit(&table, &[("+I", 1, "c")]).await;
    assert_eq!(shape(&table).await, "L4:1 L5:51");
    for error in [
        lookup.read_builder().new_scan().plan().await.unwrap_err(),
        lookup.compact_builder().full(true).run().await.unwrap_err(),
    ] {
        assert!(
            error.to_string().contains("on level 4 holds changes of its keys"),
            "{error}"
        );
    }
    let table = lookup.alter(&set("changelog-producer", "none")).await.unwrap();
    assert_eq!(row_1(&table).await, "1 a,b,c");
}

#[tokio::test]
async fn engines_that_do_not_mind_change_at_once() {
    let place = Place::new();
    let table = place
        .create(kv_schema().option("compaction.force-up-level-0", "true"))
        .await;
    on_two_levels(&table).await;
    let table = table.alter(&set("changelog-producer", "lookup")).await.unwrap();
    assert_eq!(row_1(&table).await, "1 b");
}

#[tokio::test]
async fn levels_that_hold_files_stay() {
    let place = Place::new();
    let table = place
        .create(kv_schema().option("changelog-producer", "full-compaction"))
        .await;
    commit(&table, &[("+I", 1, "a")]).await;
    table.compact_builder().full(true).run().await.unwrap();
    assert_eq!(shape(&table).await, "L5:1");
    let refused = |levels| {
        let table = table.clone();
        async move { table.alter(&set("num-levels", levels)).await.unwrap_err().to_string() }
    };
    assert_eq!(
        refused("5").await,
        "bucket-0: option 'num-levels' cannot become 5 (its default is 'num-sorted-run.compaction-trigger' + 1): there are files on level 5"
    );
    assert_eq!(
        refused("7").await,
        "bucket-0: option 'num-levels' cannot become 7 (its default is 'num-sorted-run.compaction-trigger' + 1): there are files on level \
         5, and with 'changelog-producer' = 'full-compaction' changes would be told twice or never"
    );
    let trigger = table
        .alter(&set("num-sorted-run.compaction-trigger", "3"))
        .await
        .unwrap_err();
    assert!(
        trigger.to_string().contains("'num-levels' cannot become 4"),
        "{trigger}"
    );
    let table = table.alter(&set("changelog-producer", "none")).await.unwrap();
    let table = table.alter(&set("num-levels", "7")).await.unwrap();
    assert_eq!(rows(&table).await, ["1 a"]);
}

#[tokio::test]
async fn deletion_vectors_come_and_go_where_no_row_is_seen_twice() {
    let place = Place::new();
    let table = place
        .create(kv_schema().option("compaction.force-up-level-0", "true"))
        .await;
    on_two_levels(&table).await;
    let (on, off) = (
        set("deletion-vectors.enabled", "true"),
        set("deletion-vectors.enabled", "false"),
    );
    let error = table.alter(&on).await.unwrap_err().to_string();
    assert!(
        error.contains("'deletion-vectors.modifiable' = 'true' in the table's schema allows it"),
        "{error}"
    );
    let table = table.alter(&set("deletion-vectors.modifiable", "true")).await.unwrap();
    assert_eq!(
        table.alter(&on).await.unwrap_err().to_string(),
        "bucket-0: option 'deletion-vectors.enabled' cannot become true while there are files on several levels above 0, because keys \
         would be seen twice: run a full compaction first"
    );
    table.compact_builder().full(true).run().await.unwrap();
    let table = table.alter(&on).await.unwrap();
    commit(&table, &[("-D", 1, "b")]).await;
    assert!(!rows(&table).await.iter().any(|row| row.starts_with("1 ")));
    assert_eq!(
        table.alter(&off).await.unwrap_err().to_string(),
        "bucket-0: option 'deletion-vectors.enabled' cannot become false while there are deletion vectors, because deleted rows would be \
         seen again: run a full compaction first"
    );
    table.compact_builder().full(true).run().await.unwrap();
    let table = table.alter(&off).await.unwrap();
    assert!(!rows(&table).await.iter().any(|row| row.starts_with("1 ")));
}

#[tokio::test]
async fn who_loses_the_race_builds_on_the_winner() {
    let place = Place::on_threads();
    let table = place.create(kv_schema()).await;
    let racing = (0..10).map(|i| {
        let table = with(&table, "write-only", "true");
        async move {
            let change = SchemaChange::AddColumn {
                name: format!("c{i}"),
                data_type: "INT".parse().unwrap(),
                comment: None,
            };
            table.alter(&[change]).await
        }
    });
    futures::future::try_join_all(racing).await.unwrap();
    let table = table.refreshed().await.unwrap();
    assert_eq!((table.schema().id, table.schema().fields.len()), (10, 12));
    assert_eq!(
        table.options().get("write-only"),
        None,
        "the options of a use do not get into the schema"
    );
}

#[tokio::test]
async fn a_dropped_column_takes_its_options_along_or_stays() {
    let place = Place::new();
    let table = listing(&place, &[]).await;
    commit(&table, &[("+I", 1, "a")]).await;
    let drop = SchemaChange::DropColumn { name: "v".to_owned() };
    let error = table.alter(std::slice::from_ref(&drop)).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "option 'fields.v.aggregate-function': the table has no column v"
    );
    let add = SchemaChange::AddColumn {
        name: "v".to_owned(),
        data_type: "STRING".parse().unwrap(),
        comment: None,
    };
    let table = table.alter(&[drop, add]).await.unwrap();
    commit(&table, &[("+I", 2, "b")]).await;
    assert_eq!(
        rows(&table).await,
        ["1 null", "2 b"],
        "a column of the same name is a new one"
    );
}
