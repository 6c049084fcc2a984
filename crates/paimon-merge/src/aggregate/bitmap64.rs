//! `rbm64`: the format of Java's `Roaring64Bitmap`, which is not the portable one.
//!
//! A value's upper 48 bits are a key of six bytes in a radix tree (the Adaptive Radix Tree of Leis, Kemper and Neumann, 2013), its lower 16
//! bits are in the container that the key's leaf points to:
//!
//! | Part | Bytes |
//! |---|---|
//! | empty or not | 0 or 1; an empty set ends here |
//! | keys | u64 |
//! | tree | nodes, each before its children, children ascending |
//! | containers | i32 arrays; each array: 0xFE, i32 entries, the entries |
//! | end | u64 containers, i32 last array, i32 last entry in it |
//!
//! | Node | Head | Body |
//! |---|---|---|
//! | branch of up to 4, 16, 48, 256 children | u8 type 0 … 3, u16 children, u8 length of the common prefix, the prefix | which bytes follow: see `branch_body` |
//! | leaf | 4, 0, 0, 0 | the key, big-endian; i64 array << 32 + entry |
//!
//! An entry is 0, or 1, u8 type, i32 values and the container as in the portable format: runs (type 0), 8 KiB of bits (1), sorted values
//! (2). Numbers are little-endian.
//!
//! Source: `org.roaringbitmap.longlong.Roaring64Bitmap`, `HighLowContainer`, `org.roaringbitmap.art.Art`, `Containers`;
//! `org.apache.paimon.mergetree.compact.aggregate.FieldRoaringBitmap64Agg`.

use std::collections::BTreeMap;

use roaring::RoaringBitmap;

use super::union::BinarySet;

/// `rbm64`: 64-bit bitmaps. The values of each key are the low 16 bits.
#[derive(Debug, Default)]
pub(super) struct Bitmap64(pub(super) BTreeMap<Key, RoaringBitmap>);

/// The upper 48 bits, big-endian.
type Key = [u8; 6];

const LEAF: u8 = 4;
const NOT_TRIMMED: u8 = 0xFE;
const BITS_BYTES: usize = 8 << 10;

impl BinarySet for Bitmap64 {
    const FUNCTION: &'static str = "rbm64";
    const FORM: &'static str = "64-bit Roaring bitmap";

    fn read(bytes: &[u8]) -> Result<Self, String> {
        let mut bytes = Bytes(bytes);
        match bytes.u8()? {
            0 => return Ok(Self::default()),
            1 => {}
            tag => return Err(format!("it begins with {tag}")),
        }
        let keys = bytes.u64()?;
        let leaves = read_leaves(&mut bytes)?;
        if leaves.len() as u64 != keys {
            return Err(format!("{} keys where {keys} are said to be", leaves.len()));
        }
        let mut containers = read_containers(&mut bytes)?;
        let mut all = BTreeMap::new();
        for (key, at) in leaves {
            let container = containers.remove(&at);
            let container = container.ok_or_else(|| format!("there is no container {at:#x}"))?;
            if !container.is_empty() {
                all.insert(key, container);
            }
        }
        Ok(Self(all))
    }

    fn union(mut self, newer: Self) -> Result<Self, String> {
        for (key, container) in newer.0 {
            *self.0.entry(key).or_default() |= container;
        }
        Ok(self)
    }

    fn write(self) -> Result<Vec<u8>, String> {
        let keys: Vec<Key> = self.0.keys().copied().collect();
        let Ok(size) = i32::try_from(keys.len()) else {
            return Err(format!("{} containers are too many", keys.len()));
        };
        if keys.is_empty() {
            return Ok(vec![0]);
        }
        let mut out = vec![1];
        out.extend((keys.len() as u64).to_le_bytes());
        write_node(&keys, 0, 0, &mut out);
        out.extend(1_i32.to_le_bytes());
        out.push(NOT_TRIMMED);
        out.extend(size.to_le_bytes());
        for container in self.0.into_values() {
            write_container(container, &mut out)?;
        }
        out.extend((keys.len() as u64).to_le_bytes());
        out.extend(0_i32.to_le_bytes());
        out.extend((size - 1).to_le_bytes());
        Ok(out)
    }
}

/// Bytes not yet read.
struct Bytes<'a>(&'a [u8]);

impl<'a> Bytes<'a> {
    fn take(&mut self, length: usize) -> Result<&'a [u8], String> {
        let (taken, rest) = self
            .0
            .split_at_checked(length)
            .ok_or_else(|| format!("it ends {} bytes early", length - self.0.len()))?;
        self.0 = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], String> {
        self.take(N)?.try_into().map_err(|_| "it ends early".to_owned())
    }

    fn u8(&mut self) -> Result<u8, String> {
        self.array().map(u8::from_le_bytes)
    }

    fn u16(&mut self) -> Result<u16, String> {
        self.array().map(u16::from_le_bytes)
    }

    fn i32(&mut self) -> Result<i32, String> {
        self.array().map(i32::from_le_bytes)
    }

    fn u64(&mut self) -> Result<u64, String> {
        self.array().map(u64::from_le_bytes)
    }
}

/// The keys with the places of their containers. Leaves hold whole keys, so what branches say is skipped.
fn read_leaves(bytes: &mut Bytes<'_>) -> Result<Vec<(Key, u64)>, String> {
    let mut leaves = Vec::new();
    let mut nodes = 1_u64;
    while nodes > 0 {
        nodes -= 1;
        let (kind, children, prefix) = (bytes.u8()?, bytes.u16()?, bytes.u8()?);
        bytes.take(prefix.into())?;
        let body = match kind {
            0 => 4,
            1 => 16,
            2 => 256,
            3 => 32,
            LEAF => {
                leaves.push((bytes.array()?, bytes.u64()?));
                continue;
            }
            kind => return Err(format!("there is no node of type {kind}")),
        };
        bytes.take(body)?;
        nodes += u64::from(children);
    }
    Ok(leaves)
}

