//! Hours in which more may be compacted.

use serde::{Deserialize, Serialize};

/// A daily window of local hours in which the size ratio is wider.
///
/// Source: `org.apache.paimon.mergetree.compact.OffPeakHours`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OffPeakHours {
    /// `compaction.offpeak.start.hour`, 0..=23, inclusive.
    pub start_hour: u8,
    /// `compaction.offpeak.end.hour`, 0..=23, exclusive. Before the start: the window spans midnight.
    pub end_hour: u8,
    /// `compaction.offpeak-ratio`, percent: added to `compaction.size-ratio` inside the window.
    pub ratio_percent: i32,
}

impl OffPeakHours {
    /// What to add to the size ratio at this local hour, percent. A window of no hours never counts.
    pub fn ratio_percent_at(&self, hour: u8) -> i32 {
        if self.contains(hour) { self.ratio_percent } else { 0 }
    }

    fn contains(&self, hour: u8) -> bool {
        match self.start_hour.cmp(&self.end_hour) {
            std::cmp::Ordering::Less => (self.start_hour..self.end_hour).contains(&hour),
            std::cmp::Ordering::Greater => hour >= self.start_hour || hour < self.end_hour,
            std::cmp::Ordering::Equal => false,
        }
    }
}
