use std::collections::BTreeMap;

use bytes::Bytes;
use proptest::prelude::*;
use rstest::rstest;

use super::*;
use crate::FormatError;
use crate::row::compacted::CompactedKeyOrder;
use crate::types::{DataType, TypeKind};

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn int_order() -> CompactedKeyOrder {
    CompactedKeyOrder::new([&DataType::not_null(TypeKind::Int)]).unwrap()
}

/// The compacted row of one INT.
fn int_key(value: i32) -> Vec<u8> {
    [&[0, 0], &value.to_le_bytes()[..]].concat()
}

fn write(settings: SstSettings, entries: &BTreeMap<i32, Vec<u8>>) -> Bytes {
    let mut writer = SstWriter::new(settings, entries.len() as u64).unwrap();
    let mut file = Vec::new();
    for (key, value) in entries {
        writer.put(&int_key(*key), value).unwrap();
        if writer.ready_bytes() > 100 {
            file.extend(writer.take());
        }
    }
    file.extend(writer.finish().unwrap());
    file.into()
}

fn part(file: &Bytes, range: std::ops::Range<u64>) -> Bytes {
    file.slice(range.start as usize..range.end as usize)
}

fn open(file: &Bytes) -> Result<SstIndex, FormatError> {
    let tail = file.len().saturating_sub(SstFooter::BYTES);
    let footer = SstFooter::decode(&file[tail..], file.len() as u64)?;
    SstIndex::decode(&footer, footer.ranges().map(|range| part(file, range)))
}

/// The values of keys, ascending, and how many blocks were read.
fn search(file: &Bytes, keys: &[i32]) -> Result<(BTreeMap<i32, Vec<u8>>, usize), FormatError> {
    let encoded: Vec<Vec<u8>> = keys.iter().map(|key| int_key(*key)).collect();
    let numbered = |numbers: &[u32]| -> Vec<(u32, Vec<u8>)> {
        numbers.iter().map(|&n| (n, encoded[n as usize].clone())).collect()
    };
    let all: Vec<u32> = (0..keys.len() as u32).collect();
    let probes = open(file)?.probe(numbered(&all).iter().map(|(n, key)| (*n, key.as_slice())), &int_order())?;
    let mut values = BTreeMap::new();
    for probe in &probes {
        let block = SstBlock::decode(part(file, probe.block.range()))?;
        let wanted = numbered(&probe.keys);
        block.search(
            wanted.iter().map(|(n, key)| (*n, key.as_slice())),
            &int_order(),
            |n, value| {
                values.insert(keys[n as usize], value.to_vec());
                Ok(())
            },
        )?;
    }
    Ok((values, probes.len()))
}

fn settings(compression: SstCompression, block_bytes: usize, bloom_fpp: Option<f64>) -> SstSettings {
    SstSettings {
        block_bytes,
        compression,
        zstd_level: 1,
        bloom_fpp,
    }
}

#[test]
fn the_bytes_of_the_java_engine() {
    let entries = BTreeMap::from([(1, b"a".to_vec()), (2, b"bc".to_vec())]);
    let file = write(settings(SstCompression::None, 64 << 10, Some(0.05)), &entries);
    let expected = [
        "0600000100000001610600000200000002626300000000090000000200000001", // entries, offsets
        "0007a7077c",                                                       // codec, checksum
        "eb2e",                                                             // bloom filter
        "060000020000000200200a00000000",                                   // index
        "0086a5a69f",
        "250000000000000002000000020000000000000027000000000000000f00000061fd4e58", // footer
    ];
    assert_eq!(hex(&file), expected.concat());
}

#[test]
fn a_file_without_entries_finds_nothing() {
    let file = write(SstSettings::default(), &BTreeMap::new());
    assert_eq!(search(&file, &[1, 2]).unwrap(), (BTreeMap::new(), 0));
}

#[test]
fn the_bloom_filter_saves_reading_blocks() {
    let entries: BTreeMap<i32, Vec<u8>> = (0..2000).map(|key| (key * 2, b"value".to_vec())).collect();
    let absent: Vec<i32> = (0..2000).map(|key| key * 2 + 1).collect();
    let with = write(settings(SstCompression::None, 256, Some(0.01)), &entries);
    let without = write(settings(SstCompression::None, 256, None), &entries);
    let (found, blocks) = search(&with, &absent).unwrap();
    assert!(found.is_empty());
    let (_, all_blocks) = search(&without, &absent).unwrap();
    assert!(blocks * 3 < all_blocks, "{blocks} of {all_blocks} blocks");
    assert_eq!(search(&with, &[0, 7, 2000, 3998, 4000]).unwrap().0.len(), 3);
}

