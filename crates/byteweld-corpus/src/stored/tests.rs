//! Digests of what was read, and of what was not needed.

use std::io::{Cursor, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use twox_hash::XxHash3_128;

use super::{HEAD_BYTES, Source, Stored};

/// Returns one byte at a time.
struct Slow(Cursor<Vec<u8>>);

impl Read for Slow {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        self.0.read(&mut buffer[..1])
    }
}

#[test]
fn what_the_decompressor_left_is_hashed() {
    let bytes: Vec<u8> = (0..200_000_u32).map(|n| (n % 251) as u8).collect();
    let consumed = Arc::new(AtomicU64::new(0));
    let source = Source::Stream(Box::new(Slow(Cursor::new(bytes.clone()))));
    let mut stored =
        Stored::new(source, true, Arc::clone(&consumed), Arc::new(|| false), true, None);
    let mut buffer = vec![0; 10_000];
    assert_eq!(stored.clone().read(&mut buffer).unwrap(), HEAD_BYTES);
    assert_eq!(stored.clone().read(&mut buffer).unwrap(), 1);
    stored.finish().unwrap();
    assert_eq!(stored.bytes_read(), 200_000);
    assert_eq!(stored.digest(), Some(XxHash3_128::oneshot(&bytes)));
    assert_eq!(consumed.load(Ordering::Relaxed), 200_000);
}
