//! Readers of vocabulary tables on any bytes, against plain readers. One execution: one byte string
//! through one reader (or one list of ids through the decoder).

use byteweld_core::decode::TokenTable;
use byteweld_core::encode::{Allowed, Encoder, Ranking, Vocabulary};
use byteweld_core::table::VocabTable;
use byteweld_core::table::hugging_face::{TokenizerJson, Tokens};
use byteweld_core::watch::Watch;
use serde_json::Value;

use crate::input::Input;
use crate::{magnitude, signature};

const RANKS: &str = "YQ== 0\nYg== 1\nYWI= 2\nYWJh 5\nYWJhYg== 10\n";
const MODEL: &str = r##"{"pre_tokenizer":{"type":"ByteLevel","add_prefix_space":false}, "model": {"merges": [["a", "Ġ"], ["aĠ", "a"]], "type" : "BPE", "vocab": {"a": 1, "\u0120":0, "aĠ" : 3 , "aĠa": 2, "é€": 9}}, "padding": null}"##;
const STRINGS: &str = r##"{"model":{"vocab":{"a":0,"b":1,"ab":2,"ba":4},"merges":["#version x","a b","b a"]},"pre_tokenizer":{"type":"ByteLevel","add_prefix_space":false}}"##;

/// What such files consist of: an input may name these by number, so that mutation keeps them whole.
#[rustfmt::skip]
const PARTS: [&str; 96] = [
    "YQ==", "Yg==", "YWI=", "YWJh", "YWJhYg==", "YR==", "IA==", "AAAA", "////", "+/+/", " ", "\n", "0", "1", "2", "3",
    "4", "5", "9", "10", "11", "4096", "4294967294", "4294967295", "00", "-1", "1.5", "1e3", "\r\n", "=", "\t", "  ",
    "{", "}", "[", "]", ":", ",", "\"", "\\", "\"a\"", "\"b\"", "\"ab\"", "\"ba\"", "\"aĠ\"", "\"Ġ\"", "\"aĠa\"", "\"é€\"",
    "\"vocab\"", "\"merges\"", "\"model\"", "\"type\"", "\"BPE\"", "null", "true", "false", "\"a b\"", "\"b a\"", "\"ab a\"", "\"#version x\"",
    "[\"a\", \"Ġ\"]", "[\"a\",\"b\"]", "[\"aĠ\", \"a\"]", "\"\"", "\\u0061", "\\u0120", "\\ud83d\\ude00", "\\ud800", "\\udc00", "\\n", "\\x", "\\\"",
    "a", "b", "Ġ", "é", "€", "\u{1F600}", "\0", "\u{7F}", "\"pre_tokenizer\":{\"type\":\"ByteLevel\",\"add_prefix_space\":false}", "\"padding\"", "{\"model\":{\"vocab\":{", "},\"merges\":[", "]}}", "\"a\":0,", "\"b\":1,", "\"ab\":2",
    "{}", "[]", "\"vocab\":{\"a\":1}", "\"merges\":[]", "#version", "E", "+", "\"Ā\"",
];

pub fn seeds() -> Vec<Vec<u8>> {
    let raw = |mode: u8, data: &[u8]| [&[mode], data].concat();
    let table =
        VocabTable::from_ranks(RANKS.as_bytes()).and_then(|table| table.with_recovered_merges());
    let mut seeds =
        vec![raw(0, RANKS.as_bytes()), raw(1, MODEL.as_bytes()), raw(1, STRINGS.as_bytes())];
    seeds.extend(table.map(|table| raw(2, &table.compile())));
    seeds.extend([raw(4, &as_parts(RANKS)), raw(5, &as_parts(MODEL)), raw(5, &as_parts(STRINGS))]);
    seeds
}

/// A text by the numbers of its parts, the longest first.
fn as_parts(mut text: &str) -> Vec<u8> {
    let mut numbers = Vec::new();
    while let Some(first) = text.chars().next() {
        let fits = (0u8..).zip(PARTS).filter(|(_, part)| text.starts_with(part));
        match fits.max_by_key(|(_, part)| part.len()) {
            Some((number, part)) => {
                numbers.push(number);
                text = &text[part.len()..];
            }
            None => {
                for byte in first.to_string().bytes() {
                    numbers.extend([255, byte]);
                }
                text = &text[first.len_utf8()..];
            }
        }
    }
    numbers
}

fn from_parts(mut input: Input) -> Vec<u8> {
    let mut data = Vec::new();
    while !input.is_empty() {
        match input.byte() {
            number @ 0..192 => data.extend_from_slice(PARTS[usize::from(number) % 96].as_bytes()),
            _ => data.push(input.byte()),
        }
    }
    data
}

pub fn run(input: &[u8]) -> u64 {
    let mut input = Input::new(input);
    let mode = input.byte() % 6;
    match mode {
        0 => ranks(input.rest()),
        4 => ranks(&from_parts(input)),
        1 => json(input.rest()),
        5 => json(&from_parts(input)),
        2 => compiled(input.rest()),
        _ => decode(input),
    }
}

// ---------------------------------------------------------------------- rank files

