//! Telling the processor which memory will be needed soon.

/// Asks for the element at `index`, if there is one; the program goes on at once.
#[inline(always)]
#[cfg_attr(
    target_arch = "x86_64",
    expect(unsafe_code, reason = "the instruction takes an address")
)]
pub(crate) fn prefetch<T>(slice: &[T], index: usize) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: the instruction reads nothing that the program can see, and faults at no address.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(slice.as_ptr().wrapping_add(index).cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (slice, index);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_index_of_any_slice_may_be_asked_for() {
        prefetch(&[1, 2, 3], 1);
        prefetch(&[1, 2, 3], usize::MAX);
        prefetch::<u64>(&[], 7);
    }
}
