//! Whether a compaction may forget deletes.

/// Whether a compaction to `output_level` drops delete rows: when no older version of a key can lie outside of it.
///
/// `highest` is the highest level of the whole tree that has files, those of the compaction included, at the moment it is picked.
/// With deletion vectors older versions are hidden already. Level 0 never drops; `force_keep` (chain tables) never either.
///
/// Source: `org.apache.paimon.mergetree.compact.MergeTreeCompactManager#triggerCompaction`.
pub fn drop_delete(output_level: i32, highest: Option<i32>, deletion_vectors: bool, force_keep: bool) -> bool {
    !force_keep && output_level != 0 && (deletion_vectors || highest.is_none_or(|highest| output_level >= highest))
}

#[cfg(test)]
mod tests {
    use super::drop_delete;

    #[test]
    fn only_when_nothing_older_is_left_out() {
        // Level 0 to 2 above a level 5, then everything to 5.
        assert!(!drop_delete(2, Some(5), false, false));
        assert!(drop_delete(5, Some(5), false, false));
        // Level 0 to 1 above a level 2.
        assert!(!drop_delete(1, Some(2), false, false));
        // Only level 0.
        assert!(drop_delete(5, Some(0), false, false));
        // Deletion vectors hide what is older.
        assert!(drop_delete(2, Some(5), true, false));
        assert!(!drop_delete(0, Some(0), true, false));
        assert!(!drop_delete(5, Some(5), true, true));
    }
}
