//! Tables on a storage whose answers are scripted.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures::TryStreamExt;
use paimon::format::env::Env;
use paimon::format::storage::{MemoryStorage, Storage, StorageError, StorageFactory};
use paimon::{Context, SchemaBuilder, Table};
use paimon_testkit::faulty::{CallKind, Fault, FaultPlan, FaultyStorage, Rule};

use crate::support::live_buckets;

/// Opens one storage, whatever the URL.
#[derive(Debug)]
struct One(Arc<dyn Storage>);

#[async_trait]
impl StorageFactory for One {
    async fn open(&self, _url: &str) -> Result<Arc<dyn Storage>, StorageError> {
        Ok(Arc::clone(&self.0))
    }
}

/// A storage in memory with a script before it, and a context whose clock and names are the same in every run.
pub(crate) struct FaultyPlace {
    _temp: tempfile::TempDir,
    pub(crate) storage: FaultyStorage,
    pub(crate) context: Context,
}

impl FaultyPlace {
    pub(crate) fn new() -> Self {
        let temp = tempfile::tempdir().unwrap();
        let env = Env::fixed(temp.path());
        let memory = Arc::new(MemoryStorage::new(Arc::clone(&env.clock)));
        let storage = FaultyStorage::new(memory, env.clone(), FaultPlan::new());
        let context = Context::new(env).with_storages(Arc::new(One(Arc::new(storage.clone()))));
        Self {
            _temp: temp,
            storage,
            context,
        }
    }

    pub(crate) async fn create(&self, schema: SchemaBuilder) -> Table {
        Table::create("t", schema, &self.context).await.unwrap()
    }

    /// Every call has to be waited for.
    pub(crate) fn slow(&self) {
        use CallKind::{Create, Delete, Finish, List, Put, PutIfAbsent, Read, Size, Write};
        let calls = [Read, Size, Create, Write, Finish, PutIfAbsent, Put, List, Delete];
        let plan = calls.into_iter().fold(FaultPlan::new(), |plan, call| {
            plan.rule(Rule::new(call, "*", Fault::Delay(Duration::from_millis(1))).times(usize::MAX))
        });
        self.storage.follow(plan);
    }

    /// Nothing goes wrong any more.
    pub(crate) fn heal(&self) {
        self.storage.follow(FaultPlan::new());
    }

    /// Files in the folder of bucket 0 that the latest snapshot does not name.
    pub(crate) async fn unreferenced(&self, table: &Table) -> Vec<String> {
        let live: HashSet<String> = live_buckets(table)
            .await
            .iter()
            .flat_map(|bucket| &bucket.files)
            .map(|file| format!("bucket-0/{}", file.file_name))
            .collect();
        let there: Vec<_> = table.storage().list("bucket-0").try_collect().await.unwrap();
        let paths = there.into_iter().map(|file| file.path);
        paths.filter(|path| !live.contains(path)).collect()
    }
}
