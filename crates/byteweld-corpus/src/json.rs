//! Finds one string field of a JSON record, without copying anything or building the rest.
//!
//! A record may be as large as memory allows, so nothing is allocated here except the text itself,
//! by [`unescape`], in a way that can fail.

use std::collections::TryReserveError;

use memchr::memchr2;

/// The maximum nesting of the values beside the text.
const MAX_DEPTH: usize = 4096;

/// Why a record has no text.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Invalid {
    /// It is not a JSON object: what was expected at which column, counted from 1.
    NotJson { expected: &'static str, column: usize },
    /// It has no such field.
    NoField,
    /// The field is null.
    Null,
    /// The field is something else than a string: what.
    NotString(&'static str),
}

impl Invalid {
    /// Why, in a few words.
    pub(crate) fn reason(&self, name: &str) -> String {
        match self {
            Self::NotJson { expected, column } => {
                format!("not JSON: expected {expected} at column {column}")
            }
            Self::NoField => format!("no field {name:?}"),
            Self::Null => "the field is null".to_owned(),
            Self::NotString(found) => format!("the field is {found}, not a string"),
        }
    }

    /// What was found, and what to do.
    pub(crate) fn message(&self, name: &str) -> String {
        match self {
            Self::NotJson { expected, column } => {
                format!("cannot parse the record: expected {expected} at column {column}")
            }
            Self::NoField => format!(
                "the record has no field {name:?}; pass the field of the text as field= (--field)"
            ),
            Self::Null => format!("the field {name:?} is null; expected a string"),
            Self::NotString(found) => format!("the field {name:?} is {found}; expected a string"),
        }
    }
}

/// The content of a record's string field, with its escapes. Of several fields with the same name,
/// the last one counts. The text may contain control characters and need not be UTF-8.
pub(crate) fn field<'r>(record: &'r [u8], name: &str) -> Result<&'r [u8], Invalid> {
    let mut parser = Parser { record, at: 0, other: None };
    match parser.record(name) {
        Ok(found) => found.ok_or(Invalid::NoField),
        Err(expected) => {
            let column = parser.at + 1;
            Err(parser.other.unwrap_or(Invalid::NotJson { expected, column }))
        }
    }
}

/// Appends the text of a string with escapes. A lone surrogate becomes its three bytes, which are
/// not UTF-8.
pub(crate) fn unescape(escaped: &[u8], out: &mut Vec<u8>) -> Result<(), TryReserveError> {
    out.try_reserve(escaped.len())?; // no escape is shorter than what it stands for
    for_each_part(escaped, &mut |part| out.extend_from_slice(part));
    Ok(())
}

/// Calls `each` with the parts of a valid string, escapes resolved.
fn for_each_part(escaped: &[u8], each: &mut dyn FnMut(&[u8])) {
    let mut rest = escaped;
    while let Some(at) = memchr::memchr(b'\\', rest) {
        each(&rest[..at]);
        let Some((&kind, after)) = rest[at + 1..].split_first() else { return };
        rest = after;
        let short = match kind {
            b'b' => 0x08,
            b'f' => 0x0C,
            b'n' => b'\n',
            b'r' => b'\r',
            b't' => b'\t',
            b'u' => {
                let (code, length) = code_point(rest);
                let mut bytes = [0; 4];
                each(encode(code, &mut bytes));
                rest = &rest[length.min(rest.len())..];
                continue;
            }
            other => other,
        };
        each(&[short]);
    }
    each(rest);
}

/// The code point of the text after `\u`, and the length of that text.
fn code_point(text: &[u8]) -> (u32, usize) {
    let unit = |from: usize| {
        let digits = std::str::from_utf8(text.get(from..from + 4)?).ok()?;
        u32::from_str_radix(digits, 16).ok()
    };
    let first = unit(0).unwrap_or(0xFFFD);
    if (0xD800..0xDC00).contains(&first)
        && text.get(4..6) == Some(b"\\u")
        && let Some(second @ 0xDC00..0xE000) = unit(6)
    {
        return (0x1_0000 + ((first - 0xD800) << 10) + (second - 0xDC00), 10);
    }
    (first, 4)
}

/// The bytes of a code point; those of a surrogate are not UTF-8.
fn encode(code: u32, bytes: &mut [u8; 4]) -> &[u8] {
    match char::from_u32(code) {
        Some(character) => character.encode_utf8(bytes).as_bytes(),
        None => {
            let low = |shift: u32| 0x80 | (code >> shift & 0x3F) as u8;
            bytes[..3].copy_from_slice(&[0xE0 | (code >> 12) as u8, low(6), low(0)]);
            &bytes[..3]
        }
    }
}

/// A position in a record. Errors say what was expected at that position.
struct Parser<'r> {
    record: &'r [u8],
    at: usize,
    /// What the field holds, if that is why parsing ended.
    other: Option<Invalid>,
}

type Parsed<T> = Result<T, &'static str>;

