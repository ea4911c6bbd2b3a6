//! JSON lines: a document is one field of each record.

use super::valid::NOT_UTF8;
use super::{OpenFile, Step, WINDOW_BYTES};
use crate::error::{Error, Result};
use crate::json;
use crate::memory::append;
use crate::options::OnError;
use crate::utf8;

/// Some programs write it at the start of a file; it is not part of the first record.
const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";

impl OpenFile {
    /// Reads the text of the next JSON record, skipping empty lines.
    pub(super) fn read_record(&mut self, buffer: &mut Vec<u8>) -> Result<Step> {
        let limit = self.options.limits.record_bytes;
        let on_error = self.options.on_error;
        let start = buffer.len();
        let found = loop {
            self.document_start = self.offset;
            let Some(length) = self.find_line(limit)? else {
                self.line += 1;
                if on_error == OnError::Skip {
                    self.drain_line()?;
                    return Ok(Step::Skipped("too large".to_owned()));
                }
                let line = Some(self.line);
                return Err(self.too_large(line, "the record is too long", limit, "skip it"));
            };
            if length == 0 {
                return Ok(Step::FileEnd);
            }
            self.line += 1;
            let mut record = &self.window[self.start..self.start + length];
            if self.offset == 0 {
                record = record.strip_prefix(BYTE_ORDER_MARK).unwrap_or(record);
            }
            let is_empty = record.trim_ascii().is_empty();
            let found = if is_empty { Ok(()) } else { text(record, &self.options.field, buffer)? };
            self.consume(length);
            if !is_empty {
                break found;
            }
        };
        let is_utf8 = std::str::from_utf8(&buffer[start..]).is_ok();
        match (found, on_error) {
            (Ok(()), _) if is_utf8 => {}
            (Ok(()), OnError::Replace) => {
                let mut text = Vec::new();
                append(&mut text, &buffer[start..])?;
                if utf8::replaced_length(&text) > limit {
                    let found = "the text is too long after replacing what is not UTF-8";
                    return Err(self.too_large(Some(self.line), found, limit, "skip it"));
                }
                buffer.truncate(start);
                utf8::append_replaced(&text, true, buffer)?;
            }
            (Ok(()), OnError::Skip) => {
                buffer.truncate(start);
                return Ok(Step::Skipped(NOT_UTF8.to_owned()));
            }
            (Ok(()), OnError::Fail) => {
                buffer.truncate(start);
                let message = "the text is not UTF-8 (an invalid byte or a lone surrogate); pass \
                               on_error='replace' or 'skip' (--on-error)";
                return Err(self.content(Some(self.document_start), message));
            }
            (Err(invalid), OnError::Skip) => {
                return Ok(Step::Skipped(invalid.reason(&self.options.field)));
            }
            (Err(invalid), _) => {
                let message = invalid.message(&self.options.field);
                let message = format!("{message}; or pass on_error='skip' (--on-error skip)");
                return Err(self.content(Some(self.document_start), &message));
            }
        }
        Ok(Step::DocumentEnd)
    }

    /// The length of the next line, its ending included; 0 at the end of the file, and `None` if it
    /// is longer than `limit`.
    fn find_line(&mut self, limit: usize) -> Result<Option<usize>> {
        let mut searched = 0;
        loop {
            let rest = &self.window[self.start..];
            if let Some(at) = memchr::memchr(b'\n', &rest[searched..]) {
                let length = searched + at + 1;
                return Ok((length <= limit).then_some(length));
            }
            searched = rest.len();
            if searched > limit {
                return Ok(None);
            }
            // Double the window, so that one long line takes linear time.
            let want = WINDOW_BYTES.max(searched).min(limit - searched + 1);
            if !self.fill(want)? {
                return Ok(Some(searched));
            }
        }
    }

    /// Reads on to the end of a line without holding it.
    fn drain_line(&mut self) -> Result<()> {
        loop {
            let rest = &self.window[self.start..];
            let found = memchr::memchr(b'\n', rest);
            self.consume(found.map_or(rest.len(), |at| at + 1));
            if found.is_some() || !self.fill(WINDOW_BYTES)? {
                return Ok(());
            }
        }
    }
}

/// Appends the text of a record.
fn text(
    record: &[u8],
    field: &str,
    buffer: &mut Vec<u8>,
) -> Result<std::result::Result<(), json::Invalid>> {
    Ok(match json::field(record, field) {
        Ok(text) => Ok(json::unescape(text, buffer).map_err(|_| Error::OutOfMemory)?),
        Err(invalid) => Err(invalid),
    })
}
