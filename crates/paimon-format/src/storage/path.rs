//! Which names a storage takes.

use super::StorageError;

/// Accepts the name of a file: relative, `/`-separated, no empty, `.` or `..` component, no control character. Everything
/// else is taken literally.
///
/// Errors: `Refused`.
pub(super) fn check_file(path: &str) -> Result<(), StorageError> {
    let refuse = |message: &str| Err(StorageError::refused(path, message));
    if path.is_empty() {
        return refuse("an empty path names no file");
    }
    if path.starts_with('/') {
        return refuse("an absolute path; paths are relative to the storage's root");
    }
    if path.chars().any(char::is_control) {
        return refuse("control characters cannot be part of a path");
    }
    for component in path.split('/') {
        match component {
            "" => return refuse("empty path component"),
            "." | ".." => return refuse("'.' and '..' cannot be path components"),
            _ => {}
        }
    }
    Ok(())
}

/// As [`check_file`], but the empty path is the root.
pub(super) fn check_dir(path: &str) -> Result<(), StorageError> {
    if path.is_empty() { Ok(()) } else { check_file(path) }
}

/// `dir/name`, or `name` in the root.
pub(super) fn join(dir: &str, name: &str) -> String {
    if dir.is_empty() {
        name.to_owned()
    } else {
        format!("{dir}/{name}")
    }
}
