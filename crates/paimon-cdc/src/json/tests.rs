use proptest::prelude::*;

use super::*;

#[test]
fn numbers_members_and_texts_stay_as_they_are() {
    let text = " {\"b\": [1, -0.50, 1e+300, 12345678901234567890.1234567890], \"a\":{\"x\":null,\"x\":true} , \"\\u00e9\\n\":\"\\ud83e\\udd80 \\/\"} ";
    let json = parse(text).unwrap();
    assert_eq!(
        json.to_string(),
        "{\"b\":[1,-0.50,1e+300,12345678901234567890.1234567890],\"a\":{\"x\":null,\"x\":true},\"é\\n\":\"🦀 /\"}"
    );
    assert_eq!(json.get("a").and_then(|a| a.get("x")), Some(&Json::Bool(true)));
    assert_eq!(json.get("none"), None);
}

#[test]
fn members_are_the_text_of_values() {
    let found = members("{ \"schema\" : {\"a\": [1, 2]} ,\"payload\":null}")
        .unwrap()
        .unwrap();
    assert_eq!(
        found,
        [("schema".into(), "{\"a\": [1, 2]}"), ("payload".into(), "null")]
    );
    assert_eq!(members(" null ").unwrap(), None);
    assert_eq!(members("{}").unwrap(), Some(Vec::new()));
}

#[test]
fn what_is_no_json_is_refused_at_its_byte() {
    for (text, expected) in [
        ("", "no JSON: expected a value at byte 1"),
        ("{\"a\":1", "no JSON: expected ',' or '}' at byte 7"),
        ("{\"a\" 1}", "no JSON: expected ':' at byte 6"),
        ("{a:1}", "no JSON: expected a member's name at byte 2"),
        ("[1,]", "no JSON: expected a value at byte 4"),
        ("[1 2]", "no JSON: expected ',' or ']' at byte 4"),
        ("01", "no JSON: a number with a leading zero at byte 3"),
        ("1.", "no JSON: expected a digit at byte 3"),
        ("1e", "no JSON: expected a digit at byte 3"),
        ("nul", "no JSON: expected a value at byte 1"),
        ("NaN", "no JSON: expected a value at byte 1"),
        ("\"a", "no JSON: a text without its closing quote at byte 3"),
        ("\"\u{1}\"", "no JSON: a control character in a text at byte 2"),
        ("\"\\x\"", "no JSON: an escape that is none at byte 3"),
        ("\"\\ud800\"", "no JSON: half of a surrogate pair at byte 8"),
        ("\"\\u12é\"", "no JSON: expected four hexadecimal digits at byte 4"),
        ("1 1", "no JSON: expected the end of the record at byte 3"),
    ] {
        assert_eq!(parse(text).unwrap_err().to_string(), expected, "{text}");
        assert_eq!(members(text).unwrap_err().to_string(), expected, "{text}");
    }
}

#[test]
fn depth_has_a_limit() {
    let nested = |depth: usize| format!("{}1{}", "[".repeat(depth), "]".repeat(depth));
    assert!(parse(&nested(MAX_DEPTH)).is_ok());
    let error = parse(&nested(100_000)).unwrap_err().to_string();
    assert_eq!(error, "no JSON: arrays and objects nested deeper than 128 at byte 130");
}

proptest! {
    /// The independent parser of serde_json takes and refuses the same texts, and finds the same value.
    #[test]
    fn agrees_with_serde_json(text in "[\\[\\]{}\",:0-9a-eu\\\\ .+-]{0,12}|\\PC{0,8}") {
        let ours = parse(&text);
        let theirs = serde_json::from_str::<serde_json::Value>(&text);
        // A double cannot hold every number.
        let too_large = theirs.as_ref().is_err_and(|error| error.to_string().contains("out of range"));
        prop_assert!(too_large || ours.is_ok() == theirs.is_ok(), "{:?} {:?}", ours, theirs);
        prop_assert_eq!(ours.is_ok(), members(&text).is_ok());
        if let (Ok(ours), Ok(theirs)) = (ours, theirs) {
            let again: serde_json::Value = serde_json::from_str(&ours.to_string()).unwrap();
            prop_assert_eq!(again, theirs);
        }
    }
}
