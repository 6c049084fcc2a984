//! Options that one use of a table sets on top of those in its schema.

use paimon_format::options::{Options, parse_bool};

use crate::error::{Error, Result};

/// Keys of storage settings begin with one of these.
const STORAGE_PREFIXES: [&str; 4] = ["s3.", "s3a.", "fs.", "hadoop."];

/// What files and rows already depend on: a use of the table cannot change it.
///
/// Source: `org.apache.paimon.CoreOptions#IMMUTABLE_OPTIONS`.
const IMMUTABLE: [&str; 20] = [
    "aggregation.remove-record-on-delete",
    "bucket",
    "bucket-function.type",
    "bucket-key",
    "data-evolution.enabled",
    "data-file.path-directory",
    "dynamic-bucket.initial-buckets",
    "force-lookup",
    "index-file-in-data-file-dir",
    "merge-engine",
    "partial-update.remove-record-on-delete",
    "partial-update.remove-record-on-sequence-group",
    "partition",
    "path",
    "pk-clustering-override",
    "primary-key",
    "row-tracking.enabled",
    "rowkind.field",
    "sequence.snapshot-ordering",
    "type",
];

/// Options without the settings of storages (`s3.…`, `fs.…`): what belongs to a table.
pub fn table_options(options: &Options) -> Options {
    options
        .iter()
        .filter(|(key, _)| !STORAGE_PREFIXES.iter().any(|prefix| key.starts_with(prefix)))
        .collect()
}

/// The schema's options with those of this use; storage settings are left out.
///
/// Errors: `Invalid` naming an option that cannot differ from the schema's.
pub(crate) fn with_dynamic_options(stored: &Options, dynamic: &Options) -> Result<Options> {
    let mut options = stored.clone();
    for (key, value) in table_options(dynamic).iter() {
        check_vectors(stored, key, Some(value))?;
        if IMMUTABLE.contains(&key) && stored.get(key) != Some(value) {
            return Err(Error::invalid(format!(
                "option '{key}' = '{value}': it cannot be set for one use of a table, which was made with {}",
                stored
                    .get(key)
                    .map_or_else(|| "its default".to_owned(), |stored| format!("'{stored}'"))
            )));
        }
        options.set(key, value);
    }
    Ok(options)
}

/// Refuses to switch deletion vectors where the schema does not allow it.
fn check_vectors(stored: &Options, key: &str, value: Option<&str>) -> Result<()> {
    let now = value.and_then(|value| parse_bool(value).ok()).unwrap_or_default();
    if key != "deletion-vectors.enabled" || now == set(stored, key) || set(stored, "deletion-vectors.modifiable") {
        return Ok(());
    }
    Err(Error::invalid(format!(
        "option '{key}' = '{now}': rows would be seen twice or again until a full compaction; where that is certain not to be, \
         'deletion-vectors.modifiable' = 'true' in the table's schema allows it"
    )))
}

/// Whether a table's option is set. A value that is none is refused where the option is used.
fn set(options: &Options, key: &str) -> bool {
    options.bool(key).ok().flatten().unwrap_or_default()
}

