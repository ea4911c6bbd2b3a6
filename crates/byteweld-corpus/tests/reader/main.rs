//! Documents of every kind of file, whole and in pieces.

#![allow(clippy::unwrap_used, reason = "helpers of tests may fail as tests do")]

mod archives;
mod positions;
mod reports;
mod warc;
mod zstd;

use std::fs;
use std::path::{Path, PathBuf};

use byteweld_corpus::{
    ByteCounts, Error, Limits, OnError, Options, Outside, ReadStatus, Reader, Unit,
};

fn folder(name: &str) -> PathBuf {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    fs::create_dir_all(&path).unwrap();
    path
}

fn file(folder: &str, name: &str, bytes: &[u8]) -> PathBuf {
    let path = self::folder(folder).join(name);
    fs::write(&path, bytes).unwrap();
    path
}

fn options(unit: Unit, on_error: OnError) -> Options {
    Options {
        unit,
        field: "text".to_owned(),
        on_error,
        json_lines: false,
        require_utf8: false,
        digest: false,
        limits: Limits::default(),
    }
}

fn documents(path: &Path, unit: Unit, on_error: OnError) -> Result<Vec<String>, Error> {
    let mut reader = Reader::new(vec![path.to_owned()], options(unit, on_error));
    let (mut all, mut document) = (Vec::new(), Vec::new());
    while reader.next_document(&mut document)? {
        all.push(String::from_utf8_lossy(&document).into_owned());
    }
    Ok(all)
}

fn separator(text: &str) -> Unit {
    Unit::Separator(text.as_bytes().to_vec())
}

#[test]
fn a_file_is_a_document_even_if_it_is_empty() {
    let path = file("file", "a.txt", b"one\ntwo");
    assert_eq!(documents(&path, Unit::File, OnError::Fail).unwrap(), ["one\ntwo"]);
    let path = file("file", "b.txt", b"");
    assert_eq!(documents(&path, Unit::File, OnError::Fail).unwrap(), [""]);
    assert_eq!(documents(&path, Unit::Line, OnError::Fail).unwrap(), [""; 0]);
}

#[test]
fn lines_keep_their_endings() {
    let path = file("lines", "a.txt", b"one\r\n\ntwo");
    assert_eq!(documents(&path, Unit::Line, OnError::Fail).unwrap(), ["one\r\n", "\n", "two"]);
}

#[test]
fn separators_are_removed_even_across_windows() {
    let path = file("separators", "a.txt", b"one<|x|><|x|>two<|x|>");
    assert_eq!(documents(&path, separator("<|x|>"), OnError::Fail).unwrap(), ["one", "", "two"]);
    // A separator at every position across the end of the window (256 KiB).
    for shift in 0..6 {
        let start = "a".repeat((256 << 10) - shift);
        let path = file("separators", "b.txt", format!("{start}<|x|>end").as_bytes());
        assert_eq!(
            documents(&path, separator("<|x|>"), OnError::Fail).unwrap(),
            [start, "end".to_owned()]
        );
    }
}

#[test]
fn one_field_of_json_lines_is_read() {
    let text =
        b"{\"text\": \"one\\n\", \"n\": [1, {}]}\n\n  \n{\"id\": 1, \"text\": \"tw\\u00f6\"}";
    let path = file("json", "a.jsonl", text);
    assert_eq!(documents(&path, Unit::File, OnError::Fail).unwrap(), ["one\n", "twö"]);
}

#[test]
fn bad_records_fail_with_their_line_or_are_skipped() {
    for bad in [
        "{\"text\": 1}",
        "{\"other\": \"x\"}",
        "[1]",
        "{\"text\": \"a\"",
        "{\"text\": \"\\ud800\"}",
    ] {
        let text = format!("{{\"text\": \"ok\"}}\n{bad}\n{{\"text\": \"end\"}}\n");
        let path = file("bad", "a.jsonl", text.as_bytes());
        let error = documents(&path, Unit::File, OnError::Fail).unwrap_err().to_string();
        assert!(error.contains("a.jsonl:2: "), "{error}");
        assert_eq!(documents(&path, Unit::File, OnError::Skip).unwrap(), ["ok", "end"]);
    }
}

