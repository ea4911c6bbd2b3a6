//! The tokens of a model by their text, and its merges.

use std::hash::BuildHasher;

use foldhash::fast::RandomState;
use hashbrown::HashTable;
use hashbrown::hash_table::Entry as Slot;

use super::json::{Reader, repeated, show, wrong};
use super::parts::id as read_id;
use crate::encode::merges_of_ranks;
use crate::error::{Error, Result};
use crate::table::ranks::read_rank;

/// The `tokenizers` library skips string merges that start with this.
const SKIPPED_MERGE: &str = "#version";

/// Merges in rank order, as indices of texts: left, right, new.
pub(super) type Merges = Vec<(u32, u32, u32)>;

pub(super) struct Entry {
    start: u32,
    end: u32,
    pub(super) id: u32,
}

/// A hash table from the text of each token to its id.
#[derive(Default)]
pub(super) struct Texts {
    all: String,
    pub(super) entries: Vec<Entry>,
    indices: HashTable<u32>,
    hasher: RandomState,
    /// The index of each entry, in order of id.
    by_id: Vec<u32>,
}

impl Texts {
    /// Reads an object of text: id, each id once.
    pub(super) fn read(reader: &mut Reader<'_>) -> Result<Self> {
        let mut texts = Self::default();
        reader.take(b'{')?;
        while reader.next_item(texts.entries.is_empty(), b'}')? {
            let start = texts.all.len();
            reader.string_to(&mut texts.all)?;
            reader.take(b':')?;
            let id = match reader.plain_id() {
                Some(id) => id,
                None => {
                    let what = format!("token {}", show(&texts.all[start..]));
                    read_id(&reader.value(0)?, &what)?
                }
            };
            if !texts.add(start, id)? {
                return Err(repeated(&texts.all[start..]));
            }
        }
        texts.sort()?;
        Ok(texts)
    }

    /// Adds the text that starts at `start`; false if it is there already.
    fn add(&mut self, start: usize, id: u32) -> Result<bool> {
        let Self { all, entries, indices, hasher, .. } = self;
        let text = &all[start..];
        let own = |index: &u32| {
            let entry = &entries[*index as usize];
            &all[entry.start as usize..entry.end as usize]
        };
        let is_same = |index: &u32| own(index) == text;
        let hash_of = |index: &u32| hasher.hash_one(own(index));
        let Slot::Vacant(slot) = indices.entry(hasher.hash_one(text), is_same, hash_of) else {
            return Ok(false);
        };
        let end = u32::try_from(all.len())
            .map_err(|_| wrong("the vocabulary has more than 4 GiB of text".to_owned()))?;
        slot.insert(entries.len() as u32); // fits: each has a byte of JSON
        entries.push(Entry { start: start as u32, end, id });
        Ok(true)
    }

    fn sort(&mut self) -> Result<()> {
        self.by_id = (0..self.entries.len() as u32).collect();
        let entries = &self.entries;
        self.by_id.sort_by_key(|&index| entries[index as usize].id); // fast on nearly sorted input
        let twice = self.by_id.windows(2).find(|two| self.id_at(two[0]) == self.id_at(two[1]));
        match twice {
            Some(two) => Err(wrong(format!(
                "{} and {} have the same id {}",
                show(self.text_at(two[0])),
                show(self.text_at(two[1])),
                self.id_at(two[0])
            ))),
            None => Ok(()),
        }
    }

    /// The same with each text changed; `None` if two become the same.
    pub(super) fn map(&self, change: impl Fn(&str) -> String) -> Result<Option<Self>> {
        let mut texts = Self::default();
        for entry in &self.entries {
            let start = texts.all.len();
            texts.all.push_str(&change(self.text(entry)));
            if !texts.add(start, entry.id)? {
                return Ok(None);
            }
        }
        texts.sort()?;
        Ok(Some(texts))
    }

    /// The indices, in order of id.
    pub(super) fn by_id(&self) -> &[u32] {
        &self.by_id
    }

    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    /// The id of a text.
    pub(super) fn id(&self, text: &str) -> Option<u32> {
        self.find(text).map(|index| self.id_at(index))
    }

    pub(super) fn id_at(&self, index: u32) -> u32 {
        self.entries[index as usize].id
    }

    pub(super) fn text_at(&self, index: u32) -> &str {
        self.text(&self.entries[index as usize])
    }

    pub(super) fn text(&self, entry: &Entry) -> &str {
        &self.all[entry.start as usize..entry.end as usize]
    }

    /// The index of a text.
    pub(super) fn find(&self, text: &str) -> Option<u32> {
        let is_same = |&index: &u32| self.text_at(index) == text;
        self.indices.find(self.hasher.hash_one(text), is_same).copied()
    }

    /// The text with an id.
    pub(super) fn with_id(&self, id: u32) -> Option<&str> {
        let at = self.by_id.binary_search_by_key(&id, |&index| self.id_at(index)).ok()?;
        Some(self.text_at(self.by_id[at]))
    }
}

impl Reader<'_> {
    /// Consumes an id in digits only; nothing if the value is another.
    fn plain_id(&mut self) -> Option<u32> {
        self.peek()?;
        let rest = self.rest();
        let length = rest.iter().take(11).take_while(|byte| byte.is_ascii_digit()).count();
        let is_end = !matches!(rest.get(length), Some(b'.' | b'e' | b'E' | b'0'..=b'9'));
        let id = read_rank(&rest[..length]).filter(|_| is_end)?;
        self.at += length;
        Some(id)
    }
}

// ---------------------------------------------------------------------- merges

