//! Sorted keys in a lookup file: one way forward.

use std::collections::VecDeque;
use std::sync::Arc;

use arrow_array::{Array, BinaryArray};
use bytes::Bytes;
use paimon_format::FormatError;
use paimon_format::env::Env;
use paimon_format::sst::{BlockProbe, SstBlock, SstFooter, SstIndex};

use crate::cache::{LookupFile, LookupFileCache, LookupMemory};
use crate::found::Found;
use crate::metrics;
use crate::persist::Persist;
use crate::room::Room;

/// Bytes of blocks in flight.
const WINDOW_BYTES: u64 = 4 << 20;
/// So few keys are not worth a way to another thread.
const FEW_KEYS: usize = 16;

/// The keys of a look-up as they stand in lookup files.
pub(crate) type EncodedKeys = Arc<BinaryArray>;

/// The values that a lookup file has for these keys (`wanted`: their numbers, ascending). Blocks are read in the order of the file, in
/// windows, each once, as long as there is `room` for what is found.
///
/// Errors: `Corrupt`, `Unavailable`, naming the local file.
pub(crate) async fn probe(
    env: &Env,
    cache: &LookupFileCache,
    file: &Arc<LookupFile>,
    persist: &Persist,
    keys: &EncodedKeys,
    (wanted, room): (Vec<u32>, &Room),
) -> Result<Found, FormatError> {
    metrics::probe("file");
    let few = wanted.len() <= FEW_KEYS;
    let index = index(env, cache, file).await?;
    let (order, asked, name) = (persist.clone(), Arc::clone(keys), file.local.name());
    let probes = on_cpu(env, few, move || {
        let keys = wanted.iter().map(|&key| (key, key_at(&asked, key)));
        index.probe(keys, order.order()).map_err(|error| named(error, &name))
    })
    .await?;
    let mut probes = VecDeque::from(probes);
    let mut found = Found::default();
    while !probes.is_empty() && !room.is_over() {
        let window = next_window(&mut probes);
        let blocks = read_blocks(env, cache.memory(), file, &window).await?;
        let (order, keys, file, cache) = (persist.clone(), Arc::clone(keys), Arc::clone(file), cache.clone());
        let room = room.clone();
        found.append(
            on_cpu(env, few, move || {
                let found = search(&window, blocks, &order, (&keys, &room), (cache.memory(), file.number));
                found.map_err(|error| named(error, &file.local.name()))
            })
            .await?,
        );
    }
    Ok(found)
}

async fn index(env: &Env, cache: &LookupFileCache, file: &Arc<LookupFile>) -> Result<Arc<SstIndex>, FormatError> {
    if let Some(index) = cache.memory().index(file.number) {
        return Ok(index);
    }
    let opened = Arc::clone(file);
    let index = env
        .blocking(move || open(&opened).map_err(|error| named(error, &opened.local.name())))
        .await??;
    let index = Arc::new(index);
    cache.memory().put_index(file.number, &index);
    Ok(index)
}

fn open(file: &LookupFile) -> Result<SstIndex, FormatError> {
    let bytes = file.local.bytes();
    let footer = one(file
        .local
        .read(&[bytes.saturating_sub(SstFooter::BYTES as u64)..bytes])?)?;
    let footer = SstFooter::decode(&footer, bytes)?;
    let parts = <[Bytes; 2]>::try_from(file.local.read(&footer.ranges())?);
    SstIndex::decode(
        &footer,
        parts.map_err(|_| FormatError::internal("two ranges were asked"))?,
    )
}

fn one(parts: Vec<Bytes>) -> Result<Bytes, FormatError> {
    let first = parts.into_iter().next();
    first.ok_or_else(|| FormatError::internal("one range was asked"))
}

fn next_window(probes: &mut VecDeque<BlockProbe>) -> Vec<BlockProbe> {
    let mut window = Vec::new();
    let mut bytes = 0;
    while bytes < WINDOW_BYTES
        && let Some(probe) = probes.pop_front()
    {
        let range = probe.block.range();
        bytes += range.end - range.start;
        window.push(probe);
    }
    window
}

/// A block, decoded or as it lies in the file.
enum Block {
    Decoded(SstBlock),
    Stored(Bytes),
}

async fn read_blocks(
    env: &Env,
    cache: &LookupMemory,
    file: &Arc<LookupFile>,
    window: &[BlockProbe],
) -> Result<Vec<Block>, FormatError> {
    let cached: Vec<Option<SstBlock>> = window
        .iter()
        .map(|probe| cache.block(file.number, probe.block))
        .collect();
    let missing = window.iter().zip(&cached).filter(|(_, block)| block.is_none());
    let ranges: Vec<_> = missing.map(|(probe, _)| probe.block.range()).collect();
    let stored = match ranges.is_empty() {
        true => Vec::new(),
        false => {
            let file = Arc::clone(file);
            env.blocking(move || file.local.read(&ranges)).await??
        }
    };
    let mut stored = stored.into_iter();
    let blocks = cached.into_iter().map(|block| match block {
        Some(block) => Some(Block::Decoded(block)),
        None => stored.next().map(Block::Stored),
    });
    let blocks: Option<Vec<Block>> = blocks.collect();
    blocks.ok_or_else(|| FormatError::internal("fewer ranges were read than asked"))
}

fn search(
    window: &[BlockProbe],
    blocks: Vec<Block>,
    persist: &Persist,
    (keys, room): (&BinaryArray, &Room),
    (cache, number): (&LookupMemory, u64),
) -> Result<Found, FormatError> {
    let mut found = Found::default();
    for (probe, block) in window.iter().zip(blocks) {
        let block = match block {
            Block::Decoded(block) => block,
            Block::Stored(bytes) => {
                let block = SstBlock::decode(bytes)?;
                cache.put_block(number, probe.block, &block);
                block
            }
        };
        let wanted = probe.keys.iter().map(|&key| (key, key_at(keys, key)));
        block.search(wanted, persist.order(), |key, value| {
            if room.take(value.len()) {
                found.push(key, value);
            }
            Ok(())
        })?;
    }
    Ok(found)
}

/// Numbers of keys are those that were asked.
fn key_at(keys: &BinaryArray, key: u32) -> &[u8] {
    match (key as usize) < keys.len() {
        true => keys.value(key as usize),
        false => &[],
    }
}

async fn on_cpu<T: Send + 'static>(
    env: &Env,
    here: bool,
    work: impl FnOnce() -> Result<T, FormatError> + Send + 'static,
) -> Result<T, FormatError> {
    match here {
        true => work(),
        false => env.cpu(work).await?,
    }
}

/// The same error, naming the file.
pub(crate) fn named(error: FormatError, path: &str) -> FormatError {
    match error {
        FormatError::Corrupt { message, .. } => FormatError::corrupt(path, message),
        FormatError::Unsupported(message) => FormatError::unsupported(format_args!("{path}: {message}")),
        other => other,
    }
}