/// Whether the schema's value of an option may become another one; `None`: its default. What files depend on may not; a fixed number of
/// buckets may become another one, by which partitions are refused for writing until they are rescaled. `has_rows`: there are snapshots.
///
/// Errors: `Invalid` naming the option.
///
/// Source: `org.apache.paimon.schema.SchemaManager#checkAlterTableOption`.
pub(crate) fn check_change(stored: &Options, key: &str, value: Option<&str>, has_rows: bool) -> Result<()> {
    let shown = value.map_or_else(|| "its default".to_owned(), |value| format!("'{value}'"));
    if has_rows {
        check_vectors(stored, key, value)?;
        let lasts = ["ignore-delete", "ignore-update-before"].contains(&key);
        let is_set = value.and_then(|value| parse_bool(value).ok()).unwrap_or_default();
        if lasts && set(stored, key) && !is_set {
            return Err(Error::invalid(format!(
                "option '{key}' = {shown}: rows that were ignored so far would count"
            )));
        }
    }
    let fixed = |value: Option<&str>| {
        value
            .and_then(|text| text.parse::<i32>().ok())
            .is_some_and(|count| count > 0)
    };
    let rescales = key == "bucket" && fixed(stored.get(key)) && fixed(value);
    if rescales || !IMMUTABLE.contains(&key) || stored.get(key) == value {
        return Ok(());
    }
    Err(Error::invalid(format!(
        "option '{key}' = {shown}: it cannot change, because the files that are there depend on it"
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_use_sets_its_own_options_but_not_what_files_depend_on() {
        let stored: Options = [("bucket", "2"), ("write-only", "true")].into_iter().collect();
        let dynamic: Options = [("write-only", "false"), ("s3.endpoint", "x"), ("bucket", "2")]
            .into_iter()
            .collect();
        let options = with_dynamic_options(&stored, &dynamic).unwrap();
        let expected: Options = [("bucket", "2"), ("write-only", "false")].into_iter().collect();
        assert_eq!(options, expected);

        for (key, value) in [
            ("bucket", Some("3")),
            ("write-only", Some("false")),
            ("write-only", None),
        ] {
            check_change(&stored, key, value, true).unwrap();
        }
        for (key, value) in [
            ("bucket", Some("-1")),
            ("bucket", None),
            ("merge-engine", Some("first-row")),
        ] {
            let error = check_change(&stored, key, value, false).unwrap_err().to_string();
            let shown = value.map_or_else(|| "its default".to_owned(), |value| format!("'{value}'"));
            assert_eq!(
                error,
                format!("option '{key}' = {shown}: it cannot change, because the files that are there depend on it")
            );
        }

        let dynamic: Options = [("bucket", "3")].into_iter().collect();
        assert_eq!(
            with_dynamic_options(&stored, &dynamic).unwrap_err().to_string(),
            "option 'bucket' = '3': it cannot be set for one use of a table, which was made with '2'"
        );
    }

    #[test]
    fn vectors_are_switched_only_where_the_schema_allows_it() {
        let on: Options = [("deletion-vectors.enabled", "true")].into_iter().collect();
        let off: Options = [("deletion-vectors.enabled", "false")].into_iter().collect();
        let error = with_dynamic_options(&on, &off).unwrap_err().to_string();
        assert!(
            error.starts_with("option 'deletion-vectors.enabled' = 'false': rows would be seen twice"),
            "{error}"
        );
        assert!(with_dynamic_options(&Options::new(), &on).is_err());
        assert_eq!(with_dynamic_options(&Options::new(), &off).unwrap(), off);
        assert_eq!(with_dynamic_options(&on, &on).unwrap(), on);
        let mut free = on.clone();
        free.set("deletion-vectors.modifiable", "true");
        let options = with_dynamic_options(&free, &off).unwrap();
        assert_eq!(options.get("deletion-vectors.enabled"), Some("false"));

        let key = "deletion-vectors.enabled";
        assert!(check_change(&on, key, None, true).is_err());
        assert!(check_change(&Options::new(), key, Some("true"), true).is_err());
        check_change(&Options::new(), key, Some("true"), false).unwrap();
        check_change(&free, key, Some("false"), true).unwrap();
    }

    #[test]
    fn what_is_ignored_stays_ignored() {
        let stored: Options = [("ignore-delete", "true")].into_iter().collect();
        let error = check_change(&stored, "ignore-delete", Some("false"), true).unwrap_err();
        assert_eq!(
            error.to_string(),
            "option 'ignore-delete' = 'false': rows that were ignored so far would count"
        );
        assert!(check_change(&stored, "ignore-delete", None, true).is_err());
        check_change(&stored, "ignore-delete", Some("false"), false).unwrap();
        check_change(&Options::new(), "ignore-delete", Some("true"), true).unwrap();
    }
}
