//! How a merge divides the memory it was granted.

use paimon_format::env::{Budget, Reservation};
use paimon_format::kv::BatchLimit;

use super::PipelineSettings;
use crate::LsmError;

const MIB: u64 = 1 << 20;
/// Memory for one open run: its fetched pages, and the batches that wait.
const RUN_MIN: u64 = 2 * MIB;
const RUN_MAX: u64 = 24 * MIB;
/// Memory for the blocks being merged and the output batch being made.
const OUTPUT_MIN: u64 = 8 * MIB;
const OUTPUT_MAX: u64 = 96 * MIB;
/// Memory for the file being written: a row group, and what its encoder keeps besides. Of a small budget it gets a part only.
const ENCODER_MAX: u64 = 40 * MIB;

/// The memory that any merge of two runs or more needs, bytes.
pub const MIN_MERGE_BYTES: u64 = OUTPUT_MIN + 2 * RUN_MIN;

/// The shares of one merge. Holds the reservation they come from.
#[derive(Debug)]
pub(super) struct Shares {
    /// Runs that may be open at once, at least 2.
    pub(super) fan_in: usize,
    /// Fetched and decoded pages of one run.
    pub(super) window_bytes: usize,
    /// A batch that is read.
    pub(super) batch: BatchLimit,
    /// Batches that a block points into.
    pub(super) block_bytes: usize,
    /// Records that are looked up at once. They are copied once when all are found.
    pub(super) found_bytes: u64,
    /// Batches that an output batch is made from.
    pub(super) assemble_bytes: usize,
    _reservation: Reservation,
}

impl Shares {
    /// Reserves memory for a merge of at most `runs` runs at once.
    ///
    /// Errors: `Invalid` when the whole budget is too small for two runs.
    pub(super) async fn reserve(memory: &Budget, runs: usize, settings: &PipelineSettings) -> Result<Self, LsmError> {
        let threshold = settings.sort_spill_threshold.max(2);
        let runs = runs.clamp(1, threshold) as u64;
        let least = OUTPUT_MIN + runs.min(2) * RUN_MIN;
        let reservation = memory.reserve(least, OUTPUT_MAX + ENCODER_MAX + runs * RUN_MAX).await?;
        let granted = reservation.bytes();
        let output = (granted / 4).clamp(OUTPUT_MIN, OUTPUT_MAX);
        let encoder = (granted / 4).min(ENCODER_MAX);
        let for_runs = granted.saturating_sub(output + encoder).max(2 * RUN_MIN);
        let fan_in = (for_runs / RUN_MIN).clamp(2, threshold as u64);
        let run = (for_runs / runs.min(fan_in)).clamp(RUN_MIN, RUN_MAX);
        // Of a run's share one half is the window, the other four batches: one merged, one waiting, one decoded, one held by a block.
        Ok(Self {
            fan_in: fan_in as usize,
            window_bytes: (run / 2) as usize,
            batch: BatchLimit {
                rows: settings.read_rows.max(1),
                bytes: (run / 8) as usize,
            },
            block_bytes: (output / 4) as usize,
            found_bytes: output / 8,
            assemble_bytes: (output / 2) as usize,
            _reservation: reservation,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn shares(budget: u64, runs: usize) -> Result<Shares, LsmError> {
        Shares::reserve(&Budget::new(budget), runs, &PipelineSettings::default()).await
    }

    #[tokio::test]
    async fn never_exceeds_what_was_granted() {
        for budget in [12 * MIB, 20 * MIB, 64 * MIB, 512 * MIB, 4096 * MIB] {
            for runs in [1, 2, 5, 9, 40] {
                let shares = shares(budget, runs).await.unwrap();
                let open = runs.min(shares.fan_in);
                let used = open * (shares.window_bytes + 4 * shares.batch.bytes) + 2 * shares.assemble_bytes;
                assert!(
                    used as u64 <= budget,
                    "{runs} runs use {used} of {budget} bytes: {shares:?}"
                );
                assert!((2..=9).contains(&shares.fan_in));
            }
        }
    }

    #[tokio::test]
    async fn little_memory_opens_fewer_runs() {
        assert_eq!(shares(24 * MIB, 9).await.unwrap().fan_in, 5);
        assert_eq!(shares(512 * MIB, 40).await.unwrap().fan_in, 9);
    }

    #[tokio::test]
    async fn too_little_memory_is_refused() {
        let error = shares(MIB, 5).await.unwrap_err();
        assert_eq!(
            error.to_string(),
            "this task needs at least 12582912 bytes, but the whole budget is 1048576"
        );
    }
}
