//! The corpus reader against a plain reader. One execution: one file, one unit, one policy; the file is read
//! document by document, from the start and again from some of the positions, and in pieces of three sizes.

mod warc;

use std::borrow::Cow;
use std::cell::RefCell;
use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use byteweld_corpus::{Limits, OnError, Options, Position, ReadStatus, Reader, Unit, decompress};
use bzip2::write::BzEncoder;
use flate2::write::GzEncoder;
use serde_json::Value;

use crate::input::Input;
use crate::{magnitude, signature};

/// The most that an archive may hold here.
const MAX_BYTES: usize = 4 << 20;

/// The sizes of pieces; the reader rounds them up to 4 KiB.
const WANTED: [usize; 3] = [1, 5000, 70_000];

#[rustfmt::skip]
const PARTS: [&[u8]; 64] = [
    b"a", b"b", b" ", b"\n", b"\n", b"\n\n", b"\r\n", b"<|x|>", b"<|x", b"|>", b"--", b"-", b"ab", b"\0", b"word ", b"\xEF\xBB\xBF",
    "é".as_bytes(), "日本".as_bytes(), "😀".as_bytes(), b"\xFF", b"\xC3", b"\xE6\x97", b"\xF0\x9F", b"\x80", b"\xA9", b"\xED\xA0\x80", b"\xC0\x80", b"\xF4\x90\x80\x80", b"x", b"y", b"z", b".",
    b"{\"text\": \"", b"\"}\n", b"{\"text\": \"one\"}\n", b"{\"id\": 1, \"text\": \"two\"}\n", b"{\"text\": \"\\u00e9\\n\"}", b"{\"text\": 1}\n", b"{\"other\": \"x\"}\n", b"[1]\n", b"{", b"}", b"\"", b"\\", b":", b",", b"null", b"\"text\"",
    b"\\ud83d\\ude00", b"\\ud800", b"\\udc00", b"\\u0041", b"\\n", b"\\\"", b"[", b"]", b"1", b"-1.5", b"true", b"{\"a\": {\"text\": \"in\"}, \"text\": \"out\"}\n", b"\t", b"  \n", b"\x1F\x8B", b"\x28\xB5\x2F\xFD",
];

/// An empty xz file, and one that contains "hello hello hello\n".
const XZ: [&[u8]; 2] = [include_bytes!("corpus/empty.xz"), include_bytes!("corpus/hello.xz")];

pub fn seeds() -> Vec<Vec<u8>> {
    let text = b"{\"text\": \"one\"}\n{\"text\": \"tw\xC3\xB6\"}\nthree <|x|> four\n";
    let mut encoder = GzEncoder::new(Vec::new(), flate2::Compression::best());
    encoder.write_all(&text.repeat(3)).unwrap();
    let gzip = encoder.finish().unwrap();
    let mut archives =
        vec![gzip, stored_gzip(text), raw_zstd(text), raw_zstd(b""), bzip2(text), bzip2(b"")];
    archives.extend(XZ.map(<[u8]>::to_vec));
    let raw =
        |archive: Vec<u8>| (0..6).map(move |kind| [&[kind * 40, 7, 5], &archive[..]].concat());
    archives.into_iter().flat_map(raw).collect()
}

/// Three files that are written again for each execution.
struct Folder {
    path: PathBuf,
    files: [(PathBuf, File); 3],
}

impl Folder {
    fn new() -> Self {
        let memory = Path::new("/dev/shm");
        let parent = if memory.is_dir() { memory.to_owned() } else { std::env::temp_dir() };
        let path = parent.join(format!("byteweld-fuzz-{}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        let files = ["a.txt", "a.jsonl", "a.wet"].map(|name| {
            let path = path.join(name);
            let file = File::create(&path).unwrap();
            (path, file)
        });
        Self { path, files }
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.path);
    }
}

/// What a reader gives: documents, how many were skipped, and whether it ended without an error.
#[derive(Debug, PartialEq, Eq)]
struct Outcome {
    documents: Vec<Vec<u8>>,
    skipped: u64,
    is_ok: bool,
}

