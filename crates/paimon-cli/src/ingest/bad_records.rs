//! Records that cannot be used.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};

use paimon_cdc::Position;
use serde_json::json;

use crate::error::CliError;

/// Where bad records go. Each is on disk before anything behind it is committed, so none is ever lost; after a run was killed, those behind
/// its last commit are noted once more.
pub(crate) struct BadRecords {
    file: Option<(PathBuf, File)>,
    limit: Option<u64>,
    count: u64,
}

impl BadRecords {
    /// Appends them to a file, and fails beyond `limit`; without a file the first one fails.
    pub(crate) fn open(path: Option<&Path>, limit: Option<u64>) -> Result<Self, CliError> {
        let open = |path: &Path| {
            let file = OpenOptions::new().create(true).append(true).open(path);
            let file = file.map_err(|error| CliError::file(path.display(), error))?;
            Ok::<_, CliError>((path.to_owned(), file))
        };
        Ok(Self {
            file: path.map(open).transpose()?,
            limit,
            count: 0,
        })
    }

    /// Notes a record as a line of JSON: `input`, `line`, `byte` (where it begins), `error`, and `record` as text; `null` when it was too long.
    ///
    /// Errors: `Input`, naming the record, without a file or beyond the limit; `File`.
    pub(super) fn note(&mut self, position: &Position, error: &str, record: Option<&[u8]>) -> Result<(), CliError> {
        let fail = |message: String| CliError::Input {
            input: position.input.to_string(),
            line: usize::try_from(position.line).unwrap_or(usize::MAX),
            message,
        };
        let Some((path, file)) = &mut self.file else {
            return Err(fail(error.to_owned()));
        };
        let line = json!({
            "input": &*position.input,
            "line": position.line,
            "byte": position.start,
            "error": error,
            "record": record.map(String::from_utf8_lossy),
        });
        let written = writeln!(file, "{line}").and_then(|()| file.sync_data());
        written.map_err(|error| CliError::file(path.display(), error))?;
        self.count += 1;
        match self.limit {
            Some(limit) if self.count > limit => Err(fail(format!(
                "{error} (bad record {}, but --max-bad-records is {limit})",
                self.count
            ))),
            _ => Ok(()),
        }
    }
}
