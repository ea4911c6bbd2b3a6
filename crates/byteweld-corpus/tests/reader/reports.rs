//! What a reader tells: skips with their reasons, digests, errors with offsets.

use std::path::PathBuf;

use byteweld_corpus::{Error, Limits, OnError, Options, Position, ReadStatus, Reader, Skip, Unit};

use crate::{file, folder, options, separator};

fn read_all(reader: &mut Reader) -> Result<Vec<Vec<u8>>, Error> {
    let (mut all, mut document) = (Vec::new(), Vec::new());
    while reader.next_document(&mut document)? {
        all.push(document.clone());
    }
    Ok(all)
}

fn skips(files: Vec<PathBuf>, options: Options) -> Vec<Skip> {
    let mut reader = Reader::new(files, options);
    read_all(&mut reader).unwrap();
    let skips = reader.take_skips();
    assert_eq!(reader.skipped(), skips.len() as u64);
    assert_eq!(reader.take_skips(), []);
    skips
}

#[test]
fn skips_have_a_place_and_a_reason() {
    let records = b"{\"text\": \"ok\"}\n{bad\n{\"other\": 1}\n\n{\"text\": null}\n{\"text\": 1}\n{\"text\": \"\xFF\"}\n{\"text\": \"a record that is too long\"}\n";
    let files = vec![
        folder("skips").join("none.txt"),
        file("skips", "a.jsonl", records),
        folder("skips"),
        file("skips", "b.txt", b"\xFF"),
    ];
    let limits = Limits { record_bytes: 24, ..Limits::default() };
    let found = skips(files, Options { limits, ..options(Unit::File, OnError::Skip) });
    let shown: Vec<_> = found
        .iter()
        .map(|skip| (skip.file, skip.line, skip.offset, skip.reason.as_str()))
        .collect();
    assert_eq!(
        shown,
        [
            (0, None, None, "cannot be opened: No such file or directory (os error 2)"),
            (1, Some(2), Some(15), "not JSON: expected a key at column 2"),
            (1, Some(3), Some(20), "no field \"text\""),
            (1, Some(5), Some(34), "the field is null"),
            (1, Some(6), Some(49), "the field is a number, not a string"),
            (1, Some(7), Some(61), "not UTF-8"),
            (1, Some(8), Some(75), "too large"),
            (2, None, None, "cannot be opened: Is a directory (os error 21)"),
            (3, None, Some(0), "not UTF-8"),
        ]
    );
}

#[test]
fn skipped_lines_and_long_documents_have_a_place() {
    let path =
        file("skipped-lines", "a.txt", b"one\n\xFF\nthree\na line that is too long\nfive\n\xC3");
    let limits = Limits { record_bytes: 16, ..Limits::default() };
    // A document is long where it does not end in a window; the one in the middle does.
    let found = skips(vec![path], Options { limits, ..options(Unit::Line, OnError::Skip) });
    let shown: Vec<_> = found.iter().map(|skip| (skip.line, skip.offset)).collect();
    assert_eq!(shown, [(Some(2), Some(4)), (Some(6), Some(41))]);
    let long = [b"one--".to_vec(), vec![b'x'; 600 << 10], b"--\xFF--end".to_vec()].concat();
    let path = file("skipped-lines", "b.txt", &long);
    let found = skips(vec![path], Options { limits, ..options(separator("--"), OnError::Skip) });
    let shown: Vec<_> = found.iter().map(|skip| (skip.offset, skip.reason.as_str())).collect();
    assert_eq!(shown, [(Some(5), "too large"), (Some((600 << 10) + 7), "not UTF-8")]);
}

#[test]
fn the_first_thousand_skips_are_kept_and_all_are_counted() {
    let path = file("many-skips", "a.jsonl", &b"{}\n".repeat(2500));
    let mut reader = Reader::new(vec![path], options(Unit::File, OnError::Skip));
    assert_eq!(read_all(&mut reader).unwrap().len(), 0);
    let kept = reader.take_skips();
    assert_eq!((kept.len(), kept[999].line, reader.skipped()), (1000, Some(1000), 2500));
}

