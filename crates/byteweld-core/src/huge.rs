//! Huge pages for large tables.
//!
//! Random lookups in a large table miss the TLB; with huge pages it needs far fewer entries.

/// Asks the system to back a slice that is not touched yet with huge pages; a hint that may be
/// ignored.
#[cfg_attr(target_os = "linux", expect(unsafe_code, reason = "a system call"))]
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
            // SAFETY: the pages lie inside the slice, and their content does not change.
            unsafe { libc::madvise(start.cast_mut().cast(), length, libc::MADV_HUGEPAGE) };
        }
    }
    #[cfg(not(target_os = "linux"))]
    let _ = memory;
}

#[cfg(test)]
mod tests;
