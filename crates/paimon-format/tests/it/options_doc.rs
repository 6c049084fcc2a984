//! `docs/options.md` says what the catalogue says.

use paimon_format::options::{CATALOG, KnownOption, ValueType};

const DOCUMENT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/options.md");

/// Set to write the document instead of comparing it.
const REWRITE: &str = "UPDATE_OPTIONS_DOC";

const INTRODUCTION: &str = "# Table options

Every table option that Paimon knows for primary-key tables, and what this engine does with it. Options are strings in the table's
schema; a job may override them. This page is made from the catalogue in `paimon-format` (`UPDATE_OPTIONS_DOC=1 cargo test -p
paimon-format options_doc` writes it).

| Treatment | Meaning |
|---|---|
| honoured | as Paimon does |
| another engine's | it belongs to another engine, or only steers how work is done; kept and ignored |
| no effect | it belongs to what this engine does not do yet, or needs a value that is refused; kept and ignored |
| refused, reading refused, writing refused | an error that names the option: without it rows or files would be wrong |

Options that are not listed are kept and ignored. Values: bool `true`, `false`; memory size `64 mb`, `8kb`, or bytes; duration `10 s`,
`1h`, `100 ms`, or milliseconds; list `a,b`; map `k:v,k2:v2`; names in any case.
";

#[test]
fn the_document_lists_every_option() {
    let expected = document();
    if std::env::var_os(REWRITE).is_some() {
        std::fs::write(DOCUMENT, &expected).unwrap();
    }
    let found = std::fs::read_to_string(DOCUMENT).unwrap_or_default();
    assert!(
        found == expected,
        "docs/options.md is not what the catalogue says: run with {REWRITE}=1 and review the difference"
    );
}

fn document() -> String {
    let mut text = INTRODUCTION.to_owned();
    for section in CATALOG {
        text += &format!("\n## {}\n\n", section.title);
        text += "| Option | Type | Default | Treatment | Note |\n|---|---|---|---|---|\n";
        section.options.iter().for_each(|known| add_row(&mut text, known));
    }
    text
}

fn add_row(text: &mut String, known: &KnownOption) {
    let value_type = match known.value_type {
        ValueType::Enum(names) => format!("`{}`", names.join("`, `")),
        other => other.to_string(),
    };
    let default = known.default.map_or("—".to_owned(), |default| format!("`{default}`"));
    let mut note = known.note.to_owned();
    if !known.fallback_keys.is_empty() {
        let separator = if note.is_empty() { "" } else { "; " };
        note += &format!("{separator}older: `{}`", known.fallback_keys.join("`, `"));
    }
    let row = format!(
        "| `{}` | {value_type} | {default} | {} | {note} |",
        known.key, known.treatment
    );
    text.push_str(row.replace("|  |", "| |").trim_end());
    text.push('\n');
}
