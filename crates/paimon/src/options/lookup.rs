//! Tables whose compactions look old rows up.

use paimon_format::FormatError;
use paimon_format::options::Options;
use paimon_merge::engine::Promises;

/// Whether rows above level 0 are the whole states of their keys, because what leaves level 0 is merged with the old row.
///
/// Errors: `Invalid`, naming the option. Source: `org.apache.paimon.CoreOptions#needLookup`.
pub(crate) fn needs_lookup(options: &Options, promises: Promises) -> Result<bool, FormatError> {
    let is_set = |key: &str| options.bool(key).map(Option::unwrap_or_default);
    let producer = options.string("changelog-producer");
    Ok(promises.existence_only
        || producer.is_some_and(|producer| producer.eq_ignore_ascii_case("lookup"))
        || is_set("deletion-vectors.enabled")?
        || is_set("force-lookup")?)
}
