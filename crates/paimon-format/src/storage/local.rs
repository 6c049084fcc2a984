//! A folder of the local file system.
//!
//! A file is made under a hidden name beside its target (`.{name}.{uuid}.tmp`), synced, and then linked to its name, which the
//! file system does only if there is no such name: nothing is ever overwritten, a crash leaves either all bytes or a hidden
//! file, and no other `snapshot-*` name is seen at any time (Java's listing fails on one). The folder is synced last.

use std::fmt::Display;
use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Read, Seek, SeekFrom, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use async_trait::async_trait;
use bytes::Bytes;
use futures::StreamExt;
use futures::stream::{self, BoxStream};

use super::path::{check_dir, check_file, join};
use super::{FileStatus, Storage, StorageError, StorageWriter};
use crate::env::Env;

/// Bytes of a file being written that are collected before a blocking call.
const WRITE_CHUNK_BYTES: usize = 1 << 20;

/// [`Storage`] over a folder. Missing folders are made by the first write. Names that are not UTF-8 are invisible.
///
/// Needs a file system with hard links.
#[derive(Clone, Debug)]
pub struct LocalStorage {
    root: PathBuf,
    env: Env,
}

impl LocalStorage {
    /// The folder `root`; it need not exist.
    pub fn new(root: impl Into<PathBuf>, env: Env) -> Self {
        Self { root: root.into(), env }
    }

    /// Runs `work` on the file of this path, off the async threads.
    async fn blocking<T: Send + 'static>(
        &self,
        path: &str,
        work: impl FnOnce(&Path) -> io::Result<T> + Send + 'static,
    ) -> Result<Result<T, io::Error>, StorageError> {
        let file = self.root.join(path);
        run_blocking(&self.env, path, move || work(&file)).await
    }

    fn temp_of(&self, path: &str) -> PathBuf {
        let target = self.root.join(path);
        let name = target.file_name().unwrap_or_default().to_string_lossy().into_owned();
        target.with_file_name(format!(".{name}.{}.tmp", self.env.ids.uuid()))
    }
}

async fn run_blocking<T: Send + 'static>(
    env: &Env,
    path: &str,
    work: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> Result<io::Result<T>, StorageError> {
    env.blocking(work)
        .await
        .map_err(|error| StorageError::unavailable(path, error))
}

#[async_trait]
impl Storage for LocalStorage {
    async fn read(&self, path: &str, ranges: &[Range<u64>]) -> Result<Vec<Bytes>, StorageError> {
        check_file(path)?;
        let ranges = ranges.to_vec();
        let name = path.to_owned();
        self.blocking(path, move |file| read_ranges(file, &name, &ranges))
            .await?
            .map_err(|error| read_error(path, &error))?
    }

    async fn read_all(&self, path: &str) -> Result<Bytes, StorageError> {
        check_file(path)?;
        self.blocking(path, |file| {
            open_file(file)?;
            fs::read(file).map(Bytes::from)
        })
        .await?
        .map_err(|error| read_error(path, &error))
    }

    async fn size(&self, path: &str) -> Result<Option<u64>, StorageError> {
        check_file(path)?;
        match self.blocking(path, |file| fs::metadata(file)).await? {
            Ok(metadata) => Ok(metadata.is_file().then_some(metadata.len())),
            Err(error) if is_absent(&error) => Ok(None),
            Err(error) => Err(other_error(path, &error)),
        }
    }

    async fn create(&self, path: &str) -> Result<Box<dyn StorageWriter>, StorageError> {
        check_file(path)?;
        let temp = self.temp_of(path);
        let temp = self
            .blocking(path, move |_| TempFile::create(temp))
            .await?
            .map_err(|error| other_error(path, &error))?;
        Ok(Box::new(LocalWriter {
            path: path.to_owned(),
            target: self.root.join(path),
            env: self.env.clone(),
            temp: Some(temp),
            pending: Vec::new(),
            pending_bytes: 0,
            written_bytes: 0,
        }))
    }

    async fn put_if_absent(&self, path: &str, bytes: Bytes) -> Result<bool, StorageError> {
        check_file(path)?;
        let temp = self.temp_of(path);
        self.blocking(path, move |target| {
            let mut temp = TempFile::create(temp)?;
            temp.file.write_all(&bytes)?;
            temp.link(target)
        })
        .await?
        .map_err(|error| other_error(path, &error))
    }

