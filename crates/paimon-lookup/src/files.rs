//! How a data file of the bucket is searched: its lookup file is at hand, fetched, built, or not worth it.

use std::sync::Arc;

use arrow_array::ArrayRef;
use paimon_format::env::Env;
use paimon_format::kv::{KeyRange, KvFiles, KvSchemaRef, ReadSpec, SchemaSource};
use paimon_format::meta::DataFileMeta;
use paimon_format::types::{DataField, Datum};
use paimon_format::{ErrorKind, FormatError};
use paimon_lsm::compact::RecordLevelExpire;
use paimon_lsm::lookup::SortedKeys;
use paimon_merge::changelog::LookupNeed;

use crate::build::build;
use crate::cache::{FileKey, LocalFile, LookupFile, LookupFileCache};
use crate::cursor::EncodedKeys;
use crate::found::FileHits;
use crate::persist::Persist;
use crate::remote::{RemoteLookupStore, has_one, new_name, usable_name};
use crate::room::Room;
use crate::scan::scan;
use crate::transfer::{download, upload};
use crate::{LookupLevels, LookupSettings};

/// Memory for pages of a data file that is read.
const WINDOW_BYTES: usize = 8 << 20;
/// How much larger rows are in a lookup file than in a data file, roughly.
const EXPANSION: u64 = 3;

/// The lookup files of one bucket.
#[derive(Debug)]
pub(crate) struct LookupFiles {
    env: Env,
    files: Arc<dyn KvFiles>,
    cache: LookupFileCache,
    persist: Persist,
    /// What is read when no values are stored: the key, and the time field if rows expire.
    keys_only: KvSchemaRef,
    settings: LookupSettings,
    expire: Option<RecordLevelExpire>,
    schemas: Option<Arc<dyn SchemaSource>>,
    remote: Option<(Arc<dyn RemoteLookupStore>, LookupNeed)>,
}

/// Collects what [`LookupLevels`] needs.
#[derive(Debug)]
pub struct LookupLevelsBuilder {
    env: Env,
    files: Arc<dyn KvFiles>,
    schema: KvSchemaRef,
    cache: LookupFileCache,
    settings: LookupSettings,
    expire: Option<RecordLevelExpire>,
    schemas: Option<Arc<dyn SchemaSource>>,
    remote: Option<(Arc<dyn RemoteLookupStore>, LookupNeed)>,
}

impl LookupLevels {
    /// For a bucket's data files, which become rows of `schema` (all columns of the table), with Paimon's default settings. `cache` is shared
    /// by all buckets of a process.
    pub fn builder(
        env: Env,
        files: Arc<dyn KvFiles>,
        schema: KvSchemaRef,
        cache: LookupFileCache,
    ) -> LookupLevelsBuilder {
        LookupLevelsBuilder {
            env,
            files,
            schema,
            cache,
            settings: LookupSettings::default(),
            expire: None,
            schemas: None,
            remote: None,
        }
    }
}

impl LookupLevelsBuilder {
    /// How lookup files are made.
    #[must_use]
    pub fn settings(mut self, settings: LookupSettings) -> Self {
        self.settings = settings;
        self
    }

    /// Rows that are too old are no hits.
    #[must_use]
    pub fn expire(mut self, expire: Option<RecordLevelExpire>) -> Self {
        self.expire = expire;
        self
    }

    /// Where the columns of older schema versions come from: tells whether a remote lookup file of an older version can be used. Without it
    /// those are not.
    #[must_use]
    pub fn schemas(mut self, schemas: Arc<dyn SchemaSource>) -> Self {
        self.schemas = Some(schemas);
        self
    }

    /// Uses and makes remote lookup files, if `lookup.remote-file.enabled`. `need`: what the bucket's look-ups ask, which is what new ones
    /// store.
    #[must_use]
    pub fn remote(mut self, store: Arc<dyn RemoteLookupStore>, need: LookupNeed) -> Self {
        self.remote = Some((store, need));
        self
    }

    /// The look-ups of the bucket. Nothing is read or written.
    ///
    /// Errors: `Unsupported` for columns that cannot be stored, by name.
    pub fn build(self) -> Result<LookupLevels, FormatError> {
        let now_ms = self.env.clock.now_ms();
        let time = self.expire.as_ref().map(|expire| expire.expired_before(now_ms).column);
        let keys_only = self.schema.project(time.as_slice())?;
        Ok(LookupLevels::new(LookupFiles {
            persist: Persist::new(&self.schema)?,
            keys_only: Arc::new(keys_only),
            remote: self.remote.filter(|_| self.settings.remote_files),
            env: self.env,
            files: self.files,
            cache: self.cache,
            settings: self.settings,
            expire: self.expire,
            schemas: self.schemas,
        }))
    }
}

