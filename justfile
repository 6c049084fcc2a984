# `just` lists the recipes. CI runs `.ci/run`; the recipes are its steps.

# This list
default:
    @just --list

# All that CI checks, or some steps of it: just check clippy tests
check *steps:
    bash .ci/run {{ steps }}

# Formats all code
fmt:
    cargo fmt --all

# Unit, integration and doc tests; with words: those whose names have them
test *args:
    .ci/with_s3.py cargo test {{ args }}

# Property tests with new random cases, many of them: just soak 500
soak cases="200" *args="":
    PAIMON_TEST_CASES={{ cases }} PROPTEST_CASES={{ cases }} cargo test {{ args }}

# Writers and compactors killed so often at random moments, and what they leave behind: just kills 1000
kills count="200":
    PAIMON_TEST_KILLS={{ count }} cargo test -p paimon-cli --test it kill_loop -- --nocapture

# What needs no code to run: format, licences and bans, who opens files, clippy, documentation
lint:
    bash .ci/run format dependencies doors clippy docs

# Each core crate without features, and with each one
alone:
    bash .ci/run alone

# Scenarios, tables, picks and hashes against what the Java engine answered
conformance:
    bash .ci/run conformance

# Conformance runs, then the Java engine and pypaimon read what they kept
golden:
    bash .ci/run conformance java pypaimon

# Reviews changed snapshots: accept what is right with `git add`
snapshots:
    INSTA_UPDATE=always cargo test
    git diff --stat -- '*.snap'

# Benchmarks, optimised; by hand, on a quiet machine
bench *args:
    cargo bench -p paimon-bench {{ args }}

# Random tables of the merge engines on the Java engine and on this one, their rows compared: just random 1 200
random seed count:
    cargo test --quiet --no-run
    rm -rf target/random && mkdir -p target/random
    python3 testdata/oracle/random_scenarios.py {{ seed }} {{ count }} target/random
    bash testdata/oracle/run.sh golden target/random/*
    python3 testdata/oracle/random_scenarios.py --rows-only target/random
    target/debug/paimon-conformance golden target/random

# The documentation of all crates
doc:
    RUSTDOCFLAGS="-D warnings" cargo doc --no-deps --open

# Licences, bans and sources in detail, and advisories (needs cargo-deny and its database)
deny:
    cargo deny check
