//! Reads and writes the files below `manifest/`.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use futures::StreamExt;
use futures::stream::BoxStream;
use paimon_format::ErrorKind;
use paimon_format::env::Env;
use paimon_format::storage::Storage;
use paimon_format::types::{DataField, DataType};

use super::avro::{AvroResult, ContainerWriter, Encoder, Value, read_container};
use super::entry::ManifestEntry;
use super::index::IndexManifestEntry;
use super::meta::{ManifestFileMeta, ManifestSummary};
use super::schemas;
use super::settings::ManifestSettings;
use crate::error::{ManifestError, Result};

/// After so many entries the size of a manifest is looked at, as in Java.
const ROLL_CHECK_ENTRIES: usize = 1000;

/// The manifests, manifest lists and index manifests of a table. Cheap to clone; clones share the counters of file names.
///
/// Source: `org.apache.paimon.manifest.{ManifestFile, ManifestList, IndexManifestFile}`.
#[derive(Clone, Debug)]
pub struct ManifestFiles {
    storage: Arc<dyn Storage>,
    env: Env,
    partition_fields: Arc<[DataField]>,
    partition_types: Arc<[DataType]>,
    settings: ManifestSettings,
    names: Arc<FileNames>,
}

#[derive(Debug)]
struct FileNames {
    uuid: String,
    manifests: AtomicU64,
    lists: AtomicU64,
    index_manifests: AtomicU64,
}

/// A manifest list that was written: what a snapshot says about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WrittenList {
    /// Name only.
    pub name: String,
    /// Bytes.
    pub size: i64,
}

/// Names of metadata files that a commit has made and no snapshot names yet; noted before they are written, so that none is
/// forgotten.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CreatedFiles {
    names: Vec<String>,
}

impl ManifestFiles {
    /// The manifests of a table with these partition columns. Draws one id for the names of new files.
    pub fn new(
        storage: Arc<dyn Storage>,
        env: Env,
        partition_fields: impl Into<Arc<[DataField]>>,
        settings: ManifestSettings,
    ) -> Self {
        let partition_fields = partition_fields.into();
        let names = FileNames {
            uuid: env.ids.uuid(),
            manifests: AtomicU64::new(0),
            lists: AtomicU64::new(0),
            index_manifests: AtomicU64::new(0),
        };
        Self {
            storage,
            env,
            partition_types: partition_fields.iter().map(|field| field.data_type.clone()).collect(),
            partition_fields,
            settings,
            names: Arc::new(names),
        }
    }

    /// A manifest list, in its order. `size` is the snapshot's; a file of another size is refused.
    ///
    /// Errors: `NotFound`, `Corrupt`, naming the file.
    pub async fn read_list(&self, name: &str, size: Option<i64>) -> Result<Vec<ManifestFileMeta>> {
        self.read(name, size, ManifestFileMeta::decode).await
    }

    /// The entries of a manifest, in its order. Errors as [`read_list`](Self::read_list).
    pub async fn read_manifest(&self, manifest: &ManifestFileMeta) -> Result<Vec<ManifestEntry>> {
        self.read(&manifest.file_name, Some(manifest.file_size), ManifestEntry::decode)
            .await
    }

