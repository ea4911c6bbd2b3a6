//! Memory between two pages that must not be touched: to read past either end is a fault.

use std::ptr;

/// Room for a text between two guard pages.
pub(crate) struct Guarded {
    /// The first byte after the first guard page.
    start: *mut u8,
    bytes: usize,
}

const PAGE: usize = 1 << 12;

impl Guarded {
    /// Room for `bytes`, rounded up to pages.
    pub(crate) fn new(bytes: usize) -> Self {
        let bytes = bytes.next_multiple_of(PAGE);
        let (protection, flags) = (libc::PROT_NONE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
        // SAFETY: a new mapping at an address of the system's choice.
        let map =
            unsafe { libc::mmap(ptr::null_mut(), bytes + 2 * PAGE, protection, flags, -1, 0) };
        assert_ne!(map, libc::MAP_FAILED, "no memory for a guarded text");
        let start = map.cast::<u8>().wrapping_add(PAGE);
        // SAFETY: the pages between the guards belong to the mapping, and nothing refers to them yet.
        let outcome =
            unsafe { libc::mprotect(start.cast(), bytes, libc::PROT_READ | libc::PROT_WRITE) };
        assert_eq!(outcome, 0, "mprotect failed");
        Self { start, bytes }
    }

    fn room(&mut self) -> &mut [u8] {
        // SAFETY: `bytes` readable and writable bytes start there, borrowed as long as `self` is.
        unsafe { std::slice::from_raw_parts_mut(self.start, self.bytes) }
    }

    /// Puts a text at an offset, or, with `None`, so that it ends where the second guard page starts.
    pub(crate) fn put(&mut self, text: &[u8], offset: Option<usize>) -> &[u8] {
        let offset = offset.unwrap_or(self.bytes - text.len());
        let place = &mut self.room()[offset..offset + text.len()];
        place.copy_from_slice(text);
        place
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether a child process that runs `read` dies of a fault.
    fn faults(read: impl FnOnce() -> u8) -> bool {
        // SAFETY: the child only reads memory and ends.
        let child = unsafe { libc::fork() };
        if child == 0 {
            // SAFETY: as above; the handlers of the test's runtime are not wanted here.
            unsafe { libc::signal(libc::SIGSEGV, libc::SIG_DFL) };
            let byte = read();
            // SAFETY: ends the child without running anything of the parent's.
            unsafe { libc::_exit(i32::from(byte == 0xAA)) };
        }
        let mut status = 0;
        // SAFETY: waits for the child started above.
        unsafe { libc::waitpid(child, &raw mut status, 0) };
        libc::WIFSIGNALED(status) && libc::WTERMSIG(status) == libc::SIGSEGV
    }

    #[test]
    fn a_read_past_either_end_of_a_guarded_text_faults() {
        let mut guarded = Guarded::new(100);
        let last = guarded.put(b"text", None).as_ptr().wrapping_add(3);
        let first = guarded.put(b"text", Some(0)).as_ptr();
        // SAFETY: the reads that are not in the text happen in a child, which they end.
        unsafe {
            assert!(!faults(|| last.read_volatile()) && !faults(|| first.read_volatile()));
            assert!(faults(|| last.wrapping_add(1).read_volatile()));
            assert!(faults(|| first.wrapping_sub(1).read_volatile()));
        }
    }
}
