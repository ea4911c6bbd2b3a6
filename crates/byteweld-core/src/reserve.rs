//! Allocations that fail with an error instead of aborting the process.
//!
//! Whatever grows with the input is allocated here, before it is filled.

use crate::error::{Error, Result};

// The first two are larger and the last is smaller than needed, because of glibc: once a block of
// 128 KiB to 32 MiB has been freed, it takes blocks of that size from the heap, which fragments it.

/// What a thread needs before its work starts: its stack, and what the system allocates for it.
pub(crate) const THREAD_BYTES: usize = 33 << 20;

/// What an operation allocates whatever its input, such as a compiled pattern.
const FIXED_BYTES: usize = 33 << 20;

/// What a step of an operation allocates in small pieces.
const STEP_BYTES: usize = 96 << 10;

/// Fails if there is not enough memory to start an operation. Small allocations, and those of
/// libraries and the system, abort if they fail, so what they need is tried first.
pub fn check_memory() -> Result<()> {
    check_memory_for(0)
}

/// The same for an operation that allocates up to this many bytes more, in many pieces.
pub fn check_memory_for(bytes: usize) -> Result<()> {
    let bytes = bytes.saturating_add(FIXED_BYTES);
    if is_available(bytes) { Ok(()) } else { Err(failed::<u8>(bytes)) }
}

/// Fails if there is not enough memory for a step of an operation, whose small allocations abort.
pub(crate) fn check_step() -> Result<()> {
    if is_available(STEP_BYTES) { Ok(()) } else { Err(failed::<u8>(STEP_BYTES)) }
}

/// Whether this much memory can be allocated now.
pub(crate) fn is_available(bytes: usize) -> bool {
    let mut memory: Vec<u8> = Vec::new();
    let is_reserved = memory.try_reserve_exact(bytes).is_ok();
    std::hint::black_box(&memory); // or the compiler removes what is never used
    is_reserved
}

/// The error of an allocation of `length` values.
#[cold]
pub(crate) fn failed<T>(length: usize) -> Error {
    Error::OutOfMemory { bytes: length.saturating_mul(size_of::<T>()) }
}

/// Reserves space for `more` values; a vector that grows step by step grows geometrically.
#[inline]
pub fn reserve<T>(values: &mut Vec<T>, more: usize) -> Result<()> {
    values.try_reserve(more).map_err(|_| failed::<T>(more))
}

/// Reserves space for exactly `more` values.
pub(crate) fn reserve_exact<T>(values: &mut Vec<T>, more: usize) -> Result<()> {
    values.try_reserve_exact(more).map_err(|_| failed::<T>(more))
}

/// Appends a value.
#[inline]
pub(crate) fn push<T>(values: &mut Vec<T>, value: T) -> Result<()> {
    reserve(values, 1)?;
    values.push(value);
    Ok(())
}

/// Appends copies of values.
pub(crate) fn append<T: Clone>(values: &mut Vec<T>, more: &[T]) -> Result<()> {
    reserve(values, more.len())?;
    values.extend_from_slice(more);
    Ok(())
}

/// A vector of `length` equal values.
pub(crate) fn filled<T: Clone>(value: T, length: usize) -> Result<Vec<T>> {
    let mut values = Vec::new();
    reserve_exact(&mut values, length)?;
    values.resize(length, value);
    Ok(values)
}

/// The values of an iterator of known length.
pub(crate) fn collect<T>(values: impl ExactSizeIterator<Item = T>) -> Result<Vec<T>> {
    let mut collected = Vec::new();
    reserve_exact(&mut collected, values.len())?;
    collected.extend(values);
    Ok(collected)
}
