use proptest::prelude::*;

use super::*;
use crate::testing::{check_strategy, parse_runs, print_runs};

/// Defaults of a table: trigger 5, 6 levels, size ratio 1 %, size amplification 200 %.
#[derive(Clone)]
struct Tree {
    num_levels: i32,
    settings: UniversalSettings,
    context_hour: u8,
}

fn tree() -> Tree {
    Tree {
        num_levels: 6,
        settings: UniversalSettings::default(),
        context_hour: 0,
    }
}

impl Tree {
    fn levels(mut self, num_levels: i32) -> Self {
        self.num_levels = num_levels;
        self
    }

    fn amp(mut self, percent: u32) -> Self {
        self.settings.max_size_amplification_percent = percent;
        self
    }

    fn ratio(mut self, percent: u32) -> Self {
        self.settings.size_ratio_percent = percent;
        self
    }

    fn trigger(mut self, runs: usize) -> Self {
        self.settings.compaction_trigger = runs;
        self
    }

    fn early(mut self, interval_ms: Option<i64>, total: Option<u64>, incremental: Option<u64>) -> Self {
        self.settings.early_full = Some(EarlyFullSettings {
            interval_ms,
            total_size_bytes: total,
            incremental_size_bytes: incremental,
        });
        self
    }

    fn off_peak(mut self, start_hour: u8, end_hour: u8, ratio_percent: i32, now: u8) -> Self {
        self.settings.off_peak = Some(OffPeakHours {
            start_hour,
            end_hour,
            ratio_percent,
        });
        self.context_hour = now;
        self
    }

    fn context(&self, now_ms: i64) -> PickContext {
        PickContext {
            num_levels: self.num_levels,
            now_ms,
            local_hour: self.context_hour,
        }
    }

    fn universal(&self, rule: PickRule) -> UniversalCompaction {
        UniversalCompaction::new(UniversalSettings {
            rule,
            ..self.settings.clone()
        })
    }

    fn pick(&self, rule: PickRule, runs: &str) -> String {
        let runs = parse_runs(runs).unwrap();
        answer(self.universal(rule).pick(&runs, &self.context(0)))
    }

    fn force(&self, rule: PickRule, runs: &str) -> String {
        let runs = parse_runs(runs).unwrap();
        let mut strategy = ForceUpLevel0Compaction::new(self.universal(rule), None);
        answer(strategy.pick(&runs, &self.context(0)))
    }
}

/// `runs -> level (bytes)`, or `none`.
fn answer(unit: Option<CompactUnit>) -> String {
    unit.map_or_else(
        || "none".into(),
        |unit| {
            let bytes: i64 = unit.files.iter().map(|file| file.file_size).sum();
            format!("{} -> {} ({bytes})", unit.runs, unit.output_level)
        },
    )
}

const CURRENT: PickRule = PickRule::Current;
const RELEASE: PickRule = PickRule::Release2_0;

#[track_caller]
fn both(tree: &Tree, runs: &str, expected: &str) {
    differ(tree, runs, expected, expected);
}

#[track_caller]
fn differ(tree: &Tree, runs: &str, release: &str, current: &str) {
    assert_eq!(tree.pick(RELEASE, runs), release, "release 2.0.0: {runs}");
    assert_eq!(tree.pick(CURRENT, runs), current, "current: {runs}");
}

#[track_caller]
fn forced(tree: &Tree, runs: &str, expected: &str) {
    assert_eq!(tree.force(RELEASE, runs), expected, "release 2.0.0: {runs}");
    assert_eq!(tree.force(CURRENT, runs), expected, "current: {runs}");
}

#[test]
fn the_four_worked_examples() {
    both(&tree(), "0:10 0:10 0:10 3:100 5:100", "3 -> 2 (30)");
    both(&tree(), "0:60 0:60 0:60 1:50 5:100", "5 -> 5 (330)");
    differ(&tree(), "0:1 0:5 0:20 2:80 3:300 5:1000", "4 -> 2 (106)", "3 -> 1 (26)");
    both(&tree(), "0:2 0:2 4:3 5:100", "none");
    forced(&tree(), "0:2 0:2 4:3 5:100", "3 -> 4 (7)");
}

