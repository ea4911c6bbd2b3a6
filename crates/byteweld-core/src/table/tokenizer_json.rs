//! Reads the model of a tokenizer.json: tokens and merges, written in GPT-2's byte letters.
//!
//! These two values are nearly all of such a file. The rest of the file is returned as JSON.

use std::hash::BuildHasher;
use std::ops::Range;

use foldhash::fast::RandomState;
use hashbrown::HashTable;

use super::json::Cursor;
use super::{EXTRA_IDS, MAX_IDS_PER_TOKEN, NO_ID, VocabTable};
use crate::rewrite::byte_letter;

/// The `tokenizers` library skips merges that start with this.
const SKIPPED_MERGE: &[u8] = b"#version";

/// One past the highest letter, U+0143.
const LETTER_END: usize = 0x144;

/// The tokens, in byte letters with their ids, and the merges.
pub struct JsonModel {
    texts: TextTable,
    /// The index in `texts` of each id's token, or [`NO_ID`].
    by_id: Vec<u32>,
    merges: Merges,
    /// For each token, whether a merge makes it.
    is_made: Vec<bool>,
    rest: String,
}

impl JsonModel {
    /// Reads a file; `None` unless it is valid JSON in the form that the library writes.
    pub fn from_json(data: &[u8]) -> Option<Self> {
        let text = std::str::from_utf8(data).ok()?;
        let Parts { texts, vocab, merges } = Parts::find(text)?;
        let (merges, read) = merges?;
        let merges_read = match read {
            Some(read) => read,
            None => read_merges(&mut Cursor::new(&text[merges.clone()]), &texts)?,
        };
        let by_id = texts.by_id()?;
        let mut is_made = vec![false; texts.entries.len()];
        for &(_, _, new) in &merges_read {
            is_made[new as usize] = true;
        }
        let mut parts = [(vocab?, "{}"), (merges, "[]")];
        parts.sort_by_key(|(span, _)| span.start);
        let [(first, one), (second, two)] = parts;
        let between = &text[first.end..second.start];
        let rest = [&text[..first.start], one, between, two, &text[second.end..]].concat();
        Some(Self { texts, by_id, merges: merges_read, is_made, rest })
    }

    /// The file with empty values for tokens and merges.
    pub fn rest(&self) -> &str {
        &self.rest
    }

    /// The number of tokens.
    pub fn len(&self) -> usize {
        self.texts.entries.len()
    }

    /// Whether there are no tokens.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The id of the token with this text.
    pub fn id(&self, text: &str) -> Option<u32> {
        self.texts.find(text.as_bytes()).map(|index| self.texts.entries[index as usize].id)
    }

    /// Whether a merge makes the token with this text.
    pub fn is_made(&self, text: &str) -> bool {
        self.texts.find(text.as_bytes()).is_some_and(|index| self.is_made[index as usize])
    }

    /// The tokens that are not written in byte letters, in file order.
    pub fn foreign(&self) -> impl Iterator<Item = &str> {
        let letters = byte_of_letter();
        self.texts.entries.iter().filter_map(move |entry| {
            let text = self.texts.text(entry);
            (!read_letters(text, &letters, &mut Vec::new())).then_some(text)
        })
    }

