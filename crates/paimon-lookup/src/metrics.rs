//! What is counted.
//!
//! | Counter | Labels |
//! |---|---|
//! | `paimon_lookup_keys_total` | `result`: `hit`, `miss` |
//! | `paimon_lookup_probes_total` | `kind`: `file` (a lookup file was searched), `scan` (a data file was read) |
//! | `paimon_lookup_files_made_total` | `source`: `build`, `download` |
//! | `paimon_lookup_file_bytes_total` | as above |
//! | `paimon_lookup_files_gone_total` | `cause`: `size`, `disk`, `idle`, `dropped`, `broken`, `cleared` |

use metrics::counter;

pub(crate) fn keys(hits: usize, misses: usize) {
    counter!("paimon_lookup_keys_total", "result" => "hit").increment(hits as u64);
    counter!("paimon_lookup_keys_total", "result" => "miss").increment(misses as u64);
}

pub(crate) fn probe(kind: &'static str) {
    counter!("paimon_lookup_probes_total", "kind" => kind).increment(1);
}

pub(crate) fn file_made(source: &'static str, bytes: u64) {
    counter!("paimon_lookup_files_made_total", "source" => source).increment(1);
    counter!("paimon_lookup_file_bytes_total", "source" => source).increment(bytes);
}

pub(crate) fn files_gone(files: usize, cause: &'static str) {
    if files > 0 {
        counter!("paimon_lookup_files_gone_total", "cause" => cause).increment(files as u64);
    }
}
