//! Java Paimon's 32-bit Murmur3, seed 42.
//!
//! Whole words are mixed as in standard Murmur3; each byte of the tail is sign-extended and mixed as a word of its own, which no
//! library does. Source: `org.apache.paimon.utils.MurmurHashUtils`.

const SEED: u32 = 42;

/// Hash of any bytes, tail included. For a row (a multiple of 4 bytes) this is `BinaryRow.hashCode`.
pub fn hash_bytes(bytes: &[u8]) -> i32 {
    let (words, tail) = bytes.as_chunks::<4>();
    let mut hash = SEED;
    for word in words {
        hash = mix(hash, u32::from_le_bytes(*word));
    }
    for &byte in tail {
        hash = mix(hash, i32::from(byte as i8) as u32);
    }
    // Java's lengths are ints; longer input cannot exist there.
    finish(hash ^ bytes.len() as u32)
}

fn mix(hash: u32, word: u32) -> u32 {
    let word = word.wrapping_mul(0xcc9e_2d51).rotate_left(15).wrapping_mul(0x1b87_3593);
    (hash ^ word).rotate_left(13).wrapping_mul(5).wrapping_add(0xe654_6b64)
}

fn finish(mut hash: u32) -> i32 {
    hash ^= hash >> 16;
    hash = hash.wrapping_mul(0x85eb_ca6b);
    hash ^= hash >> 13;
    hash = hash.wrapping_mul(0xc2b2_ae35);
    hash ^= hash >> 16;
    hash as i32
}
