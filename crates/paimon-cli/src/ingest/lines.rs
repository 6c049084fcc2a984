//! An input as lines, a chunk at a time, with their places.

use std::io::{ErrorKind, Read};
use std::ops::Range;

/// Bytes asked for at once.
const READ_BYTES: usize = 256 << 10;

/// The lines of an input. Holds at most the longest line that is allowed, and what is read at once.
pub(super) struct Lines {
    reader: Box<dyn Read + Send>,
    /// The beginning of a line whose end was not read yet.
    tail: Vec<u8>,
    /// The byte of the input where `tail` begins.
    offset: u64,
    /// Where the line began that is too long and is being passed.
    passing: Option<u64>,
    max_bytes: usize,
    ended: bool,
}

/// Some whole lines.
#[derive(Debug)]
pub(super) struct Chunk {
    bytes: Vec<u8>,
    pub(super) lines: Vec<Line>,
}

/// A line: its place in the input, the end of the line included, and its text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Line {
    pub(super) start: u64,
    pub(super) end: u64,
    /// In the chunk, without the end of the line; `None`: it is too long and was not kept.
    text: Option<Range<usize>>,
}

impl Chunk {
    /// The text of a line of this chunk; `None`: it was too long.
    pub(super) fn text(&self, line: &Line) -> Option<&[u8]> {
        line.text.clone().and_then(|range| self.bytes.get(range))
    }
}

impl Lines {
    /// From a reader that stands at this byte of the input, which begins a line.
    pub(super) fn new(reader: Box<dyn Read + Send>, offset: u64, max_bytes: usize) -> Self {
        Self {
            reader,
            tail: Vec::new(),
            offset,
            passing: None,
            max_bytes,
            ended: false,
        }
    }

    /// The next lines: at least one, and all that one read brought. `None` at the end. A last line needs no end of line. Blocks.
    pub(super) fn next_chunk(&mut self) -> std::io::Result<Option<Chunk>> {
        while !self.ended {
            let mut bytes = std::mem::take(&mut self.tail);
            let old = bytes.len();
            bytes.resize(old + READ_BYTES, 0);
            let read = self.read(bytes.get_mut(old..).unwrap_or_default())?;
            bytes.truncate(old + read);
            self.ended = read == 0;
            let chunk = self.cut(bytes, old);
            if !chunk.lines.is_empty() {
                return Ok(Some(chunk));
            }
        }
        Ok(None)
    }

    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        loop {
            match self.reader.read(into) {
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                read => return read,
            }
        }
    }

    /// Cuts bytes that begin at `offset` into lines; the first `searched` have no end of a line. Keeps the rest.
    fn cut(&mut self, mut bytes: Vec<u8>, searched: usize) -> Chunk {
        let base = self.offset;
        let place = |position: usize| base + position as u64;
        let mut lines = Vec::new();
        let (mut start, mut from) = (0, searched);
        loop {
            let unread = bytes.get(from..).unwrap_or_default();
            let end = match unread.iter().position(|byte| *byte == b'\n') {
                Some(at) => from + at,
                None if self.ended && (start < bytes.len() || self.passing.is_some()) => bytes.len(),
                None => break,
            };
            let begun = self.passing.take();
            let text_end = match bytes.get(start..end) {
                Some([.., b'\r']) => end - 1,
                _ => end,
            };
            let next = (end + 1).min(bytes.len());
            lines.push(Line {
                start: begun.unwrap_or(place(start)),
                end: place(next),
                text: (begun.is_none() && text_end - start <= self.max_bytes).then_some(start..text_end),
            });
            (start, from) = (next, next);
        }
        if self.passing.is_none() && bytes.len() - start > self.max_bytes {
            self.passing = Some(place(start));
        }
        if self.passing.is_some() {
            start = bytes.len();
        }
        self.offset = place(start);
        match lines.is_empty() && start == 0 {
            true => self.tail = std::mem::take(&mut bytes),
            false => self.tail = bytes.get(start..).unwrap_or_default().to_vec(),
        }
        Chunk { bytes, lines }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Gives its bytes in pieces of this size.
    struct Pieces(Vec<u8>, usize);

    impl Read for Pieces {
        fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
            let count = self.1.min(self.0.len()).min(into.len());
            into[..count].copy_from_slice(&self.0[..count]);
            self.0.drain(..count);
            Ok(count)
        }
    }

    /// (start, end, text or `None`)
    fn lines(text: &str, piece: usize, max_bytes: usize) -> Vec<(u64, u64, Option<String>)> {
        let mut lines = Lines::new(Box::new(Pieces(text.as_bytes().to_vec(), piece)), 100, max_bytes);
        let mut found = Vec::new();
        while let Some(chunk) = lines.next_chunk().unwrap() {
            for line in &chunk.lines {
                let text = chunk.text(line).map(|text| String::from_utf8(text.to_vec()).unwrap());
                found.push((line.start, line.end, text));
            }
        }
        found
    }

    #[test]
    fn lines_have_places_however_they_are_read() {
        for piece in 1..20 {
            let some = |text: &str| Some(text.to_owned());
            assert_eq!(
                lines("ab\r\n\ncde", piece, 3),
                [(100, 104, some("ab")), (104, 105, some("")), (105, 108, some("cde"))]
            );
            assert_eq!(lines("a\n", piece, 3), [(100, 102, some("a"))]);
            assert_eq!(lines("", piece, 3), []);
        }
    }

    #[test]
    fn a_line_that_is_too_long_is_passed() {
        for piece in 1..20 {
            assert_eq!(
                lines("123456789\nab\n1234", piece, 3),
                [(100, 110, None), (110, 113, Some("ab".to_owned())), (113, 117, None)],
                "{piece}"
            );
            assert_eq!(lines("123456789\n", piece, 3), [(100, 110, None)]);
        }
    }
}
