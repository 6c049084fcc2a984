//! A table of Java's, used by one thread in front and one behind: who compacts is measured alone, as Java's compaction thread is.

use std::collections::HashSet;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use futures::future::{BoxFuture, ready};
use paimon::format::env::{Env, Runtime};
use paimon::format::options::Options;
use paimon::{Context, Table};
use tokio::runtime::{Builder, Handle};

use crate::Result;
use crate::cost::cpu_seconds;

/// A thread that runs what others start in the background: compactions. All else runs on the calling thread.
#[derive(Debug)]
pub struct Worker {
    runtime: tokio::runtime::Runtime,
    thread: PathBuf,
}

/// How the calling thread sees it.
#[derive(Debug)]
struct InFront(Handle);

impl Runtime for InFront {
    fn spawn(&self, task: BoxFuture<'static, ()>) {
        self.0.spawn(task);
    }

    fn cpu(&self, job: Box<dyn FnOnce() + Send>) {
        job();
    }

    fn blocking(&self, job: Box<dyn FnOnce() + Send>) {
        job();
    }

    fn sleep(&self, _time: Duration) -> BoxFuture<'static, ()> {
        Box::pin(ready(()))
    }
}

impl Worker {
    /// Starts the thread. Errors: where there is no thread, or no `/proc`.
    pub fn start() -> Result<Self> {
        let runtime = Builder::new_multi_thread().worker_threads(1).build()?;
        let thread = runtime.block_on(runtime.spawn(async { fs::read_link("/proc/thread-self") }))??;
        Ok(Self {
            thread: Path::new("/proc").join(thread),
            runtime,
        })
    }

    /// CPU seconds of the thread so far.
    pub fn cpu_seconds(&self) -> Result<f64> {
        Ok(cpu_seconds(&self.thread)?)
    }

    /// Runs a future on the calling thread.
    pub fn block_on<T>(&self, future: impl Future<Output = T>) -> T {
        self.runtime.block_on(future)
    }

    /// A table with options for this use; background work is the worker's.
    pub fn open(&self, table: &Path, options: &[(&str, &str)]) -> Result<Table> {
        let runtime = Arc::new(InFront(self.runtime.handle().clone()));
        let env = Env::system(runtime, 2 << 30, u64::MAX / 2, std::env::temp_dir());
        let location = table.to_str().ok_or("a path that is not UTF-8")?;
        let options: Options = options.iter().copied().collect();
        Ok(self.block_on(Table::open(location, options, &Context::new(env)))?)
    }
}

/// The files of a table's only bucket. Measured writes are never committed: what they leave is removed.
#[derive(Debug)]
pub struct Kept {
    bucket: PathBuf,
    files: HashSet<OsString>,
}

impl Kept {
    /// Those that are there now.
    pub fn of(table: &Path) -> Result<Self> {
        let bucket = table.join("bucket-0");
        let files = match bucket.exists() {
            true => names(&bucket)?.into_iter().collect(),
            false => HashSet::new(),
        };
        Ok(Self { bucket, files })
    }

    /// Removes all others.
    pub fn restore(&self) -> Result<()> {
        for name in names(&self.bucket)? {
            if !self.files.contains(&name) {
                fs::remove_file(self.bucket.join(name))?;
            }
        }
        Ok(())
    }
}

fn names(folder: &Path) -> Result<Vec<OsString>> {
    let names = fs::read_dir(folder)?.map(|entry| Ok(entry?.file_name()));
    names.collect()
}