#[test]
fn invalid_utf8_is_kept_replaced_or_skipped() {
    let path = file("utf8", "a.txt", b"a\xff\nb\xe2\x82");
    let mut reader = Reader::new(vec![path.to_owned()], options(Unit::File, OnError::Fail));
    let mut document = Vec::new();
    assert!(reader.next_document(&mut document).unwrap());
    assert_eq!(document, b"a\xff\nb\xe2\x82");
    assert_eq!(documents(&path, Unit::File, OnError::Replace).unwrap(), ["a\u{fffd}\nb\u{fffd}"]);
    assert_eq!(
        documents(&path, Unit::Line, OnError::Replace).unwrap(),
        ["a\u{fffd}\n", "b\u{fffd}"]
    );
    assert_eq!(documents(&path, Unit::File, OnError::Skip).unwrap(), [""; 0]);
    let path = file("utf8", "b.jsonl", b"{\"text\": \"\\udc00x\"}\n{\"text\": \"\xff\"}\n");
    assert_eq!(
        documents(&path, Unit::File, OnError::Replace).unwrap(),
        ["\u{fffd}\u{fffd}\u{fffd}x", "\u{fffd}"]
    );
}

#[test]
fn a_character_across_windows_is_not_replaced() {
    let text = "é".repeat(300 << 10);
    for shift in 0..2 {
        let text = format!("{}{text}", "a".repeat(shift));
        let path = file("across", "a.txt", text.as_bytes());
        assert_eq!(documents(&path, Unit::File, OnError::Replace).unwrap(), [text]);
    }
}

#[test]
fn any_text_file_may_be_read_as_json_lines() {
    let record = b"{\"text\": \"one\"}\n";
    let json_lines = Options { json_lines: true, ..options(Unit::Line, OnError::Fail) };
    for (name, bytes) in [
        ("a.json", record.to_vec()),
        ("a", record.to_vec()),
        ("a.jsonl", record.to_vec()),
        ("a.json.zst", archives::zstd(record)),
    ] {
        let path = file("any-name", name, &bytes);
        let mut reader = Reader::new(vec![path], json_lines.clone());
        let mut document = Vec::new();
        assert!(reader.next_document(&mut document).unwrap(), "{name}");
        assert_eq!(document, b"one", "{name}");
        assert!(!reader.next_document(&mut document).unwrap(), "{name}");
    }
    // A WARC file has records of its own.
    let mut reader = Reader::new(vec![file("any-name", "a.wet", record)], json_lines);
    let error = reader.next_document(&mut Vec::new()).unwrap_err().to_string();
    assert!(error.contains("WARC"), "{error}");
}

#[test]
fn a_byte_order_mark_is_not_part_of_the_first_record() {
    let path = file("mark", "a.jsonl", b"\xEF\xBB\xBF{\"text\": \"one\"}\n");
    assert_eq!(documents(&path, Unit::File, OnError::Fail).unwrap(), ["one"]);
}

#[test]
fn unsupported_archives_are_rejected_by_name() {
    for (start, name) in
        [(&b"\x04\x22\x4D\x18"[..], "lz4"), (b"PK\x03\x04", "zip"), (b"PAR1", "Parquet")]
    {
        let path = file("unread", "a.txt", &[start, b"rest"].concat());
        let error = documents(&path, Unit::File, OnError::Fail).unwrap_err().to_string();
        assert!(error.contains(name), "{error}");
    }
}

#[test]
fn pieces_are_bounded_and_their_offsets_reported() {
    let path = file("pieces", "a.txt", &b"abcdefgh".repeat(100_000));
    let mut reader = Reader::new(vec![path], options(Unit::File, OnError::Fail));
    let mut buffer = Vec::new();
    assert_eq!(reader.read(&mut buffer, 10_000).unwrap(), ReadStatus::More);
    assert!(buffer.len() <= 10_000);
    assert_eq!(reader.location().1, Some(0));
    let first = buffer.len() as u64;
    assert_eq!(reader.read(&mut buffer, 10_000).unwrap(), ReadStatus::More);
    assert_eq!(reader.location().1, Some(first));
    while reader.read(&mut buffer, 10_000).unwrap() == ReadStatus::More {}
    assert_eq!(buffer.len(), 800_000);
    assert_eq!(reader.consumed().load(std::sync::atomic::Ordering::Relaxed), 800_000);
}

