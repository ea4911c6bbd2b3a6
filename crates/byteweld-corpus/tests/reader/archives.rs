//! Compressed files: several members, truncated, damaged.

use std::io::Write;

use byteweld_corpus::{Error, OnError, Options, Reader, Unit, is_compressed};

use crate::{documents, file, options};

/// A compression, and a function that compresses one member with it.
pub(crate) struct Archive {
    suffix: &'static str,
    compress: fn(&[u8]) -> Vec<u8>,
}

pub(crate) const ALL: [Archive; 4] = [
    Archive { suffix: ".gz", compress: gzip },
    Archive { suffix: ".zst", compress: zstd },
    Archive { suffix: ".xz", compress: xz },
    Archive { suffix: ".bz2", compress: bzip2 },
];

impl Archive {
    /// Compresses in two members.
    pub(crate) fn store_in_parts(&self, content: &[u8], at: usize) -> (&'static str, Vec<u8>) {
        let (first, second) = content.split_at(at);
        (self.suffix, [(self.compress)(first), (self.compress)(second)].concat())
    }
}

fn gzip(content: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(content).unwrap();
    encoder.finish().unwrap()
}

/// A frame with a checksum.
pub(crate) fn zstd(content: &[u8]) -> Vec<u8> {
    let mut out = vec![0; zstd_safe::compress_bound(content.len())];
    let mut encoder = zstd_safe::CCtx::create();
    encoder.set_parameter(zstd_safe::CParameter::ChecksumFlag(true)).unwrap();
    let length = encoder.compress2(&mut out[..], content).unwrap();
    out.truncate(length);
    out
}

fn xz(content: &[u8]) -> Vec<u8> {
    let options = lzma_rust2::XzOptions::with_preset(1);
    let mut encoder = lzma_rust2::XzWriter::new(Vec::new(), options).unwrap();
    encoder.write_all(content).unwrap();
    encoder.finish().unwrap()
}

pub(crate) fn bzip2(content: &[u8]) -> Vec<u8> {
    let mut encoder = bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::fast());
    encoder.write_all(content).unwrap();
    encoder.finish().unwrap()
}

#[test]
fn all_members_are_read_and_truncation_and_damage_are_errors() {
    let text = "one two three, ".repeat(40);
    for archive in ALL {
        let (suffix, bytes) = archive.store_in_parts(text.as_bytes(), 200);
        assert!(is_compressed(&bytes));
        let name = format!("a.txt{suffix}");
        let path = file("members", &name, &bytes);
        assert_eq!(documents(&path, Unit::File, OnError::Fail).unwrap(), [text.as_str()]);
        let first = archive.store_in_parts(&text.as_bytes()[..200], 200).1.len()
            - (archive.compress)(b"").len();
        // Below 10 bytes, it is not recognized; between the members, it is a shorter archive.
        for end in (10..bytes.len()).filter(|&end| end != first) {
            let path = file("members", &name, &bytes[..end]);
            let error = documents(&path, Unit::File, OnError::Fail).unwrap_err();
            assert!(matches!(error, Error::Damaged { .. }), "{suffix} cut at {end}: {error}");
            assert_eq!(documents(&path, Unit::File, OnError::Skip).unwrap(), [""; 0]);
        }
        // What the checksums of bzip2 do not cover makes no difference.
        for at in (10..bytes.len()).filter(|_| suffix == ".bz2") {
            let mut damaged = bytes.clone();
            damaged[at] ^= 0x10;
            let path = file("members", &name, &damaged);
            match documents(&path, Unit::File, OnError::Fail) {
                Ok(found) => assert_eq!(found, [text.as_str()], "{at}"),
                Err(error) => assert!(matches!(error, Error::Damaged { .. }), "{at}: {error}"),
            }
        }
    }
}

#[test]
fn bytes_after_a_bzip2_stream_are_an_error() {
    let path = file("bzip2", "a.txt.bz2", &[bzip2(b"one"), b"garbage".to_vec()].concat());
    let error = documents(&path, Unit::File, OnError::Fail).unwrap_err().to_string();
    assert!(error.contains("byte 3: the archive is damaged"), "{error}");
}

#[test]
fn text_that_starts_like_bzip2_is_text() {
    for text in ["BZh9", "BZh91AY&S", "BZh01AY&SY", "BZh9 is a level"] {
        let path = file("bzip2", "text.txt", text.as_bytes());
        assert_eq!(documents(&path, Unit::File, OnError::Fail).unwrap(), [text]);
    }
}

#[test]
fn a_bzip2_file_of_many_empty_streams_is_read() {
    let path = file("bzip2", "empty.txt.bz2", &bzip2(b"").repeat(500));
    assert_eq!(documents(&path, Unit::File, OnError::Fail).unwrap(), [""]);
}

#[test]
fn the_documents_before_the_damage_are_returned() {
    for archive in ALL {
        let bytes = (archive.compress)(b"one\ntwo\nthree\n");
        let name = format!("a.txt{}", archive.suffix);
        let path = file("before-damage", &name, &bytes[..bytes.len() - 1]);
        let mut reader = Reader::new(vec![path], options(Unit::Line, OnError::Fail));
        let mut document = Vec::new();
        for line in [b"one\n".to_vec(), b"two\n".to_vec(), b"three\n".to_vec()] {
            assert!(reader.next_document(&mut document).unwrap(), "{name}");
            assert_eq!(document, line, "{name}");
        }
        let error = reader.next_document(&mut document).unwrap_err().to_string();
        assert!(error.contains("byte 14: the archive is"), "{error}");
    }
}

#[test]
fn the_rest_of_a_damaged_archive_can_be_skipped() {
    for archive in ALL {
        let bytes = (archive.compress)(b"one\ntwo\nthr");
        let name = format!("skipped.txt{}", archive.suffix);
        let cut = if archive.suffix == ".zst" { 4 } else { 1 };
        let damaged = file("skip-damage", &name, &bytes[..bytes.len() - cut]);
        let next = file("skip-damage", "next.txt", b"four\n");
        let options = Options { digest: true, ..options(Unit::Line, OnError::Skip) };
        let mut reader = Reader::new(vec![damaged, next], options);
        let (mut found, mut document) = (Vec::new(), Vec::new());
        while reader.next_document(&mut document).unwrap() {
            found.push(String::from_utf8(document.clone()).unwrap());
        }
        assert_eq!(found.last().unwrap(), "four\n", "{name}");
        assert!(!found.iter().any(|line| line.starts_with("thr")), "{name}: {found:?}");
        let skips = reader.take_skips();
        assert_eq!((skips.len(), reader.skipped(), skips[0].file), (1, 1, 0), "{name}");
        assert!(skips[0].reason.contains("the archive is"), "{name}: {}", skips[0].reason);
        // The damaged file was read to its end, for its digest.
        let finished = reader.take_finished();
        assert_eq!(finished.len(), 2, "{name}");
        assert_eq!(finished[0].bytes, (bytes.len() - cut) as u64, "{name}");
        assert_eq!(finished[0].documents, found.len() as u64 - 1, "{name}");
    }
}
