//! zstd files: frames of all kinds, damaged anywhere, windows of any size.

use byteweld_corpus::{Error, Limits, OnError, Options, Reader, Unit};
use zstd_safe::{CCtx, CParameter, InBuffer, OutBuffer};

use crate::archives::zstd;
use crate::{documents, file, options};

const SKIPPABLE: &[u8] = &[0x53, 0x2A, 0x4D, 0x18, 3, 0, 0, 0, b'a', b'b', b'c'];

/// A frame that does not say the size of its content, written in parts: a block or more for each.
fn streamed(parts: &[&[u8]], parameters: &[CParameter]) -> Vec<u8> {
    let mut encoder = CCtx::create();
    for &parameter in parameters {
        encoder.set_parameter(parameter).unwrap();
    }
    let size: usize = parts.iter().map(|part| part.len()).sum();
    let mut out = vec![0; zstd_safe::compress_bound(size) + 1024];
    let mut output = OutBuffer::around(&mut out[..]);
    for part in parts {
        let mut input = InBuffer::around(part);
        encoder.compress_stream(&mut output, &mut input).unwrap();
        assert_eq!(encoder.flush_stream(&mut output).unwrap(), 0);
    }
    assert_eq!(encoder.end_stream(&mut output).unwrap(), 0);
    let length = output.pos();
    out.truncate(length);
    out
}

/// Text that does not compress well, in lines of 8 bytes.
fn noise(lines: usize) -> Vec<u8> {
    let mut state = 1_u64;
    let mut line = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        format!("{:07x}\n", state >> 36)
    };
    (0..lines).flat_map(|_| line().into_bytes()).collect()
}

fn read(bytes: &[u8], name: &str) -> Result<Vec<String>, Error> {
    documents(&file("zstd", name, bytes), Unit::File, OnError::Fail)
}

#[test]
fn all_frames_are_read_and_skippable_ones_ignored() {
    let empty = zstd(b"");
    let unsized_frame = streamed(&[b"one ", b"two "], &[]);
    let bytes = [SKIPPABLE, &unsized_frame, &empty, SKIPPABLE, &zstd(b"three"), &empty, SKIPPABLE];
    assert_eq!(read(&bytes.concat(), "frames.txt.zst").unwrap(), ["one two three"]);
    for bytes in [SKIPPABLE.to_vec(), empty.repeat(500)] {
        assert_eq!(read(&bytes, "empty.txt.zst").unwrap(), [""]);
    }
    let cut = [&zstd(b"one")[..], &SKIPPABLE[..10]].concat();
    let error = read(&cut, "cut.txt.zst").unwrap_err().to_string();
    assert!(error.ends_with("byte 3: the archive is truncated"), "{error}");
}

#[test]
fn bytes_after_the_last_frame_are_an_error() {
    let error = read(&[&zstd(b"one")[..], b"garbage"].concat(), "garbage.txt.zst").unwrap_err();
    let expected =
        "byte 3: the archive is damaged: what follows the last zstd frame is not a frame";
    assert!(error.to_string().ends_with(expected), "{error}");
}

#[test]
fn a_flipped_bit_is_an_error_or_changes_nothing() {
    let text = "one two three, ".repeat(40);
    let checksum = CParameter::ChecksumFlag(true);
    let bytes = [zstd(text.as_bytes()), streamed(&[text.as_bytes(), b"end"], &[checksum])].concat();
    let whole = text.repeat(2) + "end";
    assert_eq!(read(&bytes, "flipped.txt.zst").unwrap(), [whole.as_str()]);
    // Without the magic number it is text.
    for bit in 32..8 * bytes.len() {
        let mut damaged = bytes.clone();
        damaged[bit / 8] ^= 1 << (bit % 8);
        match read(&damaged, "flipped.txt.zst") {
            Ok(found) => assert_eq!(found, [whole.as_str()], "bit {bit}"),
            Err(Error::Damaged { .. } | Error::TooLarge { .. }) => {}
            Err(error) => panic!("bit {bit}: {error}"),
        }
    }
}

#[test]
fn the_blocks_before_a_damaged_one_are_read() {
    let lines = noise(50_000);
    let (first, rest) = lines.split_at(200_000);
    let (second, third) = rest.split_at(80_000);
    let before = streamed(&[first, second], &[]).len();
    let bytes = streamed(&[first, second, third], &[]);
    let mut damaged = bytes.clone();
    // The header of the first block of the third part: the reserved type.
    damaged[before - 3] |= 6;
    for want in [1 << 12, 100_000, 1 << 20] {
        let path = file("zstd", "blocks.txt.zst", &damaged);
        let mut reader = Reader::new(vec![path], options(Unit::File, OnError::Fail));
        let mut buffer = Vec::new();
        let error = loop {
            match reader.read(&mut buffer, want) {
                Ok(_) => {}
                Err(error) => break error.to_string(),
            }
        };
        assert!(buffer == lines[..280_000], "{want}: {} bytes", buffer.len());
        assert!(error.contains("byte 280000: the archive is damaged: "), "{error}");
    }
    let found = read(&bytes, "blocks.txt.zst").unwrap();
    assert!(found == [String::from_utf8(lines).unwrap()]);
}

#[test]
fn a_wrong_checksum_is_an_error() {
    let mut bytes = zstd(b"one\n");
    *bytes.last_mut().unwrap() ^= 1;
    let error = read(&bytes, "checksum.txt.zst").unwrap_err().to_string();
    assert!(error.contains("byte 4: the archive is damaged: ") && error.contains("checksum"));
}

#[test]
fn a_window_is_compared_with_its_limit() {
    let lines = noise(10_000);
    let long = [CParameter::EnableLongDistanceMatching(true), CParameter::WindowLog(27)];
    let bytes = [zstd(b"one\n"), streamed(&[&lines], &long)].concat();
    let path = file("zstd", "long.txt.zst", &bytes);
    let whole = ["one\n".to_owned() + &String::from_utf8(lines).unwrap()];
    assert!(documents(&path, Unit::File, OnError::Fail).unwrap() == whole);
    let limits = Limits { dictionary_bytes: (1 << 27) - 1, ..Limits::default() };
    let limited = Options { limits, ..options(Unit::Line, OnError::Fail) };
    let mut reader = Reader::new(vec![path], limited);
    let mut document = Vec::new();
    assert!(reader.next_document(&mut document).unwrap());
    assert_eq!(document, b"one\n");
    let error = reader.next_document(&mut document).unwrap_err();
    assert!(matches!(error, Error::TooLarge { .. }), "{error}");
    assert!(error.to_string().contains("a dictionary of 134217728 bytes"), "{error}");
}

#[test]
fn a_window_that_libzstd_does_not_support_is_an_error() {
    // A window of 2^32 bytes.
    let bytes = [0x28, 0xB5, 0x2F, 0xFD, 0, 22 << 3, 1, 0, 0];
    let limits = Limits { dictionary_bytes: 1 << 33, ..Limits::default() };
    let options = Options { limits, ..options(Unit::File, OnError::Fail) };
    let mut reader = Reader::new(vec![file("zstd", "window.txt.zst", &bytes)], options);
    let error = reader.next_document(&mut Vec::new()).unwrap_err().to_string();
    assert!(error.contains("a window of 4294967296 bytes") && error.contains("--long=31"));
}