fn ranks(data: &[u8]) -> u64 {
    let table = VocabTable::from_ranks(data);
    let expected = plain_ranks(data);
    let shown = || String::from_utf8_lossy(data).into_owned();
    let Some(table) = table else {
        assert_eq!(expected, None, "{:?}", shown());
        return signature(&[0, magnitude(data.len())]);
    };
    let found: Vec<(u32, Vec<u8>)> =
        table.tokens().map(|(id, token)| (id, token.to_vec())).collect();
    assert_eq!(Some(found), expected, "{:?}", shown());
    let recovered = table.with_recovered_merges();
    if let Some(recovered) = &recovered {
        assert!(recovered.has_repeats() || recovered.has_sound_merges(&[]), "{:?}", shown());
    }
    check(recovered.as_ref().unwrap_or(&table), &[0, 2]);
    signature(&[1, magnitude(data.len()), magnitude(table.len()), usize::from(recovered.is_some())])
}

/// A rank file, read plainly: well-formed lines with ascending ranks that are nearly dense.
fn plain_ranks(data: &[u8]) -> Option<Vec<(u32, Vec<u8>)>> {
    let lines: Vec<&[u8]> =
        data.strip_suffix(b"\n").unwrap_or(data).split(|&byte| byte == b'\n').collect();
    let mut tokens: Vec<(u32, Vec<u8>)> = Vec::new();
    for line in &lines {
        let (token, rank) = std::str::from_utf8(line).ok()?.split_once(' ')?;
        let id: u32 = rank.parse().ok()?;
        let is_canonical = id.to_string() == rank;
        let ascends = tokens.last().is_none_or(|(last, _)| *last < id);
        if !is_canonical || !ascends || id as usize >= 4 * lines.len() + 4096 {
            return None;
        }
        tokens.push((id, plain_base64(token)?));
    }
    Some(tokens)
}

fn plain_base64(text: &str) -> Option<Vec<u8>> {
    let digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let kept = text.trim_end_matches('=');
    let padding = text.len() - kept.len();
    if text.is_empty() || !text.len().is_multiple_of(4) || padding > 2 {
        return None;
    }
    let mut bits = Vec::new();
    for digit in kept.chars() {
        let value = digits.find(digit)?;
        bits.extend((0..6).rev().map(|bit| value >> bit & 1));
    }
    let whole = bits.len() / 8 * 8;
    if bits[whole..].contains(&1) {
        return None;
    }
    let byte = |bits: &[usize]| bits.iter().fold(0, |byte, bit| byte << 1 | *bit as u8);
    Some(bits[..whole].chunks(8).map(byte).collect())
}

// ---------------------------------------------------------------------- tokenizer.json

fn json(data: &[u8]) -> u64 {
    let Ok(file) = TokenizerJson::read(data) else {
        return signature(&[2, magnitude(data.len())]);
    };
    let shown = String::from_utf8_lossy(data);
    let value = match serde_json::from_slice::<Value>(data) {
        Ok(value) => value,
        // The reader keeps numbers as they are written.
        Err(error) if error.to_string().contains("out of range") => return signature(&[3]),
        Err(error) => panic!("accepted, but not JSON: {error} in {shown:?}"),
    };
    let vocab = value["model"]["vocab"].as_object().unwrap();
    let letters = file.id("ſ").is_some() || file.id("\u{ad}").is_some(); // perhaps those of ck
    for (text, id) in vocab {
        assert!(letters || file.id(text).map(u64::from) == id.as_u64(), "{text:?} in {shown:?}");
    }
    let mut expected = Vec::new();
    for merge in value["model"]["merges"].as_array().unwrap() {
        let (left, right) = match merge {
            Value::String(merge) if merge.starts_with("#version") => continue,
            Value::String(merge) if merge.matches(' ').count() > 1 => return signature(&[4]),
            Value::String(merge) => merge.split_once(' ').unwrap(),
            merge => (merge[0].as_str().unwrap(), merge[1].as_str().unwrap()),
        };
        let id = |text: &str| vocab[text].as_u64().unwrap() as u32;
        expected.push((id(left), id(right), id(&format!("{left}{right}"))));
    }
    let (merges, count) = match &file.tokens {
        Tokens::Table(table) => {
            check(table, &[1]);
            (table.merges(), table.len())
        }
        Tokens::Sparse(tokens, merges) => (&merges[..], tokens.len()),
    };
    assert_eq!(merges, expected, "{shown:?}");
    assert!(count >= vocab.len() && count <= vocab.len() + file.added.len(), "{shown:?}");
    signature(&[4, magnitude(count), magnitude(merges.len()), magnitude(file.added.len())])
}

// ---------------------------------------------------------------------- compiled tables

fn compiled(data: &[u8]) -> u64 {
    let Some(table) = VocabTable::from_compiled(data) else {
        return signature(&[5, magnitude(data.len())]);
    };
    assert_eq!(table.compile(), data);
    check(&table, &[0, 3, u32::MAX]);
    let sound = table.has_sound_merges(&[]);
    signature(&[6, magnitude(table.len()), magnitude(table.merges().len()), usize::from(sound)])
}

