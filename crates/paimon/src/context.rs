//! What all tables of a process share.

use std::sync::Arc;

use paimon_format::env::{Env, TokioRuntime};
use paimon_format::options::Options;
use paimon_format::storage::{StorageFactory, UrlStorageFactory};
use paimon_merge::engine::Registry;

use crate::error::{Error, Result};

/// Memory of [`Context::system`], bytes.
const MEMORY_BYTES: u64 = 1 << 30;

/// What all tables of a process share: the environment, the merge engines and the way to storages. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Context {
    env: Env,
    registry: Arc<Registry>,
    storages: Arc<dyn StorageFactory>,
}

impl Context {
    /// On the tokio runtime of the caller, with the system's clock and random names, a CPU thread a core, 1 GiB of memory for all
    /// tables, and spills in the system's temporary folder.
    ///
    /// Errors: `Invalid` outside of a tokio runtime; `Internal` when the system gives no threads.
    pub fn system() -> Result<Self> {
        let handle = tokio::runtime::Handle::try_current().map_err(Error::invalid)?;
        let runtime = Arc::new(TokioRuntime::with_threads(handle, 0)?);
        Ok(Self::new(Env::system(
            runtime,
            MEMORY_BYTES,
            u64::MAX,
            std::env::temp_dir(),
        )))
    }

    /// With the built-in merge engines, and storages that need no settings: local folders, memory.
    pub fn new(env: Env) -> Self {
        let storages = UrlStorageFactory::new(env.clone(), Options::new());
        Self {
            env,
            registry: Arc::new(Registry::default()),
            storages: Arc::new(storages),
        }
    }

    /// With these merge engines in place of the built-in ones.
    #[must_use]
    pub fn with_registry(self, registry: Registry) -> Self {
        Self {
            registry: Arc::new(registry),
            ..self
        }
    }

    /// With settings of object stores (`s3.endpoint`, …); keys that are not about storage are ignored.
    #[must_use]
    pub fn with_storage_options(self, options: Options) -> Self {
        let storages = UrlStorageFactory::new(self.env.clone(), options);
        self.with_storages(Arc::new(storages))
    }

    /// With another way to open storages.
    #[must_use]
    pub fn with_storages(self, storages: Arc<dyn StorageFactory>) -> Self {
        Self { storages, ..self }
    }

    /// Time, names, threads and budgets.
    pub fn env(&self) -> &Env {
        &self.env
    }

    /// The merge engines by name.
    pub fn registry(&self) -> &Registry {
        &self.registry
    }

    /// How roots are opened.
    pub fn storages(&self) -> &Arc<dyn StorageFactory> {
        &self.storages
    }
}
