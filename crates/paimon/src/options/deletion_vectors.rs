//! Tables whose old rows are marked as deleted instead of being merged away by readers.

use paimon_format::FormatError;
use paimon_format::dv::BitmapKind;
use paimon_format::options::Options;

/// How a table uses deletion vectors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeletionVectorSettings {
    /// `deletion-vectors.bitmap64`: the form of new vectors.
    pub kind: BitmapKind,
    /// `deletion-vectors.merge-on-read`: batch reads see level 0, and merge it with what is above. Otherwise it is hidden until a
    /// compaction has taken it up.
    pub merge_on_read: bool,
}

impl DeletionVectorSettings {
    /// From a table's options; `None` without `deletion-vectors.enabled`.
    ///
    /// Errors: `Invalid`, naming the option: no legal value, or a changelog producer that cannot go with vectors. The merge engine
    /// refuses what cannot go with it.
    ///
    /// Source: `org.apache.paimon.schema.SchemaValidation#validateForDeletionVectors`.
    pub fn from_options(options: &Options) -> Result<Option<Self>, FormatError> {
        let set = |key| options.bool(key).map(Option::unwrap_or_default);
        if !set("deletion-vectors.enabled")? {
            return Ok(None);
        }
        let producer = options.string("changelog-producer");
        if producer.is_some_and(|producer| producer.eq_ignore_ascii_case("full-compaction")) {
            return Err(FormatError::invalid(
                "option 'changelog-producer' = 'full-compaction': tables with deletion vectors (option \
                 'deletion-vectors.enabled') know none, input and lookup",
            ));
        }
        Ok(Some(Self {
            kind: BitmapKind::from_options(options)?,
            merge_on_read: set("deletion-vectors.merge-on-read")?,
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(options: &[(&str, &str)]) -> Result<Option<DeletionVectorSettings>, String> {
        let options = options.iter().copied().collect();
        DeletionVectorSettings::from_options(&options).map_err(|error| error.to_string())
    }

    #[test]
    fn from_a_tables_options() {
        let enabled = ("deletion-vectors.enabled", "true");
        assert_eq!(settings(&[("deletion-vectors.bitmap64", "true")]), Ok(None));
        let default = DeletionVectorSettings {
            kind: BitmapKind::Bits32,
            merge_on_read: false,
        };
        assert_eq!(settings(&[enabled]), Ok(Some(default)));
        let other = DeletionVectorSettings {
            kind: BitmapKind::Bits64,
            merge_on_read: true,
        };
        let options = [
            enabled,
            ("deletion-vectors.bitmap64", "true"),
            ("deletion-vectors.merge-on-read", "true"),
            ("changelog-producer", "lookup"),
        ];
        assert_eq!(settings(&options), Ok(Some(other)));
        assert_eq!(
            settings(&[enabled, ("changelog-producer", "Full-Compaction")]).unwrap_err(),
            "option 'changelog-producer' = 'full-compaction': tables with deletion vectors (option \
             'deletion-vectors.enabled') know none, input and lookup"
        );
        assert_eq!(
            settings(&[enabled, ("deletion-vectors.bitmap64", "yes")]).unwrap_err(),
            "option 'deletion-vectors.bitmap64' = 'yes': expected true or false"
        );
    }
}
