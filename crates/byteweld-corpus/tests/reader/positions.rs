//! Reading that starts again at any position gives what an uninterrupted reading gives.

use std::fs;
use std::io::{Cursor, Read, Result as IoResult};
use std::path::PathBuf;

use byteweld_corpus::{
    Error, FileRange, FinishedFile, Limits, OnError, Options, Position, ReadStatus, Reader, Skip,
    Unit,
};

use crate::archives;
use crate::{file, folder, options, separator};

/// A deterministic random number generator (SplitMix64).
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((mixed ^ (mixed >> 31)) % limit as u64) as usize
    }

    fn pick<T: Clone>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())].clone()
    }
}

/// `base` times `BYTEWELD_EXAMPLES`, as in the other crates.
fn examples(base: u64) -> u64 {
    let factor = std::env::var("BYTEWELD_EXAMPLES").ok().and_then(|factor| factor.parse().ok());
    base * factor.unwrap_or(1)
}

/// How documents are read: whole, or in pieces.
#[derive(Clone, Copy, Debug)]
enum Mode {
    Whole,
    Pieces(usize),
}

/// What a reader told when a document was complete.
#[derive(Clone, Debug, PartialEq)]
struct Snapshot {
    document: Vec<u8>,
    position: Position,
    skips: Vec<Skip>,
    skipped: u64,
    finished: Vec<FinishedFile>,
}

#[derive(Debug, PartialEq)]
struct Reading {
    documents: Vec<Snapshot>,
    /// What it told at the end of the corpus, or its error.
    end: Result<Snapshot, String>,
}

fn snapshot(reader: &mut Reader, document: Vec<u8>) -> Snapshot {
    Snapshot {
        document,
        position: reader.position(),
        skips: reader.take_skips(),
        skipped: reader.skipped(),
        finished: reader.take_finished(),
    }
}

fn next(reader: &mut Reader, mode: Mode) -> Result<Option<Vec<u8>>, Error> {
    let mut document = Vec::new();
    let Mode::Pieces(want) = mode else {
        return Ok(reader.next_document(&mut document)?.then_some(document));
    };
    loop {
        match reader.read(&mut document, want)? {
            ReadStatus::More => {}
            ReadStatus::DocumentEnd => return Ok(Some(document)),
            ReadStatus::CorpusEnd => return Ok(None),
        }
    }
}

fn read(mut reader: Reader, mode: Mode) -> Reading {
    let mut documents = Vec::new();
    loop {
        match next(&mut reader, mode) {
            Ok(Some(document)) => documents.push(snapshot(&mut reader, document)),
            Ok(None) => {
                let end = Ok(snapshot(&mut reader, Vec::new()));
                return Reading { documents, end };
            }
            Err(error) => return Reading { documents, end: Err(error.to_string()) },
        }
    }
}

/// What is left of a reading after the first documents.
fn rest(whole: &Reading, done: usize) -> Reading {
    let before = whole.documents[..done].last().map_or(0, |last| last.skipped);
    let later = |told: &Snapshot| Snapshot { skipped: told.skipped - before, ..told.clone() };
    Reading {
        documents: whole.documents[done..].iter().map(later).collect(),
        end: whole.end.as_ref().map(later).map_err(String::clone),
    }
}

const TEXT: [&[u8]; 24] = [
    b"a",
    b"word ",
    b"\n",
    b"\n",
    b"\n\n",
    b"\r\n",
    b"<|x|>",
    b"<|x|>",
    b"<|x",
    b"",
    b"\xEF\xBB\xBF",
    b"\0",
    "é".as_bytes(),
    "日本".as_bytes(),
    "😀".as_bytes(),
    b"\xFF",
    b"\xC3",
    b"\xE6\x97",
    b"\n",
    b"<|x|>",
    b"a longer part of a text, ",
    b"b",
    b" ",
    b"c",
];

const RECORDS: [&[u8]; 14] = [
    b"{\"text\": \"one\"}\n",
    b"{\"text\": \"\"}\n",
    b"{\"text\": \"a longer part of a text, which may be too long\"}\n",
    b"\n",
    b"  \n",
    b"{\"text\": null}\n",
    b"{\"text\": 1}\n",
    b"{\"other\": \"x\"}\n",
    b"{bad\n",
    b"{\"text\": \"\xFF\"}\n",
    b"{\"text\": \"\\ud800\"}\n",
    b"{\"text\": \"\xC3\xA9\"}\r\n",
    b"{\"text\": \"last\"}",
    b"\xEF\xBB\xBF",
];