pub fn run(input: &[u8]) -> u64 {
    thread_local!(static FOLDER: RefCell<Option<Folder>> = const { RefCell::new(None) });
    let mut input = Input::new(input);
    let (kind, archive) = (input.byte(), input.byte());
    let on_error = [OnError::Fail, OnError::Skip, OnError::Replace][usize::from(kind / 40) % 3];
    let is_json = kind % 5 == 0;
    let is_warc = kind % 5 == 1;
    let unit = match kind % 4 {
        0 => Unit::File,
        1 => Unit::Line,
        2 => Unit::Separator(b"<|x|>".to_vec()),
        _ => Unit::Separator(b"--".to_vec()),
    };
    let (data, content) = file(archive, is_warc, &mut input);
    let options = Options {
        unit: unit.clone(),
        field: "text".to_owned(),
        on_error,
        json_lines: false,
        require_utf8: false,
        digest: true,
        limits: Limits::default(),
    };
    let read_all = FOLDER.with_borrow_mut(|folder| {
        let folder = folder.get_or_insert_with(Folder::new);
        let (path, file) = &folder.files[usize::from(is_json) + 2 * usize::from(is_warc)];
        file.set_len(data.len() as u64).unwrap();
        file.write_all_at(&data, 0).unwrap();
        let mut read = vec![by_document(path, &options)];
        read.extend(WANTED.map(|want| in_pieces(path, &options, want)));
        if !is_json {
            // Long documents are checked in a first pass, and returned in pieces.
            let limits = Limits { record_bytes: 100, ..Limits::default() };
            read.push(in_pieces(path, &Options { limits, ..options.clone() }, 5000));
        }
        read
    });
    let shown = || {
        format!(
            "{unit:?}, {on_error:?}, json {is_json}, warc {is_warc}: {:?}",
            String::from_utf8_lossy(&data)
        )
    };
    for pair in read_all.windows(2) {
        assert_eq!(pair[0], pair[1], "the size of pieces matters: {}", shown());
    }
    let found = &read_all[0];
    let decompressed = decompress(&data, MAX_BYTES);
    if let (Some(content), Ok(decompressed)) = (&content, &decompressed) {
        assert_eq!(content, decompressed, "{}", shown());
    }
    let Ok(text) = decompressed else {
        // What follows the damage is skipped, and a file that needs too large a dictionary.
        let is_skipped = on_error == OnError::Skip && found.skipped >= 1;
        assert!(!found.is_ok || is_skipped, "{}", shown());
        return signature(&[1, magnitude(data.len()), magnitude(found.documents.len()).min(3)]);
    };
    assert!(content.is_none() || !is_archive(&data) || archive >= 128, "{}", shown());
    let expected = if is_json {
        plain_records(&text, on_error)
    } else if is_warc {
        Some(warc::plain(&text, on_error))
    } else {
        Some(plain_text(&text, &unit, on_error))
    };
    if let Some(expected) = &expected {
        // A record that the end of the file cuts is skipped; one that is wrong is an error.
        let is_cut = is_warc && on_error == OnError::Skip && !expected.is_ok && found.is_ok;
        let cut = || Outcome {
            documents: expected.documents.clone(),
            skipped: expected.skipped + 1,
            is_ok: true,
        };
        let expected = if is_cut { &cut() } else { expected };
        assert_eq!(found, expected, "{}", shown());
    }
    let documents = magnitude(found.documents.len()).min(5);
    let policy = usize::from(kind / 40) % 3 * 8
        + usize::from(kind % 4) * 2
        + usize::from(is_json)
        + 32 * usize::from(is_warc);
    signature(&[
        2,
        policy,
        documents,
        magnitude(found.skipped as usize).min(3),
        usize::from(found.is_ok),
    ])
}

