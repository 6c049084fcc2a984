//! One sorted run, read batch by batch.

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;

use futures::StreamExt;
use paimon_format::FormatError;
use paimon_format::kv::{KvBatch, KvFiles, KvStream, ReadSpec};
use paimon_format::meta::DataFileMeta;

use crate::LsmError;
use crate::compact::KeyCut;
use crate::levels::SortedRun;
use crate::spill::SpillFile;

/// A run before it is opened.
#[derive(Debug)]
pub(super) enum RunSource {
    /// Data files in key order.
    Files(SortedRun),
    /// A local file made by an earlier pass.
    Spilled(Arc<SpillFile>),
}

impl RunSource {
    /// Bytes on disk, for choosing the smallest.
    pub(super) fn size(&self) -> u64 {
        match self {
            Self::Files(run) => run.total_size(),
            Self::Spilled(file) => file.bytes(),
        }
    }
}

/// Reads a run. Opens one file at a time, when the one before is at its end.
pub(super) struct RunReader {
    files: VecDeque<(Arc<DataFileMeta>, ReadSpec)>,
    /// `None` when there are no files to open.
    opener: Option<Arc<dyn KvFiles>>,
    open: Option<KvStream>,
    /// `None`: all rows are wanted.
    cut: Option<Arc<KeyCut>>,
    /// The file read last, for messages.
    name: String,
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
    pub(super) fn of_files(
        opener: Arc<dyn KvFiles>,
        files: Vec<(Arc<DataFileMeta>, ReadSpec)>,
        cut: Option<Arc<KeyCut>>,
    ) -> Self {
        Self {
            cut,
            files: files.into(),
            opener: Some(opener),
            open: None,
            name: String::new(),
        }
    }

    /// A run that is a stream already. `name` is for messages.
    pub(super) fn of_stream(name: &str, stream: KvStream) -> Self {
        Self {
            files: VecDeque::new(),
            cut: None,
            opener: None,
            name: name.to_owned(),
            open: Some(stream),
        }
    }

    /// The next batch with rows; `None` at the end of the run, and ever after.
    pub(super) async fn next_batch(&mut self) -> Result<Option<KvBatch>, LsmError> {
        loop {
            let batch = match &mut self.open {
                Some(stream) => stream.next().await.transpose()?,
                None => match (self.files.pop_front(), &self.opener) {
                    (Some((file, spec)), Some(opener)) => {
                        self.name.clone_from(&file.file_name);
                        self.open = Some(opener.open(&file, spec));
                        continue;
                    }
                    _ => return Ok(None),
                },
            };
            match batch {
                Some(batch) => {
                    let batch = self.within(batch);
                    if !batch.is_empty() {
                        return Ok(Some(batch));
                    }
                }
                None => self.open = None,
            }
        }
    }

    /// What of a batch is wanted. Behind the last key that is, nothing more is read.
    fn within(&mut self, batch: KvBatch) -> KvBatch {
        let Some(cut) = &self.cut else { return batch };
        let (batch, ends) = cut.cut(&batch);
        if ends {
            self.files.clear();
            self.open = None;
        }
        batch
    }

    /// The error for keys that are not in order. They may also be in the file before, when the order breaks between two.
    pub(super) fn unsorted(&self) -> LsmError {
        FormatError::corrupt(
            &self.name,
            "its keys are not in order, or begin below the end of the file before it in the run",
        )
        .into()
    }
}
