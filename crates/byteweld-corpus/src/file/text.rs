//! Text files: a document is the file, a line, or the text between two separators.

use memchr::memmem;

use super::{MAX_WINDOW_BYTES, OpenFile, Step, WINDOW_BYTES};
use crate::error::Result;
use crate::memory::append;
use crate::options::Unit;
use crate::utf8;

impl OpenFile {
    /// Reads a part of a text document.
    pub(super) fn read_text(
        &mut self,
        buffer: &mut Vec<u8>,
        want: usize,
        replace: bool,
    ) -> Result<Step> {
        if !self.is_open_document {
            self.document_start = self.offset;
        }
        let is_whole = matches!(self.options.unit, Unit::File);
        if is_whole && !replace && self.start == self.window.len() {
            // The file is not searched, so it bypasses the window.
            let before = buffer.len();
            if self.read_into(buffer, want)? {
                self.offset += (buffer.len() - before) as u64;
                self.is_open_document = true;
                return Ok(Step::More);
            }
        }
        if self.start == self.window.len() && !self.fill(want.min(MAX_WINDOW_BYTES))? {
            // The end of the file ends an open document; an empty file is a document, too.
            let is_document = self.is_open_document || (is_whole && !self.has_ended);
            return Ok(if is_document { self.end_document() } else { Step::FileEnd });
        }
        let rest = &self.window[self.start..];
        let (take, skip, ends) = match &self.options.unit {
            Unit::File => (rest.len(), 0, false),
            Unit::Line => match memchr::memchr(b'\n', rest) {
                Some(at) => (at + 1, 0, true),
                None => (rest.len(), 0, false),
            },
            Unit::Separator(separator) => match memmem::find(rest, separator) {
                Some(at) => (at, separator.len(), true),
                // A separator may start in the last bytes.
                None if self.at_end => (rest.len(), 0, false),
                None => (rest.len().saturating_sub(separator.len() - 1), 0, false),
            },
        };
        let remaining = if replace {
            utf8::append_replaced(&rest[..take], ends || self.at_end, buffer)?
        } else {
            append(buffer, &rest[..take])?;
            0
        };
        let taken = take - remaining;
        self.consume(taken);
        if ends {
            self.consume(skip);
            return Ok(self.end_document());
        }
        self.is_open_document |= taken > 0;
        if taken == 0 {
            self.fill(WINDOW_BYTES)?; // the rest is the start of a character or of a separator
        }
        Ok(Step::More)
    }
}
