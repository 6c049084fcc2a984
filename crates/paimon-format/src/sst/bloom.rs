//! The bloom filter of a file.

use bytes::Bytes;

use super::footer::BloomHandle;
use crate::FormatError;

/// No share of false answers that a double can hold takes more; a broken footer may ask for more.
const MAX_PROBES: u32 = 1100;

/// A bloom filter over 32-bit hashes of keys ([`murmur::hash_bytes`](crate::row::murmur::hash_bytes)).
///
/// Source: `org.apache.paimon.utils.BloomFilter`.
#[derive(Clone, Debug)]
pub(super) struct BloomFilter<B> {
    bits: B,
    probes: u32,
    entries: u64,
}

impl BloomFilter<Vec<u8>> {
    /// For so many keys, of which a share `fpp` (above 0, below 1) may be taken for one of them. `None`: no key, no filter.
    pub(super) fn new(entries: u64, fpp: f64) -> Option<Self> {
        let bits = -(entries as f64) * fpp.ln() / (2_f64.ln() * 2_f64.ln());
        // Java's cast to int saturates, too.
        let bytes = (bits as i32).max(0) as u64;
        let bytes = bytes.div_ceil(8);
        (bytes > 0).then(|| Self {
            bits: vec![0; bytes as usize],
            probes: probes(bytes, entries),
            entries,
        })
    }

    pub(super) fn add(&mut self, hash: i32) {
        for bit in bits_of(hash, self.probes, self.bits.len()) {
            self.bits[bit / 8] |= 1 << (bit % 8);
        }
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.bits
    }

    /// The number of keys it was made for.
    pub(super) fn entries(&self) -> u64 {
        self.entries
    }
}

impl BloomFilter<Bytes> {
    pub(super) fn read(bits: Bytes, handle: &BloomHandle) -> Result<Self, FormatError> {
        if bits.is_empty() || handle.entries == 0 {
            return Err(FormatError::corrupt(
                "lookup file",
                format_args!("a bloom filter of {} bytes for {} keys", bits.len(), handle.entries),
            ));
        }
        Ok(Self {
            probes: probes(bits.len() as u64, handle.entries),
            bits,
            entries: handle.entries,
        })
    }

    pub(super) fn may_contain(&self, hash: i32) -> bool {
        bits_of(hash, self.probes, self.bits.len()).all(|bit| self.bits[bit / 8] & (1 << (bit % 8)) != 0)
    }

    pub(super) fn memory_size(&self) -> usize {
        self.bits.len()
    }
}

/// How many bits a key sets.
fn probes(bytes: u64, entries: u64) -> u32 {
    let bits = bytes * 8;
    let probes = (bits as f64 / entries as f64 * 2_f64.ln()).round();
    (probes as u32).clamp(1, MAX_PROBES)
}

fn bits_of(hash: i32, probes: u32, bytes: usize) -> impl Iterator<Item = usize> {
    let step = ((hash as u32) >> 16) as i32;
    let bits = (bytes as u64 * 8).max(1);
    (1..=probes).map(move |i| {
        let combined = hash.wrapping_add((i as i32).wrapping_mul(step));
        let positive = if combined < 0 { !combined } else { combined };
        (positive as u64 % bits) as usize
    })
}