const TYPES: [&str; 8] = [
    "conversion",
    "conversion",
    "conversion",
    "conversion",
    "warcinfo",
    "metadata",
    "response",
    "resource",
];

fn parts(random: &mut Random, from: &[&[u8]], most: usize) -> Vec<u8> {
    (0..random.below(most)).flat_map(|_| random.pick(from).to_vec()).collect()
}

/// The name of a file and its content.
fn content(random: &mut Random) -> (&'static str, Vec<u8>) {
    match random.below(3) {
        0 => ("txt", parts(random, &TEXT, 40)),
        1 => ("jsonl", parts(random, &RECORDS, 20)),
        _ => {
            let mut all = Vec::new();
            for _ in 0..random.below(8) {
                let text = parts(random, &TEXT, 12);
                all.extend(crate::warc::record(random.pick(&TYPES), &text));
            }
            ("warc.wet", all)
        }
    }
}

fn random_file(random: &mut Random, case: u64, index: usize) -> PathBuf {
    if random.below(12) == 0 {
        return folder("positions").join(if random.below(2) == 0 { "missing.txt" } else { "" });
    }
    let (extension, content) = content(random);
    let (suffix, mut stored) = match random.below(5) {
        0 => ("", content),
        kind => archives::ALL[kind - 1].store_in_parts(&content, random.below(content.len() + 1)),
    };
    if random.below(16) == 0 {
        stored.truncate(random.below(stored.len() + 1)); // text is cut, archives are damaged
    }
    file("positions", &format!("{case}-{index}.{extension}{suffix}"), &stored)
}

fn random_options(random: &mut Random) -> Options {
    let unit = random.pick(&[Unit::File, Unit::Line, separator("<|x|>")]);
    let on_error = random.pick(&[OnError::Fail, OnError::Skip, OnError::Skip, OnError::Replace]);
    // A small limit makes every document of more bytes a long one, which is checked in a first pass.
    let record_bytes = random.pick(&[1 << 30, 1 << 30, 60, 20]);
    let limits = Limits { record_bytes, ..Limits::default() };
    let require_utf8 = random.below(2) == 0;
    Options { require_utf8, digest: true, limits, ..options(unit, on_error) }
}

#[test]
fn starting_after_any_document_gives_the_rest() {
    let mut seen = [0; 4];
    for case in 0..examples(500) {
        let mut random = Random(case);
        let files: Vec<PathBuf> =
            (0..1 + random.below(4)).map(|index| random_file(&mut random, case, index)).collect();
        let options = random_options(&mut random);
        let mode = random.pick(&[Mode::Whole, Mode::Pieces(1), Mode::Pieces(1 << 20)]);
        let reader = || Reader::new(files.clone(), options.clone());
        let whole = read(reader(), mode);
        for done in 0..=whole.documents.len() {
            let mut again = reader();
            if done > 0 {
                again.start_at(whole.documents[done - 1].position);
            }
            assert_eq!(
                read(again, mode),
                rest(&whole, done),
                "case {case}, {done} documents: {options:?}"
            );
        }
        if let Ok(end) = &whole.end {
            let mut again = reader();
            again.start_at(end.position);
            let nothing =
                Snapshot { skipped: 0, skips: Vec::new(), finished: Vec::new(), ..end.clone() };
            assert_eq!(read(again, mode), Reading { documents: Vec::new(), end: Ok(nothing) });
            check_totals(&files, &whole, end);
        }
        seen[0] += whole.documents.len();
        seen[1] += usize::from(whole.end.is_err());
        let all = whole.documents.iter().chain(whole.end.as_ref());
        all.for_each(|told| (seen[2] += told.skips.len(), seen[3] += told.finished.len()).0);
        files.iter().for_each(|path| drop(fs::remove_file(path)));
    }
    // The corpora are neither all empty nor all broken.
    assert!(seen.iter().all(|&count| count > 100), "{seen:?}");
}

/// Every file is finished or skipped, once, with its own bytes and documents.
fn check_totals(files: &[PathBuf], whole: &Reading, end: &Snapshot) {
    let told = || whole.documents.iter().chain([end]);
    let finished: Vec<FinishedFile> = told().flat_map(|told| told.finished.clone()).collect();
    let skipped = told().flat_map(|told| &told.skips).filter(|skip| skip.offset.is_none());
    let mut all: Vec<u64> = finished.iter().map(|file| file.file).collect();
    all.extend(skipped.map(|skip| skip.file));
    all.sort_unstable();
    assert_eq!(all, (0..files.len() as u64).collect::<Vec<_>>());
    for file in &finished {
        let stored = fs::read(&files[file.file as usize]).unwrap();
        assert_eq!(file.bytes, stored.len() as u64);
        assert_eq!(file.digest, Some(twox_hash::XxHash3_128::oneshot(&stored)));
        let of_file = |told: &&Snapshot| told.position.file == file.file;
        assert_eq!(file.documents, whole.documents.iter().filter(of_file).count() as u64);
    }
    let skips: u64 = told().map(|told| told.skips.len() as u64).sum();
    assert_eq!(skips, end.skipped);
}

