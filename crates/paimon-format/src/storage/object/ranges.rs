//! Many byte ranges of one object in few requests.

use std::ops::Range;

use bytes::Bytes;

/// Bytes that are fetched in vain rather than with a request of their own.
const GAP_BYTES: u64 = 1 << 20;

/// The ranges to fetch, ascending and apart, that cover all of `wanted`. Empty ranges need nothing.
pub(super) fn coalesce(wanted: &[Range<u64>]) -> Vec<Range<u64>> {
    let mut ascending: Vec<_> = wanted.iter().filter(|range| !range.is_empty()).cloned().collect();
    ascending.sort_unstable_by_key(|range| range.start);
    let mut covering: Vec<Range<u64>> = Vec::new();
    for range in ascending {
        match covering.last_mut() {
            Some(last) if range.start <= last.end.saturating_add(GAP_BYTES) => last.end = last.end.max(range.end),
            _ => covering.push(range),
        }
    }
    covering
}

/// The bytes of `range`, from what was fetched for `covering`. `None` when the store sent too few.
pub(super) fn cut(range: &Range<u64>, covering: &[Range<u64>], fetched: &[Bytes]) -> Option<Bytes> {
    if range.is_empty() {
        return Some(Bytes::new());
    }
    let at = covering.partition_point(|cover| cover.end <= range.start);
    let (cover, bytes) = (covering.get(at)?, fetched.get(at)?);
    let start = usize::try_from(range.start.checked_sub(cover.start)?).ok()?;
    let end = usize::try_from(range.end.checked_sub(cover.start)?).ok()?;
    (end <= bytes.len()).then(|| bytes.slice(start..end))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_ranges_share_a_request_and_far_ones_do_not() {
        let far = 10 * GAP_BYTES;
        let wanted = [
            far..far + 5,
            4..6,
            0..3,
            5..9,
            7..7,
            far + 5 + GAP_BYTES..far + 6 + GAP_BYTES,
        ];
        let covering = coalesce(&wanted);
        assert_eq!(covering, [0..9, far..far + 6 + GAP_BYTES]);
        let fetched: Vec<Bytes> = covering
            .iter()
            .map(|range| range.clone().map(|at| at as u8).collect())
            .collect();
        for range in wanted {
            let expected: Vec<u8> = range.clone().map(|at| at as u8).collect();
            assert_eq!(cut(&range, &covering, &fetched).unwrap(), expected, "{range:?}");
        }
    }

    #[test]
    fn too_few_bytes_are_noticed() {
        let covering = coalesce(&[0..1, 20..30]);
        let fetched = [Bytes::from_static(b"0123456789")];
        assert_eq!(cut(&(0..1), &covering, &fetched).unwrap(), "0");
        assert_eq!(cut(&(20..30), &covering, &fetched), None);
        assert_eq!(cut(&(9..11), &covering, &fetched), None);
        assert_eq!(cut(&(40..41), &covering, &fetched), None);
    }
}