    /// The entries of several manifests, manifest by manifest in their order; `scan.manifest.parallelism` of them are read at a time.
    /// Nothing is read before the stream is polled.
    pub fn read_manifests(&self, manifests: Vec<ManifestFileMeta>) -> BoxStream<'static, Result<Vec<ManifestEntry>>> {
        let files = self.clone();
        futures::stream::iter(manifests)
            .map(move |manifest| {
                let files = files.clone();
                async move { files.read_manifest(&manifest).await }
            })
            .buffered(self.settings.read_parallelism)
            .boxed()
    }

    /// The entries of an index manifest, in its order. Errors as [`read_list`](Self::read_list).
    pub async fn read_index(&self, name: &str) -> Result<Vec<IndexManifestEntry>> {
        self.read(name, None, IndexManifestEntry::decode).await
    }

    /// Writes manifests, a new one whenever one has reached `manifest.target-file-size`. No entries: no manifest.
    pub async fn write_manifests(
        &self,
        entries: &[ManifestEntry],
        created: &mut CreatedFiles,
    ) -> Result<Vec<ManifestFileMeta>> {
        let mut writer = self.rolling_writer();
        writer.write(entries, created).await?;
        writer.finish(created).await
    }

    /// Writes a manifest list, an empty one too.
    pub async fn write_list(&self, manifests: &[ManifestFileMeta], created: &mut CreatedFiles) -> Result<WrittenList> {
        let name = self.names.next("manifest-list", &self.names.lists);
        let bytes = self.encode(schemas::MANIFEST_LIST, manifests, ManifestFileMeta::encode)?;
        let size = self.upload(&name, bytes, created).await?;
        Ok(WrittenList { name, size })
    }

    /// Writes an index manifest, an empty one too. Returns its name.
    pub async fn write_index(&self, entries: &[IndexManifestEntry], created: &mut CreatedFiles) -> Result<String> {
        let name = self.names.next("index-manifest", &self.names.index_manifests);
        let bytes = self.encode(schemas::INDEX_MANIFEST, entries, IndexManifestEntry::encode)?;
        self.upload(&name, bytes, created).await?;
        Ok(name)
    }

    /// Deletes files that no snapshot can name. What cannot be deleted is left for the orphan check.
    pub async fn discard(&self, created: CreatedFiles) {
        for name in created.names {
            if let Err(error) = self.storage.delete(&path(&name)).await {
                tracing::warn!(%error, file = name, "unpublished metadata file not deleted");
            }
        }
    }

    /// How manifests are written and merged.
    pub fn settings(&self) -> &ManifestSettings {
        &self.settings
    }

    /// The partition columns.
    pub fn partition_fields(&self) -> &[DataField] {
        &self.partition_fields
    }

    /// Types of the partition columns.
    pub fn partition_types(&self) -> &[DataType] {
        &self.partition_types
    }

    pub(super) fn rolling_writer(&self) -> RollingManifestWriter<'_> {
        RollingManifestWriter {
            files: self,
            open: None,
            written: Vec::new(),
        }
    }

    async fn read<T: Send + 'static>(
        &self,
        name: &str,
        size: Option<i64>,
        decode: fn(Value<'_, '_, '_>) -> AvroResult<T>,
    ) -> Result<Vec<T>> {
        let path = path(name);
        let bytes = self.storage.read_all(&path).await.map_err(|error| match error.kind() {
            ErrorKind::NotFound => ManifestError::NotFound(format!(
                "{path} does not exist: its snapshot has expired, or the table is damaged"
            )),
            _ => error.into(),
        })?;
        if let Some(size) = size
            && size != bytes.len() as i64
        {
            return Err(ManifestError::corrupt(
                path,
                format!("{} bytes, but the table says {size}", bytes.len()),
            ));
        }
        let rows = self.env.cpu(move || read_container(&bytes, decode)).await?;
        rows.map_err(|error| ManifestError::corrupt(path, error))
    }

    fn encode<T>(&self, schema: &str, rows: &[T], encode: fn(&T, &mut Encoder)) -> Result<Vec<u8>> {
        let mut file = ContainerWriter::new(schema, self.settings.codec, &*self.env.ids);
        for row in rows {
            file.append(|encoder| encode(row, encoder))
                .map_err(ManifestError::invalid)?;
        }
        file.finish().map_err(ManifestError::invalid)
    }

    async fn upload(&self, name: &str, bytes: Vec<u8>, created: &mut CreatedFiles) -> Result<i64> {
        created.names.push(name.to_string());
        let mut writer = self.storage.create(&path(name)).await?;
        writer.write(Bytes::from(bytes)).await?;
        Ok(writer.finish().await? as i64)
    }
}

impl FileNames {
    fn next(&self, kind: &str, counter: &AtomicU64) -> String {
        format!("{kind}-{}-{}", self.uuid, counter.fetch_add(1, Ordering::Relaxed))
    }
}

/// Writes entries into as many manifests as their size asks for.
pub(super) struct RollingManifestWriter<'a> {
    files: &'a ManifestFiles,
    open: Option<OpenManifest>,
    written: Vec<ManifestFileMeta>,
}

struct OpenManifest {
    file: ContainerWriter,
    summary: ManifestSummary,
}

impl OpenManifest {
    fn append(&mut self, entries: &[ManifestEntry]) -> AvroResult<()> {
        for entry in entries {
            self.file.append(|encoder| entry.encode(encoder))?;
            self.summary.add(entry);
        }
        Ok(())
    }
}

impl RollingManifestWriter<'_> {
    pub(super) async fn write(&mut self, entries: &[ManifestEntry], created: &mut CreatedFiles) -> Result<()> {
        for chunk in entries.chunks(ROLL_CHECK_ENTRIES) {
            let mut open = self.open.take().unwrap_or_else(|| OpenManifest {
                file: ContainerWriter::new(schemas::MANIFEST, self.files.settings.codec, &*self.files.env.ids),
                summary: ManifestSummary::default(),
            });
            let chunk = chunk.to_vec();
            let open = self
                .files
                .env
                .cpu(move || open.append(&chunk).map(|()| open))
                .await?
                .map_err(ManifestError::invalid)?;
            if open.file.len() as u64 >= self.files.settings.target_file_size {
                self.end(open, created).await?;
            } else {
                self.open = Some(open);
            }
        }
        Ok(())
    }

    pub(super) async fn finish(mut self, created: &mut CreatedFiles) -> Result<Vec<ManifestFileMeta>> {
        if let Some(open) = self.open.take() {
            self.end(open, created).await?;
        }
        Ok(self.written)
    }

    async fn end(&mut self, open: OpenManifest, created: &mut CreatedFiles) -> Result<()> {
        let name = self.files.names.next("manifest", &self.files.names.manifests);
        let bytes = open.file.finish().map_err(ManifestError::invalid)?;
        let size = self.files.upload(&name, bytes, created).await?;
        self.written
            .push(open.summary.finish(name, size, &self.files.partition_types)?);
        Ok(())
    }
}

fn path(name: &str) -> String {
    format!("manifest/{name}")
}