/// Returns a few bytes at a time, as a network does.
struct Dribble(Cursor<Vec<u8>>, usize);

impl Read for Dribble {
    fn read(&mut self, buffer: &mut [u8]) -> IoResult<usize> {
        let most = buffer.len().min(self.1);
        self.0.read(&mut buffer[..most])
    }
}

#[test]
fn a_stream_is_read_as_the_file_is() {
    for case in 0..examples(300) {
        let mut random = Random(case ^ 0xABCD);
        let files: Vec<PathBuf> = (0..1 + random.below(3))
            .map(|index| random_file(&mut random, case + 1_000_000, index))
            .collect();
        let mut options = random_options(&mut random);
        options.limits = Limits::default(); // a stream cannot be read twice
        let step = 1 + random.below(20);
        let stream = || {
            let mut reader = Reader::new(files.clone(), options.clone());
            reader.set_opener(move |path| {
                let bytes = fs::read(path)?;
                Ok(Some(Box::new(Dribble(Cursor::new(bytes), step))))
            });
            reader
        };
        let whole = read(Reader::new(files.clone(), options.clone()), Mode::Whole);
        assert_eq!(read(stream(), Mode::Whole), whole, "case {case}: {options:?}");
        if let Some(first) = whole.documents.first() {
            let mut again = stream();
            again.start_at(first.position);
            assert_eq!(read(again, Mode::Whole), rest(&whole, 1), "case {case}: {options:?}");
        }
        files.iter().for_each(|path| drop(fs::remove_file(path)));
    }
}

#[test]
fn an_opener_may_leave_a_file_to_the_file_system() {
    let path = file("opener", "a.txt", b"file");
    let mut reader = Reader::new(
        vec![path.clone(), "s3://x/b.txt".into(), path],
        options(Unit::File, OnError::Fail),
    );
    reader.set_opener(|path| {
        let is_remote = path.starts_with("s3://");
        Ok(is_remote.then(|| Box::new(Cursor::new(b"stream".to_vec())) as Box<dyn Read + Send>))
    });
    let documents = read(reader, Mode::Whole).documents;
    let texts: Vec<&[u8]> = documents.iter().map(|told| &told.document[..]).collect();
    assert_eq!(texts, [&b"file"[..], b"stream", b"file"]);
}

#[test]
fn the_error_of_a_stream_is_not_taken_for_a_damaged_archive() {
    struct Broken(bool);
    impl Read for Broken {
        fn read(&mut self, buffer: &mut [u8]) -> IoResult<usize> {
            if std::mem::replace(&mut self.0, true) {
                return Err(std::io::Error::other("the server is gone"));
            }
            buffer[..10].copy_from_slice(b"\x1F\x8B\x08\0\0\0\0\0\0\xFF");
            Ok(10)
        }
    }
    for on_error in [OnError::Fail, OnError::Skip] {
        let mut reader = Reader::new(vec!["x.gz".into()], options(Unit::File, on_error));
        reader.set_opener(|_| Ok(Some(Box::new(Broken(false)))));
        let error = reader.next_document(&mut Vec::new()).unwrap_err();
        assert!(matches!(&error, Error::Io { .. }), "{error}");
        assert_eq!(error.to_string(), "x.gz: the server is gone");
    }
}

#[test]
fn a_file_that_has_become_shorter_is_an_error() {
    for (name, on_error) in [("a.txt", OnError::Fail), ("a.jsonl", OnError::Skip)] {
        let path = file("shorter", name, b"{\"text\": \"one\"}\n{\"text\": \"two\"}\n");
        let mut reader = Reader::new(vec![path.clone()], options(Unit::Line, on_error));
        let mut document = Vec::new();
        while reader.position().documents < 2 {
            assert!(reader.next_document(&mut document).unwrap());
        }
        let position = reader.position();
        assert_eq!(position, Position { file: 0, offset: 32, documents: 2, line: 2 });
        fs::write(&path, b"{\"text\": \"one\"}\n").unwrap();
        let mut again = Reader::new(vec![path], options(Unit::Line, on_error));
        again.start_at(position);
        let error = again.next_document(&mut document).unwrap_err().to_string();
        assert!(error.contains("has 16 bytes, but reading is to go on at byte 32"), "{error}");
    }
}

