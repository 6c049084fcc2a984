//! Avro object container files, as far as manifests need them.
//!
//! Java reads a union's branch by its number, wants the header to hold `avro.schema` and `avro.codec` and nothing else, and
//! matches fields by name without promoting types. So the header is written here, byte by byte, with Java's own schema text;
//! and rows are decoded straight into metadata structs along the file's own schema, which is also several times faster than
//! going through a tree of values. Only the block codecs come from `apache-avro`.

mod container;
mod cursor;
mod encode;
mod error;
mod shape;
mod value;

pub(crate) use container::{ContainerWriter, ManifestCodec, read_container};
pub(crate) use encode::Encoder;
pub(crate) use error::{AvroError, Result as AvroResult};
pub(crate) use value::{Value, required};

#[cfg(test)]
mod tests;
