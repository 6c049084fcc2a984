//! A command must not write the file that it reads.

use std::path::Path;

use crate::error::CliError;

/// What stands for standard input, and where it is a file.
const STANDARD_INPUT: (&str, &str) = ("-", "/dev/stdin");

/// Errors: `Usage` when `output`, the value of `argument`, is one of the inputs, by this name or another. Nothing is opened.
pub(crate) fn check_not_read<'a>(
    argument: &str,
    output: &Path,
    inputs: impl IntoIterator<Item = &'a Path>,
) -> Result<(), CliError> {
    match inputs.into_iter().find(|input| same_file(input, output)) {
        None => Ok(()),
        Some(input) => Err(CliError::usage(format!(
            "{argument} {}: this file is read too, as {}; write to another one",
            output.display(),
            input.display()
        ))),
    }
}

fn same_file(input: &Path, output: &Path) -> bool {
    let input = match input == Path::new(STANDARD_INPUT.0) {
        true => Path::new(STANDARD_INPUT.1),
        false => input,
    };
    input == output || (is_file(output) && identity(input).is_some_and(|input| identity(output) == Some(input)))
}

/// A device or a pipe may be both.
fn is_file(path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|there| there.is_file())
}

/// What all names of a file have in common; `None`: it is not there.
#[cfg(unix)]
fn identity(path: &Path) -> Option<(u64, u64)> {
    use std::os::unix::fs::MetadataExt;

    let there = std::fs::metadata(path).ok()?;
    Some((there.dev(), there.ino()))
}

/// What all names of a file have in common, hard links excepted; `None`: it is not there.
#[cfg(not(unix))]
fn identity(path: &Path) -> Option<std::path::PathBuf> {
    std::fs::canonicalize(path).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_has_many_names() {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name);
        std::fs::write(path("a"), "a").unwrap();
        std::fs::write(path("b"), "a").unwrap();
        std::fs::hard_link(path("a"), path("hard")).unwrap();
        let mut same = vec!["a", "./a", "hard", "none"];
        #[cfg(unix)]
        {
            std::os::unix::fs::symlink(path("a"), path("soft")).unwrap();
            same.push("soft");
        }
        for name in same {
            let input = if name == "none" { name } else { "a" };
            let error = check_not_read("--out", &path(name), [path("b").as_path(), &path(input)]).unwrap_err();
            let expected = format!(
                "--out {}: this file is read too, as {}; ",
                path(name).display(),
                path(input).display()
            );
            assert!(error.to_string().starts_with(&expected), "{error}");
        }
        for other in ["b", "none"] {
            check_not_read("--out", &path(other), [path("a").as_path(), Path::new("-")]).unwrap();
        }
    }
}
