//! Tables whose compactions look old rows up.

use paimon_format::FormatError;
use paimon_format::options::Options;

use crate::Result;

/// Refuses tables in which files above level 0 hold rows that are merged into newer files already: reading them takes a merge that
/// knows so. Source: `org.apache.paimon.mergetree.compact.LookupMergeFunction`, `org.apache.paimon.lookup.LookupStrategy`.
///
/// Errors: `Unsupported`, naming the option.
pub(crate) fn refuse_lookup_mode(options: &Options) -> Result<()> {
    let engine = options.get("merge-engine").unwrap_or("deduplicate");
    let is_set = |key: &str| options.bool(key).map(|value| value.unwrap_or(false));
    let (key, value) = if options
        .get("changelog-producer")
        .is_some_and(|producer| producer.eq_ignore_ascii_case("lookup"))
    {
        ("changelog-producer", "lookup")
    } else if is_set("force-lookup")? {
        ("force-lookup", "true")
    } else if is_set("deletion-vectors.enabled")? {
        ("deletion-vectors.enabled", "true")
    } else {
        return Ok(());
    };
    Err(FormatError::unsupported(format!(
        "option '{key}' = '{value}': with merge engine {engine} this engine does not use such tables"
    ))
    .into())
}
