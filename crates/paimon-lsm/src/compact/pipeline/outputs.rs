//! Where a merge writes.

use std::collections::BTreeMap;

use paimon_format::FormatError;
use paimon_format::dv::DeletionVector;
use paimon_format::kv::{BatchSink, KvFiles};
use paimon_format::meta::DataFileMeta;

use super::work::Output;
use crate::LsmError;
use crate::compact::delete_quietly;

/// Sinks of one merge; what has no sink is not made.
pub struct MergeSinks {
    /// For merged rows.
    pub data: Option<Box<dyn BatchSink>>,
    /// For changes.
    pub changelog: Option<Box<dyn BatchSink>>,
}

/// What a merge wrote and found out.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Merged {
    /// Files of merged rows, in key order.
    pub data: Vec<DataFileMeta>,
    /// Changelog files, in key order.
    pub changelog: Vec<DataFileMeta>,
    /// Looked-up rows that the merged ones replace, by name of their file.
    pub deletions: BTreeMap<String, DeletionVector>,
}

impl MergeSinks {
    /// Merged rows only.
    pub fn data(sink: Box<dyn BatchSink>) -> Self {
        Self {
            data: Some(sink),
            changelog: None,
        }
    }

    pub(super) async fn write(&mut self, output: &Output) -> Result<(), FormatError> {
        match (output, &mut self.data, &mut self.changelog) {
            (Output::Data(batch), Some(sink), _) | (Output::Changelog(batch), _, Some(sink)) => sink.write(batch).await,
            _ => Err(FormatError::internal("a merge made rows that nobody asked for")),
        }
    }

    /// Ends both. On an error none of their files is left.
    pub(super) async fn finish(self, files: &dyn KvFiles) -> Result<Merged, LsmError> {
        let data = match self.data {
            Some(sink) => sink.finish().await,
            None => Ok(Vec::new()),
        };
        let changelog = match (self.changelog, data.is_ok()) {
            (Some(sink), true) => sink.finish().await,
            (Some(sink), false) => {
                sink.abort().await;
                Ok(Vec::new())
            }
            (None, _) => Ok(Vec::new()),
        };
        match (data, changelog) {
            (Ok(data), Ok(changelog)) => Ok(Merged {
                data,
                changelog,
                ..Merged::default()
            }),
            (Ok(data), Err(error)) => {
                for file in &data {
                    delete_quietly(files, file).await;
                }
                Err(error.into())
            }
            (Err(error), _) => Err(error.into()),
        }
    }

    /// Deletes all that was written.
    pub(super) async fn abort(self) {
        for sink in [self.data, self.changelog].into_iter().flatten() {
            sink.abort().await;
        }
    }
}