/// A table that was read is consistent, whatever it contains, and can be used.
fn check(table: &VocabTable, excluded: &[u32]) {
    let tokens: Vec<(u32, Vec<u8>)> =
        table.tokens().map(|(id, token)| (id, token.to_vec())).collect();
    assert_eq!(tokens.len(), table.len());
    for (id, token) in &tokens {
        assert!(!token.is_empty() && table.get(*id) == Some(token));
    }
    let compiled = table.compile();
    let read = VocabTable::from_compiled(&compiled);
    assert_eq!(read.as_ref().map(VocabTable::lines), Some(table.lines()));
    assert_eq!(read.map(|table| table.compile()), Some(compiled));
    let mut distinct: Vec<&[u8]> = tokens.iter().map(|(_, token)| &token[..]).collect();
    distinct.sort_unstable();
    distinct.dedup();
    assert_eq!(table.has_repeats(), distinct.len() < tokens.len());
    let is_sound = table.has_sound_merges(&[]);
    let joins = |&(left, right, new): &(u32, u32, u32)| match (table.get(left), table.get(right)) {
        (Some(left), Some(right)) => table.get(new) == Some(&[left, right].concat()),
        _ => false,
    };
    let mut pairs: Vec<(u32, u32)> =
        table.merges().iter().map(|merge| (merge.0, merge.1)).collect();
    pairs.sort_unstable();
    let is_twice = pairs.windows(2).any(|pair| pair[0] == pair[1]);
    assert_eq!(is_sound, table.merges().iter().all(joins) && !is_twice);
    let _ = (table.has_sound_merges(excluded), table.makes_every_token(excluded));
    assert!(table.made_among(excluded).iter().all(|id| excluded.contains(id)));
    assert!(table.lines().len() >= 6 * tokens.len());
    let free = table.tokens().last().map_or(0, |(id, _)| id + 1);
    if let Some(more) = table.with_tokens(&[(free, b"<s>".to_vec())]) {
        assert_eq!((more.len(), more.get(free)), (table.len() + 1, Some(&b"<s>"[..])));
    }
    if tokens.len() > 12 || table.has_repeats() {
        return;
    }
    // Whatever the merges are, the engine takes them or says what is wrong.
    let text: Vec<u8> = tokens.iter().rev().flat_map(|(_, token)| token.clone()).collect();
    let mut vocabulary = Vocabulary::new(tokens, table.merges().to_vec(), Ranking::Merges);
    vocabulary.layout = table.layout().cloned(); // it may be that of other merges
    vocabulary.unk = Some(free);
    if let Ok(encoder) = Encoder::new(vocabulary) {
        let mut ids = Vec::new();
        let outcome = encoder.encode(&text, &Allowed::None, &mut ids);
        let mut decoded = Vec::new();
        if is_sound && outcome.is_ok() && !ids.contains(&free) {
            encoder.tokens().decode_into(&ids, &mut decoded).unwrap();
            assert_eq!(decoded, text);
        }
    }
}

// ---------------------------------------------------------------------- decoding

fn decode(mut input: Input) -> u64 {
    let mut tokens: Vec<(u32, Vec<u8>)> = Vec::new();
    let mut id = 0;
    for _ in 0..input.below(40) {
        let head = input.byte();
        id += 1 + u32::from(head >> 6);
        let length = usize::from(head & 31);
        let mut token = input.take(length).to_vec();
        token.resize(length.max(1), head);
        tokens.push((id, token));
    }
    let Ok(table) = TokenTable::new(&tokens) else { return signature(&[7]) };
    let ids: Vec<u32> = input.rest().iter().map(|&byte| u32::from(byte) % (id + 2)).collect();
    let find = |id: &u32| tokens.iter().find(|(other, _)| other == id).map(|(_, token)| &token[..]);
    let known: Vec<Option<&[u8]>> = ids.iter().map(find).collect();
    let expected: Option<Vec<u8>> =
        known.iter().copied().collect::<Option<Vec<&[u8]>>>().map(|tokens| tokens.concat());
    let mut found = b"before".to_vec();
    let is_ok = table.decode_into(&ids, &mut found).is_ok();
    assert_eq!(
        (is_ok, found.strip_prefix(b"before")),
        (expected.is_some(), Some(&expected.clone().unwrap_or_default()[..]))
    );
    let mut buffer = vec![0xEE; ids.len() % 70];
    let over = table.decode_over(&ids, &mut buffer).ok();
    assert_eq!(over.map(|length| buffer[..length].to_vec()), expected);
    assert_eq!(
        table.decoded_length(&ids, &mut Watch::default()).ok(),
        expected.as_ref().map(Vec::len)
    );
    if let Some(expected) = &expected {
        let mut exact = vec![0; expected.len()];
        let watch = &mut Watch::default();
        assert!(table.decode_to(&ids, &mut exact, watch).unwrap() && exact == *expected);
        let mut wrong = vec![0; expected.len() + 1];
        assert!(!table.decode_to(&ids, &mut wrong, watch).unwrap());
    }
    signature(&[8, magnitude(tokens.len()), magnitude(ids.len()), usize::from(expected.is_some())])
}