    async fn put(&self, path: &str, bytes: Bytes) -> Result<(), StorageError> {
        check_file(path)?;
        let temp = self.temp_of(path);
        self.blocking(path, move |target| {
            let mut temp = TempFile::create(temp)?;
            temp.file.write_all(&bytes)?;
            temp.replace(target)
        })
        .await?
        .map_err(|error| other_error(path, &error))
    }

    fn list<'a>(&'a self, dir: &'a str) -> BoxStream<'a, Result<FileStatus, StorageError>> {
        stream::once(async move {
            check_dir(dir)?;
            let name = dir.to_owned();
            let files = self
                .blocking(dir, move |folder| list_folder(folder, &name))
                .await?
                .map_err(|error| other_error(dir, &error))?;
            Ok(stream::iter(files.into_iter().map(Ok)))
        })
        .flat_map(|listed| match listed {
            Ok(files) => files.boxed(),
            Err(error) => stream::once(async move { Err(error) }).boxed(),
        })
        .boxed()
    }

    async fn delete(&self, path: &str) -> Result<(), StorageError> {
        check_file(path)?;
        match self.blocking(path, |file| fs::remove_file(file)).await? {
            Err(error) if !is_absent(&error) => Err(other_error(path, &error)),
            _ => Ok(()),
        }
    }
}

/// A file being streamed into its temporary name. The temporary file goes when this is dropped.
struct LocalWriter {
    path: String,
    target: PathBuf,
    env: Env,
    /// `None` after a failed write.
    temp: Option<TempFile>,
    pending: Vec<Bytes>,
    pending_bytes: usize,
    written_bytes: u64,
}

impl LocalWriter {
    /// Writes what is pending. After an error the temporary file is gone and every further call fails.
    async fn flush(&mut self) -> Result<(), StorageError> {
        let mut temp = self.take_temp()?;
        let chunks = std::mem::take(&mut self.pending);
        self.written_bytes += std::mem::take(&mut self.pending_bytes) as u64;
        let temp = run_blocking(&self.env, &self.path, move || {
            for chunk in &chunks {
                temp.file.write_all(chunk)?;
            }
            Ok(temp)
        })
        .await?
        .map_err(|error| other_error(&self.path, &error))?;
        self.temp = Some(temp);
        Ok(())
    }

    fn take_temp(&mut self) -> Result<TempFile, StorageError> {
        self.temp
            .take()
            .ok_or_else(|| StorageError::unavailable(&self.path, "an earlier write to this file failed"))
    }
}

#[async_trait]
impl StorageWriter for LocalWriter {
    async fn write(&mut self, bytes: Bytes) -> Result<(), StorageError> {
        self.pending_bytes += bytes.len();
        self.pending.push(bytes);
        if self.pending_bytes >= WRITE_CHUNK_BYTES {
            self.flush().await?;
        }
        Ok(())
    }

    async fn finish(mut self: Box<Self>) -> Result<u64, StorageError> {
        self.flush().await?;
        let temp = self.take_temp()?;
        let target = self.target.clone();
        let made = run_blocking(&self.env, &self.path, move || temp.link(&target))
            .await?
            .map_err(|error| other_error(&self.path, &error))?;
        if !made {
            return Err(StorageError::refused(&self.path, "there is such a file already"));
        }
        Ok(self.written_bytes)
    }

    async fn abort(mut self: Box<Self>) {
        if let Some(temp) = self.temp.take() {
            // Only a stopped runtime fails here, and it drops the file all the same.
            let _ = self.env.blocking(move || drop(temp)).await;
        }
    }
}

/// A hidden file; removed on drop, whether it was published or not.
struct TempFile {
    path: PathBuf,
    file: File,
}

impl TempFile {
    fn create(path: PathBuf) -> io::Result<Self> {
        let open = || OpenOptions::new().write(true).create_new(true).open(&path);
        let file = match open() {
            Err(error) if error.kind() == ErrorKind::NotFound => {
                make_folders(path.parent().unwrap_or(Path::new(".")))?;
                open()
            }
            opened => opened,
        }?;
        Ok(Self { path, file })
    }

    /// Publishes under `target`, durably, unless there is such a name: then `false`.
    fn link(self, target: &Path) -> io::Result<bool> {
        self.file.sync_all()?;
        match fs::hard_link(&self.path, target) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => return Ok(false),
            linked => linked?,
        }
        drop(self);
        sync_folder_of(target)?;
        Ok(true)
    }

    /// Publishes under `target`, durably, in place of what is there.
    fn replace(self, target: &Path) -> io::Result<()> {
        self.file.sync_all()?;
        fs::rename(&self.path, target)?;
        sync_folder_of(target)
    }
}

