//! Tables by name.

use std::fmt;

use async_trait::async_trait;
use futures::TryStreamExt;
use paimon_format::options::Options;
use paimon_manifest::schema::{SchemaBuilder, SchemaStore};

use crate::context::Context;
use crate::error::{Error, Result};
use crate::table::Table;

/// A table's name: database and table.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Identifier {
    /// The database.
    pub database: String,
    /// The table.
    pub table: String,
}

impl Identifier {
    /// A table of a database.
    pub fn new(database: impl Into<String>, table: impl Into<String>) -> Self {
        Self {
            database: database.into(),
            table: table.into(),
        }
    }

    /// From `database.table`. Errors: `Invalid` when that is not the text's form.
    pub fn parse(text: &str) -> Result<Self> {
        match text.split_once('.') {
            Some((database, table)) if !database.is_empty() && !table.is_empty() => Ok(Self::new(database, table)),
            _ => Err(Error::invalid(format!("{text:?}: expected database.table"))),
        }
    }
}

impl fmt::Display for Identifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.database, self.table)
    }
}

/// Finds and makes tables by name.
///
/// Source: `org.apache.paimon.catalog.Catalog`.
#[async_trait]
pub trait Catalog: fmt::Debug + Send + Sync {
    /// All databases, by name.
    async fn list_databases(&self) -> Result<Vec<String>>;
    /// The tables of a database, by name; none when there is no such database.
    async fn list_tables(&self, database: &str) -> Result<Vec<String>>;
    /// Opens a table; `options` hold for this use. Errors: as [`Table::open`].
    async fn get_table(&self, identifier: &Identifier, options: Options) -> Result<Table>;
    /// Makes a table. Errors: as [`Table::create`].
    async fn create_table(&self, identifier: &Identifier, schema: SchemaBuilder) -> Result<Table>;
}

/// A catalog that is a directory: `<warehouse>/<database>.db/<table>`.
///
/// Source: `org.apache.paimon.catalog.FileSystemCatalog`.
#[derive(Clone, Debug)]
pub struct FileSystemCatalog {
    warehouse: String,
    context: Context,
}

const DATABASE_SUFFIX: &str = ".db";

impl FileSystemCatalog {
    /// The catalog of a warehouse's path or URL, which need not exist yet.
    pub fn new(warehouse: &str, context: Context) -> Self {
        Self {
            warehouse: warehouse.trim_end_matches('/').to_owned(),
            context,
        }
    }

    /// Where a table lies. Errors: `Invalid` for a name that would leave its directory.
    pub fn location(&self, identifier: &Identifier) -> Result<String> {
        for name in [&identifier.database, &identifier.table] {
            if name.is_empty() || name.contains('/') || name.starts_with('.') {
                return Err(Error::invalid(format!(
                    "{name:?} is no name of a database or table: it must not be empty, contain / or begin with a dot"
                )));
            }
        }
        let Identifier { database, table } = identifier;
        Ok(format!("{}/{database}{DATABASE_SUFFIX}/{table}", self.warehouse))
    }

    /// Names of the folders in a folder of the warehouse.
    async fn folders(&self, root: &str) -> Result<Vec<String>> {
        let storage = self.context.storages().open(root).await?;
        let mut names: Vec<String> = storage
            .list("")
            .try_filter_map(|file| async move { Ok(file.is_dir.then_some(file.path)) })
            .map_ok(|path| path.trim_end_matches('/').to_owned())
            .try_collect()
            .await?;
        names.sort_unstable();
        Ok(names)
    }
}

#[async_trait]
impl Catalog for FileSystemCatalog {
    async fn list_databases(&self) -> Result<Vec<String>> {
        let folders = self.folders(&self.warehouse).await?;
        let databases = folders.iter().filter_map(|folder| folder.strip_suffix(DATABASE_SUFFIX));
        Ok(databases.filter(|name| !name.is_empty()).map(str::to_owned).collect())
    }

    async fn list_tables(&self, database: &str) -> Result<Vec<String>> {
        let root = format!("{}/{database}{DATABASE_SUFFIX}", self.warehouse);
        let mut tables = Vec::new();
        for name in self.folders(&root).await? {
            let storage = self.context.storages().open(&format!("{root}/{name}")).await?;
            if !SchemaStore::new(storage).list_ids().await?.is_empty() {
                tables.push(name);
            }
        }
        Ok(tables)
    }

    async fn get_table(&self, identifier: &Identifier, options: Options) -> Result<Table> {
        Table::open(&self.location(identifier)?, options, &self.context).await
    }

    async fn create_table(&self, identifier: &Identifier, schema: SchemaBuilder) -> Result<Table> {
        Table::create(&self.location(identifier)?, schema, &self.context).await
    }
}
