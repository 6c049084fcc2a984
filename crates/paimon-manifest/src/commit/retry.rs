//! Waiting between the attempts of a commit.

use std::time::Duration;

use paimon_format::env::Env;

use super::settings::CommitSettings;

/// Counts attempts and makes the pauses between them grow.
///
/// Source: `org.apache.paimon.operation.RetryWaiter`.
pub(super) struct Retry<'a> {
    settings: &'a CommitSettings,
    env: &'a Env,
    started_ms: i64,
    retries: u32,
}

impl<'a> Retry<'a> {
    pub(super) fn new(settings: &'a CommitSettings, env: &'a Env) -> Self {
        Self {
            settings,
            env,
            started_ms: env.clock.now_ms(),
            retries: 0,
        }
    }

    /// How often it has been tried, the first time included.
    pub(super) fn attempts(&self) -> u32 {
        self.retries + 1
    }

    /// Pauses before the next attempt; `false` when there must be none. Others wait a little shorter or longer, so that
    /// committers do not collide again and again.
    pub(super) async fn pause(&mut self) -> bool {
        let elapsed = self.env.clock.now_ms().saturating_sub(self.started_ms);
        let out_of_time = self
            .settings
            .timeout
            .is_some_and(|timeout| elapsed.max(0) as u128 > timeout.as_millis());
        if out_of_time || self.retries >= self.settings.max_retries {
            return false;
        }
        let wait = self
            .settings
            .min_retry_wait
            .saturating_mul(1_u32.checked_shl(self.retries).unwrap_or(u32::MAX))
            .min(self.settings.max_retry_wait);
        let jitter = self.env.ids.jitter(wait.as_millis() as u64 / 5);
        self.retries += 1;
        self.env.runtime.sleep(wait + Duration::from_millis(jitter)).await;
        true
    }
}