#[test]
fn size_amplification() {
    both(&tree().levels(3).amp(25).trigger(3), "0:1 0:2 0:3 0:3", "4 -> 2 (9)");
    // Not more than 200 %: the size ratio takes all runs instead.
    both(&tree(), "0:50 0:50 0:50 1:50 5:100", "5 -> 5 (300)");
    both(&tree(), "0:50 0:50 0:50 1:51 5:100", "5 -> 5 (301)");
    // Too few runs, however large the newer ones are.
    both(&tree(), "0:100 0:100 0:100 5:1", "none");
    both(&tree(), "0:1 0:1 0:1 0:1 5:0", "5 -> 5 (4)");
}

#[test]
fn size_ratio() {
    both(&tree(), "0:100 2:101 3:300 4:900 5:2000", "2 -> 2 (201)");
    both(&tree(), "0:100 2:102 3:300 4:900 5:2000", "none");
    both(&tree().levels(4).amp(25).trigger(3), "0:1 1:1 2:1 3:50", "3 -> 2 (3)");
    both(&tree().levels(3).amp(25).trigger(3), "0:1 0:1 1:1 2:50", "3 -> 1 (3)");
    both(&tree(), "0:1 2:10 3:100 4:1000 5:10000", "none");
    differ(&tree(), "0:10 0:10 1:100 3:200 5:1000", "3 -> 1 (120)", "3 -> 2 (120)");
    differ(&tree(), "0:10 0:10 1:100 2:115 5:1000", "3 -> 1 (120)", "4 -> 4 (235)");
    differ(
        &tree(),
        "0:10 0:10 0:10 1:1000 5:9000",
        "4 -> 1 (1030)",
        "4 -> 4 (1030)",
    );
    both(&tree(), "0:10 0:10 0:10 0:10 1:1000", "5 -> 5 (1040)");
    both(&tree(), "0:0 0:0 3:100 4:1000 5:9000", "2 -> 2 (0)");
    both(&tree(), "0:1 0:10 0:100 0:1000 0:10000", "none");
}

#[test]
fn number_of_runs() {
    both(&tree().levels(4).amp(25).trigger(3), "0:1 1:2 2:3 3:50", "3 -> 2 (6)");
    both(&tree().levels(3).amp(25).trigger(3), "0:1 0:2 1:3 2:50", "3 -> 1 (6)");
    both(&tree(), "0:1 0:2 0:4 0:8 0:16 0:32", "6 -> 5 (63)");
    differ(
        &tree(),
        "0:1 0:2 0:4 2:100 4:1000 5:10000",
        "4 -> 2 (107)",
        "3 -> 1 (7)",
    );
    // The level-1 run is dragged in either way; only the current rule then looks at level 2.
    differ(
        &tree().levels(3).trigger(3),
        "0:10 0:20 1:97 2:100",
        "3 -> 1 (127)",
        "4 -> 2 (227)",
    );
    differ(
        &tree(),
        "0:1 0:5 0:30 0:200 2:1000 4:9000 5:90000",
        "5 -> 2 (1236)",
        "4 -> 1 (236)",
    );
    both(
        &tree().levels(5).amp(2500).ratio(10).trigger(2),
        "2:8 3:9 4:10",
        "3 -> 4 (27)",
    );
    both(
        &tree().levels(5).amp(2500).ratio(20).trigger(2),
        "2:8 3:9 4:10",
        "3 -> 4 (27)",
    );
    let seven = tree().levels(7).trigger(6);
    both(&seven, "0:1 0:3 0:9 1:27 2:81 4:243 5:729", "4 -> 1 (40)");
    differ(
        &seven,
        "0:1 0:3 0:9 1:27 2:40 4:243 5:729",
        "4 -> 1 (40)",
        "5 -> 3 (80)",
    );
}

#[test]
fn runs_on_level_0_alone_never_stay_there() {
    both(&tree(), "0:1 0:1 0:1 0:1024 0:1048576", "5 -> 5 (1049603)");
}

#[test]
fn off_peak_hours_widen_the_ratio() {
    let runs = "0:8 1:9 2:10 3:100 5:1000";
    both(&tree().off_peak(0, 8, 20, 8), runs, "none");
    both(&tree().off_peak(0, 8, 20, 7), runs, "3 -> 2 (27)");
}