impl Drop for TempFile {
    fn drop(&mut self) {
        // Left over at worst: hidden, and found by the orphan check. After `replace` there is nothing to remove.
        let _ = fs::remove_file(&self.path);
    }
}

/// Makes `folder` and what is missing above it, syncing the parent of each new one.
fn make_folders(folder: &Path) -> io::Result<()> {
    match make_folder(folder) {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            make_folders(folder.parent().ok_or(error)?)?;
            // Once more only: there are folders in which none can be made, and that say "not found".
            make_folder(folder)
        }
        made => made,
    }
}

fn make_folder(folder: &Path) -> io::Result<()> {
    match fs::create_dir(folder) {
        Ok(()) => sync_folder_of(folder),
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(()),
        Err(error) => Err(error),
    }
}

#[cfg(unix)]
fn sync_folder_of(path: &Path) -> io::Result<()> {
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    File::open(parent.unwrap_or(Path::new(".")))?.sync_all()
}

/// Other systems cannot open a folder to sync it.
#[cfg(not(unix))]
fn sync_folder_of(_path: &Path) -> io::Result<()> {
    Ok(())
}

/// Opens a regular file. A directory is no file.
fn open_file(path: &Path) -> io::Result<(File, u64)> {
    let file = File::open(path)?;
    let metadata = file.metadata()?;
    if metadata.is_dir() {
        return Err(ErrorKind::NotFound.into());
    }
    Ok((file, metadata.len()))
}

fn read_ranges(path: &Path, name: &str, ranges: &[Range<u64>]) -> io::Result<Result<Vec<Bytes>, StorageError>> {
    let (mut file, size) = open_file(path)?;
    let mut parts = Vec::with_capacity(ranges.len());
    for range in ranges {
        // Checked before anything is allocated: the range may come from a broken file.
        let length = range.end.checked_sub(range.start).filter(|_| range.end <= size);
        let Some(length) = length.and_then(|length| usize::try_from(length).ok()) else {
            return Ok(Err(StorageError::OutOfRange {
                path: name.to_owned(),
                range: range.clone(),
                size,
            }));
        };
        let mut part = vec![0; length];
        file.seek(SeekFrom::Start(range.start))?;
        file.read_exact(&mut part)?;
        parts.push(Bytes::from(part));
    }
    Ok(Ok(parts))
}

fn list_folder(folder: &Path, dir: &str) -> io::Result<Vec<FileStatus>> {
    let entries = match fs::read_dir(folder) {
        Err(error) if is_absent(&error) => return Ok(Vec::new()),
        entries => entries?,
    };
    let mut files = Vec::new();
    for entry in entries {
        let entry = entry?;
        let Ok(name) = entry.file_name().into_string() else {
            continue;
        };
        let metadata = match fs::metadata(entry.path()) {
            // Removed since, or a link to nowhere.
            Err(error) if is_absent(&error) => continue,
            metadata => metadata?,
        };
        let modified = metadata.modified()?.duration_since(UNIX_EPOCH).unwrap_or_default();
        files.push(FileStatus {
            path: join(dir, &name),
            size: if metadata.is_dir() { 0 } else { metadata.len() },
            modified_ms: i64::try_from(modified.as_millis()).ok(),
            is_dir: metadata.is_dir(),
        });
    }
    Ok(files)
}

/// No such name, also when a parent of it is a file.
fn is_absent(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory)
}

fn read_error(path: &str, error: &io::Error) -> StorageError {
    if is_absent(error) {
        StorageError::not_found(path)
    } else {
        other_error(path, error)
    }
}

fn other_error(path: &str, error: &io::Error) -> StorageError {
    let refuse = |message: &dyn Display| StorageError::refused(path, message);
    match error.kind() {
        ErrorKind::PermissionDenied
        | ErrorKind::ReadOnlyFilesystem
        | ErrorKind::NotADirectory
        | ErrorKind::IsADirectory
        | ErrorKind::InvalidFilename
        | ErrorKind::InvalidInput => refuse(error),
        ErrorKind::Unsupported => refuse(&format_args!("{error} (hard links are needed)")),
        _ => StorageError::unavailable(path, error),
    }
}

#[cfg(test)]
mod tests;
