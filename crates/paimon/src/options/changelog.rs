//! What changelog producers, merge engines and look-ups exclude.

use paimon_format::FormatError;
use paimon_format::kv::KvSchema;
use paimon_format::options::Options;
use paimon_lsm::compact::ChangelogProducer;
use paimon_lsm::lookup::LookupStrategy;
use paimon_merge::changelog::ChangelogSettings;
use paimon_merge::engine::Promises;

use super::numbers::above_zero;
use crate::error::Result;

const PRODUCER: &str = "changelog-producer";
const DELTA_COMMITS: &str = "full-compaction.delta-commits";
/// What decides whether compactions look old rows up.
const LOOKUP_OPTIONS: [&str; 3] = [PRODUCER, "deletion-vectors.enabled", "force-lookup"];

/// Refuses combinations that cannot give a right changelog. What the merge engine itself cannot do, it refuses by itself; deletion vectors
/// are checked by [`DeletionVectorSettings`](super::DeletionVectorSettings).
///
/// Errors: `Invalid`, naming the options. Source: `org.apache.paimon.schema.SchemaValidation#validateTableSchema`; that
/// `full-compaction` with `force-lookup` is refused is ours, because files above level 0 would be taken for complete states without
/// being so.
pub(crate) fn check_changelog(options: &Options, promises: Promises, schema: &KvSchema) -> Result<()> {
    let producer = ChangelogProducer::from_options(options)?;
    let name = options.get(PRODUCER).unwrap_or("none");
    let refuse = |what: &str, why: &str| {
        Err(FormatError::invalid(format!("option '{PRODUCER}' = '{name}' with {what}: {why}")).into())
    };
    let computed = matches!(producer, ChangelogProducer::Lookup | ChangelogProducer::FullCompaction);
    if computed && options.bool("streaming-read-overwrite")?.unwrap_or(false) {
        return refuse("'streaming-read-overwrite' = 'true'", "readers would see changes twice");
    }
    delta_commits(options)?;
    if producer == ChangelogProducer::Lookup && options.get(DELTA_COMMITS).is_some() {
        return refuse(
            "'full-compaction.delta-commits'",
            "full compactions in between add nothing to this changelog; use the producer full-compaction",
        );
    }
    let lookup = LookupStrategy::from_options(options, promises)?;
    if producer == ChangelogProducer::FullCompaction && lookup.force_lookup {
        return refuse(
            "'force-lookup' = 'true'",
            "the producer lookup makes a changelog from what is looked up",
        );
    }
    Ok(ChangelogSettings::from_options(options)?.check(schema)?)
}

/// After how many commits of a job a full compaction is due; `None`: never by itself.
///
/// Errors: `Invalid`, naming the option.
pub(crate) fn full_compaction_delta_commits(options: &Options) -> Result<Option<i32>> {
    let set = delta_commits(options)?;
    let producer = ChangelogProducer::from_options(options)?;
    Ok(set.or((producer == ChangelogProducer::FullCompaction).then_some(1)))
}

/// What `full-compaction.delta-commits` is set to. Errors: `Invalid` unless it is above 0.
pub(super) fn delta_commits(options: &Options) -> Result<Option<i32>, FormatError> {
    let set = options.int(DELTA_COMMITS)?;
    set.map(|commits| above_zero(DELTA_COMMITS, commits.into())).transpose()
}

/// The options that decide whether compactions look old rows up, for errors: `'changelog-producer' = 'lookup'`.
pub(crate) fn lookup_options(options: &Options) -> String {
    let set = LOOKUP_OPTIONS
        .into_iter()
        .filter_map(|key| Some(format!("'{key}' = '{}'", options.get(key)?)));
    let set: Vec<String> = set.collect();
    match set.is_empty() {
        true => format!("'{PRODUCER}' = 'none'"),
        false => set.join(", "),
    }
}

/// Refuses to use a table otherwise than it was made: files above level 0 hold complete states of their keys where old rows are looked
/// up, and parts of them elsewhere. Engines that merge a result once more without harm do not mind.
///
/// Errors: `Invalid`, naming the options that make the difference.
pub(crate) fn check_same_lookup(stored: &Options, used: &Options, promises: Promises) -> Result<()> {
    if promises.idempotent {
        return Ok(());
    }
    let before = LookupStrategy::from_options(stored, promises)?;
    let now = LookupStrategy::from_options(used, promises)?;
    if before.need_lookup() == now.need_lookup() {
        return Ok(());
    }
    let changed = LOOKUP_OPTIONS
        .into_iter()
        .filter(|key| stored.get(key) != used.get(key));
    let changed: Vec<String> = changed.map(|key| format!("'{key}'")).collect();
    Err(FormatError::invalid(format!(
        "option {}: cannot be set for one use of a table with merge engine {}, as it changes what files above level 0 mean",
        changed.join(", "),
        used.get("merge-engine").unwrap_or("deduplicate")
    ))
    .into())
}

#[cfg(test)]
mod tests {
    use paimon_format::types::{DataField, DataType, TypeKind};

    use super::*;

    fn schema() -> KvSchema {
        let id = DataField::new(0, "id", DataType::not_null(TypeKind::Int));
        KvSchema::new(0, vec![id], vec![0], None).unwrap()
    }

    fn check(options: &[(&str, &str)]) -> String {
        let options = options.iter().copied().collect();
        match check_changelog(&options, Promises::default(), &schema()) {
            Ok(()) => "ok".to_owned(),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn illegal_combinations_are_named() {
        for producer in ["none", "input", "lookup", "full-compaction"] {
            assert_eq!(check(&[("changelog-producer", producer)]), "ok");
        }
        assert_eq!(
            check(&[("changelog-producer", "input"), ("streaming-read-overwrite", "true")]),
            "ok"
        );
        let all = [
            check(&[("changelog-producer", "newest")]),
            check(&[("changelog-producer", "lookup"), ("streaming-read-overwrite", "true")]),
            check(&[
                ("changelog-producer", "full-compaction"),
                ("streaming-read-overwrite", "true"),
            ]),
            check(&[("changelog-producer", "lookup"), ("full-compaction.delta-commits", "3")]),
            check(&[("changelog-producer", "full-compaction"), ("force-lookup", "true")]),
            check(&[("full-compaction.delta-commits", "0")]),
            check(&[("full-compaction.delta-commits", "-1")]),
            check(&[("changelog-producer.row-deduplicate-ignore-fields", "ts")]),
        ];
        insta::assert_snapshot!(all.join("\n"));
    }

    #[test]
    fn levels_keep_their_meaning() {
        let stored: Options = [("merge-engine", "aggregation")].into_iter().collect();
        let used: Options = [("merge-engine", "aggregation"), ("changelog-producer", "lookup")]
            .into_iter()
            .collect();
        let error = check_same_lookup(&stored, &used, Promises::retracting()).unwrap_err();
        assert_eq!(
            error.to_string(),
            "option 'changelog-producer': cannot be set for one use of a table with merge engine aggregation, as it changes what files above \
             level 0 mean"
        );
        let idempotent = Promises {
            idempotent: true,
            ..Promises::default()
        };
        check_same_lookup(&stored, &used, idempotent).unwrap();
        check_same_lookup(&used, &used, Promises::retracting()).unwrap();
    }
}
