//! Look-ups that find more than there is room for.

use futures::executor::block_on;
use paimon_format::types::TypeKind;
use paimon_lookup::LookupSettings;
use paimon_lsm::lookup::LookupSource;
use paimon_merge::changelog::LookupNeed;

use crate::support::{Bucket, answers, rows, sorted_keys, view};

/// Less than a fifth of what all rows have.
const MAX_BYTES: u64 = 8000;

/// How many look-ups it took, and all answers.
fn ask_in_parts(bucket: &Bucket, numbers: &[i32], need: LookupNeed) -> (usize, Vec<Option<crate::support::Answer>>) {
    let levels = bucket.levels();
    let view = view(&bucket.schema, &bucket.files, &[]);
    let (mut calls, mut all) = (0, Vec::new());
    while all.len() < numbers.len() {
        let rest = &numbers[all.len()..];
        let keys = sorted_keys(&bucket.schema, rest);
        let hits = block_on(levels.lookup(&keys, &view, 1, need, MAX_BYTES)).unwrap();
        let found = hits.rows.as_ref().map_or(0, |rows| rows.memory_size());
        assert!(found as u64 <= 2 * MAX_BYTES, "{found} bytes at once");
        assert!(!hits.found.is_empty());
        let answered = sorted_keys(&bucket.schema, &rest[..hits.found.len()]);
        all.extend(answers(&bucket.schema, &answered, &hits));
        calls += 1;
    }
    (calls, all)
}

#[test]
fn wide_rows_come_in_parts() {
    // Through lookup files, and from the data files.
    for build_after in [0, u32::MAX] {
        let settings = LookupSettings {
            build_after,
            ..LookupSettings::default()
        };
        let mut bucket = Bucket::new(&[TypeKind::Int], settings);
        bucket.add(5, &rows(0..2000, 1));
        bucket.add(4, &rows((0..2000).step_by(3), 2));
        let numbers: Vec<i32> = (0..2000).collect();
        let once = bucket.ask(&bucket.levels(), &numbers, 1, LookupNeed::Value, &[]);
        let (calls, in_parts) = ask_in_parts(&bucket, &numbers, LookupNeed::Value);
        assert_eq!(in_parts, once);
        assert!((5..50).contains(&calls), "{calls} look-ups");
        // Keys that nobody has need no room, and neither do positions.
        let absent: Vec<i32> = (5000..9000).collect();
        assert_eq!(ask_in_parts(&bucket, &absent, LookupNeed::Value).0, 1);
        assert_eq!(ask_in_parts(&bucket, &numbers, LookupNeed::Position).0, 1);
    }
}
