//! `paimon files`.

use clap::Args;
use serde_json::json;

use crate::args::ViewArgs;
use crate::error::CliError;
use crate::output::{Grid, bytes, rows};
use crate::session::Session;

/// List the data files of a snapshot
#[derive(Debug, Args)]
pub(crate) struct Files {
    #[command(flatten)]
    view: ViewArgs,
}

impl Files {
    pub(crate) async fn run(self, session: &mut Session<'_>) -> Result<(), CliError> {
        let (_, buckets) = session.buckets(&self.view).await?;
        let mut grid = Grid::new([
            "bucket",
            ">level",
            "file",
            ">size",
            ">rows",
            ">deletes",
            "min key",
            "max key",
            ">sequence",
        ]);
        for bucket in &buckets {
            for run in bucket.runs() {
                for file in run.run.files() {
                    if session.json {
                        session.console.json(&json!({
                            "bucket": bucket.name(),
                            "partition": bucket.partition.to_map(),
                            "bucketId": bucket.bucket,
                            "level": file.level,
                            "file": file.file_name,
                            "bytes": file.file_size,
                            "rows": file.row_count,
                            "deletes": file.delete_row_count,
                            "deletedRows": bucket.deleted_rows(file),
                            "minKey": bucket.key_text(&file.min_key)?,
                            "maxKey": bucket.key_text(&file.max_key)?,
                            "minSequence": file.min_sequence_number,
                            "maxSequence": file.max_sequence_number,
                            "schemaId": file.schema_id,
                        }))?;
                        continue;
                    }
                    grid.row([
                        bucket.name().to_owned(),
                        file.level.to_string(),
                        file.file_name.clone(),
                        bytes(u64::try_from(file.file_size).unwrap_or(0)),
                        rows(file.row_count, bucket.deleted_rows(file)),
                        file.delete_row_count
                            .map_or_else(|| "?".to_owned(), |count| count.to_string()),
                        bucket.key_text(&file.min_key)?,
                        bucket.key_text(&file.max_key)?,
                        format!("{}..{}", file.min_sequence_number, file.max_sequence_number),
                    ]);
                }
            }
        }
        if session.json {
            Ok(())
        } else if grid.is_empty() {
            session.console.line("no data files")
        } else {
            session.console.print(grid)
        }
    }
}