/// Reads merges of known texts, either all as "left right" or all as [left, right].
pub(super) fn read_merges(reader: &mut Reader<'_>, texts: &Texts) -> Result<Merges> {
    if reader.peek() != Some(b'[') {
        let found = reader.value(0)?.show();
        return Err(wrong(format!("'merges' is {found}; expected a list")));
    }
    let start = reader.at;
    let has_space = texts.find(" ").is_some();
    let mut merges = Vec::new();
    let mut pair = String::new();
    let mut are_strings = None;
    reader.take(b'[')?;
    let mut rank = 0;
    while reader.next_item(are_strings.is_none(), b']')? {
        let is_string = reader.peek() == Some(b'"');
        let are_strings = *are_strings.get_or_insert(is_string);
        let item = reader.at;
        pair.clear();
        let middle = if are_strings && is_string {
            reader.string_to(&mut pair)?;
            let bytes = pair.as_bytes();
            let space = bytes.iter().position(|&byte| byte == b' '); // near: faster than memchr
            let is_one = space.is_some_and(|space| !bytes[space + 1..].contains(&b' '));
            if has_space && space.is_some() && !is_one {
                reader.at = start;
                return read_spaced_merges(reader, texts);
            }
            rank += 1;
            if pair.starts_with(SKIPPED_MERGE) {
                continue;
            }
            let space = space.filter(|_| is_one);
            if let Some(space) = space {
                pair.remove(space);
            }
            space
        } else {
            rank += 1;
            if are_strings { None } else { read_pair(reader, &mut pair).ok() }
        };
        let Some(middle) = middle.filter(|&middle| middle > 0 && middle < pair.len()) else {
            reader.at = item;
            return Err(odd_merge(reader, rank - 1, are_strings)?);
        };
        let (left, right) = pair.split_at(middle);
        match [left, right, &pair].map(|part| texts.find(part).ok_or(part)) {
            [Ok(left), Ok(right), Ok(new)] => merges.push((left, right, new)),
            [Err(part), ..] | [_, Err(part), _] | [.., Err(part)] => {
                let (rank, [left, right, part]) = (merges.len(), [left, right, part].map(show));
                let problem = format!("{part} is not in the vocabulary");
                return Err(wrong(format!("merge {rank} is ({left}, {right}) but {problem}")));
            }
        }
    }
    Ok(merges)
}

/// The error of the merge at the cursor.
fn odd_merge(reader: &mut Reader<'_>, rank: usize, are_strings: bool) -> Result<Error> {
    let kind = if are_strings { "a string with one space" } else { "a list of two tokens" };
    let found = reader.value(0)?.show();
    Ok(wrong(format!("merge {rank} is {found}; expected {kind}")))
}

/// Appends the two strings of a list; returns where they meet.
fn read_pair(reader: &mut Reader<'_>, out: &mut String) -> Result<usize> {
    reader.take(b'[')?;
    reader.string_to(out)?;
    let middle = out.len();
    reader.take(b',')?;
    reader.string_to(out)?;
    reader.take(b']')?;
    Ok(middle)
}

/// Reads string merges whose tokens contain spaces, as ck-bpe-train writes them in ASCII mode.
///
/// `"a b c"` may be `a` and `b c`, or `a b` and `c`, so `tokenizers` rejects such a file. But ck gives
/// the merges the last ids of the vocabulary, in their order, so the token that each merge makes is
/// known, and the earlier merges leave only one way to make it.
fn read_spaced_merges(reader: &mut Reader<'_>, texts: &Texts) -> Result<Merges> {
    let mut strings: Vec<String> = Vec::new();
    reader.take(b'[')?;
    while reader.next_item(strings.is_empty(), b']')? {
        if reader.peek() != Some(b'"') {
            return Err(odd_merge(reader, strings.len(), true)?);
        }
        strings.push(reader.string()?);
    }
    let Some(first) = texts.len().checked_sub(strings.len()) else {
        return Err(wrong(format!(
            "it has {} merges and {} tokens; merges whose tokens contain spaces can only be read if \
             the last ids are theirs, in order",
            strings.len(),
            texts.len()
        )));
    };
    let (others, made) = texts.by_id.split_at(first);
    let is_character = |index: &u32| texts.text_at(*index).len() == 1;
    let characters: Vec<u32> = others.iter().copied().filter(is_character).collect();
    let recover = |made: &[u32]| {
        let all = characters.iter().chain(made);
        let all = all.map(|&index| (index, texts.text_at(index).as_bytes())).collect();
        merges_of_ranks(all).filter(|merges| merges.len() == made.len())
    };
    let is_right = |(merge, &(left, right, _)): (&String, &(u32, u32, u32))| {
        let rest = merge.strip_prefix(texts.text_at(left));
        rest.and_then(|rest| rest.strip_prefix(' ')) == Some(texts.text_at(right))
    };
    let merges = recover(made);
    let wrong_rank = match &merges {
        Some(merges) => strings.iter().zip(merges).position(|both| !is_right(both)),
        None => {
            let counts: Vec<usize> = (1..made.len()).collect();
            Some(counts.partition_point(|&count| recover(&made[..count]).is_some()))
        }
    };
    match (merges, wrong_rank) {
        (Some(merges), None) => Ok(merges),
        (_, rank) => {
            let rank = rank.unwrap_or_default();
            Err(wrong(format!(
                "merge {rank} is {}; expected the two parts that the earlier merges leave of token \
                 {}, {}, with one space between them",
                show(&strings[rank]),
                texts.id_at(made[rank]),
                show(texts.text_at(made[rank]))
            )))
        }
    }
}