/// A file, and what it contains where that is known beforehand.
fn file(archive: u8, is_warc: bool, input: &mut Input) -> (Vec<u8>, Option<Vec<u8>>) {
    if archive < 32 {
        return (input.take(usize::MAX).to_vec(), None); // the bytes of an archive, as they are
    }
    // Files longer than a window take a thousand times as long, so few are.
    let is_long = archive % 64 == 63;
    let max_bytes = if is_long { 300 << 10 } else { 5 << 10 };
    let mut content = if is_warc { warc::content(input, max_bytes) } else { Vec::new() };
    let mut last = 0;
    while !input.is_empty() && content.len() < max_bytes {
        let start = content.len();
        match input.byte() {
            op @ 0..192 => content.extend_from_slice(PARTS[usize::from(op) % 64]),
            192..224 => content.push(input.byte()),
            224..250 => content.push(b'\n'),
            op => {
                let times = match input.byte() {
                    byte @ 0..250 => 1 + usize::from(byte) % 7,
                    250..255 if is_long => 40,
                    255 if is_long => 900,
                    _ => 8,
                };
                let from = if op == 255 { 0 } else { last };
                let times = times.min((max_bytes - start) / (start - from).max(1));
                (0..times).for_each(|_| content.extend_from_within(from..start));
                continue;
            }
        }
        last = start;
    }
    match archive {
        32..200 if is_archive(&content) => (content, None),
        32..200 => (content.clone(), Some(content)),
        200..220 => (stored_gzip(&content), Some(content)),
        220..240 => (raw_zstd(&content), Some(content)),
        _ => (bzip2(&content), Some(content)),
    }
}

/// Whether a file starts like an archive, supported or not.
fn is_archive(data: &[u8]) -> bool {
    let magic: [&[u8]; 6] = [b"\x1F\x8B", b"\x28\xB5\x2F\xFD", b"\xFD7zXZ", b"BZh", b"PK", b"PAR1"];
    magic.iter().any(|magic| data.starts_with(magic))
        || (data.len() >= 4 && (data[1..4] == *b"\x2A\x4D\x18" || data[1..4] == *b"\x22\x4D\x18"))
}

/// A gzip archive of blocks that are not compressed.
fn stored_gzip(content: &[u8]) -> Vec<u8> {
    let mut data = b"\x1F\x8B\x08\0\0\0\0\0\0\xFF".to_vec();
    let mut blocks = content.chunks(65_535).peekable();
    if content.is_empty() {
        data.extend(b"\x01\0\0\xFF\xFF");
    }
    while let Some(block) = blocks.next() {
        data.push(u8::from(blocks.peek().is_none()));
        data.extend((block.len() as u16).to_le_bytes());
        data.extend((!(block.len() as u16)).to_le_bytes());
        data.extend(block);
    }
    let mut checksum = flate2::Crc::new();
    checksum.update(content);
    data.extend(checksum.sum().to_le_bytes());
    data.extend((content.len() as u32).to_le_bytes());
    data
}

fn bzip2(content: &[u8]) -> Vec<u8> {
    let mut encoder = BzEncoder::new(Vec::new(), bzip2::Compression::fast());
    encoder.write_all(content).unwrap();
    encoder.finish().unwrap()
}

/// A zstd archive of a skippable frame, and a frame of blocks that are not compressed.
fn raw_zstd(content: &[u8]) -> Vec<u8> {
    let mut data = b"\x53\x2A\x4D\x18\x03\0\0\0abc\x28\xB5\x2F\xFD\0\x58".to_vec();
    let mut blocks = content.chunks(100_000).peekable();
    if content.is_empty() {
        data.extend(b"\x01\0\0");
    }
    while let Some(block) = blocks.next() {
        let header = (block.len() as u32) << 3 | u32::from(blocks.peek().is_none());
        data.extend(&header.to_le_bytes()[..3]);
        data.extend(block);
    }
    data
}

// ---------------------------------------------------------------------- the engine's reader

/// Reads the documents of a file, and again those after the first, the middle and the last one.
fn by_document(path: &Path, options: &Options) -> Outcome {
    let (whole, told) = from(Position::default(), path, options);
    let last = told.len().saturating_sub(1);
    for at in [0, last / 2, last] {
        let Some(&(position, skipped)) = told.get(at) else { break };
        let (rest, _) = from(position, path, options);
        assert_eq!(rest.documents, whole.documents[at + 1..], "{options:?} from {position:?}");
        assert_eq!((rest.skipped + skipped, rest.is_ok), (whole.skipped, whole.is_ok));
    }
    whole
}