    /// The table of the tokens. `given` overrides the bytes of some ids, and may add ids; `None` if
    /// any other token is not written in byte letters.
    pub fn table(&self, mut given: Vec<(u32, Vec<u8>)>) -> Option<VocabTable> {
        given.sort_unstable();
        let letters = byte_of_letter();
        let mut bytes = Vec::with_capacity(self.texts.bytes.len());
        let mut spans: Vec<(u32, Range<usize>)> =
            Vec::with_capacity(self.texts.entries.len() + given.len());
        let mut given = given.into_iter().peekable();
        let mut put = |id: u32, token: &[u8], bytes: &mut Vec<u8>| {
            let start = bytes.len();
            bytes.extend_from_slice(token);
            spans.push((id, start..bytes.len()));
        };
        let mut token = Vec::new();
        for (id, &index) in (0..).zip(&self.by_id) {
            if let Some((_, own)) = given.next_if(|(other, _)| *other == id) {
                put(id, &own, &mut bytes);
            } else if index != NO_ID {
                token.clear();
                let text = self.texts.text(&self.texts.entries[index as usize]);
                if !read_letters(text, &letters, &mut token) {
                    return None;
                }
                put(id, &token, &mut bytes);
            }
        }
        for (id, own) in given {
            put(id, &own, &mut bytes);
        }
        let tokens = spans.into_iter().map(|(id, span)| (id, &bytes[span]));
        let table = VocabTable::from_tokens(tokens.len(), tokens)?;
        let id = |index: u32| self.texts.entries[index as usize].id;
        let merges = self.merges.iter().map(|&(a, b, c)| (id(a), id(b), id(c))).collect();
        Some(VocabTable { merges, ..table })
    }
}

/// Merges in rank order, as indices of texts: left, right, new.
type Merges = Vec<(u32, u32, u32)>;

/// The values of `vocab` and `merges` in the object `model`, and their spans.
#[derive(Default)]
struct Parts {
    texts: TextTable,
    vocab: Option<Range<usize>>,
    /// Parsed later if they precede the vocabulary.
    merges: Option<(Range<usize>, Option<Merges>)>,
}

impl Parts {
    fn find(text: &str) -> Option<Self> {
        let mut parts = Self::default();
        let mut is_known = false;
        each_member(&mut Cursor::new(text), &mut |cursor, key| {
            if key != b"model" {
                return cursor.skip();
            }
            if std::mem::replace(&mut is_known, true) {
                return None;
            }
            each_member(cursor, &mut |cursor, key| parts.read(cursor, key))
        })?;
        Some(parts)
    }

    fn read(&mut self, cursor: &mut Cursor<'_>, key: &[u8]) -> Option<()> {
        cursor.peek()?;
        let start = cursor.at;
        match key {
            b"vocab" if self.vocab.is_none() => {
                self.texts.read(cursor)?;
                self.vocab = Some(start..cursor.at);
            }
            b"merges" if self.merges.is_none() => {
                let read = match self.vocab {
                    Some(_) => Some(read_merges(cursor, &self.texts)?),
                    None => {
                        cursor.skip()?;
                        None
                    }
                };
                self.merges = Some((start..cursor.at, read));
            }
            b"vocab" | b"merges" => return None,
            _ => cursor.skip()?,
        }
        Some(())
    }
}

/// Calls `each` with every key of the object at the cursor; it must consume the value.
fn each_member<'t>(
    cursor: &mut Cursor<'t>,
    each: &mut dyn FnMut(&mut Cursor<'t>, &[u8]) -> Option<()>,
) -> Option<()> {
    cursor.take(b'{')?;
    let mut key = Vec::new();
    let mut is_first = true;
    while cursor.next_item(is_first, b'}')? {
        is_first = false;
        key.clear();
        cursor.string(&mut key)?;
        cursor.take(b':')?;
        each(cursor, &key)?;
    }
    Some(())
}

struct Entry {
    start: u32,
    end: u32,
    id: u32,
}

/// A hash table from the text of each token to its id.
#[derive(Default)]
struct TextTable {
    bytes: Vec<u8>,
    entries: Vec<Entry>,
    indices: HashTable<u32>,
    hasher: RandomState,
}

