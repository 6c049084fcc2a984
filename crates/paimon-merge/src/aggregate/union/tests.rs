//! Unions against those of the Java engine: `testdata/sketches`, made by `testdata/oracle/run.sh sketches`.

use std::collections::BTreeSet;

use datasketches::hll::HllSketch;
use datasketches::theta::CompactThetaSketch;
use serde_json::Value;

use super::BinarySet;
use crate::aggregate::bitmap64::Bitmap64;
use crate::aggregate::sketch::{Hll, Theta};

/// What Java made: two values, their union, and the numbers that are in them.
struct Pair {
    left: Vec<u8>,
    right: Vec<u8>,
    union: Vec<u8>,
    numbers: [BTreeSet<u64>; 2],
}

fn lines(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn bytes(line: &Value, name: &str) -> Vec<u8> {
    let hex = line[name].as_str().unwrap();
    let digits: Vec<u8> = hex.chars().map(|digit| digit.to_digit(16).unwrap() as u8).collect();
    digits.chunks(2).map(|pair| pair[0] << 4 | pair[1]).collect()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn pairs(function: &str) -> Vec<Pair> {
    let numbers = |line: &Value, name: &str| match line[name].as_array().unwrap().as_slice() {
        [start, step, count] => {
            let (start, step) = (start.as_i64().unwrap(), step.as_i64().unwrap());
            (0..count.as_i64().unwrap())
                .map(|i| start.wrapping_add(step.wrapping_mul(i)) as u64)
                .collect()
        }
        _ => BTreeSet::new(),
    };
    let all = lines(include_str!("../../../../../testdata/sketches/unions.jsonl"));
    let all = all.iter().filter(|line| line["function"] == function);
    let pairs: Vec<Pair> = all
        .map(|line| Pair {
            left: bytes(line, "left"),
            right: bytes(line, "right"),
            union: bytes(line, "union"),
            numbers: [numbers(line, "leftSeries"), numbers(line, "rightSeries")],
        })
        .collect();
    assert!(pairs.len() >= 7);
    pairs
}

fn union<S: BinarySet>(left: &[u8], right: &[u8]) -> Vec<u8> {
    let (left, right) = (S::read(left).unwrap(), S::read(right).unwrap());
    left.union(right).unwrap().write().unwrap()
}

/// Java says the sampling rate of the sketch, 1.0, in four bytes that nobody reads.
fn without_rate(mut bytes: Vec<u8>) -> Vec<u8> {
    if let Some(rate) = bytes.get_mut(12..16) {
        rate.fill(0);
    }
    bytes
}

#[test]
fn theta_unions_have_the_bytes_of_java() {
    for pair in pairs(Theta::FUNCTION) {
        let ours = union::<Theta>(&pair.left, &pair.right);
        assert!(ours == without_rate(pair.union), "{}", hex(&ours));
        // Read and written, a sketch stays as it is.
        let left = Theta::read(&pair.left).unwrap().write().unwrap();
        assert!(left == without_rate(pair.left), "{}", hex(&left));
    }
}

#[test]
fn hll_unions_are_those_of_java() {
    for pair in pairs(Hll::FUNCTION) {
        let ours = union::<Hll>(&pair.left, &pair.right);
        assert_eq!(hll_estimate(&ours), hll_estimate(&pair.union));
        assert_eq!(ours.len(), pair.union.len());
    }
}

fn hll_estimate(bytes: &[u8]) -> f64 {
    HllSketch::deserialize(bytes).unwrap().estimate()
}

/// The numbers in a bitmap.
fn numbers(bytes: &[u8]) -> BTreeSet<u64> {
    let keys = Bitmap64::read(bytes).unwrap().0;
    let number =
        |key: &[u8; 6], low: u32| key.iter().fold(0, |high, &byte| high << 8 | u64::from(byte)) << 16 | u64::from(low);
    let all = keys
        .iter()
        .flat_map(|(key, lows)| lows.iter().map(move |low| number(key, low)));
    all.collect()
}

#[test]
fn bitmaps_of_java_are_read() {
    for pair in pairs(Bitmap64::FUNCTION) {
        let [left, right] = &pair.numbers;
        let both: BTreeSet<u64> = left | right;
        assert_eq!(numbers(&pair.left), *left);
        assert_eq!(numbers(&pair.right), *right);
        assert_eq!(numbers(&pair.union), both);
        assert_eq!(numbers(&union::<Bitmap64>(&pair.left, &pair.right)), both);
    }
}

/// A union is the same in whatever order, and however often a value comes.
fn check_laws<S: BinarySet>(same: impl Fn(&[u8], &[u8]) -> bool) {
    let pairs = pairs(S::FUNCTION);
    for (pair, next) in pairs.iter().zip(pairs.iter().skip(1)) {
        let (a, b, c) = (&pair.left, &pair.right, &next.right);
        let ab = union::<S>(a, b);
        let a_bc = union::<S>(a, &union::<S>(b, c));
        for (union, other) in [
            (&ab, union::<S>(b, a)),
            (&ab, union::<S>(&ab, b)),
            (&a_bc, union::<S>(&ab, c)),
        ] {
            assert!(same(union, &other), "{}: {}, {}", S::FUNCTION, hex(union), hex(&other));
        }
    }
}

#[test]
fn unions_do_not_depend_on_the_order() {
    check_laws::<Theta>(|a, b| a == b);
    check_laws::<Bitmap64>(|a, b| a == b);
    // What an estimate begins with depends on the sketch that came first.
    check_laws::<Hll>(|a, b| (hll_estimate(a) / hll_estimate(b) - 1.0).abs() < 0.01 || a == b);
}

/// `testdata/sketches/read.jsonl` holds what Java read in our bytes (`testdata/oracle/run.sh sketch-read`).
#[test]
fn java_reads_our_unions() {
    let mut read = lines(include_str!("../../../../../testdata/sketches/read.jsonl")).into_iter();
    let mut answer = |function: &str, ours: &[u8]| {
        let line = read.next().filter(|line| bytes(line, "bytes") == *ours);
        line.unwrap_or_else(|| {
            panic!(
                "ask Java what it reads in {{\"function\":\"{function}\",\"bytes\":\"{}\"}}",
                hex(ours)
            )
        })
    };
    let same = |line: &Value, expected: f64| {
        let difference = line["estimate"].as_f64().unwrap() - expected;
        assert!((difference / expected).abs() < 1e-9, "{line}");
    };
    for pair in pairs(Theta::FUNCTION) {
        let ours = union::<Theta>(&pair.left, &pair.right);
        if ours.len() < 10_000 {
            let line = answer(Theta::FUNCTION, &ours);
            same(&line, CompactThetaSketch::deserialize(&pair.union).unwrap().estimate());
        }
    }
    for pair in pairs(Hll::FUNCTION) {
        let line = answer(Hll::FUNCTION, &union::<Hll>(&pair.left, &pair.right));
        same(&line, hll_estimate(&pair.union));
    }
    for pair in pairs(Bitmap64::FUNCTION) {
        let line = answer(Bitmap64::FUNCTION, &union::<Bitmap64>(&pair.left, &pair.right));
        let both: BTreeSet<u64> = &pair.numbers[0] | &pair.numbers[1];
        let sum = both.iter().fold(0_u64, |sum, &number| sum.wrapping_add(number));
        assert_eq!(line["count"], both.len());
        assert_eq!(line["sum"], sum as i64);
    }
}

#[test]
fn bytes_that_are_no_bitmap_are_refused() {
    let pairs = pairs(Bitmap64::FUNCTION);
    for pair in &pairs {
        for cut in (0..pair.union.len()).step_by(1 + pair.union.len() / 50) {
            // The end, 16 bytes, says nothing new.
            if cut + 16 < pair.union.len() {
                Bitmap64::read(&pair.union[..cut]).unwrap_err();
            }
        }
    }
    let refused = |bytes: &[u8]| Bitmap64::read(bytes).unwrap_err();
    let whole = &pairs[1].union;
    let changed = |at: usize, byte: u8| {
        let mut bytes = whole.clone();
        bytes[at] = byte;
        refused(&bytes)
    };
    assert_eq!(refused(&[7]), "it begins with 7");
    assert_eq!(changed(1, 9), "1 keys where 9 are said to be");
    assert_eq!(changed(9, 8), "there is no node of type 8");
    assert_eq!(changed(19, 1), "there is no container 0x1");
    assert_eq!(changed(36, 9), "a container begins with 9");
    assert_eq!(changed(37, 3), "there is no container of type 3");
}
