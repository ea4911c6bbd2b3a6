//! A strict JSON reader: no repeated keys, no NaN, no lone surrogates, and bounded nesting.

use crate::error::{Error, Result};

/// How deep values may be nested; reading and dropping them is recursive.
const MAX_DEPTH: usize = 100;

/// How many characters a number may have.
const MAX_NUMBER: usize = 1000;

/// How many characters of a value errors show.
const SHOWN: usize = 200;

/// Any value.
pub(super) struct Value<'t> {
    /// As it is written.
    text: &'t str,
    pub(super) kind: Kind<'t>,
}

pub(super) enum Kind<'t> {
    Null,
    Bool(bool),
    Number,
    String(String),
    List(Vec<Value<'t>>),
    Object(Object<'t>),
}

/// Keys and values in order.
pub(super) type Object<'t> = Vec<(String, Value<'t>)>;

impl Value<'_> {
    /// A number; NaN for any other value.
    pub(super) fn number(&self) -> f64 {
        self.text.parse().unwrap_or(f64::NAN)
    }

    /// An id: an integer without a sign.
    pub(super) fn id(&self) -> Option<u32> {
        self.text.parse().ok().filter(|&id| id < u32::MAX)
    }

    /// How errors show it: shortened, in one line.
    pub(super) fn show(&self) -> String {
        let start: String = self.text.chars().take(2 * SHOWN).collect();
        printable(&start.lines().map(str::trim_start).collect::<Vec<_>>().join(" "))
    }
}

/// How errors show a string.
pub(super) fn show(text: &str) -> String {
    format!("'{}'", printable(text))
}

fn printable(text: &str) -> String {
    let mut shown = String::new();
    for (number, character) in text.chars().enumerate() {
        match character {
            _ if number == SHOWN => return shown + "...",
            '"' | '\'' | '\\' => shown.push(character),
            other => shown.extend(other.escape_debug()),
        }
    }
    shown
}

/// The error of a file that is not what it claims to be.
pub(super) fn wrong(message: String) -> Error {
    Error::Format { message, offset: None }
}

/// A position in a file.
pub(super) struct Reader<'t> {
    text: &'t str,
    pub(super) at: usize,
}

impl<'t> Reader<'t> {
    pub(super) fn new(data: &'t [u8]) -> Result<Self> {
        let text = std::str::from_utf8(data).map_err(|error| {
            let start = error.valid_up_to();
            let found = data[start..(start + error.error_len().unwrap_or(1))].escape_ascii();
            let message = format!("expected UTF-8, found b'{found}'");
            Error::Format { message, offset: Some(start as u64) }
        })?;
        Ok(Self { text, at: 0 })
    }