impl TextTable {
    /// Reads an object from text to id; `None` if a text is repeated.
    fn read(&mut self, cursor: &mut Cursor<'_>) -> Option<()> {
        cursor.take(b'{')?;
        while cursor.next_item(self.entries.is_empty(), b'}')? {
            let start = self.bytes.len();
            cursor.string(&mut self.bytes)?;
            cursor.take(b':')?;
            let id = cursor.id()?;
            let text = &self.bytes[start..];
            if self.find(text).is_some() {
                return None;
            }
            let hash = self.hasher.hash_one(text);
            let end = u32::try_from(self.bytes.len()).ok()?;
            let index = self.entries.len() as u32; // fits: there are fewer entries than bytes
            self.entries.push(Entry { start: start as u32, end, id });
            let Self { bytes, entries, indices, hasher } = self;
            indices.insert_unique(hash, index, |&index| {
                let entry = &entries[index as usize];
                hasher.hash_one(&bytes[entry.start as usize..entry.end as usize])
            });
        }
        Some(())
    }

    fn text(&self, entry: &Entry) -> &str {
        // Spans of whole strings: this cannot fail.
        std::str::from_utf8(&self.bytes[entry.start as usize..entry.end as usize])
            .unwrap_or_default()
    }

    fn find(&self, text: &[u8]) -> Option<u32> {
        let is_same = |&index: &u32| {
            let entry = &self.entries[index as usize];
            &self.bytes[entry.start as usize..entry.end as usize] == text
        };
        self.indices.find(self.hasher.hash_one(text), is_same).copied()
    }

    /// The index of each id's text; `None` if an id is repeated.
    fn by_id(&self) -> Option<Vec<u32>> {
        let limit = self.entries.len() * MAX_IDS_PER_TOKEN + EXTRA_IDS;
        let end = self.entries.iter().map(|entry| entry.id as usize + 1).max().unwrap_or(0);
        let mut indices = vec![NO_ID; if end <= limit { end } else { return None }];
        for (entry, index) in self.entries.iter().zip(0..) {
            if std::mem::replace(&mut indices[entry.id as usize], index) != NO_ID {
                return None;
            }
        }
        Some(indices)
    }
}

/// Reads merges of known texts, either all as "left right" or all as [left, right].
fn read_merges(cursor: &mut Cursor<'_>, texts: &TextTable) -> Option<Merges> {
    let mut merges = Vec::new();
    let mut pair = Vec::new();
    let mut are_strings = None;
    cursor.take(b'[')?;
    while cursor.next_item(are_strings.is_none(), b']')? {
        let is_string = cursor.peek()? == b'"';
        if *are_strings.get_or_insert(is_string) != is_string {
            return None;
        }
        pair.clear();
        let middle = if is_string {
            cursor.string(&mut pair)?;
            if pair.starts_with(SKIPPED_MERGE) {
                continue;
            }
            let space = pair.iter().position(|&byte| byte == b' ')?;
            pair.remove(space);
            if pair[space..].contains(&b' ') {
                return None;
            }
            space
        } else {
            cursor.take(b'[')?;
            cursor.string(&mut pair)?;
            cursor.take(b',')?;
            let middle = pair.len();
            cursor.string(&mut pair)?;
            cursor.take(b']')?;
            middle
        };
        if middle == 0 || middle == pair.len() {
            return None;
        }
        let (left, right) = pair.split_at(middle);
        merges.push((texts.find(left)?, texts.find(right)?, texts.find(&pair)?));
    }
    Some(merges)
}

/// The byte of each letter up to U+0143, or 256.
fn byte_of_letter() -> [u16; LETTER_END] {
    let mut bytes = [256; LETTER_END];
    for byte in 0..=255 {
        if let Some(entry) = bytes.get_mut(byte_letter(byte) as usize) {
            *entry = u16::from(byte);
        }
    }
    bytes
}

/// Appends the bytes that letters stand for; `false` if the text is empty or contains other
/// characters.
fn read_letters(text: &str, letters: &[u16; LETTER_END], bytes: &mut Vec<u8>) -> bool {
    for character in text.chars() {
        match letters.get(character as usize) {
            Some(&byte) if byte < 256 => bytes.push(byte as u8),
            _ => return false,
        }
    }
    !text.is_empty()
}
