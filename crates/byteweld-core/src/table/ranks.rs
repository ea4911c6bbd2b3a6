//! Reads rank files: one line per token with its bytes in base64, a space, and its rank (its id).

use super::{TableBuilder, VocabTable};

/// The value of each base64 digit; 64 for other bytes.
const DIGITS: [u8; 256] = {
    let mut digits = [64; 256];
    let alphabet = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut value = 0;
    while value < 64 {
        digits[alphabet[value] as usize] = value as u8;
        value += 1;
    }
    digits
};

impl VocabTable {
    /// Reads a rank file; `None` unless every line is well-formed and the ranks ascend.
    pub fn from_ranks(data: &[u8]) -> Option<Self> {
        let mut rest = data.strip_suffix(b"\n").unwrap_or(data);
        let count = 1 + rest.iter().filter(|&&byte| byte == b'\n').count();
        let mut builder = TableBuilder::new(count, data.len() / 2);
        for _ in 0..count {
            // Both are near, where a plain loop is faster than memchr.
            let space = rest.iter().position(|&byte| byte == b' ')?;
            let end = rest[space..].iter().position(|&byte| byte == b'\n');
            let end = end.map_or(rest.len(), |length| space + length);
            let rank = read_rank(&rest[space + 1..end])?;
            builder.push(rank, |bytes| read_base64(&rest[..space], bytes))?;
            rest = rest.get(end + 1..).unwrap_or_default();
        }
        builder.finish()
    }
}

/// Parses a number below `u32::MAX` without sign or leading zeros.
pub(super) fn read_rank(digits: &[u8]) -> Option<u32> {
    if digits.is_empty() || digits.len() > 10 || (digits[0] == b'0' && digits.len() > 1) {
        return None;
    }
    let mut value = 0u64;
    for digit in digits {
        if !digit.is_ascii_digit() {
            return None;
        }
        value = value * 10 + u64::from(digit - b'0');
    }
    u32::try_from(value).ok().filter(|&id| id < u32::MAX)
}

/// Appends decoded base64; `None` unless it is canonical and not empty.
fn read_base64(text: &[u8], bytes: &mut Vec<u8>) -> Option<()> {
    let padding = text.iter().rev().take(2).take_while(|&&byte| byte == b'=').count();
    if text.is_empty() || !text.len().is_multiple_of(4) {
        return None;
    }
    let mut groups = text.chunks_exact(4);
    let last = groups.next_back()?;
    for group in groups {
        let number = join(group)?;
        bytes.extend_from_slice(&number.to_be_bytes()[1..]);
    }
    let number = join(&last[..4 - padding])? << (6 * padding);
    let kept = 3 - padding;
    if number & ((1 << (8 * padding)) - 1) != 0 {
        return None; // unused bits must be zero
    }
    bytes.extend_from_slice(&number.to_be_bytes()[1..1 + kept]);
    Some(())
}

/// Combines base64 digits into a number.
fn join(digits: &[u8]) -> Option<u32> {
    let mut number = 0;
    let mut seen = 0;
    for &digit in digits {
        let value = DIGITS[digit as usize];
        seen |= value;
        number = number << 6 | u32::from(value & 63);
    }
    (seen < 64).then_some(number)
}
