//! A minimal JSON cursor: finds two values in a document and reads the strings and numbers in them.
//!
//! Skipped values are not validated here; the caller parses them with a full JSON parser.

use super::ranks::read_rank;

/// A position in JSON text. Methods return `None` where the text is not as expected.
pub(super) struct Cursor<'t> {
    text: &'t str,
    pub(super) at: usize,
}

impl<'t> Cursor<'t> {
    pub(super) fn new(text: &'t str) -> Self {
        Self { text, at: 0 }
    }

    fn bytes(&self) -> &'t [u8] {
        &self.text.as_bytes()[self.at..]
    }

    /// Skips white space and returns the next byte without consuming it.
    pub(super) fn peek(&mut self) -> Option<u8> {
        let rest = self.bytes();
        let space = rest.iter().position(|byte| !matches!(byte, b' ' | b'\n' | b'\r' | b'\t'))?;
        self.at += space;
        Some(rest[space])
    }

    /// Consumes white space and then this byte.
    pub(super) fn take(&mut self, byte: u8) -> Option<()> {
        (self.peek()? == byte).then(|| self.at += 1)
    }

    /// Advances to the next item of an open list or object, past a comma; false past its end.
    pub(super) fn next_item(&mut self, is_first: bool, end: u8) -> Option<bool> {
        let byte = self.peek()?;
        if byte == end {
            self.at += 1;
            return Some(false);
        }
        if !is_first {
            self.take(b',')?;
        }
        Some(true)
    }

    /// Consumes a string and appends it to `out`.
    pub(super) fn string(&mut self, out: &mut Vec<u8>) -> Option<()> {
        self.take(b'"')?;
        loop {
            let rest = self.bytes();
            let plain =
                rest.iter().position(|&byte| byte < 0x20 || matches!(byte, b'"' | b'\\'))?;
            out.extend_from_slice(&rest[..plain]);
            self.at += plain + 1;
            match rest[plain] {
                b'"' => return Some(()),
                b'\\' => self.escape(out)?,
                _ => return None,
            }
        }
    }

    /// Consumes the rest of an escape sequence, after the backslash.
    fn escape(&mut self, out: &mut Vec<u8>) -> Option<()> {
        let byte = *self.bytes().first()?;
        self.at += 1;
        let character = match byte {
            b'"' | b'\\' | b'/' => char::from(byte),
            b'b' => '\u{8}',
            b'f' => '\u{C}',
            b'n' => '\n',
            b'r' => '\r',
            b't' => '\t',
            b'u' => {
                let unit = self.code_unit()?;
                match unit {
                    0xD800..0xDC00 => {
                        let low = self.bytes().strip_prefix(b"\\u").is_some();
                        self.at += 2 * usize::from(low);
                        let low = if low { self.code_unit()? } else { return None };
                        char::decode_utf16([unit, low]).next()?.ok()?
                    }
                    _ => char::from_u32(u32::from(unit))?, // `None` for a low surrogate
                }
            }
            _ => return None,
        };
        out.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
        Some(())
    }

    fn code_unit(&mut self) -> Option<u16> {
        let digits = self.bytes().get(..4)?;
        self.at += 4;
        digits
            .iter()
            .try_fold(0, |unit, &digit| Some(unit << 4 | char::from(digit).to_digit(16)? as u16))
    }

    /// Consumes an id: digits only.
    pub(super) fn id(&mut self) -> Option<u32> {
        self.peek()?;
        let rest = self.bytes();
        let digits = &rest[..rest.iter().take(11).take_while(|byte| byte.is_ascii_digit()).count()];
        self.at += digits.len();
        read_rank(digits)
    }

    /// Skips a value.
    pub(super) fn skip(&mut self) -> Option<()> {
        let mut depth = 0usize;
        loop {
            match self.peek()? {
                b'"' => self.skip_string()?,
                b'{' | b'[' => {
                    depth += 1;
                    self.at += 1;
                    continue;
                }
                b'}' | b']' => {
                    depth = depth.checked_sub(1)?;
                    self.at += 1;
                }
                b',' | b':' if depth > 0 => {
                    self.at += 1;
                    continue;
                }
                _ => {
                    let rest = self.bytes();
                    let word = rest
                        .iter()
                        .position(|byte| {
                            !matches!(byte, b'-' | b'+' | b'.') && !byte.is_ascii_alphanumeric()
                        })
                        .filter(|&length| length > 0)?;
                    self.at += word;
                }
            }
            if depth == 0 {
                return Some(());
            }
        }
    }

    fn skip_string(&mut self) -> Option<()> {
        self.at += 1;
        loop {
            let rest = self.bytes();
            let plain = memchr::memchr2(b'"', b'\\', rest)?;
            self.at += plain + 1;
            if rest[plain] == b'"' {
                return Some(());
            }
            // In valid JSON the escaped character is ASCII; otherwise `at` may be inside a
            // character.
            self.at += 1;
            if !self.text.is_char_boundary(self.at) {
                return None;
            }
        }
    }
}
