//! One sorted run, read batch by batch.

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;

use futures::StreamExt;
use paimon_format::FormatError;
use paimon_format::kv::{KvBatch, KvFiles, KvStream, ReadSpec};
use paimon_format::meta::DataFileMeta;

use super::spill::{SpilledReader, SpilledRun};
use crate::LsmError;

/// A run before it is opened.
#[derive(Debug)]
pub(super) enum RunSource {
    /// Data files in key order.
    Files(Vec<Arc<DataFileMeta>>),
    /// A local file made by an earlier pass.
    Spilled(SpilledRun),
}

impl RunSource {
    /// Bytes on disk, for choosing the smallest.
    pub(super) fn size(&self) -> u64 {
        match self {
            Self::Files(files) => files
                .iter()
                .map(|file| u64::try_from(file.file_size).unwrap_or(0))
                .fold(0, u64::saturating_add),
            Self::Spilled(run) => run.bytes(),
        }
    }
}

/// Reads a run. Opens one file at a time, when the one before is at its end.
pub(super) struct RunReader {
    files: VecDeque<(Arc<DataFileMeta>, ReadSpec)>,
    opener: Arc<dyn KvFiles>,
    open: Option<Open>,
    /// The file read last, for messages.
    name: String,
}

enum Open {
    File(KvStream),
    Spilled(SpilledReader),
}

impl fmt::Debug for RunReader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RunReader")
            .field("name", &self.name)
            .field("files_left", &self.files.len())
            .finish_non_exhaustive()
    }
}

impl RunReader {
    pub(super) fn of_files(opener: Arc<dyn KvFiles>, files: Vec<(Arc<DataFileMeta>, ReadSpec)>) -> Self {
        Self {
            files: files.into(),
            opener,
            open: None,
            name: String::new(),
        }
    }

    pub(super) fn of_spilled(opener: Arc<dyn KvFiles>, reader: SpilledReader) -> Self {
        Self {
            files: VecDeque::new(),
            opener,
            name: reader.name(),
            open: Some(Open::Spilled(reader)),
        }
    }

    /// The next batch with rows; `None` at the end of the run, and ever after.
    pub(super) async fn next_batch(&mut self) -> Result<Option<KvBatch>, LsmError> {
        loop {
            let batch = match &mut self.open {
                Some(Open::File(stream)) => stream.next().await.transpose()?,
                Some(Open::Spilled(reader)) => reader.next_batch().await?,
                None => match self.files.pop_front() {
                    Some((file, spec)) => {
                        self.name.clone_from(&file.file_name);
                        self.open = Some(Open::File(self.opener.open(&file, spec)));
                        continue;
                    }
                    None => return Ok(None),
                },
            };
            match batch {
                Some(batch) if batch.is_empty() => {}
                Some(batch) => return Ok(Some(batch)),
                None => self.open = None,
            }
        }
    }

    /// The error for keys that are not in order. They may also be in the file before, when the order breaks between two.
    pub(super) fn unsorted(&self) -> LsmError {
        FormatError::corrupt(&self.name, "its keys are not in order, or begin below the end of the file before it in the run").into()
    }
}
