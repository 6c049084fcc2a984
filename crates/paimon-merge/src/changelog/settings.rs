//! What a table's options say about its changelog.

use paimon_format::kv::KvSchema;
use paimon_format::options::Options;
use paimon_format::types::RowKind;
use serde::{Deserialize, Serialize};

use crate::MergeError;

const IGNORE_FIELDS: &str = "changelog-producer.row-deduplicate-ignore-fields";

/// Which changes are worth a row.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub struct ChangelogSettings {
    /// `changelog-producer.row-deduplicate`: an update that changes no value is left out.
    pub row_deduplicate: bool,
    /// `changelog-producer.row-deduplicate-ignore-fields`: columns that do not count for that.
    pub row_deduplicate_ignore_fields: Vec<String>,
    /// `changelog-producer.ignore-update-before`: -U rows are left out.
    pub ignore_update_before: bool,
    /// `changelog-producer.ignore-delete`: -D rows are left out.
    pub ignore_delete: bool,
}

impl ChangelogSettings {
    /// From a table's options.
    ///
    /// Errors: `Invalid`, naming the option.
    pub fn from_options(options: &Options) -> Result<Self, MergeError> {
        let flag = |key| Ok::<_, MergeError>(options.bool(key)?.unwrap_or(false));
        Ok(Self {
            row_deduplicate: flag("changelog-producer.row-deduplicate")?,
            row_deduplicate_ignore_fields: options.list(IGNORE_FIELDS).unwrap_or_default(),
            ignore_update_before: flag("changelog-producer.ignore-update-before")?,
            ignore_delete: flag("changelog-producer.ignore-delete")?,
        })
    }

    /// Whether the columns are there.
    ///
    /// Errors: `Invalid`, naming option and column.
    pub fn check(&self, schema: &KvSchema) -> Result<(), MergeError> {
        let mut names = self.row_deduplicate_ignore_fields.iter();
        match names.find(|name| schema.position(name).is_none()) {
            None => Ok(()),
            Some(name) => Err(MergeError::Invalid(format!(
                "option '{IGNORE_FIELDS}': there is no column {name}"
            ))),
        }
    }

    /// Whether changes of a kind are written.
    #[inline]
    pub fn keeps(&self, kind: RowKind) -> bool {
        match kind {
            RowKind::UpdateBefore => !self.ignore_update_before,
            RowKind::Delete => !self.ignore_delete,
            RowKind::Insert | RowKind::UpdateAfter => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use paimon_format::types::{DataField, DataType, TypeKind};

    use super::*;

    fn settings(options: &[(&str, &str)]) -> Result<ChangelogSettings, MergeError> {
        ChangelogSettings::from_options(&options.iter().copied().collect())
    }

    #[test]
    fn options_are_read() {
        assert_eq!(settings(&[]).unwrap(), ChangelogSettings::default());
        let all = settings(&[
            ("changelog-producer.row-deduplicate", "true"),
            (IGNORE_FIELDS, "ts, seen"),
            ("changelog-producer.ignore-update-before", "true"),
            ("changelog-producer.ignore-delete", "true"),
        ]);
        let all = all.unwrap();
        assert_eq!(all.row_deduplicate_ignore_fields, ["ts", "seen"]);
        assert!(all.row_deduplicate);
        assert!(!all.keeps(RowKind::UpdateBefore) && !all.keeps(RowKind::Delete));
        assert!(all.keeps(RowKind::Insert) && all.keeps(RowKind::UpdateAfter));
        let error = settings(&[("changelog-producer.ignore-delete", "perhaps")]).unwrap_err();
        assert_eq!(
            error.to_string(),
            "option 'changelog-producer.ignore-delete' = 'perhaps': expected true or false"
        );
    }

    #[test]
    fn ignored_columns_must_be_there() {
        let fields = vec![DataField::new(0, "k", DataType::not_null(TypeKind::Int))];
        let schema = KvSchema::new(0, fields, vec![0], None).unwrap();
        settings(&[(IGNORE_FIELDS, "k")]).unwrap().check(&schema).unwrap();
        let error = settings(&[(IGNORE_FIELDS, "k,ts")])
            .unwrap()
            .check(&schema)
            .unwrap_err();
        assert_eq!(
            error.to_string(),
            "option 'changelog-producer.row-deduplicate-ignore-fields': there is no column ts"
        );
    }
}