/// Reads from a position on; also where each document ended, and how many were skipped up to there.
fn from(start: Position, path: &Path, options: &Options) -> (Outcome, Vec<(Position, u64)>) {
    let mut reader = Reader::new(vec![path.to_owned()], options.clone());
    reader.start_at(start);
    let (mut documents, mut document, mut told) = (Vec::new(), Vec::new(), Vec::new());
    let is_ok = loop {
        match reader.next_document(&mut document) {
            Ok(true) => {
                documents.push(document.clone());
                told.push((reader.position(), reader.skipped()));
            }
            Ok(false) => break true,
            Err(_) => break false,
        }
    };
    (Outcome { documents, skipped: reader.skipped(), is_ok }, told)
}

fn in_pieces(path: &Path, options: &Options, want: usize) -> Outcome {
    let mut reader = Reader::new(vec![path.to_owned()], options.clone());
    let (mut documents, mut document) = (Vec::new(), Vec::new());
    let is_ok = loop {
        match reader.read(&mut document, want) {
            Ok(ReadStatus::More) => {}
            Ok(ReadStatus::DocumentEnd) => documents.push(std::mem::take(&mut document)),
            Ok(ReadStatus::CorpusEnd) => break true,
            Err(_) => break false,
        }
    };
    Outcome { documents, skipped: reader.skipped(), is_ok }
}

// ---------------------------------------------------------------------- the plain reader

fn plain_text(text: &[u8], unit: &Unit, on_error: OnError) -> Outcome {
    let mut all: Vec<&[u8]> = match unit {
        Unit::File => vec![text],
        Unit::Line => text.split_inclusive(|&byte| byte == b'\n').collect(),
        Unit::Separator(separator) => split(text, separator),
    };
    if !matches!(unit, Unit::File) {
        all.pop_if(|last| last.is_empty());
    }
    let mut outcome = Outcome { documents: Vec::new(), skipped: 0, is_ok: true };
    for document in all {
        match on_error {
            OnError::Skip if std::str::from_utf8(document).is_err() => outcome.skipped += 1,
            OnError::Replace => {
                outcome.documents.push(String::from_utf8_lossy(document).into_owned().into_bytes())
            }
            _ => outcome.documents.push(document.to_vec()),
        }
    }
    outcome
}

fn split<'t>(mut text: &'t [u8], separator: &[u8]) -> Vec<&'t [u8]> {
    let mut parts = Vec::new();
    while let Some(at) = text.windows(separator.len()).position(|window| window == separator) {
        parts.push(&text[..at]);
        text = &text[at + separator.len()..];
    }
    parts.push(text);
    parts
}

/// `None` where this plain reader would disagree for a known reason: it parses a record as a whole, so it
/// knows neither lone surrogates, repeated fields, nor invalid UTF-8 in other fields.
fn plain_records(text: &[u8], on_error: OnError) -> Option<Outcome> {
    let mut outcome = Outcome { documents: Vec::new(), skipped: 0, is_ok: true };
    let text = text.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(text);
    for line in text.split(|&byte| byte == b'\n') {
        if line.trim_ascii().is_empty() {
            continue;
        }
        let line = match on_error {
            OnError::Replace => Cow::Owned(String::from_utf8_lossy(line).into_owned().into_bytes()),
            _ => Cow::Borrowed(line),
        };
        let has = |part: &[u8]| line.windows(part.len()).filter(|window| *window == part).count();
        let is_utf8 = std::str::from_utf8(&line).is_ok();
        if !is_utf8 || has(b"\\ud") + has(b"\\uD") > 0 || has(b"\"text\"") > 1 {
            return None;
        }
        let found = match serde_json::from_slice::<Value>(&line) {
            Ok(Value::Object(record)) => {
                record.get("text").and_then(Value::as_str).map(str::to_owned)
            }
            // A raw control character is an error in JSON, but the engine takes it in the text.
            Err(_) if line.iter().any(u8::is_ascii_control) => return None,
            _ => None,
        };
        match (found, on_error) {
            (Some(document), _) => outcome.documents.push(document.into_bytes()),
            (None, OnError::Skip) => outcome.skipped += 1,
            (None, _) => {
                outcome.is_ok = false;
                return Some(outcome);
            }
        }
    }
    Some(outcome)
}
