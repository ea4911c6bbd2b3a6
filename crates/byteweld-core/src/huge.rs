//! Asking the system for large pages.
//!
//! A table that is looked up all over has more pages than the processor can remember the places of; of large
//! ones it needs few.

/// The memory of a slice, which was not used yet, should come in large pages, if the system has such. Nothing
/// depends on it.
#[cfg_attr(target_os = "linux", expect(unsafe_code, reason = "a call to the system"))]
pub(crate) fn advise<T>(memory: &[T]) {
    #[cfg(target_os = "linux")]
    {
        const PAGE: usize = 1 << 12;
        const HUGE_PAGE: usize = 1 << 21;
        let bytes = size_of_val(memory);
        let skipped = memory.as_ptr().cast::<u8>().align_offset(PAGE);
        let length = bytes.saturating_sub(skipped) / PAGE * PAGE;
        if length >= HUGE_PAGE {
            let start = memory.as_ptr().cast::<u8>().wrapping_add(skipped);
            // SAFETY: the pages lie inside the slice, and what they hold is not changed.
            unsafe { libc::madvise(start.cast_mut().cast(), length, libc::MADV_HUGEPAGE) };
        }
    }
    #[cfg(not(target_os = "linux"))]
    let _ = memory;
}

#[cfg(test)]
mod tests {
    use super::advise;

    #[test]
    fn advice_changes_nothing() {
        for size in [0, 1, 1 << 12, 3 << 20] {
            let memory = vec![7u8; size];
            advise(&memory);
            advise(memory.get(1..).unwrap_or_default());
            assert!(memory.iter().all(|&byte| byte == 7));
        }
    }
}
