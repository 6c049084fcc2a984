use super::*;
use crate::testing::{int_keys, keyed_file};

/// `a@0 [1,5] 120` a comma apart; `-5` after the size: so many deletes, `-?`: an unknown number.
fn files(text: &str) -> Vec<Arc<DataFileMeta>> {
    text.split(", ")
        .map(|file| {
            let words: Vec<&str> = file.split(' ').collect();
            let [at, range, size] = words[..] else { panic!("{file}") };
            let (name, level) = at.split_once('@').unwrap();
            let (min, max) = range.trim_matches(['[', ']']).split_once(',').unwrap();
            let (size, deletes) = size.split_once('-').unwrap_or((size, "0"));
            let mut file = keyed_file(
                name,
                level.parse().unwrap(),
                (min.parse().unwrap(), max.parse().unwrap()),
                size.parse().unwrap(),
            );
            file.delete_row_count = deletes.parse().ok();
            Arc::new(file)
        })
        .collect()
}

/// `upgrade a; rewrite (b) (c | d)`: sections in brackets, runs between bars.
fn print(steps: &[CompactStep]) -> String {
    let names = |run: &SortedRun| {
        let names: Vec<&str> = run.files().iter().map(|file| file.file_name.as_str()).collect();
        names.join(" ")
    };
    let told = |changelog| if changelog { " with changelog" } else { "" };
    let steps: Vec<String> = steps
        .iter()
        .map(|step| match step {
            CompactStep::Upgrade { file, changelog } => format!("upgrade {}{}", file.file_name, told(*changelog)),
            CompactStep::Rewrite {
                sections, changelog, ..
            } => {
                let sections = sections.iter().map(|section| {
                    let runs: Vec<String> = section.iter().map(names).collect();
                    format!(" ({})", runs.join(" | "))
                });
                format!("rewrite{}{}", sections.collect::<String>(), told(*changelog))
            }
        })
        .collect();
    steps.join("; ")
}

/// Steps with a threshold of 90 bytes; `must_rewrite` names files.
fn plan(text: &str, levels: (i32, i32), small: u64, must_rewrite: &[&str]) -> String {
    plan_with(text, levels, small, must_rewrite, &ChangelogRules::default())
}

fn plan_with(
    text: &str,
    (output_level, max_level): (i32, i32),
    small: u64,
    must_rewrite: &[&str],
    changelog: &ChangelogRules,
) -> String {
    let rules = StepRules {
        output_level,
        max_level,
        drop_delete: output_level == max_level,
        small_file_bytes: small,
        must_rewrite: &|file| must_rewrite.contains(&file.file_name.as_str()),
        changelog,
        formats: &|_| FileFormat::Parquet,
    };
    print(&plan_steps(&files(text), &int_keys().unwrap(), &rules).unwrap())
}

#[track_caller]
fn check(text: &str, levels: (i32, i32), expected: &str) {
    assert_eq!(plan(text, levels, 90, &[]), expected, "{text}");
}

#[test]
fn small_files_join_their_neighbours() {
    check(
        "a@0 [1,5] 120, b@0 [6,6] 10, c@1 [7,7] 10, d@1 [9,10] 120",
        (2, 2),
        "upgrade a; rewrite (b) (c); upgrade d",
    );
}

#[test]
fn large_files_on_the_output_level_stay() {
    check(
        "a@0 [1,50] 20, b@0 [10,60] 20, c@3 [70,80] 20, d@3 [81,90] 200, e@0 [95,99] 10, f@3 [100,120] 15, g@3 [121,200] 300",
        (3, 5),
        "rewrite (a | b) (c); rewrite (e) (f)",
    );
}

#[test]
fn deletes_do_not_reach_the_highest_level() {
    check(
        "a@0 [1,50] 200-5, b@0 [60,70] 200, c@5 [80,90] 200, d@5 [91,99] 10",
        (5, 5),
        "rewrite (a); upgrade b",
    );
    check("a@0 [1,50] 200-5", (4, 5), "upgrade a");
    check("a@0 [1,50] 200-?", (5, 5), "rewrite (a)");
    // Also one that lies there already: an overwrite can put it there.
    check("a@5 [1,50] 200-5, b@0 [60,70] 200", (5, 5), "rewrite (a); upgrade b");
}

#[test]
fn a_lonely_small_file_is_upgraded_or_kept() {
    check("s@4 [1,50] 10, t@0 [51,60] 200", (4, 5), "upgrade t");
    check("s@0 [1,50] 10", (4, 5), "upgrade s");
}

