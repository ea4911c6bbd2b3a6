//! Up to 15 bytes and their number as one integer: equal numbers, equal bytes.

/// The bytes, the first one lowest, and their number in the highest byte.
pub(crate) type Packed = u128;

/// The most bytes that can be packed.
pub(crate) const MAX_PACKED_BYTES: usize = 15;

/// By length: the bits of the bytes.
const MASKS: [Packed; MAX_PACKED_BYTES + 1] = {
    let mut masks = [0; MAX_PACKED_BYTES + 1];
    let mut length = 0;
    while length <= MAX_PACKED_BYTES {
        masks[length] = (1 << (8 * length)) - 1;
        length += 1;
    }
    masks
};

/// Packs bytes; `None` if they are too many.
#[inline]
pub(crate) fn pack(bytes: &[u8]) -> Option<Packed> {
    let length = bytes.len();
    let packed = match length {
        0 => 0,
        1..=3 => {
            let (first, middle, last) = (bytes[0], bytes[length / 2], bytes[length - 1]);
            Packed::from(first)
                | Packed::from(middle) << (8 * (length / 2))
                | Packed::from(last) << (8 * (length - 1))
        }
        // Two reads, which agree where they overlap.
        4..=7 => {
            let (start, end) = (bytes.first_chunk::<4>()?, bytes.last_chunk::<4>()?);
            Packed::from(u32::from_le_bytes(*start))
                | Packed::from(u32::from_le_bytes(*end)) << (8 * (length - 4))
        }
        8..=MAX_PACKED_BYTES => {
            let (start, end) = (bytes.first_chunk::<8>()?, bytes.last_chunk::<8>()?);
            Packed::from(u64::from_le_bytes(*start))
                | Packed::from(u64::from_le_bytes(*end)) << (8 * (length - 8))
        }
        _ => return None,
    };
    Some(with_length(packed, length))
}

/// Packs the first `length` of 16 bytes; `None` if that is too many.
#[inline(always)]
pub(crate) fn pack_chunk(bytes: &[u8; MAX_PACKED_BYTES + 1], length: usize) -> Option<Packed> {
    let mask = MASKS.get(length)?;
    Some(with_length(Packed::from_le_bytes(*bytes) & mask, length))
}

#[inline(always)]
const fn with_length(bytes: Packed, length: usize) -> Packed {
    bytes | (length as Packed) << (8 * MAX_PACKED_BYTES)
}

#[cfg(test)]
mod tests;