impl LookupFiles {
    pub(crate) fn env(&self) -> &Env {
        &self.env
    }

    pub(crate) fn cache(&self) -> &LookupFileCache {
        &self.cache
    }

    pub(crate) fn persist(&self) -> &Persist {
        &self.persist
    }

    pub(crate) async fn encode(&self, keys: &SortedKeys) -> Result<EncodedKeys, FormatError> {
        let (persist, columns) = (self.persist.clone(), keys.columns.clone());
        let encoded = self.env.cpu(move || persist.encode_keys(&columns)).await??;
        Ok(Arc::new(encoded))
    }

    /// The lookup file of a data file. `None`: the data file is to be read itself.
    ///
    /// Of all who want a file that is not there, one fetches or builds it.
    pub(crate) async fn open(
        &self,
        file: &DataFileMeta,
        need: LookupNeed,
    ) -> Result<Option<Arc<LookupFile>>, FormatError> {
        let key = self.key(file, need);
        if let Some(found) = self.cache.get(&key) {
            return Ok(Some(found));
        }
        let turn = self.cache.turn(&key);
        let _turn = turn.lock().await;
        if let Some(found) = self.cache.get(&key) {
            return Ok(Some(found));
        }
        if let Some(fetched) = self.fetch(file, need).await {
            return Ok(Some(self.cache.put(key, fetched)));
        }
        let regret = self.cache.regret(&key);
        let price = rows_of(file).saturating_mul(self.settings.build_after.into());
        if regret < price {
            tracing::trace!(file = file.file_name, regret, price, "read without a lookup file");
            return Ok(None);
        }
        self.build(file, need).await
    }

    /// Makes a lookup file of a data file. `None`: the local disk does not take it.
    async fn build(&self, file: &DataFileMeta, need: LookupNeed) -> Result<Option<Arc<LookupFile>>, FormatError> {
        let read = self.read(need, KeyRange::default());
        let stored = (&self.persist, need, self.settings.files);
        let built = build(&self.env, &self.cache, self.files.as_ref(), file, read, stored).await?;
        let key = self.key(file, need);
        match built {
            Some(built) => Ok(Some(self.cache.put(key, built))),
            // Not tried again before it would pay again.
            None => {
                self.cache.forget_regret(&key);
                Ok(None)
            }
        }
    }

    /// A lookup file that cannot be used goes. If it was not only lost on the way from the local disk, it is not fetched again.
    pub(crate) fn reject(&self, file: &DataFileMeta, need: LookupNeed, error: &FormatError) {
        tracing::warn!(file = file.file_name, %error, "a lookup file is not used");
        let key = self.key(file, need);
        match error.kind() {
            ErrorKind::Unavailable => self.cache.lose(&key),
            _ => self.cache.reject(key),
        }
    }

    /// The remote lookup file, if there is one that can be used. One that cannot is no error: it can be built again.
    async fn fetch(&self, file: &DataFileMeta, need: LookupNeed) -> Option<LocalFile> {
        let (store, _) = self.remote.as_ref()?;
        let name = usable_name(file, need)?;
        if self.cache.is_rejected(&self.key(file, need)) {
            return None;
        }
        let fetched = match self.has_current_columns(file).await {
            Ok(true) => download(&self.env, &self.cache, store.as_ref(), file, name).await,
            Ok(false) => Ok(None),
            Err(error) => Err(error),
        };
        fetched.unwrap_or_else(|error| {
            tracing::warn!(file = file.file_name, name, %error, "a remote lookup file is not used");
            None
        })
    }

    /// Looks for keys in the data file itself, and counts what was read in vain.
    pub(crate) async fn scan(
        &self,
        file: &DataFileMeta,
        (need, room): (LookupNeed, &Room),
        keys: &SortedKeys,
        wanted: &[u32],
    ) -> Result<FileHits, FormatError> {
        let bound = |key: Option<&u32>| match key {
            Some(&key) => key_values(&keys.columns, key as usize).map(Some),
            None => Ok(None),
        };
        let range = KeyRange {
            min: bound(wanted.first())?,
            max: bound(wanted.last())?,
        };
        let read = self.read(need, range);
        let asked = (&keys.keys, wanted);
        let (hits, rows_read) = scan(&self.env, self.files.as_ref(), file, read, asked, (need, room)).await?;
        let price = self.rows_a_block(file).saturating_mul(wanted.len() as u64);
        self.cache
            .add_regret(&self.key(file, need), rows_read.saturating_sub(price));
        Ok(hits)
    }

