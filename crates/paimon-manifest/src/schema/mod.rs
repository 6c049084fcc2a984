//! Schemas: their JSON, how a new one is made and an old one changed, what follows from one, and where they are kept.

mod builder;
mod change;
mod keys;
mod store;
mod table_schema;

pub use builder::SchemaBuilder;
pub use change::SchemaChange;
pub use store::SchemaStore;
pub use table_schema::TableSchema;
