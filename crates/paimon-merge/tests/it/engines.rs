//! The law of merge engines, and what each of them keeps.

use paimon_format::options::Options;
use paimon_format::types::{Datum, RowKind, TypeKind};
use paimon_merge::MergeError;
use paimon_merge::aggregate::Aggregators;
use paimon_merge::engine::{DeduplicateFactory, MergeEngineFactory, Promises, Registry};
use paimon_merge::kernel::{MergeFunction, Merged, RowEngine, Versions, value_index};
use paimon_merge::testing::{check_engine, check_kernel};

use crate::{schema, schemas};

fn ignore_delete() -> Options {
    Options::from_iter([("ignore-delete", "true")])
}

#[test]
fn deduplicate_is_lawful() {
    for schema in schemas() {
        check_engine(&DeduplicateFactory, &schema, &Options::new()).unwrap();
    }
}

#[test]
fn deduplicate_keeps_the_newest_version() {
    struct Newest;
    impl MergeFunction for Newest {
        fn merge(&mut self, versions: &Versions<'_>) -> Result<Merged, MergeError> {
            Ok(Merged::Version(versions.len() - 1))
        }
    }
    for schema in schemas() {
        let engine = DeduplicateFactory
            .create(&schema, &Options::new(), &Aggregators::default())
            .unwrap();
        check_kernel(engine.as_ref(), &schema, || Box::new(Newest)).unwrap();
    }
}

#[test]
fn deduplicate_can_ignore_deletes() {
    struct NewestAdd;
    impl MergeFunction for NewestAdd {
        fn merge(&mut self, versions: &Versions<'_>) -> Result<Merged, MergeError> {
            let last = (0..versions.len())
                .rev()
                .find(|&at| versions.get(at).is_some_and(|version| version.kind().is_add()));
            Ok(last.map_or(Merged::Nothing, Merged::Version))
        }
    }
    for schema in schemas() {
        let engine = DeduplicateFactory
            .create(&schema, &ignore_delete(), &Aggregators::default())
            .unwrap();
        assert!(!engine.promises().newest_wins);
        check_kernel(engine.as_ref(), &schema, || Box::new(NewestAdd)).unwrap();
    }
}

#[test]
fn a_third_party_engine_is_lawful() {
    struct HighestScore {
        score: usize,
    }
    impl MergeFunction for HighestScore {
        fn merge(&mut self, versions: &Versions<'_>) -> Result<Merged, MergeError> {
            let (mut best, mut best_score) = (0, None);
            for (i, version) in versions.iter().enumerate() {
                if version.kind().is_retract() {
                    return Err(MergeError::retract("highest-score", &version));
                }
                let score = version.get::<i64>(self.score)?;
                if score >= best_score {
                    (best, best_score) = (i, score);
                }
            }
            Ok(Merged::Version(best))
        }
    }
    let engine = RowEngine::new("highest-score", Promises::insert_only(), ["score"], |schema, _| {
        let score = value_index(schema, "score", &TypeKind::BigInt)?;
        Ok(Box::new(HighestScore { score }))
    });
    let schema = schema(TypeKind::Int, None);
    check_engine(&engine, &schema, &Options::new()).unwrap();
    let created = engine
        .create(&schema, &Options::new(), &Aggregators::default())
        .unwrap();
    assert_eq!(created.needs(&[0]), [0, 3]);
}

/// Adds up `score`; nulls count as nothing.
fn sum() -> RowEngine {
    struct Sum;
    impl MergeFunction for Sum {
        fn merge(&mut self, versions: &Versions<'_>) -> Result<Merged, MergeError> {
            let mut sum = 0;
            let mut values = Vec::new();
            for version in versions.iter() {
                sum += version.get::<i64>(3)?.unwrap_or(0);
                values = version.values()?;
            }
            values[3] = Datum::Int64(sum);
            Ok(Merged::Row(RowKind::Insert, values))
        }
    }
    RowEngine::new("sum", Promises::insert_only(), ["score"], |_, _| Ok(Box::new(Sum)))
}

#[test]
fn an_engine_that_makes_rows_is_lawful() {
    for schema in schemas() {
        check_engine(&sum(), &schema, &Options::new()).unwrap();
    }
}

#[test]
fn a_broken_law_is_found() {
    struct First;
    impl MergeFunction for First {
        fn merge(&mut self, versions: &Versions<'_>) -> Result<Merged, MergeError> {
            // How many versions there are depends on what was merged before.
            Ok(Merged::Version((versions.len() > 2).into()))
        }
    }
    let engine = RowEngine::new("first", Promises::insert_only(), [""; 0], |_, _| Ok(Box::new(First)));
    let error = check_engine(&engine, &schema(TypeKind::Int, None), &Options::new()).unwrap_err();
    assert!(error.contains("differ"), "{error}");
}

#[test]
fn unknown_engines_and_options_are_refused() {
    let schema = schema(TypeKind::Int, None);
    let mut registry = Registry::default();
    registry.engine(sum());
    let message = |options: &Options| registry.for_options(&schema, options).unwrap_err().to_string();
    assert_eq!(
        message(&Options::from_iter([("merge-engine", "newest")])),
        "merge-engine: there is no engine \"newest\"; known are: aggregation, deduplicate, first-row, partial-update, sum"
    );
    assert_eq!(
        message(&Options::from_iter([("deduplicate.ignore-delete", "maybe")])),
        "option 'deduplicate.ignore-delete' = 'maybe': expected true or false"
    );
    assert!(
        registry
            .for_options(&schema, &Options::from_iter([("merge-engine", "sum")]))
            .is_ok()
    );
    assert!(
        registry
            .for_options(&schema, &Options::new())
            .unwrap()
            .promises()
            .newest_wins
    );
}
