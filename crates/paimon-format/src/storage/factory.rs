//! Opening a root by path or URL.

use std::fmt::Debug;
use std::sync::Arc;

use async_trait::async_trait;

use super::{LocalStorage, MemoryStorage, Storage, StorageError};
use crate::env::Env;
use crate::options::Options;

/// Opens roots: a table's folder, an external data path. An embedder's own factory decides which URLs it serves.
#[async_trait]
pub trait StorageFactory: Debug + Send + Sync {
    /// The storage whose root is `url`. The root need not exist.
    ///
    /// Errors: `Refused` for a URL that is not served here, or a setting that is wrong; `Unavailable`.
    async fn open(&self, url: &str) -> Result<Arc<dyn Storage>, StorageError>;
}

/// The built-in factory:
///
/// | URL | Storage |
/// |---|---|
/// | `/path`, `path`, `file:/path`, `file:///path` | local folder, taken literally |
/// | `memory://name` | memory, shared by all that this factory opens |
/// | `s3://bucket/path`, `s3a://bucket/path` (feature `aws`) | S3 or compatible |
///
/// S3 is set by `s3.endpoint`, `s3.access-key`, `s3.secret-key`, `s3.session-token`, `s3.region` and `s3.path-style-access`, also
/// with dots for hyphens and under the prefixes `s3a.` and `fs.s3a.`, as in `org.apache.paimon.s3.S3FileIO`.
#[derive(Clone, Debug)]
pub struct UrlStorageFactory {
    env: Env,
    #[cfg_attr(not(feature = "aws"), expect(dead_code, reason = "only object stores have settings"))]
    options: Options,
    #[cfg_attr(
        not(feature = "aws"),
        expect(dead_code, reason = "only object stores have credentials")
    )]
    system_credentials: bool,
    memory: MemoryStorage,
}

impl UrlStorageFactory {
    /// A factory with the settings of its object stores.
    pub fn new(env: Env, options: Options) -> Self {
        let memory = MemoryStorage::new(Arc::clone(&env.clock));
        Self {
            env,
            options,
            system_credentials: false,
            memory,
        }
    }

    /// Allows credentials from the process environment (`AWS_*` variables, instance metadata) where options give none.
    #[must_use]
    pub fn with_system_credentials(self) -> Self {
        Self {
            system_credentials: true,
            ..self
        }
    }

    fn local(&self, path: &str) -> Arc<dyn Storage> {
        Arc::new(LocalStorage::new(path, self.env.clone()))
    }

    #[cfg(feature = "aws")]
    fn s3(&self, url: &str, rest: &str) -> Result<Arc<dyn Storage>, StorageError> {
        let storage = super::s3::open(url, rest, &self.options, self.system_credentials, self.env.clone())?;
        Ok(Arc::new(storage))
    }

    #[cfg(not(feature = "aws"))]
    #[expect(clippy::unused_self, reason = "same call with and without the feature")]
    fn s3(&self, url: &str, _rest: &str) -> Result<Arc<dyn Storage>, StorageError> {
        Err(StorageError::refused(
            url,
            "this program was built without S3 (feature `aws`)",
        ))
    }
}

#[async_trait]
impl StorageFactory for UrlStorageFactory {
    async fn open(&self, url: &str) -> Result<Arc<dyn Storage>, StorageError> {
        if url.is_empty() {
            return Err(StorageError::refused(url, "an empty path is no place for a table"));
        }
        if let Some(path) = url.strip_prefix("file:") {
            let path = path.strip_prefix("//").unwrap_or(path);
            if !path.starts_with('/') {
                return Err(StorageError::refused(
                    url,
                    "a file URL needs an absolute path and no host",
                ));
            }
            return Ok(self.local(path));
        }
        match url.split_once("://") {
            None => Ok(self.local(url)),
            Some(("memory", name)) => Ok(Arc::new(self.memory.below(name.trim_end_matches('/'))?)),
            Some(("s3" | "s3a", rest)) => self.s3(url, rest),
            Some((scheme, _)) => Err(StorageError::refused(
                url,
                format_args!("no storage for '{scheme}://' here; known are file, memory and s3"),
            )),
        }
    }
}

#[cfg(test)]
mod tests;
