//! Schemas: their JSON, how a new one is made, what follows from one, and where they are kept.

mod builder;
mod keys;
mod store;
mod table_schema;

pub use builder::SchemaBuilder;
pub use store::SchemaStore;
pub use table_schema::TableSchema;
