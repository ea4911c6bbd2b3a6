//! The model of a tokenizer.json: tokens and merges, written in GPT-2's letters for bytes.
//!
//! The two make nearly all of such a file. They are read here; what is left of the file is given back.

use std::hash::BuildHasher;
use std::ops::Range;

use foldhash::fast::RandomState;
use hashbrown::HashTable;

use super::json::Cursor;
use super::{FREE_IDS, IDS_PER_TOKEN, NONE, Table};
use crate::rewrite::byte_letter;

/// A string merge that begins so is skipped by the `tokenizers` library.
const SKIPPED_MERGE: &[u8] = b"#version";

/// One past the highest letter, U+0143.
const LETTERS: usize = 0x144;

/// Tokens in letters with their ids, and merges.
pub struct LetterModel {
    texts: Texts,
    /// The token of each id, by its place in `texts`, or [`NONE`].
    by_id: Vec<u32>,
    /// In rank order, as places in `texts`: left, right, new.
    merges: Merges,
    /// Of each token, whether a merge makes it.
    is_made: Vec<bool>,
    rest: String,
}

impl LetterModel {
    /// Reads the file; `None` unless it is JSON as the library writes it, and sound.
    pub fn of_json(data: &[u8]) -> Option<Self> {
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

    /// The file, with the two values empty.
    pub fn rest(&self) -> &str {
        &self.rest
    }

    /// How many tokens there are.
    pub fn len(&self) -> usize {
        self.texts.entries.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The id of a text.
    pub fn id(&self, text: &str) -> Option<u32> {
        self.texts.find(text.as_bytes()).map(|place| self.texts.entries[place as usize].id)
    }

    /// Whether a merge makes this text.
    pub fn is_made(&self, text: &str) -> bool {
        self.texts.find(text.as_bytes()).is_some_and(|place| self.is_made[place as usize])
    }

    /// The texts that are not written in letters, in order of the file.
    pub fn foreign(&self) -> impl Iterator<Item = &str> {
        let letters = byte_of_letter();
        self.texts.entries.iter().filter_map(move |entry| {
            let text = self.texts.text(entry);
            (!read_letters(text, &letters, &mut Vec::new())).then_some(text)
        })
    }

    /// The table of its tokens, but for those whose bytes are given, which need not be of the model; `None` if
    /// some other token is not written in letters.
    pub fn table(&self, mut given: Vec<(u32, Vec<u8>)>) -> Option<Table> {
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
        for (id, &place) in (0..).zip(&self.by_id) {
            if let Some((_, own)) = given.next_if(|(other, _)| *other == id) {
                put(id, &own, &mut bytes);
            } else if place != NONE {
                token.clear();
                let text = self.texts.text(&self.texts.entries[place as usize]);
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
        let table = Table::of_tokens(tokens.len(), tokens)?;
        let id = |place: u32| self.texts.entries[place as usize].id;
        let merges = self.merges.iter().map(|&(a, b, c)| (id(a), id(b), id(c))).collect();
        Some(Table { merges, ..table })
    }
}

/// Merges in rank order, as places of texts.
type Merges = Vec<(u32, u32, u32)>;

/// The values of `vocab` and `merges` in the object `model`, and where they are.
#[derive(Default)]
struct Parts {
    texts: Texts,
    vocab: Option<Range<usize>>,
    /// They are read later if they come before the vocabulary.
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

/// Calls `each` with every key of the object here; it must take the value.
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

/// Texts with their ids, found by hash.
#[derive(Default)]
struct Texts {
    bytes: Vec<u8>,
    entries: Vec<Entry>,
    places: HashTable<u32>,
    hasher: RandomState,
}

impl Texts {
    /// Reads an object of text and id; every text once.
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
            let place = self.entries.len() as u32; // fewer than bytes
            self.entries.push(Entry { start: start as u32, end, id });
            let Self { bytes, entries, places, hasher } = self;
            places.insert_unique(hash, place, |&place| {
                let entry = &entries[place as usize];
                hasher.hash_one(&bytes[entry.start as usize..entry.end as usize])
            });
        }
        Some(())
    }

    fn text(&self, entry: &Entry) -> &str {
        // Made of whole strings: it cannot fail.
        std::str::from_utf8(&self.bytes[entry.start as usize..entry.end as usize])
            .unwrap_or_default()
    }

    fn find(&self, text: &[u8]) -> Option<u32> {
        let is_same = |&place: &u32| {
            let entry = &self.entries[place as usize];
            &self.bytes[entry.start as usize..entry.end as usize] == text
        };
        self.places.find(self.hasher.hash_one(text), is_same).copied()
    }

    /// The place of each id's text; every id once.
    fn by_id(&self) -> Option<Vec<u32>> {
        let limit = self.entries.len() * IDS_PER_TOKEN + FREE_IDS;
        let end = self.entries.iter().map(|entry| entry.id as usize + 1).max().unwrap_or(0);
        let mut places = vec![NONE; if end <= limit { end } else { return None }];
        for (entry, place) in self.entries.iter().zip(0..) {
            if std::mem::replace(&mut places[entry.id as usize], place) != NONE {
                return None;
            }
        }
        Some(places)
    }
}

/// Reads merges, all as "left right" or all as [left, right], of texts that are known.
fn read_merges(cursor: &mut Cursor<'_>, texts: &Texts) -> Option<Merges> {
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
        let place = |text: &[u8]| texts.find(text);
        merges.push((place(&pair[..middle])?, place(&pair[middle..])?, place(&pair)?));
    }
    Some(merges)
}

/// The byte of each letter up to U+0143, or 256.
fn byte_of_letter() -> [u16; LETTERS] {
    let mut bytes = [256; LETTERS];
    for byte in 0..=255 {
        if let Some(place) = bytes.get_mut(byte_letter(byte) as usize) {
            *place = u16::from(byte);
        }
    }
    bytes
}

/// Appends the bytes that letters stand for; `false` if there are none, or others among them.
fn read_letters(text: &str, letters: &[u16; LETTERS], bytes: &mut Vec<u8>) -> bool {
    for character in text.chars() {
        match letters.get(character as usize) {
            Some(&byte) if byte < 256 => bytes.push(byte as u8),
            _ => return false,
        }
    }
    !text.is_empty()
}