    /// Outputs of a compaction, with their remote lookup files.
    ///
    /// Errors: those of the data files and of the store; the sidecars made by this call are deleted then.
    pub(crate) async fn with_remote(&self, mut files: Vec<DataFileMeta>) -> Result<Vec<DataFileMeta>, FormatError> {
        let Some((store, need)) = &self.remote else {
            return Ok(files);
        };
        let mut made: Vec<(DataFileMeta, String)> = Vec::new();
        for file in &mut files {
            match self.add_remote(file, store.as_ref(), *need).await {
                Ok(Some(name)) => made.push((file.clone(), name)),
                Ok(None) => {}
                Err(error) => {
                    for (file, name) in made {
                        delete_quietly(store.as_ref(), &file, &name).await;
                    }
                    return Err(error);
                }
            }
        }
        Ok(files)
    }

    /// The name of the new sidecar, which the file names now. `None`: it gets none (also when the local disk fails), or has one.
    async fn add_remote(
        &self,
        file: &mut DataFileMeta,
        store: &dyn RemoteLookupStore,
        need: LookupNeed,
    ) -> Result<Option<String>, FormatError> {
        let is_wanted = file.level >= self.settings.remote_level_threshold && !has_one(file, need);
        // Values have the current columns; readers take them for those of the file's schema.
        if !is_wanted || !self.has_current_columns(file).await? {
            return Ok(None);
        }
        let key = self.key(file, need);
        let turn = self.cache.turn(&key);
        let _turn = turn.lock().await;
        let local = match self.cache.get(&key) {
            Some(local) => Some(local),
            None => self.build(file, need).await?,
        };
        let Some(local) = local else {
            return Ok(None);
        };
        let name = new_name(file, &self.env.ids.uuid(), local.local.bytes(), need);
        match upload(&self.env, store, file, &name, &local).await {
            Ok(true) => {}
            // Whoever tries again makes a new local file.
            Ok(false) => {
                self.cache.lose(&key);
                return Ok(None);
            }
            Err(error) => {
                delete_quietly(store, file, &name).await;
                return Err(error);
            }
        }
        file.extra_files.push(name.clone());
        Ok(Some(name))
    }

    /// Whether a file's schema has the same columns as the current one, nullability aside.
    async fn has_current_columns(&self, file: &DataFileMeta) -> Result<bool, FormatError> {
        let current = self.persist.schema();
        if file.schema_id == current.schema_id {
            return Ok(true);
        }
        let Some(schemas) = &self.schemas else {
            return Ok(false);
        };
        let fields = schemas.fields(file.schema_id).await?;
        let same =
            |(a, b): (&DataField, &DataField)| (a.id, &a.name, &a.data_type.kind) == (b.id, &b.name, &b.data_type.kind);
        Ok(fields.len() == current.fields.len() && fields.iter().zip(&current.fields).all(same))
    }

    fn read(&self, need: LookupNeed, keys: KeyRange) -> ReadSpec {
        let schema = match need.value() {
            true => self.persist.schema(),
            false => &self.keys_only,
        };
        let expired_before = self.expire.as_ref().map(|expire| {
            let mut before = expire.expired_before(self.env.clock.now_ms());
            let time = self.persist.schema().fields.get(before.column);
            let column = time.and_then(|time| schema.position(&time.name));
            before.column = column.unwrap_or(before.column);
            before
        });
        ReadSpec {
            keys,
            expired_before,
            positions: need.position(),
            window_bytes: WINDOW_BYTES,
            page_cache: Some(self.cache.pages().clone()),
            ..ReadSpec::all(Arc::clone(schema))
        }
    }

    fn key(&self, file: &DataFileMeta, need: LookupNeed) -> FileKey {
        FileKey {
            name: file.file_name.as_str().into(),
            need,
            schema_id: self.persist.schema().schema_id,
        }
    }

    /// Rows that are decompressed for one key in a lookup file, roughly: what a search there would cost, counted in rows read.
    fn rows_a_block(&self, file: &DataFileMeta) -> u64 {
        let row_bytes = u64::try_from(file.file_size).unwrap_or(0) * EXPANSION / rows_of(file);
        self.settings.files.block_bytes as u64 / row_bytes.max(1)
    }
}

/// Deletes a sidecar that nobody will name. One that stays is an orphan, which is no reason to fail.
async fn delete_quietly(store: &dyn RemoteLookupStore, file: &DataFileMeta, name: &str) {
    if let Err(error) = store.delete(file, name).await {
        tracing::warn!(name, %error, "an unused lookup file could not be deleted");
    }
}

fn rows_of(file: &DataFileMeta) -> u64 {
    u64::try_from(file.row_count).unwrap_or(0).max(1)
}

fn key_values(columns: &[ArrayRef], row: usize) -> Result<Vec<Datum>, FormatError> {
    columns.iter().map(|column| Datum::from_array(column, row)).collect()
}
