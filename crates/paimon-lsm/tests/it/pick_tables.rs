//! Every pick decision of the reference, under the rule that its file name stands for.

use paimon_lsm::testing::PickCase;

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/pick");

#[test]
fn every_pick_of_the_reference() {
    let mut decisions = 0;
    for entry in std::fs::read_dir(FOLDER).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap();
        let rule = PickCase::rule_of(name);
        for (number, line) in std::fs::read_to_string(&path).unwrap().lines().enumerate() {
            let case = PickCase::parse(line).unwrap_or_else(|error| panic!("{name}:{}: {error}", number + 1));
            assert_eq!(case.replay(rule), case.expected(), "{name}:{}: {line}", number + 1);
            decisions += case.expected().len();
        }
    }
    assert!(decisions > 6_000, "{decisions} decisions: a table is missing");
}
