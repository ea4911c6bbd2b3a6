//! WARC: a document is the text of each conversion record, as in Common Crawl's WET files.
//!
//! A record is a version line, named fields, an empty line, as many bytes as the field
//! `Content-Length` says, and two line ends (ISO 28500). HTML is not extracted, so the responses of
//! a crawl are no documents.

use memchr::memmem;

use super::{MAX_WINDOW_BYTES, OpenFile, Step, WINDOW_BYTES};
use crate::error::{Error, Result};
use crate::memory::append;
use crate::options::OnError;
use crate::utf8;

/// The maximum length of the version and the named fields of a record.
const MAX_HEADER_BYTES: usize = 64 << 10;

const MAGIC: &[u8] = b"WARC/";
const HEADER_END: &[u8] = b"\r\n\r\n";
const RECORD_END: &[u8] = b"\r\n\r\n";

/// What is done with a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// Its content is a document.
    Text,
    /// It is about other records.
    Ignored,
    /// It holds a page as it was sent, or a file.
    Page,
    /// It holds a part of a document.
    Segment,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Header {
    kind: Kind,
    content_bytes: u64,
}

impl OpenFile {
    /// Reads a part of the content of a conversion record.
    pub(super) fn read_content(
        &mut self,
        buffer: &mut Vec<u8>,
        want: usize,
        replace: bool,
    ) -> Result<Step> {
        if !self.is_open_document
            && let Some(step) = self.next_text()?
        {
            return Ok(step);
        }
        if self.content_left > 0 && self.start == self.window.len() {
            self.fill_content(want.min(MAX_WINDOW_BYTES))?;
        }
        let rest = &self.window[self.start..];
        let take = usize::try_from(self.content_left).unwrap_or(usize::MAX).min(rest.len());
        let remaining = if replace {
            let ends = take as u64 == self.content_left;
            utf8::append_replaced(&rest[..take], ends, buffer)?
        } else {
            append(buffer, &rest[..take])?;
            0
        };
        let taken = take - remaining;
        self.consume(taken);
        self.content_left -= taken as u64;
        if self.content_left == 0 {
            self.end_record()?;
            return Ok(self.end_document());
        }
        if taken == 0 {
            self.fill_content(WINDOW_BYTES)?; // the rest is the start of a character
        }
        Ok(Step::More)
    }

    /// Goes to the content of the next conversion record, unless something else comes first.
    fn next_text(&mut self) -> Result<Option<Step>> {
        loop {
            self.document_start = self.offset;
            let length = self.find_header()?;
            if length == 0 {
                return Ok(Some(Step::FileEnd));
            }
            let bytes = &self.window[self.start..self.start + length];
            let header = parse(bytes).map_err(|message| self.invalid_record(&message))?;
            let (message, reason) = match header.kind {
                Kind::Text | Kind::Ignored => ("", ""),
                Kind::Page => (
                    "a response or resource record, and HTML is not extracted here; extract the \
                     text first, for example with trafilatura or datatrove, read the crawl's WET \
                     files instead, or skip such records with on_error='skip' (--on-error skip)",
                    "a response or resource record",
                ),
                Kind::Segment => (
                    "a part of a record in several segments, which is not supported; join the \
                     segments, or skip them with on_error='skip' (--on-error skip)",
                    "a segment of a record",
                ),
            };
            if !message.is_empty() && self.options.on_error != OnError::Skip {
                return Err(self.invalid_record(message));
            }
            self.consume(length);
            self.content_left = header.content_bytes;
            if header.kind == Kind::Text {
                self.document_start = self.offset;
                self.is_open_document = true;
                return Ok(None);
            }
            self.skip_content()?;
            self.end_record()?;
            if !reason.is_empty() {
                return Ok(Some(Step::Skipped(reason.to_owned())));
            }
        }
    }

    /// The length of the next header, with the empty line; 0 at the end of the file.
    fn find_header(&mut self) -> Result<usize> {
        let mut searched = 0;
        loop {
            let rest = &self.window[self.start..];
            let rest = &rest[..rest.len().min(MAX_HEADER_BYTES)];
            if !MAGIC.starts_with(&rest[..rest.len().min(MAGIC.len())]) {
                let found = rest[..rest.len().min(16)].escape_ascii();
                let message = format!("a WARC record starts with 'WARC/', not with '{found}'");
                return Err(self.invalid_record(&message));
            }
            let from = searched - searched.min(HEADER_END.len() - 1);
            if let Some(at) = memmem::find(&rest[from..], HEADER_END) {
                return Ok(from + at + HEADER_END.len());
            }
            searched = rest.len();
            if searched == MAX_HEADER_BYTES {
                let message = format!(
                    "no end of the header of a WARC record in {MAX_HEADER_BYTES} bytes; expected an \
                     empty line, and lines that end in CR LF"
                );
                return Err(self.invalid_record(&message));
            }
            if !self.fill(WINDOW_BYTES)? {
                let rest = &self.window[self.start..];
                if memmem::find(rest, b"\n\n").is_some() {
                    let message = "the lines of a WARC header end in LF; expected CR LF";
                    return Err(self.invalid_record(message));
                }
                return if searched == 0 { Ok(0) } else { Err(self.truncated_record()) };
            }
        }
    }