    pub(super) fn rest(&self) -> &'t [u8] {
        &self.text.as_bytes()[self.at..]
    }

    /// The error of text that is not JSON, or not what must be here.
    #[cold]
    pub(super) fn fail(&self, expected: &str) -> Error {
        let rest = self.text.get(self.at..).unwrap_or_default();
        let is_word = |character: &char| character.is_ascii_alphanumeric();
        let mut found: String = rest.chars().take_while(is_word).take(20).collect();
        if found.is_empty() {
            found = rest.chars().take(1).collect();
        }
        let found = if found.is_empty() { "the end".to_owned() } else { show(&found) };
        let message = format!("expected JSON: {expected}, found {found}");
        Error::Format { message, offset: Some(self.at as u64) }
    }

    /// Skips white space and returns the next byte without consuming it.
    pub(super) fn peek(&mut self) -> Option<u8> {
        let rest = self.rest();
        let space = rest.iter().position(|byte| !matches!(byte, b' ' | b'\n' | b'\r' | b'\t'));
        self.at += space.unwrap_or(rest.len());
        rest.get(space?).copied()
    }

    /// Consumes white space and then this byte.
    pub(super) fn take(&mut self, byte: u8) -> Result<()> {
        if self.peek() != Some(byte) {
            return Err(self.fail(&format!("expected {:?}", char::from(byte))));
        }
        self.at += 1;
        Ok(())
    }

    /// Consumes the white space that ends the file.
    pub(super) fn end(&mut self) -> Result<()> {
        if self.peek().is_some() { Err(self.fail("expected the end of the file")) } else { Ok(()) }
    }

    /// Advances to the next item of an open list or object, past a comma; false past its end.
    pub(super) fn next_item(&mut self, is_first: bool, end: u8) -> Result<bool> {
        if self.peek() == Some(end) {
            self.at += 1;
            return Ok(false);
        }
        if !is_first {
            self.take(b',')?;
        }
        Ok(true)
    }

    /// Calls `each` with every key of an object; it must consume the value.
    pub(super) fn members(
        &mut self,
        mut each: impl FnMut(&mut Self, &str) -> Result<()>,
    ) -> Result<()> {
        self.take(b'{')?;
        let mut keys: Vec<String> = Vec::new();
        while self.next_item(keys.is_empty(), b'}')? {
            let key = self.string()?;
            self.take(b':')?;
            each(self, &key)?;
            keys.push(key);
        }
        keys.sort_unstable();
        match keys.windows(2).find(|two| two[0] == two[1]) {
            Some(two) => Err(repeated(&two[0])),
            None => Ok(()),
        }
    }

    /// Consumes a value nested in `depth` others.
    pub(super) fn value(&mut self, depth: usize) -> Result<Value<'t>> {
        if depth > MAX_DEPTH {
            return Err(wrong("values are nested too deeply".to_owned()));
        }
        let first = self.peek();
        let start = self.at;
        let kind = match first {
            Some(b'"') => Kind::String(self.string()?),
            Some(b'{') => {
                let mut members = Vec::new();
                self.members(|reader, key| {
                    members.push((key.to_owned(), reader.value(depth + 1)?));
                    Ok(())
                })?;
                Kind::Object(members)
            }
            Some(b'[') => {
                self.at += 1;
                let mut items = Vec::new();
                while self.next_item(items.is_empty(), b']')? {
                    items.push(self.value(depth + 1)?);
                }
                Kind::List(items)
            }
            Some(b'-' | b'0'..=b'9') => self.number()?,
            _ if self.word("null") => Kind::Null,
            _ if self.word("true") => Kind::Bool(true),
            _ if self.word("false") => Kind::Bool(false),
            _ => return Err(self.fail("expected a value")),
        };
        Ok(Value { text: &self.text[start..self.at], kind })
    }

    fn word(&mut self, word: &str) -> bool {
        let is_next = self.rest().starts_with(word.as_bytes());
        self.at += if is_next { word.len() } else { 0 };
        is_next
    }

    fn number(&mut self) -> Result<Kind<'t>> {
        let start = self.at;
        self.word("-");
        if !self.word("0") {
            self.digits()?;
        }
        if self.word(".") {
            self.digits()?;
        }
        if self.word("e") || self.word("E") {
            let _ = self.word("+") || self.word("-");
            self.digits()?;
        }
        if self.at - start > MAX_NUMBER {
            self.at = start;
            return Err(self.fail(&format!("expected a number of at most {MAX_NUMBER} digits")));
        }
        Ok(Kind::Number)
    }

    fn digits(&mut self) -> Result<()> {
        let count = self.rest().iter().take_while(|byte| byte.is_ascii_digit()).count();
        self.at += count;
        if count == 0 { Err(self.fail("expected a digit")) } else { Ok(()) }
    }

    /// Consumes a string.
    pub(super) fn string(&mut self) -> Result<String> {
        let mut text = String::new();
        self.string_to(&mut text)?;
        Ok(text)
    }

    /// Consumes a string and appends it to `out`.
    pub(super) fn string_to(&mut self, out: &mut String) -> Result<()> {
        self.take(b'"')?;
        loop {
            let rest = self.rest();
            let plain = rest.iter().position(|&byte| byte < 0x20 || matches!(byte, b'"' | b'\\'));
            let plain = plain.unwrap_or(rest.len());
            out.push_str(&self.text[self.at..self.at + plain]); // no part of a character
            self.at += plain;
            match rest.get(plain) {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(());
                }
                Some(b'\\') => self.escape(out)?,
                _ => return Err(self.fail("expected the rest of a string")),
            }
        }
    }

    /// Consumes an escape sequence.
    fn escape(&mut self, out: &mut String) -> Result<()> {
        let rest = self.rest();
        let (character, length) = match rest.get(1) {
            Some(&byte @ (b'"' | b'\\' | b'/')) => (char::from(byte), 2),
            Some(b'b') => ('\u{8}', 2),
            Some(b'f') => ('\u{C}', 2),
            Some(b'n') => ('\n', 2),
            Some(b'r') => ('\r', 2),
            Some(b't') => ('\t', 2),
            _ => {
                let Some(unit) = code_unit(rest) else {
                    return Err(self.fail("expected an escape sequence"));
                };
                let next = code_unit(&rest[6..]);
                let units = [Some(unit), next].into_iter().flatten();
                let Some(Ok(character)) = char::decode_utf16(units).next() else {
                    let message = "a string contains a lone surrogate".to_owned();
                    return Err(Error::Format { message, offset: Some(self.at as u64) });
                };
                (character, 6 * character.len_utf16())
            }
        };
        out.push(character);
        self.at += length;
        Ok(())
    }
}

/// The number in `\u` and four hexadecimal digits.
fn code_unit(text: &[u8]) -> Option<u16> {
    let digits = text.strip_prefix(b"\\u")?.get(..4)?;
    digits
        .iter()
        .try_fold(0, |unit, &digit| Some(unit << 4 | char::from(digit).to_digit(16)? as u16))
}

/// The error of a key that an object has twice.
pub(super) fn repeated(key: &str) -> Error {
    wrong(format!("key {} is repeated; expected each key once", show(key)))
}
