//! What a thread and a process used, from `/proc` (Linux).

use std::fs;
use std::io;
use std::path::Path;

/// Seconds that the calling thread has run on a CPU.
///
/// Errors: where there is no `/proc/thread-self/schedstat`.
pub fn thread_cpu_seconds() -> io::Result<f64> {
    cpu_seconds(Path::new("/proc/thread-self"))
}

/// Seconds that a thread has run on a CPU, by its folder in `/proc`; exact while it waits.
///
/// Errors: where there is no `schedstat` in it.
pub fn cpu_seconds(thread: &Path) -> io::Result<f64> {
    let text = fs::read_to_string(thread.join("schedstat"))?;
    let nanos = text.split_whitespace().next().and_then(|word| word.parse::<f64>().ok());
    nanos
        .map(|nanos| nanos / 1e9)
        .ok_or_else(|| io::Error::other("schedstat without a number"))
}

/// Runs something and tells the thread's CPU seconds it took.
///
/// Errors: as [`thread_cpu_seconds`].
pub fn measured<T>(work: impl FnOnce() -> T) -> io::Result<(T, f64)> {
    let start = thread_cpu_seconds()?;
    let result = work();
    Ok((result, thread_cpu_seconds()? - start))
}

/// The largest resident memory of this process so far, bytes.
///
/// Errors: where there is no `/proc/self/status`.
pub fn peak_memory_bytes() -> io::Result<u64> {
    let text = fs::read_to_string("/proc/self/status")?;
    let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    kib.map(|kib| kib * 1024).ok_or_else(|| io::Error::other("no VmHWM"))
}

/// The middle of some measures; 0 of none.
pub fn median(mut measures: Vec<f64>) -> f64 {
    measures.sort_by(f64::total_cmp);
    measures.get(measures.len() / 2).copied().unwrap_or(0.0)
}
