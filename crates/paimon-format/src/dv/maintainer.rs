//! The deletion vectors of a bucket while it is written.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use super::{DeletionVector, DeletionVectorsIndexFile};
use crate::FormatError;
use crate::meta::{DELETION_VECTORS_INDEX, DataFileMeta, IndexFileMeta};

/// The vectors of a bucket at a moment, by data file.
pub type DeletionVectors = HashMap<String, Arc<DeletionVector>>;

/// The vectors of a bucket: takes what compactions delete, and writes all of them when something changed.
///
/// Owned by the bucket's writer. A task gets a [`snapshot`](Self::snapshot), which later changes do not touch.
///
/// Source: `org.apache.paimon.deletionvectors.BucketedDvMaintainer`.
#[derive(Clone, Debug)]
pub struct BucketDvMaintainer {
    index: DeletionVectorsIndexFile,
    vectors: Arc<DeletionVectors>,
    modified: bool,
    /// Where the vectors were read from, or written to last.
    stored: Vec<IndexFileMeta>,
}

/// A new index file with all vectors of a bucket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WrittenDeletionVectors {
    /// The new file.
    pub file: IndexFileMeta,
    /// What it takes the place of: the file written before it, or those that the vectors were restored from. Naming them in the commit
    /// shows whether somebody else has changed the bucket's vectors meanwhile.
    pub replaced: Vec<IndexFileMeta>,
}

impl BucketDvMaintainer {
    /// Of a bucket without vectors.
    pub fn new(index: DeletionVectorsIndexFile) -> Self {
        Self {
            index,
            vectors: Arc::default(),
            modified: false,
            stored: Vec::new(),
        }
    }

    /// Of a bucket with these index files (other types than deletion vectors are passed over) and data files. Vectors of data files that are
    /// not there are left out.
    ///
    /// Errors: `Corrupt`, `NotFound`, `Unavailable`, naming the index file.
    pub async fn restore(
        index: DeletionVectorsIndexFile,
        index_files: &[Arc<IndexFileMeta>],
        data_files: &[Arc<DataFileMeta>],
    ) -> Result<Self, FormatError> {
        let live: HashSet<&str> = data_files.iter().map(|file| file.file_name.as_str()).collect();
        let of_vectors = |file: &&Arc<IndexFileMeta>| file.index_type == DELETION_VECTORS_INDEX;
        let mut vectors = HashMap::new();
        let mut stored = Vec::new();
        for file in index_files.iter().filter(of_vectors) {
            vectors.extend(index.read(file, |name| live.contains(name)).await?);
            stored.push(file.as_ref().clone());
        }
        Ok(Self {
            index,
            vectors: Arc::new(vectors),
            modified: false,
            stored,
        })
    }

    /// The vectors as they are now. Costs nothing; the next change after it copies the map, but not the vectors that it does not touch.
    pub fn snapshot(&self) -> Arc<DeletionVectors> {
        Arc::clone(&self.vectors)
    }

    /// The deleted rows of a file.
    pub fn deletion_vector_of(&self, file: &str) -> Option<&Arc<DeletionVector>> {
        self.vectors.get(file)
    }

    /// Whether something changed since the last index file.
    pub fn is_modified(&self) -> bool {
        self.modified
    }

    /// Deletes a row of a file. `false`: it was deleted already.
    ///
    /// Errors: `Invalid` for a row that no vector of the table's kind can hold; nothing is changed.
    pub fn notify_new_deletion(&mut self, file: &str, row: u64) -> Result<bool, FormatError> {
        self.index.kind().check_row(file, row)?;
        let known = self.vectors.get(file);
        if known.is_some_and(|vector| vector.contains(row)) {
            return Ok(false);
        }
        Arc::make_mut(self.vector_mut(file)).insert(row);
        self.modified = true;
        Ok(true)
    }

    /// Deletes rows of a file, together with those that are deleted already. `false`: all of them were.
    ///
    /// Errors as [`notify_new_deletion`](Self::notify_new_deletion).
    pub fn merge_new_deletion(&mut self, file: &str, rows: &DeletionVector) -> Result<bool, FormatError> {
        let Some(last) = rows.max() else { return Ok(false) };
        self.index.kind().check_row(file, last)?;
        let added = Arc::make_mut(self.vector_mut(file)).merge(rows);
        self.modified |= added;
        Ok(added)
    }

    /// The file has left the bucket, its vector with it. `false`: it had none.
    pub fn remove_deletion_vector_of(&mut self, file: &str) -> bool {
        let removed = self.vectors.contains_key(file);
        if removed {
            Arc::make_mut(&mut self.vectors).remove(file);
            self.modified = true;
        }
        removed
    }

    /// Writes a new index file with all vectors of the bucket, by name of the data file, if something changed since the last one.
    ///
    /// Errors: `Unavailable`: there may be a file; it can be tried again.
    pub async fn write_deletion_vectors_index(&mut self) -> Result<Option<WrittenDeletionVectors>, FormatError> {
        if !self.modified {
            return Ok(None);
        }
        let mut vectors: Vec<(&str, &DeletionVector)> = self
            .vectors
            .iter()
            .map(|(file, vector)| (file.as_str(), vector.as_ref()))
            .collect();
        vectors.sort_unstable_by_key(|(file, _)| *file);
        let file = self.index.write(vectors).await?;
        self.modified = false;
        let replaced = std::mem::replace(&mut self.stored, vec![file.clone()]);
        Ok(Some(WrittenDeletionVectors { file, replaced }))
    }

    /// Reads and writes the bucket's index files.
    pub fn index(&self) -> &DeletionVectorsIndexFile {
        &self.index
    }

    fn vector_mut(&mut self, file: &str) -> &mut Arc<DeletionVector> {
        Arc::make_mut(&mut self.vectors).entry(file.to_owned()).or_default()
    }
}
