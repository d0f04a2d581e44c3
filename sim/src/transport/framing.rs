//! Framing of stdio: one JSON value a line, with a bound on the length of a line (mcp.md 1.12).

use tokio::io::{AsyncRead, AsyncReadExt as _};

/// A line from a reader.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Frame {
    /// A line without its line end (`\n` or `\r\n`).
    Line(Vec<u8>),
    /// A line longer than the limit; it was read to its end (or to the end of the input) and dropped.
    Oversized,
}

/// Splits a byte stream into lines. Memory: at most the limit plus one buffer.
#[derive(Debug)]
pub struct Lines<R> {
    reader: R,
    buffer: Box<[u8]>,
    /// Bytes of `buffer` not yet looked at.
    filled: std::ops::Range<usize>,
    line: Vec<u8>,
    overflowing: bool,
    limit: usize,
}

const BUFFER: usize = 64 * 1024;

impl<R: AsyncRead + Unpin> Lines<R> {
    /// Lines of `reader`, at most `limit` bytes each.
    pub fn new(reader: R, limit: usize) -> Self {
        Self {
            reader,
            buffer: vec![0; BUFFER].into_boxed_slice(),
            filled: 0..0,
            line: Vec::new(),
            overflowing: false,
            limit,
        }
    }

    /// The next line; `None` at the end of the input. A last line without a line end counts as a line. Cancel safe:
    /// what was read is kept.
    pub async fn next(&mut self) -> Option<Frame> {
        loop {
            let pending = &self.buffer[self.filled.clone()];
            match pending.iter().position(|byte| *byte == b'\n') {
                Some(at) => {
                    let start = self.filled.start;
                    self.keep(start..start + at);
                    self.filled.start = start + at + 1;
                    return Some(self.finish());
                }
                None => {
                    self.keep(self.filled.clone());
                    self.filled = 0..0;
                }
            }
            match self.reader.read(&mut self.buffer).await {
                Ok(count) if count > 0 => self.filled = 0..count,
                // The end, or a reader that fails: either way nothing more comes.
                _ => {
                    return (!self.line.is_empty() || self.overflowing).then(|| self.finish());
                }
            }
        }
    }

    /// Whether a whole line is at hand without reading on.
    pub fn has_buffered_line(&self) -> bool {
        self.buffer[self.filled.clone()].contains(&b'\n')
    }

    fn keep(&mut self, range: std::ops::Range<usize>) {
        if self.overflowing || self.line.len() + range.len() > self.limit {
            self.overflowing = true;
            self.line = Vec::new();
        } else {
            self.line.extend_from_slice(&self.buffer[range]);
        }
    }

    fn finish(&mut self) -> Frame {
        if std::mem::take(&mut self.overflowing) {
            return Frame::Oversized;
        }
        let mut line = std::mem::take(&mut self.line);
        if line.last() == Some(&b'\r') {
            line.pop();
        }
        Frame::Line(line)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn frames(text: &[u8], limit: usize) -> Vec<Frame> {
        let mut lines = Lines::new(text, limit);
        let mut all = Vec::new();
        while let Some(frame) = lines.next().await {
            all.push(frame);
        }
        all
    }

    #[tokio::test]
    async fn lines_are_split_and_bounded() {
        let line = |text: &str| Frame::Line(text.as_bytes().to_vec());
        assert_eq!(frames(b"a\r\nb\n\nc", 10).await, [line("a"), line("b"), line(""), line("c")]);
        assert_eq!(frames(b"12345\nab\n", 4).await, [Frame::Oversized, line("ab")]);
        assert_eq!(frames(b"12345", 4).await, [Frame::Oversized]);
        assert_eq!(frames(b"1234\n", 4).await, [line("1234")]);
        let long = vec![b'x'; 300_000];
        assert_eq!(frames(&long, 200_000).await, [Frame::Oversized]);
    }
}
