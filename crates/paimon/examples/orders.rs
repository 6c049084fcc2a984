//! Writes, updates, compacts and reads a small table: `cargo run -p paimon --example orders`.

use std::sync::Arc;

use arrow_array::{ArrayRef, Int8Array, Int64Array, RecordBatch, StringArray};
use futures::TryStreamExt;
use paimon::format::predicate::Predicate;
use paimon::format::types::RowKind;
use paimon::{Catalog, Context, FileSystemCatalog, Identifier, TableSchema};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let dir = tempfile::tempdir()?;
    let warehouse = dir.path().to_str().ok_or("the temporary folder has no UTF-8 name")?;
    let catalog = FileSystemCatalog::new(warehouse, Context::system()?);
    let schema = TableSchema::builder()
        .column("id", "BIGINT".parse()?)
        .column("status", "STRING".parse()?)
        .primary_key(["id"])
        .option("bucket", "1");
    let table = catalog.create_table(&Identifier::new("shop", "orders"), schema).await?;

    let builder = table.write_builder();
    let (mut write, commit) = (builder.new_write()?, builder.new_commit()?);
    let changes = [
        [(RowKind::Insert, 1, "placed"), (RowKind::Insert, 2, "placed")],
        [(RowKind::UpdateAfter, 1, "paid"), (RowKind::Delete, 2, "placed")],
    ];
    for (identifier, changes) in (1..).zip(changes) {
        let ids: ArrayRef = Arc::new(Int64Array::from_iter_values(changes.iter().map(|change| change.1)));
        let statuses: ArrayRef = Arc::new(StringArray::from_iter_values(changes.iter().map(|change| change.2)));
        let batch = RecordBatch::try_from_iter([("id", ids), ("status", statuses)])?;
        let kinds = Int8Array::from_iter_values(changes.iter().map(|change| change.0 as i8));
        write.write_with_kinds(&batch, &kinds).await?;
        let snapshots = commit.commit(identifier, write.prepare_commit(true).await?).await?;
        println!("commit {identifier} made snapshots {snapshots:?}");
    }
    write.abort().await;

    let report = table.compact_builder().full(true).run().await?;
    let (input, output) = report.totals();
    println!("compacted {} rows into {}", input.rows, output.rows);

    let paid = Predicate::parse("status = 'paid'", &table.schema().fields)?;
    let read = table.read_builder().filter(paid);
    let plan = read.new_scan().plan().await?;
    let batches: Vec<RecordBatch> = read.new_read().stream(plan.splits)?.try_collect().await?;
    println!(
        "{} row is paid",
        batches.iter().map(RecordBatch::num_rows).sum::<usize>()
    );
    Ok(())
}