#[test]
fn off_peak_windows() {
    let hours = |start_hour, end_hour| OffPeakHours {
        start_hour,
        end_hour,
        ratio_percent: 10,
    };
    let open = |window: OffPeakHours| -> Vec<u8> { (0..24).filter(|&h| window.ratio_percent_at(h) == 10).collect() };
    assert_eq!(open(hours(1, 4)), [1, 2, 3]);
    assert_eq!(open(hours(22, 2)), [0, 1, 22, 23]);
    assert_eq!(open(hours(5, 5)), [0u8; 0]);
}

#[test]
fn early_full_by_size() {
    let base = tree().levels(3).amp(100).trigger(3);
    both(&base.clone().early(None, Some(10), None), "0:1 1:3 2:5", "3 -> 2 (9)");
    both(&base.early(None, Some(10), None), "0:1 1:3 2:6", "none");
    let incremental = tree().levels(3).early(None, None, Some(10));
    both(&incremental, "0:5 1:6 2:100", "3 -> 2 (111)");
    both(&incremental, "0:5 1:5 2:100", "none");
    both(&incremental, "0:5 1:6", "2 -> 2 (11)");
    let all = tree().levels(3).early(Some(1000), Some(100), Some(1));
    both(&all, "0:5", "none");
    both(&all, "2:5", "none");
}

#[test]
fn early_full_by_time() {
    let tree = tree().levels(3).amp(100).trigger(3).early(Some(1000), None, None);
    let mut strategy = tree.universal(CURRENT);
    let mut pick = |now_ms, runs: &str| {
        let unit = strategy.pick(&parse_runs(runs).unwrap(), &tree.context(now_ms));
        unit.map(|unit| unit.reason)
    };
    assert_eq!(pick(0, "0:1 1:3 2:5"), Some(PickReason::EarlyFullInterval));
    assert_eq!(pick(1001, "0:1 1:3 2:5"), Some(PickReason::EarlyFullInterval));
    assert_eq!(pick(1001, "0:1 1:3 2:5"), None);
    // A full compaction by another rule counts too.
    assert_eq!(pick(1500, "0:3 1:3 2:5"), Some(PickReason::SizeAmplification));
    assert_eq!(pick(2001, "0:1 1:3 2:5"), None);
    assert_eq!(pick(2501, "0:1 1:3 2:5"), Some(PickReason::EarlyFullInterval));
}

#[test]
fn a_known_last_full_compaction_holds_the_interval_back() {
    let tree = tree().early(Some(1000), None, None);
    let runs = parse_runs("0:1 1:3").unwrap();
    let mut fresh = UniversalCompaction::with_last_full(tree.settings.clone(), None);
    assert!(fresh.pick(&runs, &tree.context(500)).is_some());
    let mut restored = UniversalCompaction::with_last_full(tree.settings.clone(), Some(0));
    assert!(restored.pick(&runs, &tree.context(1000)).is_none());
    assert!(restored.pick(&runs, &tree.context(1001)).is_some());
}

#[test]
fn forced_picks() {
    forced(&tree().levels(3).amp(25).trigger(3), "0:1 2:2", "1 -> 1 (1)");
    forced(&tree(), "0:10 5:1000", "1 -> 4 (10)");
    forced(&tree().levels(3), "0:1 1:99 2:100", "3 -> 2 (200)");
    forced(&tree().levels(3), "0:1 1:99 2:101", "3 -> 2 (201)");
    forced(&tree().levels(3), "0:1 1:99 2:102", "2 -> 1 (100)");
    forced(&tree(), "1:5 3:50 5:500", "none");
    forced(&tree(), "0:10 1:1000", "2 -> 5 (1010)");
    forced(&tree(), "0:10 0:20 3:25 5:900", "3 -> 4 (55)");
    forced(&tree(), "0:10 0:20 3:31 5:900", "2 -> 2 (30)");
    forced(&tree(), "0:10 0:1000", "2 -> 5 (1010)");
    forced(&tree().levels(7).trigger(6), "0:5 1:4 2:9 4:200 5:5000", "3 -> 3 (18)");
    // Release 1.4.2 judges level 2 by level 0 alone.
    assert_eq!(
        tree().levels(3).force(PickRule::Release1_4, "0:1 1:99 2:100"),
        "2 -> 1 (100)"
    );
}

