//! JSON as Java writes it: Jackson's default pretty printer.

use std::io::{self, Write};

use serde::Serialize;
use serde_json::ser::{Formatter, Serializer};

use crate::error::{ManifestError, Result};

/// Objects one key a line, two spaces a level, `"key" : value`; arrays on one line, `[ a, b ]`.
#[derive(Default)]
struct JacksonFormatter {
    depth: usize,
    has_value: bool,
}

impl JacksonFormatter {
    fn new_line<W: ?Sized + Write>(&self, writer: &mut W) -> io::Result<()> {
        writer.write_all(b"\n")?;
        (0..self.depth).try_for_each(|_| writer.write_all(b"  "))
    }
}

impl Formatter for JacksonFormatter {
    fn begin_array<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.has_value = false;
        writer.write_all(b"[")
    }

    fn begin_array_value<W: ?Sized + Write>(&mut self, writer: &mut W, first: bool) -> io::Result<()> {
        writer.write_all(if first { b" " } else { b", " })
    }

    fn end_array_value<W: ?Sized + Write>(&mut self, _writer: &mut W) -> io::Result<()> {
        self.has_value = true;
        Ok(())
    }

    fn end_array<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        writer.write_all(b" ]")
    }

    fn begin_object<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.depth += 1;
        self.has_value = false;
        writer.write_all(b"{")
    }

    fn begin_object_key<W: ?Sized + Write>(&mut self, writer: &mut W, first: bool) -> io::Result<()> {
        if !first {
            writer.write_all(b",")?;
        }
        self.new_line(writer)
    }

    fn begin_object_value<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        writer.write_all(b" : ")
    }

    fn end_object_value<W: ?Sized + Write>(&mut self, _writer: &mut W) -> io::Result<()> {
        self.has_value = true;
        Ok(())
    }

    fn end_object<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.depth -= 1;
        if self.has_value {
            self.new_line(writer)?;
        } else {
            writer.write_all(b" ")?;
        }
        writer.write_all(b"}")
    }
}

/// The text of a metadata file.
pub(crate) fn to_pretty_json<T: Serialize>(value: &T) -> Result<String> {
    let mut bytes = Vec::new();
    value
        .serialize(&mut Serializer::with_formatter(&mut bytes, JacksonFormatter::default()))
        .map_err(|error| ManifestError::invalid(format!("not representable as JSON: {error}")))?;
    String::from_utf8(bytes).map_err(|error| ManifestError::invalid(format!("not representable as JSON: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn looks_like_jackson() {
        let value = serde_json::json!({"a": 1, "b": [], "c": {}, "d": ["x", "y"], "e": [{"f": 1}, {"g": []}], "h": {"i": {"j": null}}});
        let text = to_pretty_json(&value).unwrap();
        let expected = r#"{
  "a" : 1,
  "b" : [ ],
  "c" : { },
  "d" : [ "x", "y" ],
  "e" : [ {
    "f" : 1
  }, {
    "g" : [ ]
  } ],
  "h" : {
    "i" : {
      "j" : null
    }
  }
}"#;
        assert_eq!(text, expected);
    }
}