#[test]
fn a_file_that_has_vanished_after_a_part_was_read_is_not_skipped() {
    let path = file("vanished", "a.txt", b"one\ntwo\n");
    let start = Position { file: 0, offset: 4, documents: 1, line: 1 };
    fs::remove_file(&path).unwrap();
    for (position, is_error) in [(start, true), (Position::default(), false)] {
        let mut reader = Reader::new(vec![path.clone()], options(Unit::Line, OnError::Skip));
        reader.start_at(position);
        assert_eq!(reader.next_document(&mut Vec::new()).is_err(), is_error);
        assert_eq!(reader.skipped(), u64::from(!is_error));
    }
}

#[test]
fn a_position_after_the_last_file_leaves_nothing() {
    let path = file("after", "a.txt", b"one");
    for file in [1, 7, u64::MAX] {
        let mut reader = Reader::new(vec![path.clone()], options(Unit::File, OnError::Fail));
        reader.start_at(Position { file, ..Position::default() });
        assert!(!reader.next_document(&mut Vec::new()).unwrap());
    }
}

// ---------------------------------------------------------------------- parts of files

#[test]
fn a_part_of_a_file_is_read_as_it_is() {
    // The part starts like a gzip archive.
    let path = file("range", "a.txt", b"one\n\x1F\x8Btwo\nthree\nfour\n");
    for on_error in [OnError::Fail, OnError::Skip, OnError::Replace] {
        let options = Options { digest: true, ..options(Unit::Line, on_error) };
        let mut reader = Reader::new(vec![path.clone()], options);
        reader.set_range(FileRange { start: 4, stop: 16, line: 1 });
        let mut found = Vec::new();
        let mut document = Vec::new();
        while reader.next_document(&mut document).unwrap() {
            found.push(String::from_utf8_lossy(&document).into_owned());
        }
        if on_error == OnError::Skip {
            assert_eq!(found, ["three\n"]);
            let skips = reader.take_skips();
            assert_eq!((skips[0].line, skips[0].offset), (Some(2), Some(4)));
        } else {
            assert_eq!(found, ["\x1F\u{FFFD}two\n", "three\n"]);
        }
        let finished = reader.take_finished();
        assert_eq!((finished[0].bytes, finished[0].digest, finished[0].lines), (12, None, 3));
    }
}

#[test]
fn a_part_beyond_the_end_of_a_file_is_an_error() {
    let path = file("range-beyond", "a.txt", b"one\ntwo\n");
    for (start, stop) in [(0, 9), (4, 20), (30, 40)] {
        let mut reader = Reader::new(vec![path.clone()], options(Unit::Line, OnError::Fail));
        reader.set_range(FileRange { start, stop, line: 0 });
        let mut document = Vec::new();
        let error = loop {
            match reader.next_document(&mut document) {
                Ok(true) => {}
                Ok(false) => panic!("no error for {start}..{stop}"),
                Err(error) => break error.to_string(),
            }
        };
        assert!(error.contains(&format!("the file ends before byte {stop}")), "{error}");
    }
}

#[test]
fn long_documents_of_a_part_are_checked_in_that_part() {
    // Longer than what is held in memory to check it.
    let limits = Limits { record_bytes: 1 << 16, ..Limits::default() };
    let mut content = b"\xFFfirst\n".to_vec();
    content.extend_from_slice(&[b'a'; 300_000]);
    content.push(b'\n');
    content.extend_from_slice(&[b'b'; 200_000]);
    content.extend_from_slice(b"\xFF\nlast\n");
    let path = file("range-long", "a.txt", &content);
    let mut reader =
        Reader::new(vec![path], Options { limits, ..options(Unit::Line, OnError::Skip) });
    reader.set_range(FileRange { start: 7, stop: content.len() as u64, line: 1 });
    let mut lengths = Vec::new();
    let mut document = Vec::new();
    loop {
        match reader.read(&mut document, 1 << 12).unwrap() {
            ReadStatus::More => {}
            ReadStatus::DocumentEnd => lengths.push(std::mem::take(&mut document).len()),
            ReadStatus::CorpusEnd => break,
        }
    }
    assert_eq!(lengths, [300_001, 5]);
    assert_eq!(reader.skipped(), 1);
}
