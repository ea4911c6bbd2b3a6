//! Memory for large tables, on huge pages where the system has them.
//!
//! Random lookups in a large table miss the TLB; with huge pages it needs far fewer entries. A huge
//! page must start at a multiple of its size, so [`ZeroedPages`] aligns itself.

use std::ops::{Deref, DerefMut};

#[cfg(target_os = "linux")]
const PAGE: usize = 1 << 12;
const HUGE_PAGE: usize = 1 << 21;

/// Asks the system to back a slice that is not touched yet with huge pages; a hint that may be
/// ignored.
#[cfg_attr(target_os = "linux", expect(unsafe_code, reason = "a system call"))]
pub(crate) fn advise_huge_pages<T>(memory: &[T]) {
    #[cfg(target_os = "linux")]
    {
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

/// Types for which zeroed memory is a value.
///
/// # Safety
///
/// All bytes zero must be a valid value, and dropping one must do nothing.
#[expect(unsafe_code, reason = "a promise about the type")]
pub(crate) unsafe trait Zeroable: Copy {
    const ZERO: Self;
}

/// A slice of zeros whose large allocations take memory only for the pages that are written to.
pub(crate) struct ZeroedPages<T> {
    memory: Memory<T>,
}

enum Memory<T> {
    Heap(Vec<T>),
    #[cfg(target_os = "linux")]
    Mapped(mapped::Mapped<T>),
}

impl<T: Zeroable> ZeroedPages<T> {
    pub(crate) const EMPTY: Self = Self { memory: Memory::Heap(Vec::new()) };

    /// `None` if there is not enough memory.
    pub(crate) fn new(length: usize) -> Option<Self> {
        #[cfg(target_os = "linux")]
        if length.checked_mul(size_of::<T>())? >= HUGE_PAGE {
            return mapped::Mapped::new(length)
                .map(|mapped| Self { memory: Memory::Mapped(mapped) });
        }
        let mut values = Vec::new();
        values.try_reserve_exact(length).ok()?;
        values.resize(length, T::ZERO);
        Some(Self { memory: Memory::Heap(values) })
    }
}

impl<T> Deref for ZeroedPages<T> {
    type Target = [T];

    #[inline(always)]
    fn deref(&self) -> &[T] {
        match &self.memory {
            Memory::Heap(values) => values,
            #[cfg(target_os = "linux")]
            Memory::Mapped(mapped) => mapped.slice(),
        }
    }
}

impl<T> DerefMut for ZeroedPages<T> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut [T] {
        match &mut self.memory {
            Memory::Heap(values) => values,
            #[cfg(target_os = "linux")]
            Memory::Mapped(mapped) => mapped.slice_mut(),
        }
    }
}

/// Anonymous memory straight from the system, which is zero, and aligned for huge pages.
#[cfg(target_os = "linux")]
#[expect(unsafe_code, reason = "system calls")]
mod mapped {
    use std::ptr::{self, NonNull};

    use super::{HUGE_PAGE, Zeroable, advise_huge_pages};

    pub(super) struct Mapped<T> {
        /// The first of `length` values.
        start: NonNull<T>,
        length: usize,
        /// What was mapped, alignment included.
        mapping: NonNull<libc::c_void>,
        mapped_bytes: usize,
    }

    // SAFETY: it owns its memory, as a `Vec` does.
    unsafe impl<T: Send> Send for Mapped<T> {}
    // SAFETY: the same.
    unsafe impl<T: Sync> Sync for Mapped<T> {}

    impl<T: Zeroable> Mapped<T> {
        pub(super) fn new(length: usize) -> Option<Self> {
            let bytes = length.checked_mul(size_of::<T>()).filter(|&bytes| bytes > 0)?;
            let mapped_bytes = bytes.checked_add(HUGE_PAGE)?;
            // SAFETY: a new private mapping that no other memory depends on.
            let mapping = unsafe {
                libc::mmap(
                    ptr::null_mut(),
                    mapped_bytes,
                    libc::PROT_READ | libc::PROT_WRITE,
                    libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
                    -1,
                    0,
                )
            };
            if mapping == libc::MAP_FAILED {
                return None;
            }
            let mapping = NonNull::new(mapping)?;
            let skipped = mapping.as_ptr().cast::<u8>().align_offset(HUGE_PAGE);
            // SAFETY: `skipped` is less than a huge page, which was mapped in addition.
            let start = unsafe { mapping.cast::<u8>().add(skipped) }.cast::<T>();
            let mapped = Self { start, length, mapping, mapped_bytes };
            advise_huge_pages(mapped.slice());
            Some(mapped)
        }
    }

    impl<T> Mapped<T> {
        #[inline(always)]
        pub(super) fn slice(&self) -> &[T] {
            // SAFETY: `length` values from `start` on are mapped and, being zeros at first, valid.
            unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.length) }
        }

        #[inline(always)]
        pub(super) fn slice_mut(&mut self) -> &mut [T] {
            // SAFETY: the same, and nobody else has them.
            unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.length) }
        }
    }

    impl<T> Drop for Mapped<T> {
        fn drop(&mut self) {
            // SAFETY: the mapping is this value's own, and nothing borrows from it any longer.
            unsafe { libc::munmap(self.mapping.as_ptr(), self.mapped_bytes) };
        }
    }
}

#[cfg(test)]
mod tests;