impl<'r> Parser<'r> {
    fn record(&mut self, name: &str) -> Parsed<Option<&'r [u8]>> {
        self.skip_space();
        self.expect(b'{', "an object")?;
        self.skip_space();
        let mut found = None;
        if !self.take(b'}') {
            loop {
                self.skip_space();
                if self.key(name)? {
                    if self.peek() != Some(b'"') {
                        self.other = self.other_value();
                        return Err("a value");
                    }
                    found = Some(self.string(false)?);
                } else {
                    self.skip_value()?;
                }
                self.skip_space();
                if !self.take(b',') {
                    self.expect(b'}', "',' or '}'")?;
                    break;
                }
            }
        }
        self.skip_space();
        if self.at < self.record.len() { Err("the end of the record") } else { Ok(found) }
    }

    /// Names the value here, which is not a string.
    fn other_value(&self) -> Option<Invalid> {
        Some(match self.peek()? {
            b'n' if self.record[self.at..].starts_with(b"null") => Invalid::Null,
            b't' | b'f' => Invalid::NotString("true or false"),
            b'-' | b'0'..=b'9' => Invalid::NotString("a number"),
            b'[' => Invalid::NotString("a list"),
            b'{' => Invalid::NotString("an object"),
            _ => return None,
        })
    }

    /// Takes a key with its colon; whether it is `name`.
    fn key(&mut self, name: &str) -> Parsed<bool> {
        if self.peek() != Some(b'"') {
            return Err("a key");
        }
        let (mut rest, mut is_name, mut is_text) = (name.as_bytes(), true, true);
        for_each_part(self.string(true)?, &mut |part| {
            is_text &= std::str::from_utf8(part).is_ok();
            match rest.strip_prefix(part) {
                Some(after) => rest = after,
                None => is_name = false,
            }
        });
        if !is_text {
            return Err("UTF-8 before the end of the key");
        }
        self.colon()?;
        Ok(is_name && rest.is_empty())
    }

    /// Takes a key with its colon in an object that is skipped.
    fn skip_key(&mut self) -> Parsed<()> {
        if self.peek() != Some(b'"') {
            return Err("a key");
        }
        self.string(true)?;
        self.colon()
    }

    fn colon(&mut self) -> Parsed<()> {
        self.skip_space();
        self.expect(b':', "':'")?;
        self.skip_space();
        Ok(())
    }

    /// Takes a value of any kind.
    fn skip_value(&mut self) -> Parsed<()> {
        let mut is_object = [0_u64; MAX_DEPTH / 64]; // one bit for each open bracket
        let mut depth = 0;
        loop {
            match self.peek() {
                Some(b'"') => drop(self.string(true)?),
                Some(b't') => self.literal(b"true")?,
                Some(b'f') => self.literal(b"false")?,
                Some(b'n') => self.literal(b"null")?,
                Some(b'-' | b'0'..=b'9') => self.number()?,
                Some(open @ (b'[' | b'{')) => {
                    self.at += 1;
                    self.skip_space();
                    if !self.take(if open == b'[' { b']' } else { b'}' }) {
                        let bits = is_object.get_mut(depth / 64).ok_or("less nesting")?;
                        let bit = 1 << (depth % 64);
                        *bits = if open == b'{' { *bits | bit } else { *bits & !bit };
                        depth += 1;
                        if open == b'{' {
                            self.skip_key()?;
                        }
                        continue;
                    }
                }
                _ => return Err("a value"),
            }
            // A value has ended: close brackets up to the next one.
            loop {
                let Some(top) = depth.checked_sub(1) else { return Ok(()) };
                let in_object = is_object[top / 64] >> (top % 64) & 1 == 1;
                self.skip_space();
                if self.take(b',') {
                    self.skip_space();
                    if in_object {
                        self.skip_key()?;
                    }
                    break;
                }
                if in_object {
                    self.expect(b'}', "',' or '}'")?;
                } else {
                    self.expect(b']', "',' or ']'")?;
                }
                depth -= 1;
            }
        }
    }

    /// Takes a string; returns its content. A strict string has no control characters.
    fn string(&mut self, is_strict: bool) -> Parsed<&'r [u8]> {
        self.at += 1;
        let start = self.at;
        loop {
            let rest = &self.record[self.at..];
            let Some(length) = memchr2(b'"', b'\\', rest) else {
                self.at = self.record.len();
                return Err("the end of the string");
            };
            if is_strict && let Some(at) = rest[..length].iter().position(|&byte| byte < 0x20) {
                self.at += at;
                return Err("an escape instead of a control character");
            }
            self.at += length + 1;
            if rest[length] == b'"' {
                return Ok(&self.record[start..self.at - 1]);
            }
            match self.peek() {
                Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => self.at += 1,
                Some(b'u') => {
                    self.at += 1;
                    for _ in 0..4 {
                        if !self.peek().is_some_and(|digit| digit.is_ascii_hexdigit()) {
                            return Err("four hexadecimal digits");
                        }
                        self.at += 1;
                    }
                }
                _ => return Err("an escape"),
            }
        }
    }

    fn number(&mut self) -> Parsed<()> {
        self.take(b'-');
        if !self.take(b'0') {
            self.digits()?;
        }
        if self.take(b'.') {
            self.digits()?;
        }
        if self.take(b'e') || self.take(b'E') {
            let _ = self.take(b'+') || self.take(b'-');
            self.digits()?;
        }
        Ok(())
    }

    fn digits(&mut self) -> Parsed<()> {
        let start = self.at;
        while self.peek().is_some_and(|digit| digit.is_ascii_digit()) {
            self.at += 1;
        }
        if self.at > start { Ok(()) } else { Err("a digit") }
    }

    fn literal(&mut self, text: &[u8]) -> Parsed<()> {
        if !self.record[self.at..].starts_with(text) {
            return Err("a value");
        }
        self.at += text.len();
        Ok(())
    }

    fn skip_space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    fn peek(&self) -> Option<u8> {
        self.record.get(self.at).copied()
    }

    fn take(&mut self, byte: u8) -> bool {
        let is_next = self.peek() == Some(byte);
        self.at += usize::from(is_next);
        is_next
    }

    fn expect(&mut self, byte: u8, expected: &'static str) -> Parsed<()> {
        if self.take(byte) { Ok(()) } else { Err(expected) }
    }
}

#[cfg(test)]
mod tests;
