//! Bytes, durations and instants as people read them.

/// `512 B`, `12.3 KiB`, `4.0 MiB` …
pub(crate) fn bytes(count: u64) -> String {
    const UNITS: [&str; 5] = ["KiB", "MiB", "GiB", "TiB", "PiB"];
    if count < 1024 {
        return format!("{count} B");
    }
    let mut value = count as f64 / 1024.0;
    let mut unit = UNITS[0];
    for next in &UNITS[1..] {
        if value < 1024.0 {
            break;
        }
        value /= 1024.0;
        unit = next;
    }
    format!("{value:.1} {unit}")
}

/// `1 file`, `2 files`.
pub(crate) fn counted(count: u64, word: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{count} {word}{plural}")
}

/// `10`, and where deletion vectors hide some of them, `10 (2 deleted)`; `None`: how many is not noted.
pub(crate) fn rows(count: i64, deleted: Option<i64>) -> String {
    match deleted {
        Some(0) => count.to_string(),
        Some(deleted) => format!("{count} ({deleted} deleted)"),
        None => format!("{count} (? deleted)"),
    }
}

/// `12 ms`, `3.4 s`, `2 min 5 s`.
pub(crate) fn duration_ms(ms: i64) -> String {
    if ms < 1000 {
        format!("{ms} ms")
    } else if ms < 60_000 {
        format!("{:.1} s", ms as f64 / 1000.0)
    } else {
        format!("{} min {} s", ms / 60_000, ms / 1000 % 60)
    }
}

/// An instant (milliseconds since the epoch) in UTC: `2026-03-02 08:00:42.554`.
pub(crate) fn time_ms(ms: i64) -> String {
    jiff::Timestamp::from_millisecond(ms).map_or_else(
        |_| format!("{ms} ms"),
        |instant| instant.strftime("%Y-%m-%d %H:%M:%S%.3f").to_string(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_short() {
        assert_eq!(bytes(0), "0 B");
        assert_eq!(bytes(1023), "1023 B");
        assert_eq!(bytes(1536), "1.5 KiB");
        assert_eq!(bytes(128 << 20), "128.0 MiB");
        assert_eq!(bytes(u64::MAX), "16384.0 PiB");
        assert_eq!(rows(10, Some(0)), "10");
        assert_eq!(rows(10, Some(2)), "10 (2 deleted)");
        assert_eq!(rows(10, None), "10 (? deleted)");
        assert_eq!(duration_ms(999), "999 ms");
        assert_eq!(duration_ms(3400), "3.4 s");
        assert_eq!(duration_ms(125_000), "2 min 5 s");
        assert_eq!(time_ms(1_772_438_442_554), "2026-03-02 08:00:42.554");
    }
}