fn read_containers(bytes: &mut Bytes<'_>) -> Result<BTreeMap<u64, RoaringBitmap>, String> {
    let mut containers = BTreeMap::new();
    for array in 0..bytes.i32()?.max(0) as u64 {
        bytes.u8()?;
        for entry in 0..bytes.i32()?.max(0) as u64 {
            match bytes.u8()? {
                0 => {}
                1 => {
                    containers.insert(array << 32 | entry, read_container(bytes)?);
                }
                tag => return Err(format!("a container begins with {tag}")),
            }
        }
    }
    Ok(containers)
}

fn read_container(bytes: &mut Bytes<'_>) -> Result<RoaringBitmap, String> {
    let (kind, values) = (bytes.u8()?, bytes.i32()?);
    match kind {
        0 => {
            let mut container = RoaringBitmap::new();
            for _ in 0..bytes.u16()? {
                let (first, more) = (u32::from(bytes.u16()?), u32::from(bytes.u16()?));
                if first + more > u16::MAX.into() {
                    return Err(format!("a run ends at {}", first + more));
                }
                container.insert_range(first..=first + more);
            }
            Ok(container)
        }
        1 => Ok(RoaringBitmap::from_lsb0_bytes(0, bytes.take(BITS_BYTES)?)),
        2 => {
            let length = usize::try_from(values).map_err(|_| format!("a container of {values} values"))?;
            let values = bytes.take(length.saturating_mul(2))?.chunks_exact(2);
            let values = values.map(|value| value.iter().rev().fold(0, |all, &byte| all << 8 | u32::from(byte)));
            RoaringBitmap::from_sorted_iter(values).map_err(|_| "a container whose values do not ascend".to_owned())
        }
        kind => Err(format!("there is no container of type {kind}")),
    }
}

/// Writes the node of sorted `keys`, which have their first `depth` bytes in common, and all nodes below. Their containers are numbered
/// from `first`.
fn write_node(keys: &[Key], depth: usize, first: u64, out: &mut Vec<u8>) {
    let (Some(low), Some(high)) = (keys.first(), keys.last()) else {
        return;
    };
    if keys.len() == 1 {
        out.extend([LEAF, 0, 0, 0]);
        out.extend(low);
        out.extend(first.to_le_bytes());
        return;
    }
    let pairs = low.iter().zip(high).skip(depth);
    let prefix: Vec<u8> = pairs.take_while(|(a, b)| a == b).map(|(a, _)| *a).collect();
    let at = depth + prefix.len();
    let byte_of = |key: &Key| key.get(at).copied().unwrap_or_default();
    let children: Vec<&[Key]> = keys.chunk_by(|a, b| byte_of(a) == byte_of(b)).collect();
    let bytes: Vec<u8> = children.iter().filter_map(|child| child.first().map(byte_of)).collect();
    let (kind, body) = branch_body(&bytes);
    out.push(kind);
    out.extend((children.len() as u16).to_le_bytes());
    out.push(prefix.len() as u8);
    out.extend(prefix);
    out.extend(body);
    let mut next = first;
    for child in children {
        write_node(child, at + 1, next, out);
        next += child.len() as u64;
    }
}

/// The type of a branch and how it says which bytes lead to its children: up to 16 as a list, up to 48 as each byte's child (255: none), both
/// in words of 4 or 8 that are the wrong way round; more as bits.
fn branch_body(bytes: &[u8]) -> (u8, Vec<u8>) {
    let listed = |words: usize, word: usize| {
        let mut list = bytes.to_vec();
        list.resize(words * word, 0);
        list.chunks_mut(word).for_each(<[u8]>::reverse);
        list
    };
    match bytes.len() {
        0..=4 => (0, listed(1, 4)),
        5..=16 => (1, listed(2, 8)),
        17..=48 => {
            let mut child_of = vec![u8::MAX; 256];
            for (child, &byte) in (0..).zip(bytes) {
                child_of[usize::from(byte)] = child;
            }
            child_of.chunks_mut(8).for_each(<[u8]>::reverse);
            (2, child_of)
        }
        _ => {
            let mut bits = vec![0; 32];
            for &byte in bytes {
                bits[usize::from(byte / 8)] |= 1 << (byte % 8);
            }
            (3, bits)
        }
    }
}

/// Cuts the container out of the portable form.
fn write_container(mut container: RoaringBitmap, out: &mut Vec<u8>) -> Result<(), String> {
    const COOKIE_WITH_RUNS: u16 = 12347;
    const HEAD_WITH_RUNS: usize = 9;
    const HEAD: usize = 16;
    const LISTED: u64 = 4096;
    container.optimize();
    let mut portable = Vec::with_capacity(container.serialized_size());
    let written = container.serialize_into(&mut portable);
    written.map_err(|error| error.to_string())?;
    let (kind, head) = match Bytes(&portable).u16()? {
        COOKIE_WITH_RUNS => (0, HEAD_WITH_RUNS),
        _ if container.len() > LISTED => (1, HEAD),
        _ => (2, HEAD),
    };
    out.extend([1, kind]);
    out.extend((container.len() as i32).to_le_bytes());
    out.extend(portable.get(head..).unwrap_or_default());
    Ok(())
}