#[test]
fn gentle_forcing_counts_only_idle_picks() {
    let tree = tree();
    let mut strategy = ForceUpLevel0Compaction::new(tree.universal(CURRENT), Some(3));
    let mut pick = |runs: &str| answer(strategy.pick(&parse_runs(runs).unwrap(), &tree.context(0)));
    assert_eq!(pick("0:1 5:100"), "none");
    assert_eq!(pick("0:1 0:1 5:100"), "none");
    assert_eq!(pick("0:1 0:1 0:1 4:300 5:500"), "3 -> 3 (3)");
    assert_eq!(pick("0:1 0:1 0:1 5:100"), "3 -> 4 (3)");
    assert_eq!(pick("0:1 0:1 0:1 5:100"), "none");
}

#[test]
fn full_compaction_on_demand() {
    let pick = |runs: &str, rewrite: bool| {
        let unit = pick_full_compaction(6, &parse_runs(runs).unwrap(), |_| rewrite);
        unit.map(|unit| (unit.runs, unit.output_level, unit.rewrite_each))
    };
    assert_eq!(pick("", true), None);
    assert_eq!(pick("5:10", false), None);
    assert_eq!(pick("5:10", true), Some((1, 5, true)));
    assert_eq!(pick("0:10", true), Some((1, 5, false)));
    assert_eq!(pick("0:1 0:10 5:10", false), Some((3, 5, false)));
}

#[test]
fn level_1_does_not_swell() {
    let three = tree().levels(3);
    forced(&three, "0:2 1:60 2:61", "3 -> 2 (123)");
    forced(&three, "0:2 1:60 2:70", "2 -> 1 (62)");
    forced(&three, "0:2 2:70", "1 -> 1 (2)");
    forced(&three, "1:60 2:70", "none");
    let eight = tree().trigger(8);
    let runs = "0:1 0:1 0:1 0:1 1:100 2:101 3:1000 4:10000 5:1000000";
    differ(&eight, runs, "5 -> 1 (104)", "6 -> 2 (205)");
    let runs = "0:1 0:1 0:1 0:1 1:100 2:110 3:1000 4:10000 5:1000000";
    differ(&eight, runs, "5 -> 1 (104)", "5 -> 1 (104)");
}

/// Grows a tree by equal flushes; a line for each flush that compacts.
fn evolve(strategy: &mut dyn CompactStrategy, flushes: usize) -> String {
    let context = tree().context(0);
    let mut runs = Vec::new();
    let mut lines = Vec::new();
    for flush in 1..=flushes {
        runs.splice(0..0, parse_runs("0:10").unwrap());
        if let Some(unit) = strategy.pick(&runs, &context) {
            runs = crate::testing::apply(&runs, &unit);
            lines.push(format!("{flush}: {:?} {}", unit.reason, print_runs(&runs)));
        }
    }
    lines.join("\n")
}

#[test]
fn forty_flushes() {
    let current = evolve(&mut tree().universal(CURRENT), 40);
    assert_eq!(current, evolve(&mut tree().universal(RELEASE), 40));
    assert_eq!(
        current,
        "5: SizeAmplification 5:50\n\
         9: SizeRatio 4:40 5:50\n\
         12: SizeRatio 3:30 4:40 5:50\n\
         14: SizeRatio 2:20 3:30 4:40 5:50\n\
         16: SizeAmplification 5:160\n\
         20: SizeRatio 4:40 5:160\n\
         23: SizeRatio 3:30 4:40 5:160\n\
         25: SizeRatio 2:20 3:30 4:40 5:160\n\
         27: SizeRatio 4:110 5:160\n\
         30: SizeRatio 3:30 4:110 5:160\n\
         32: SizeRatio 2:20 3:30 4:110 5:160\n\
         34: SizeRatio 3:70 4:110 5:160\n\
         36: SizeRatio 2:20 3:70 4:110 5:160\n\
         38: SizeRatio 2:40 3:70 4:110 5:160\n\
         40: SizeRatio 1:20 2:40 3:70 4:110 5:160"
    );
}