#[test]
fn long_documents_are_checked_each_by_its_own_place() {
    // In a small limit, each of these is long, but the second ends in the piece that makes it so.
    let filler = "x".repeat(300 << 10);
    let good = format!("{filler}\n").into_bytes();
    let bad = [filler.as_bytes(), b"\xFF", filler.as_bytes(), b"\n"].concat();
    let limits = Limits { record_bytes: 280 << 10, ..Limits::default() };
    for order in 0..16_u32 {
        let parts: Vec<&[u8]> =
            (0..4).map(|at| if order >> at & 1 == 0 { &good[..] } else { &bad[..] }).collect();
        let path = file("long", "a.txt", &parts.concat());
        let reader = || {
            let options = Options { limits, ..options(Unit::Line, OnError::Skip) };
            Reader::new(vec![path.clone()], options)
        };
        let expected: Vec<&[u8]> = parts.iter().copied().filter(|&part| part == good).collect();
        let (found, ends) = in_pieces(reader());
        assert!(found == expected.concat(), "{order:b}");
        for (length, position) in ends {
            let mut again = reader();
            again.start_at(position);
            assert!(in_pieces(again).0 == found[length..], "{order:b} from {position:?}");
        }
    }
}

/// All text, with its length and the position after each document.
fn in_pieces(mut reader: Reader) -> (Vec<u8>, Vec<(usize, Position)>) {
    let (mut found, mut ends) = (Vec::new(), Vec::new());
    loop {
        match reader.read(&mut found, 1 << 20).unwrap() {
            ReadStatus::More => {}
            ReadStatus::DocumentEnd => ends.push((found.len(), reader.position())),
            ReadStatus::CorpusEnd => return (found, ends),
        }
    }
}

#[test]
fn errors_have_an_offset() {
    let path = file("offsets", "a.jsonl", b"{\"text\": \"ok\"}\n\n{\"text\": null}\n");
    let mut reader = Reader::new(vec![path], options(Unit::File, OnError::Fail));
    let error = read_all(&mut reader).unwrap_err();
    assert!(matches!(error, Error::Content { line: Some(3), offset: Some(16), .. }), "{error}");
    let message = error.to_string();
    assert!(message.contains("a.jsonl:3: byte 16: the field \"text\" is null; "), "{message}");
}

#[test]
fn text_that_must_be_utf8_is_an_error_at_its_first_invalid_byte() {
    let strict = |unit| Options { require_utf8: true, ..options(unit, OnError::Fail) };
    let long = "é".repeat(1 << 20);
    for (unit, text, offset, line) in [
        (Unit::File, b"ab\xFFcd".to_vec(), 2, None),
        (Unit::File, b"ab\xE2\x82".to_vec(), 2, None),
        (Unit::File, [long.as_bytes(), b"\x80", long.as_bytes()].concat(), 2 << 20, None),
        (Unit::File, [b"a", long.as_bytes(), b"\xF0\x9F\x98"].concat(), (2 << 20) + 1, None),
        (Unit::Line, b"one\ntw\xC3\xA9\nth\xC3\nfour\n".to_vec(), 11, Some(3)),
        (
            Unit::Line,
            [b"\n", long.as_bytes(), b"\xFF", long.as_bytes(), b"\n"].concat(),
            (2 << 20) + 1,
            Some(2),
        ),
        (separator("--"), b"a\xC3--\xA9".to_vec(), 1, None),
        (separator("--"), b"a--b--\xA9".to_vec(), 6, None),
    ] {
        let path = file("strict", "a.txt", &text);
        let mut reader = Reader::new(vec![path], strict(unit.clone()));
        let error = read_all(&mut reader).unwrap_err();
        let Error::Content { line: found_line, offset: found, .. } = &error else {
            panic!("{error}");
        };
        assert_eq!((*found, *found_line), (Some(offset), line), "{unit:?}");
        assert!(error.to_string().contains("not UTF-8"), "{error}");
    }
    let good = file("strict", "b.txt", format!("{long}a\n😀").as_bytes());
    let mut reader = Reader::new(vec![good], strict(Unit::Line));
    assert_eq!(read_all(&mut reader).unwrap().len(), 2);
}

#[test]
fn files_are_only_reported_with_the_option() {
    let path = file("digest", "a.txt", b"one");
    for digest in [false, true] {
        let options = Options { digest, ..options(Unit::File, OnError::Fail) };
        let mut reader = Reader::new(vec![path.clone()], options);
        read_all(&mut reader).unwrap();
        assert_eq!(reader.take_finished().len(), usize::from(digest));
        assert_eq!(reader.take_finished().len(), 0);
    }
}