    /// Discards the content of a record.
    fn skip_content(&mut self) -> Result<()> {
        while self.content_left > 0 {
            if self.start == self.window.len() {
                self.fill_content(WINDOW_BYTES)?;
            }
            let rest = self.window.len() - self.start;
            let skipped = usize::try_from(self.content_left).unwrap_or(usize::MAX).min(rest);
            self.consume(skipped);
            self.content_left -= skipped as u64;
        }
        Ok(())
    }

    /// Takes the two line ends after the content.
    fn end_record(&mut self) -> Result<()> {
        while self.window.len() - self.start < RECORD_END.len() {
            self.fill_content(WINDOW_BYTES)?;
        }
        let found = &self.window[self.start..self.start + RECORD_END.len()];
        if found != RECORD_END {
            let message = format!(
                "the content of a WARC record is followed by '{}'; expected two line ends (CR LF): \
                 its Content-Length is wrong, or the file is damaged",
                found.escape_ascii()
            );
            return Err(self.content(Some(self.offset), &message));
        }
        self.consume(RECORD_END.len());
        Ok(())
    }

    /// Reads more of a record, which must not end here.
    fn fill_content(&mut self, want: usize) -> Result<()> {
        if self.fill(want)? { Ok(()) } else { Err(self.truncated_record()) }
    }

    fn truncated_record(&self) -> Error {
        let message = "the file ends inside a WARC record: it is truncated".to_owned();
        Error::Damaged { path: self.path.to_path_buf(), offset: self.decompressed, message }
    }

    fn invalid_record(&self, message: &str) -> Error {
        self.content(Some(self.offset), message)
    }
}

/// Reads the header of a record, the empty line included.
fn parse(header: &[u8]) -> std::result::Result<Header, String> {
    let header = header.strip_suffix(HEADER_END).unwrap_or(header);
    let mut lines = Lines(Some(header));
    let version = lines.next().unwrap_or_default();
    let number = version.strip_prefix(MAGIC).unwrap_or_default();
    let is_number = |part: &[u8]| !part.is_empty() && part.iter().all(u8::is_ascii_digit);
    let dot = number.iter().position(|&byte| byte == b'.').unwrap_or(number.len());
    if !is_number(&number[..dot]) || !number.get(dot + 1..).is_some_and(is_number) {
        return Err(format!(
            "the version of a WARC record is {}; expected WARC/1.0",
            shown(version)
        ));
    }
    let (mut kind, mut content_bytes, mut is_segment) = (None, None, false);
    let mut is_known = false; // whether the last field is one of those below
    for line in lines {
        if matches!(line.first(), Some(b' ' | b'\t')) {
            if is_known {
                return Err(format!("a WARC field continues in the line {}", shown(line)));
            }
            continue; // the rest of a value that is not needed
        }
        let colon = line.iter().position(|&byte| byte == b':').filter(|&at| at > 0);
        let Some(colon) = colon.filter(|_| !line.contains(&b'\n')) else {
            return Err(format!(
                "a line of a WARC header is {}; expected 'name: value' and CR LF at its end",
                shown(line)
            ));
        };
        let (name, value) = (&line[..colon], line[colon + 1..].trim_ascii());
        is_known = true;
        if name.eq_ignore_ascii_case(b"WARC-Type") {
            if kind.replace(value).is_some() {
                return Err("a WARC record has two fields WARC-Type".to_owned());
            }
        } else if name.eq_ignore_ascii_case(b"Content-Length") {
            let digits = std::str::from_utf8(value).ok().filter(|_| is_number(value));
            let Some(bytes) = digits.and_then(|digits| digits.parse().ok()) else {
                return Err(format!(
                    "the Content-Length of a WARC record is {}; expected a number of bytes",
                    shown(value)
                ));
            };
            if content_bytes.replace(bytes).is_some() {
                return Err("a WARC record has two fields Content-Length".to_owned());
            }
        } else if name.eq_ignore_ascii_case(b"WARC-Segment-Number") {
            is_segment = true;
        } else {
            is_known = false;
        }
    }
    let kind = kind.ok_or("a WARC record has no field WARC-Type")?;
    let content_bytes = content_bytes.ok_or("a WARC record has no field Content-Length")?;
    let is = |name: &[u8]| kind.eq_ignore_ascii_case(name);
    let kind = if is(b"continuation") || is_segment && is(b"conversion") {
        Kind::Segment
    } else if is(b"conversion") {
        Kind::Text
    } else if is(b"response") || is(b"resource") {
        Kind::Page
    } else {
        Kind::Ignored // as the standard demands of unknown types, too
    };
    Ok(Header { kind, content_bytes })
}

/// The start of a text that may be long or binary.
fn shown(text: &[u8]) -> String {
    let start = &text[..text.len().min(60)];
    format!("'{}{}'", start.escape_ascii(), if start.len() < text.len() { "..." } else { "" })
}

/// The lines of a header, which end in CR LF.
struct Lines<'h>(Option<&'h [u8]>);

impl<'h> Iterator for Lines<'h> {
    type Item = &'h [u8];

    fn next(&mut self) -> Option<&'h [u8]> {
        let rest = self.0?;
        let Some(at) = memmem::find(rest, b"\r\n") else { return self.0.take() };
        self.0 = Some(&rest[at + 2..]);
        Some(&rest[..at])
    }
}

#[cfg(test)]
mod tests;
