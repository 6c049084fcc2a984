//! What every command has at hand.

use std::sync::Arc;

use paimon::format::env::Env;
use paimon::format::storage::UrlStorageFactory;
use paimon::{BucketLevels, Context, Registry, Table};

use crate::args::{OptionArgs, TableArgs, ViewArgs};
use crate::error::CliError;
use crate::output::Console;

/// The console, and the way to tables.
#[derive(Debug)]
pub(crate) struct Session<'a> {
    /// Where to print.
    pub(crate) console: &'a mut Console,
    /// JSON instead of text.
    pub(crate) json: bool,
    /// The environment, shared by all tables.
    pub(crate) env: Env,
    registry: Registry,
}

impl<'a> Session<'a> {
    pub(crate) fn new(registry: Registry, env: Env, console: &'a mut Console, json: bool) -> Self {
        Self {
            console,
            json,
            env,
            registry,
        }
    }

    /// The context for tables with these options.
    pub(crate) fn context(&self, options: &OptionArgs) -> Result<Context, CliError> {
        // Whoever runs a command has credentials in the environment, as for other tools.
        let storages = UrlStorageFactory::new(self.env.clone(), options.options()?).with_system_credentials();
        Ok(Context::new(self.env.clone())
            .with_registry(self.registry.clone())
            .with_storages(Arc::new(storages)))
    }

    /// Opens the table of a command.
    pub(crate) async fn open(&mut self, args: &TableArgs) -> Result<Table, CliError> {
        let context = self.context(&args.options)?;
        Ok(Table::open(&args.table, args.options.options()?, &context).await?)
    }

    /// A command's table, and its buckets with their sorted runs.
    pub(crate) async fn buckets(&mut self, view: &ViewArgs) -> Result<(Table, Vec<BucketLevels>), CliError> {
        let table = self.open(&view.table).await?;
        let travel = view.travel.time_travel()?.unwrap_or_default();
        let buckets = table.buckets(&travel, &view.part.selection()?).await?;
        Ok((table, buckets))
    }
}
