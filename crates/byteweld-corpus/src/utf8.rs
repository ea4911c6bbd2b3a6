//! Replaces invalid UTF-8 by U+FFFD in a stream.

/// Appends `bytes` to `out` with every ill-formed sequence replaced. Returns the number of bytes at
/// the end that were not appended because they may start a character; 0 if `last`.
pub(crate) fn append_replaced(bytes: &[u8], last: bool, out: &mut Vec<u8>) -> usize {
    let mut done = 0;
    for chunk in bytes.utf8_chunks() {
        out.extend_from_slice(chunk.valid().as_bytes());
        done += chunk.valid().len();
        if chunk.invalid().is_empty() {
            continue;
        }
        if !last && done + chunk.invalid().len() == bytes.len() && may_continue(chunk.invalid()) {
            return chunk.invalid().len();
        }
        done += chunk.invalid().len();
        out.extend_from_slice("\u{FFFD}".as_bytes());
    }
    0
}

/// Whether invalid bytes may be the start of a character.
fn may_continue(bytes: &[u8]) -> bool {
    matches!(std::str::from_utf8(bytes), Err(e) if e.error_len().is_none())
}

#[cfg(test)]
mod tests;
