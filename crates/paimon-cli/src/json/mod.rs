//! Rows as JSON, both ways.
//!
//! | Type | JSON |
//! |---|---|
//! | BOOLEAN | `true`, `false` |
//! | TINYINT, SMALLINT, INT, BIGINT | number |
//! | FLOAT, DOUBLE | number, or `"NaN"`, `"Infinity"`, `"-Infinity"` |
//! | CHAR, VARCHAR, STRING | string |
//! | BINARY, VARBINARY, BYTES | string of lower-case hex digits |
//! | DECIMAL | string with all digits of the scale; numbers are read too |
//! | DATE, TIME | `"2026-03-02"`, `"08:00:42.554"` |
//! | TIMESTAMP | `"2026-03-02 08:00:42.554"`, with as many digits as the precision; with local time zone: UTC, ending in `Z` |
//! | ARRAY | array |
//! | MAP, MULTISET | array of `[key, value]`; a map with text keys is read from an object too |
//! | ROW | array of its fields; read from an object too |
//! | VARIANT | object with `value` and `metadata` in hex |

mod decode;
mod encode;

pub use decode::{decode_column, decode_value};
pub use encode::{encode_batch, encode_value};