#[test]
fn a_missing_file_is_an_io_error_with_its_path() {
    let path = folder("missing").join("none.txt");
    assert!(matches!(documents(&path, Unit::File, OnError::Fail), Err(Error::Io { .. })));
}

#[test]
fn skipped_files_are_counted() {
    let here = file("skipped", "a.txt", b"one");
    let files = vec![folder("skipped").join("none.txt"), here, folder("skipped")];
    let mut reader = Reader::new(files, options(Unit::File, OnError::Skip));
    let mut document = Vec::new();
    assert!(reader.next_document(&mut document).unwrap());
    assert_eq!(document, b"one");
    assert!(!reader.next_document(&mut document).unwrap());
    assert_eq!(reader.skipped(), 2);
}

#[test]
fn a_file_that_grows_or_shrinks_between_two_reads_is_an_error() {
    let lines = b"line\n".repeat(200_000);
    for (name, size) in [("grows.txt", lines.len() + 1), ("shrinks.txt", lines.len() / 2)] {
        for on_error in [OnError::Fail, OnError::Skip, OnError::Replace] {
            let path = file("changes", name, &lines);
            let mut reader = Reader::new(vec![path.clone()], options(Unit::Line, on_error));
            let mut document = Vec::new();
            assert!(reader.next_document(&mut document).unwrap());
            fs::OpenOptions::new().write(true).open(&path).unwrap().set_len(size as u64).unwrap();
            let error = loop {
                match reader.next_document(&mut document) {
                    Ok(more) => assert!(more, "{name} was read to its end"),
                    Err(error) => break error,
                }
            };
            assert!(matches!(&error, Error::Content { path: found, .. } if *found == path));
            let message = error.to_string();
            assert!(message.contains(&format!("1000000 bytes when it was opened and has {size}")));
        }
    }
}

#[test]
fn an_xz_file_with_a_header_that_is_too_short_is_an_error() {
    let bytes = b"\xFD7zXZ\0\0\x04\xE6\xD6\xB4\x46\0\0\0\0";
    for length in 0..bytes.len() {
        let path = file("short-xz", &format!("{length}.xz"), &bytes[..=length]);
        let read = documents(&path, Unit::File, OnError::Fail);
        assert!(length < 5 || read.is_err(), "{length}");
    }
}

fn bytes_of(paths: &[PathBuf], unit: Unit, on_error: OnError) -> ByteCounts {
    let mut alphabet = [false; 256];
    alphabet[b' '.into()..=b'~'.into()].fill(true);
    let mut reader = Reader::new(paths.to_vec(), options(unit, on_error));
    ByteCounts::of(&mut reader, &alphabet).unwrap()
}

#[test]
fn the_bytes_of_all_documents_are_counted() {
    // Longer than a piece, and an odd length.
    let long: Vec<u8> = (0..1_000_003u32).map(|n| if n % 7 == 0 { b'x' } else { b'y' }).collect();
    let paths = [
        file("bytes", "a.txt", &long),
        file("bytes", "b.jsonl", b"{\"text\": \"xy\"}\n{\"text\": \"\xC3\xA9\"}\n"),
        file("bytes", "c.txt", b"x\x00x\x00"),
        file("bytes", "d.txt", b""),
    ];
    let found = bytes_of(&paths, Unit::File, OnError::Fail);
    let mut expected = [0; 256];
    for byte in long.iter().chain(b"xy\xC3\xA9x\x00x\x00") {
        expected[usize::from(*byte)] += 1;
    }
    assert_eq!(found.counts, expected);
    assert_eq!(found.files_outside, 2);
    let outside = Outside { path: paths[1].clone(), offset: None, byte: 0xC3 };
    assert_eq!(found.first_outside, Some(outside));
    // Separators and line units: the first is not counted, the second changes nothing.
    let found = bytes_of(&paths[2..3], separator("x"), OnError::Fail);
    assert_eq!((found.counts[0], found.counts[usize::from(b'x')]), (2, 0));
    let outside = Outside { path: paths[2].clone(), offset: Some(1), byte: 0 };
    assert_eq!(found.first_outside, Some(outside));
    let lines = bytes_of(&paths[..1], Unit::Line, OnError::Fail);
    assert_eq!(lines, bytes_of(&paths[..1], Unit::File, OnError::Fail));
    assert_eq!((lines.first_outside, lines.files_outside), (None, 0));
}
