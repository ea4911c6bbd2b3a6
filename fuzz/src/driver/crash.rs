//! Signals: writes the input of an execution that crashes or hangs, before the process ends; and ends a run
//! early, with its report.

use std::ffi::CString;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::ptr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, AtomicUsize, Ordering::SeqCst};
use std::time::Duration;

/// The input of the execution that runs, or null.
static INPUT: AtomicPtr<u8> = AtomicPtr::new(ptr::null_mut());
static LENGTH: AtomicUsize = AtomicUsize::new(0);
/// How many executions have started.
static STARTED: AtomicU64 = AtomicU64::new(0);
/// Where the input is written.
static PATH: AtomicPtr<libc::c_char> = AtomicPtr::new(ptr::null_mut());

/// Whether the run is to end.
static IS_STOPPED: AtomicBool = AtomicBool::new(false);

/// An execution that takes longer, in processor time, hangs.
const PATIENCE: Duration = Duration::from_secs(20);

const SIGNALS: [libc::c_int; 5] =
    [libc::SIGSEGV, libc::SIGBUS, libc::SIGABRT, libc::SIGILL, libc::SIGFPE];

/// Says which input runs from now on.
pub(super) fn enter(input: &[u8]) {
    LENGTH.store(input.len(), SeqCst);
    INPUT.store(input.as_ptr().cast_mut(), SeqCst);
    STARTED.fetch_add(1, SeqCst);
}

/// Says that the execution is over.
pub(super) fn leave() {
    INPUT.store(ptr::null_mut(), SeqCst);
}

/// Writes the inputs of crashes to a folder from now on.
pub(super) fn catch(findings: &Path) {
    let path = findings.join(format!("crash-{}", std::process::id()));
    if let Ok(path) = CString::new(path.as_os_str().as_bytes()) {
        PATH.store(path.into_raw(), SeqCst); // lives as long as the process
    }
    static IS_CAUGHT: OnceLock<()> = OnceLock::new();
    IS_CAUGHT.get_or_init(|| {
        let crash = SIGNALS.map(|signal| (signal, on_crash as extern "C" fn(libc::c_int)));
        let stop = [libc::SIGINT, libc::SIGTERM].map(|signal| (signal, on_stop as _));
        for (signal, handler) in crash.into_iter().chain(stop) {
            // SAFETY: the handlers call only functions that are safe in signal handlers. Threads of the
            // standard library have an alternative stack, so that a stack overflow can be handled, too.
            unsafe {
                let mut action: libc::sigaction = std::mem::zeroed();
                action.sa_sigaction = handler as usize;
                action.sa_flags = libc::SA_ONSTACK | libc::SA_RESETHAND;
                libc::sigaction(signal, &raw const action, ptr::null_mut());
            }
        }
        std::thread::spawn(watch);
    });
}

/// Ends the process if one execution takes too long.
fn watch() {
    let (mut last, mut since) = (0, Duration::ZERO);
    loop {
        std::thread::sleep(PATIENCE / 4);
        let (started, now) = (STARTED.load(SeqCst), processor_time());
        if started != last || INPUT.load(SeqCst).is_null() {
            (last, since) = (started, now);
        } else if now - since > PATIENCE {
            say(b"an execution hangs\n");
            std::process::abort();
        }
    }
}

/// The processor time of this process.
pub(super) fn processor_time() -> Duration {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: passes a valid struct to a system call.
    unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &raw mut time) };
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// Whether SIGINT or SIGTERM has come.
pub(super) fn is_stopped() -> bool {
    IS_STOPPED.load(SeqCst)
}

extern "C" fn on_stop(_: libc::c_int) {
    IS_STOPPED.store(true, SeqCst);
}

extern "C" fn on_crash(signal: libc::c_int) {
    let (input, path) = (INPUT.load(SeqCst), PATH.load(SeqCst));
    if !input.is_null() && !path.is_null() {
        say(b"FINDING crash; its input is findings/TARGET/crash-PID\n");
        // SAFETY: `path` is a C string that is never freed, and `input` has `LENGTH` bytes: the execution
        // that borrows it has not ended. `open`, `write` and `close` are safe in signal handlers.
        unsafe {
            let file = libc::open(path, libc::O_CREAT | libc::O_WRONLY | libc::O_TRUNC, 0o644);
            libc::write(file, input.cast(), LENGTH.load(SeqCst));
            libc::close(file);
        }
    }
    // SAFETY: the signal has its default action again, which ends the process.
    unsafe { libc::raise(signal) };
}

fn say(message: &[u8]) {
    // SAFETY: writes a byte string to standard error.
    unsafe { libc::write(2, message.as_ptr().cast(), message.len()) };
}
