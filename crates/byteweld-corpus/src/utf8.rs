//! Replacing what is not UTF-8 by U+FFFD, in a stream.

/// Appends `bytes` to `out` with every ill-formed sequence replaced. Returns how many bytes at the end were
/// left alone because they may be the start of a character; with `last` there are none.
pub(crate) fn append_replaced(bytes: &[u8], last: bool, out: &mut Vec<u8>) -> usize {
    let mut done = 0;
    for chunk in bytes.utf8_chunks() {
        out.extend_from_slice(chunk.valid().as_bytes());
        done += chunk.valid().len();
        if chunk.invalid().is_empty() {
            continue;
        }
        if !last && done + chunk.invalid().len() == bytes.len() && may_go_on(chunk.invalid()) {
            return chunk.invalid().len();
        }
        done += chunk.invalid().len();
        out.extend_from_slice("\u{FFFD}".as_bytes());
    }
    0
}

/// Whether bytes that are not a character may be the start of one.
fn may_go_on(bytes: &[u8]) -> bool {
    matches!(std::str::from_utf8(bytes), Err(e) if e.error_len().is_none())
}

#[cfg(test)]
mod tests {
    use super::append_replaced;

    #[test]
    fn any_cut_gives_the_same_replacement() {
        let bytes = b"a\xe2\x82\xac\xff\xf0\x9f\x98\x80\xed\xa0\x80\xe2\x82";
        let whole = String::from_utf8_lossy(bytes).into_owned();
        for cut in 0..=bytes.len() {
            let mut out = Vec::new();
            let left = append_replaced(&bytes[..cut], false, &mut out);
            let left = append_replaced(&bytes[cut - left..], true, &mut out);
            assert_eq!((left, String::from_utf8(out).unwrap()), (0, whole.clone()), "cut at {cut}");
        }
    }
}
