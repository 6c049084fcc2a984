//! A file on local disk.

use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use paimon_format::FormatError;
use paimon_format::env::{Env, Reservation};
use paimon_format::storage::StorageError;

/// A finished file. Deleted on drop, its bytes are given back to the disk budget.
#[derive(Debug)]
pub(crate) struct LocalFile {
    path: PathBuf,
    bytes: u64,
    _disk: Vec<Reservation>,
}

impl LocalFile {
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Its place, for errors.
    pub(crate) fn name(&self) -> String {
        self.path.display().to_string()
    }

    /// Byte ranges in the order asked. Blocks.
    ///
    /// Errors: `Unavailable`, naming the file; `Corrupt` when a range is not in it.
    pub(crate) fn read(&self, ranges: &[Range<u64>]) -> Result<Vec<Bytes>, FormatError> {
        let mut file = File::open(&self.path).map_err(|error| failed(&self.path, &error))?;
        let mut parts = Vec::with_capacity(ranges.len());
        for range in ranges {
            // Checked before anything is allocated: the range may come from a broken file.
            let length = range.end.checked_sub(range.start).filter(|_| range.end <= self.bytes);
            let length = length.and_then(|length| usize::try_from(length).ok()).ok_or_else(|| {
                FormatError::corrupt(
                    self.name(),
                    format_args!("bytes {}..{} of {}", range.start, range.end, self.bytes),
                )
            })?;
            let mut part = vec![0; length];
            let read = file
                .seek(SeekFrom::Start(range.start))
                .and_then(|_| file.read_exact(&mut part));
            read.map_err(|error| failed(&self.path, &error))?;
            parts.push(part.into());
        }
        Ok(parts)
    }
}

impl Drop for LocalFile {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_file(&self.path) {
            tracing::warn!(path = %self.path.display(), %error, "a lookup file stays behind");
        }
    }
}

/// A new file. Dropped before [`finish`](Self::finish), it leaves nothing. All calls block.
#[derive(Debug)]
pub(crate) struct LocalFileWriter {
    output: File,
    file: LocalFile,
}

impl LocalFileWriter {
    /// A file with a name of its own in `env.temp`.
    pub(crate) fn create(env: &Env) -> Result<Self, FormatError> {
        let path = env.temp.join(format!("paimon-lookup-{}.sst", env.ids.uuid()));
        let output = match File::create_new(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                fs::create_dir_all(&env.temp).and_then(|()| File::create_new(&path))
            }
            created => created,
        };
        Ok(Self {
            output: output.map_err(|error| failed(&path, &error))?,
            file: LocalFile {
                path,
                bytes: 0,
                _disk: Vec::new(),
            },
        })
    }

    /// Appends bytes for which `disk` was reserved.
    pub(crate) fn write(&mut self, bytes: &[u8], disk: Reservation) -> Result<(), FormatError> {
        self.output
            .write_all(bytes)
            .map_err(|error| failed(&self.file.path, &error))?;
        self.file.bytes += bytes.len() as u64;
        self.file._disk.push(disk);
        Ok(())
    }

    pub(crate) fn finish(self) -> LocalFile {
        self.file
    }
}

fn failed(path: &Path, error: &io::Error) -> FormatError {
    StorageError::unavailable(path.display().to_string(), error).into()
}
