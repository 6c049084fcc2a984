//! Merge engines by name.

use std::collections::BTreeMap;
use std::sync::Arc;

use paimon_format::kv::KvSchema;
use paimon_format::options::Options;

use super::{
    AggregationFactory, DeduplicateFactory, FirstRowFactory, MergeEngine, MergeEngineFactory, PartialUpdateFactory,
};
use crate::MergeError;
use crate::aggregate::{AggregatorFactory, Aggregators};

/// The merge engines that tables may name in `merge-engine`, and the aggregate functions that their columns may name. A value that is handed to whoever opens tables, no global: two parts of
/// a program can know different engines.
#[derive(Clone, Debug)]
pub struct Registry {
    engines: BTreeMap<String, Arc<dyn MergeEngineFactory>>,
    aggregators: Aggregators,
}

impl Default for Registry {
    /// The built-in engines and functions.
    fn default() -> Self {
        let mut registry = Self::empty();
        registry.aggregators = Aggregators::default();
        registry
            .engine(DeduplicateFactory)
            .engine(PartialUpdateFactory)
            .engine(AggregationFactory)
            .engine(FirstRowFactory);
        registry
    }
}

impl Registry {
    /// No engine and no function at all.
    pub fn empty() -> Self {
        Self {
            engines: BTreeMap::new(),
            aggregators: Aggregators::empty(),
        }
    }

    /// Adds an aggregate function, or replaces the one of the same name.
    pub fn aggregator(&mut self, factory: impl AggregatorFactory + 'static) -> &mut Self {
        self.aggregators.add(factory);
        self
    }

    /// The aggregate functions.
    pub fn aggregators(&self) -> &Aggregators {
        &self.aggregators
    }

    /// Adds an engine, or replaces the one of the same name.
    pub fn engine(&mut self, factory: impl MergeEngineFactory + 'static) -> &mut Self {
        self.engines.insert(factory.name().to_owned(), Arc::new(factory));
        self
    }

    /// The names of the engines, in order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.engines.keys().map(String::as_str)
    }

    /// The engine that a table's options ask for, `deduplicate` if they do not say.
    ///
    /// Errors: `Invalid` for an unknown name or an illegal option of the engine.
    pub fn for_options(&self, schema: &KvSchema, options: &Options) -> Result<Arc<dyn MergeEngine>, MergeError> {
        self.create(options.get("merge-engine").unwrap_or("deduplicate"), schema, options)
    }

    /// An engine by name.
    ///
    /// Errors: `Invalid` for an unknown name or an illegal option of the engine.
    pub fn create(&self, name: &str, schema: &KvSchema, options: &Options) -> Result<Arc<dyn MergeEngine>, MergeError> {
        match self.engines.get(name) {
            Some(factory) => factory.create(schema, options, &self.aggregators),
            None => Err(MergeError::Invalid(format!(
                "merge-engine: there is no engine {name:?}; known are: {}",
                self.names().collect::<Vec<_>>().join(", ")
            ))),
        }
    }
}