#[test]
fn sixteen_forced_flushes() {
    let radical = |rule| evolve(&mut ForceUpLevel0Compaction::new(tree().universal(rule), None), 16);
    assert_eq!(radical(CURRENT), radical(RELEASE));
    assert_eq!(
        radical(CURRENT),
        "1: ForceUpLevel0 5:10\n\
         2: ForceUpLevel0 5:20\n\
         3: ForceUpLevel0 4:10 5:20\n\
         4: ForceUpLevel0 5:40\n\
         5: ForceUpLevel0 4:10 5:40\n\
         6: ForceUpLevel0 4:20 5:40\n\
         7: ForceUpLevel0 3:10 4:20 5:40\n\
         8: ForceUpLevel0 5:80\n\
         9: ForceUpLevel0 4:10 5:80\n\
         10: ForceUpLevel0 4:20 5:80\n\
         11: ForceUpLevel0 3:10 4:20 5:80\n\
         12: ForceUpLevel0 4:40 5:80\n\
         13: ForceUpLevel0 3:10 4:40 5:80\n\
         14: ForceUpLevel0 3:20 4:40 5:80\n\
         15: ForceUpLevel0 2:10 3:20 4:40 5:80\n\
         16: SizeRatio 5:160"
    );
}

#[test]
fn strategies_keep_the_order_of_runs() {
    for rule in [CURRENT, RELEASE, PickRule::Release1_4] {
        check_strategy(|| Box::new(tree().universal(rule))).unwrap();
        check_strategy(|| Box::new(ForceUpLevel0Compaction::new(tree().universal(rule), None))).unwrap();
        check_strategy(|| Box::new(ForceUpLevel0Compaction::new(tree().universal(rule), Some(4)))).unwrap();
    }
    let early = tree().early(Some(5000), Some(1000), Some(100_000));
    check_strategy(|| Box::new(early.universal(CURRENT))).unwrap();
}

#[test]
fn the_check_finds_a_strategy_that_reorders_runs() {
    #[derive(Debug)]
    struct OldestFirst;
    impl CompactStrategy for OldestFirst {
        fn pick(&mut self, runs: &[LevelSortedRun], context: &PickContext) -> Option<CompactUnit> {
            let rest = runs.get(1..).filter(|rest| rest.len() > 1)?;
            Some(CompactUnit::of_runs(context.max_level(), rest, PickReason::SizeRatio))
        }
    }
    let error = check_strategy(|| Box::new(OldestFirst)).unwrap_err();
    assert!(
        error.starts_with("the files are not those of the newest runs"),
        "{error}"
    );
}

proptest! {
    #[test]
    fn the_rules_agree_on_whether_to_compact(runs in arbitrary_runs()) {
        let tree = tree();
        let context = tree.context(0);
        let current = tree.universal(CURRENT).pick(&runs, &context);
        let release = tree.universal(RELEASE).pick(&runs, &context);
        prop_assert_eq!(current.is_some(), release.is_some());
        let current = tree.universal(CURRENT).force_pick_level0(&runs, &context);
        let release = tree.universal(RELEASE).force_pick_level0(&runs, &context);
        prop_assert_eq!(current, release);
    }
}

/// Up to eight level-0 runs, then some of the levels 1 to 5.
fn arbitrary_runs() -> impl Strategy<Value = Vec<LevelSortedRun>> {
    let size = prop_oneof![Just(10u64), 0..200u64, 1..100_000u64];
    let upper = prop::collection::vec(prop::option::of(size.clone()), 5);
    (prop::collection::vec(size, 0..8), upper).prop_map(|(level0, upper)| {
        let level0 = level0.into_iter().map(|size| format!("0:{size}"));
        let upper = upper
            .into_iter()
            .zip(1..)
            .filter_map(|(size, level)| size.map(|size| format!("{level}:{size}")));
        parse_runs(&level0.chain(upper).collect::<Vec<_>>().join(" ")).unwrap()
    })
}

#[test]
fn the_hour_is_local() {
    use paimon_format::env::TickingClock;
    let hour = |offset_ms| {
        // 2024-01-01 22:30 UTC.
        let clock = TickingClock::new(1_704_148_200_000, 0).with_offset_ms(offset_ms);
        PickContext::now(&clock, 6).local_hour
    };
    assert_eq!((hour(0), hour(2 * 3_600_000), hour(-23 * 3_600_000)), (22, 0, 23));
}
