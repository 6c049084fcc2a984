//! Aggregate functions by name.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::bitmap::Bitmap32;
use super::bitmap64::Bitmap64;
use super::booleans::BoolFactory;
use super::collect::CollectFactory;
use super::extremes::ExtremeFactory;
use super::listagg::ListaggFactory;
use super::maps::{MergeMapFactory, MergeMapWithKeyTimeFactory};
use super::nested::{NestedPartialUpdateFactory, NestedUpdateFactory};
use super::numbers::{ProductFactory, SumFactory};
use super::select::SelectFactory;
use super::sketch::{Hll, Theta};
use super::union::UnionFactory;
use super::{AggregatedColumn, Aggregation, AggregatorFactory};
use crate::MergeError;

/// The aggregate functions that tables may name in `fields.<column>.aggregate-function`.
#[derive(Clone, Debug)]
pub struct Aggregators {
    factories: BTreeMap<String, Arc<dyn AggregatorFactory>>,
}

impl Default for Aggregators {
    /// The built-in functions.
    fn default() -> Self {
        let mut all = Self::empty();
        for factory in SelectFactory::ALL {
            all.add(factory);
        }
        all.add(SumFactory).add(ProductFactory);
        all.add(ExtremeFactory::MIN).add(ExtremeFactory::MAX);
        all.add(BoolFactory::AND).add(BoolFactory::OR);
        all.add(ListaggFactory).add(CollectFactory);
        all.add(MergeMapFactory).add(MergeMapWithKeyTimeFactory);
        all.add(NestedUpdateFactory).add(NestedPartialUpdateFactory);
        all.add(UnionFactory::<Bitmap32>::NEW);
        all.add(UnionFactory::<Bitmap64>::NEW);
        all.add(UnionFactory::<Theta>::NEW);
        all.add(UnionFactory::<Hll>::NEW);
        all
    }
}

impl Aggregators {
    /// No function at all.
    pub fn empty() -> Self {
        Self {
            factories: BTreeMap::new(),
        }
    }

    /// Adds a function, or replaces the one of the same name.
    pub fn add(&mut self, factory: impl AggregatorFactory + 'static) -> &mut Self {
        self.factories.insert(factory.name().to_owned(), Arc::new(factory));
        self
    }

    /// The names, in order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.factories.keys().map(String::as_str)
    }

    /// The function that [`AggregatedColumn::function`] names.
    ///
    /// Errors: `Invalid` for an unknown name, a column of a wrong type, or an illegal option.
    pub fn create(&self, column: &AggregatedColumn<'_>) -> Result<Aggregation, MergeError> {
        if let Some(factory) = self.factories.get(column.function) {
            return factory.create(column);
        }
        Err(MergeError::Invalid(format!(
            "column {}: there is no aggregate function {:?}; known are: {}",
            column.field.name,
            column.function,
            self.names().collect::<Vec<_>>().join(", ")
        )))
    }
}