#[rstest]
#[case(SstCompression::Zstd)]
#[case(SstCompression::Lz4)]
fn blocks_are_compressed_where_that_pays(#[case] compression: SstCompression) {
    let same: BTreeMap<i32, Vec<u8>> = (0..100).map(|key| (key, vec![b'x'; 50])).collect();
    let plain = write(settings(SstCompression::None, 1000, None), &same);
    let small = write(settings(compression, 1000, None), &same);
    assert!(
        small.len() * 3 < plain.len(),
        "{} of {} bytes",
        small.len(),
        plain.len()
    );
    assert_eq!(search(&small, &(0..100).collect::<Vec<_>>()).unwrap().0, same);
    let one = BTreeMap::from([(1, b"abc".to_vec())]);
    let settings_without = settings(SstCompression::None, 1000, None);
    assert_eq!(
        write(settings(compression, 1000, None), &one),
        write(settings_without, &one)
    );
}

#[test]
fn codecs_by_name() {
    assert_eq!(SstCompression::parse("ZSTD").unwrap(), SstCompression::Zstd);
    let error = SstCompression::parse("lzo").unwrap_err();
    assert_eq!(error.to_string(), "not supported: lookup files compressed with lzo");
    let error = SstCompression::parse("gzip").unwrap_err();
    assert_eq!(
        error.to_string(),
        "compression 'gzip' of lookup files: expected one of none, zstd, lz4"
    );
    let error = SstWriter::new(settings(SstCompression::None, 1, Some(1.0)), 1).unwrap_err();
    assert_eq!(
        error.to_string(),
        "lookup.cache.bloom.filter.fpp is 1: expected a number between 0 and 1"
    );
}

#[rstest]
#[case(0, "no lookup file: it ends in 594efd61, not 584efd61")]
#[case(4, "a block of 4278190095 bytes at 39, behind the end of the blocks at 59")]
#[case(24, "a bloom filter of 4278190082 bytes at 37, in a file of 95")]
fn broken_footers_are_errors(#[case] from_end: usize, #[case] message: &str) {
    let entries = BTreeMap::from([(1, b"a".to_vec()), (2, b"bc".to_vec())]);
    let mut file = write(settings(SstCompression::None, 64 << 10, Some(0.05)), &entries).to_vec();
    let at = file.len() - from_end - 1;
    file[at] = if from_end == 0 { 0x59 } else { 0xff };
    let error = open(&file.into()).unwrap_err();
    assert_eq!(error.to_string(), format!("lookup file: corrupt: {message}"));
}

#[test]
fn a_changed_block_is_an_error() {
    let entries = BTreeMap::from([(1, b"a".to_vec()), (2, b"bc".to_vec())]);
    let mut file = write(settings(SstCompression::None, 64 << 10, Some(0.05)), &entries).to_vec();
    file[8] ^= 1;
    let error = search(&file.into(), &[1]).unwrap_err();
    assert!(error.to_string().contains("its trailer says 7c07a707"), "{error}");
}

fn any_settings() -> impl Strategy<Value = SstSettings> {
    let compression = prop_oneof![
        Just(SstCompression::None),
        Just(SstCompression::Zstd),
        Just(SstCompression::Lz4)
    ];
    (compression, 0_usize..600, prop::option::of(0.001..0.9))
        .prop_map(|(compression, block_bytes, bloom)| settings(compression, block_bytes, bloom))
}

proptest! {
    #[test]
    fn what_is_put_is_found(
        settings in any_settings(),
        entries in prop::collection::btree_map(-200..200_i32, prop::collection::vec(any::<u8>(), 0..30), 0..80),
        keys in prop::collection::btree_set(-220..220_i32, 0..80),
    ) {
        let file = write(settings, &entries);
        let keys: Vec<i32> = keys.into_iter().collect();
        let expected: BTreeMap<i32, Vec<u8>> = keys
            .iter()
            .filter_map(|key| Some((*key, entries.get(key)?.clone())))
            .collect();
        prop_assert_eq!(search(&file, &keys).unwrap().0, expected);
    }

    /// A changed byte is seen or does no harm; nothing panics, and nothing large is allocated.
    #[test]
    fn broken_files_are_errors_or_right(
        settings in any_settings(),
        entries in prop::collection::btree_map(0..100_i32, prop::collection::vec(any::<u8>(), 0..30), 1..40),
        at in any::<prop::sample::Index>(),
        flip in 1_u8..,
        cut in any::<bool>(),
    ) {
        let file = write(settings, &entries);
        let at = at.index(file.len());
        let mut broken = file.to_vec();
        if cut {
            broken.truncate(at);
        } else {
            broken[at] ^= flip;
        }
        let keys: Vec<i32> = (0..100).collect();
        if let Ok((found, _)) = search(&broken.into(), &keys) {
            // A changed bloom filter may hide keys; it never makes up values.
            prop_assert!(found.iter().all(|(key, value)| entries.get(key) == Some(value)));
        }
    }
}
