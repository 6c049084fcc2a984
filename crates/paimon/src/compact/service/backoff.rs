//! Waiting longer after each failure.

use paimon_format::env::Env;

const FIRST_MS: i64 = 1_000;
const LONGEST_MS: i64 = 300_000;

/// When something that failed is tried again: a second later, then two, up to five minutes, and up to a quarter more by chance, so that
/// two services do not meet again.
#[derive(Clone, Debug, Default)]
pub(super) struct BackOff {
    failures: u32,
    until_ms: i64,
}

impl BackOff {
    /// Whether it may be tried.
    pub(super) fn is_due(&self, now_ms: i64) -> bool {
        self.until_ms <= now_ms
    }

    /// Notes another failure; gives the time until the next try, milliseconds.
    pub(super) fn failed(&mut self, env: &Env) -> i64 {
        let doubled = FIRST_MS.checked_shl(self.failures.min(16)).unwrap_or(LONGEST_MS);
        let wait_ms = doubled.min(LONGEST_MS);
        let jitter = env.ids.jitter(u64::try_from(wait_ms / 4).unwrap_or(0));
        let wait_ms = wait_ms + i64::try_from(jitter).unwrap_or(0);
        self.failures = self.failures.saturating_add(1);
        self.until_ms = env.clock.now_ms().saturating_add(wait_ms);
        wait_ms
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_doubles_up_to_five_minutes() {
        let env = Env::fixed("unused");
        let mut back_off = BackOff::default();
        assert!(back_off.is_due(0));
        let waits: Vec<i64> = (0..10).map(|_| back_off.failed(&env)).collect();
        assert_eq!(
            waits,
            [
                1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 64_000, 128_000, 256_000, 300_000
            ]
        );
        let now_ms = env.clock.now_ms();
        assert!(!back_off.is_due(now_ms));
        assert!(back_off.is_due(now_ms + 300_000));
    }
}