#[test]
fn sections_of_small_files() {
    let size = |text: &str| {
        // Sizes as many as keys.
        let files = text.split(' ').map(|file| {
            let (at, range) = file.split_once('[').unwrap();
            let (min, max) = range.trim_end_matches(']').split_once(',').unwrap();
            let size = max.parse::<i32>().unwrap() - min.parse::<i32>().unwrap() + 1;
            format!("{min}-{max}@{at} [{range} {size}")
        });
        plan(&files.collect::<Vec<_>>().join(", "), (2, 2), 2, &[])
    };
    assert_eq!(
        size("0[1,5] 0[6,6] 1[7,8] 1[9,10]"),
        "upgrade 1-5; upgrade 6-6; upgrade 7-8; upgrade 9-10"
    );
    assert_eq!(
        size("0[1,5] 0[6,6] 1[1,4] 1[6,8] 1[10,11] 2[1,3] 2[4,6]"),
        "rewrite (1-3 4-6 | 1-4 6-6 | 1-5 6-8); upgrade 10-11"
    );
    assert_eq!(
        size("0[1,5] 0[6,6] 1[1,4] 1[6,8] 1[10,10] 2[1,3] 2[4,6]"),
        "rewrite (1-3 4-6 | 1-4 6-6 | 1-5 6-8) (10-10)"
    );
}

#[test]
fn a_file_that_must_be_rewritten_is() {
    let text = "a@5 [1,5] 200, b@5 [6,9] 200, c@0 [10,20] 200";
    assert_eq!(plan(text, (5, 5), 90, &["a"]), "rewrite (a); upgrade c");
    assert_eq!(
        plan(text, (5, 5), 90, &["a", "b", "c"]),
        "rewrite (a); rewrite (b); rewrite (c)"
    );
}

#[test]
fn sections_of_the_worked_examples() {
    let sections = |text: &str| {
        let ranges: Vec<String> = text.split(' ').map(|range| format!("{range}@0 {range} 1")).collect();
        let sections = int_keys().unwrap().sections(&files(&ranges.join(", "))).unwrap();
        print(&[CompactStep::Rewrite {
            sections,
            drop_delete: false,
            changelog: false,
        }])
    };
    assert_eq!(
        sections("[0,9] [5,7] [9,15] [16,22] [16,28] [24,32]"),
        "rewrite ([0,9] | [5,7] [9,15]) ([16,22] [24,32] | [16,28])"
    );
    assert_eq!(
        sections("[100,500] [200,500] [300,500] [400,500]"),
        "rewrite ([100,500] | [200,500] | [300,500] | [400,500])"
    );
    assert_eq!(
        sections("[1,10] [5,20] [11,15] [16,30] [31,40] [40,50]"),
        "rewrite ([1,10] [11,15] [16,30] | [5,20]) ([31,40] | [40,50])"
    );
    assert_eq!(
        sections("[1,100] [1,3] [4,6] [7,9] [10,20] [101,110] [110,120]"),
        "rewrite ([1,3] [4,6] [7,9] [10,20] | [1,100]) ([101,110] | [110,120])"
    );
}

/// Mission-critical cases of both producers, one line a unit.
#[test]
fn steps_of_changelog_producers() {
    use crate::compact::ChangelogProducer;
    use crate::lookup::LookupStrategy;

    let looks_up = |newest_alone| ChangelogRules {
        producer: ChangelogProducer::Lookup,
        lookup: LookupStrategy {
            produce_changelog: true,
            ..LookupStrategy::default()
        },
        newest_alone,
        top_level: 5,
    };
    let (deduplicate, sum) = (looks_up(true), looks_up(false));
    let mut vectors = looks_up(true);
    vectors.lookup.deletion_vector = true;
    let full = ChangelogRules {
        producer: ChangelogProducer::FullCompaction,
        top_level: 5,
        ..ChangelogRules::default()
    };
    let units = [
        ("one file of level 0 to level 4", "a@0 [1,5] 10", 4),
        ("with deletes", "a@0 [1,5] 10-2", 4),
        ("with an unknown number of deletes", "a@0 [1,5] 10-?", 4),
        ("to the top", "a@0 [1,5] 10", 5),
        ("with deletes to the top", "a@0 [1,5] 10-2", 5),
        ("overlap with level 4", "a@0 [1,5] 10, b@4 [3,8] 10", 4),
        ("everything", "a@0 [1,5] 10, b@4 [3,8] 10, c@5 [20,30] 200", 5),
        ("no level 0", "b@3 [3,8] 10, c@4 [1,9] 200", 4),
        ("level 3 alone to the top", "b@3 [3,8] 10", 5),
    ];
    let mut lines = String::new();
    for (what, files, output_level) in units {
        lines.push_str(&format!("{what}: {files} to L{output_level}\n"));
        for (table, rules) in [
            ("deduplicate, lookup", &deduplicate),
            ("deduplicate, lookup, vectors", &vectors),
            ("sum, lookup", &sum),
            ("full-compaction", &full),
        ] {
            let steps = plan_with(files, (output_level, 5), 90, &[], rules);
            lines.push_str(&format!("  {table}: {steps}\n"));
        }
    }
    insta::assert_snapshot!(lines);
}
