//! `byteweld-fuzz [TARGET...] [--seconds N] [--seed S] [--executions N] [--unlimited]`: runs the targets on
//! stable Rust, all of them by default, for N seconds or executions each. Exit code 1 if there is a finding;
//! its input is in `findings/TARGET/`. `byteweld-fuzz replay TARGET FILE...` runs inputs again.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use byteweld_fuzz::driver::{self, Limits};
use byteweld_fuzz::{TARGETS, Target};

/// An allocation beyond this is a finding: no target needs so much.
const MAX_MEMORY_BYTES: u64 = 4 << 30;

fn main() -> ExitCode {
    match run(&std::env::args().skip(1).collect::<Vec<_>>()) {
        Ok(code) => code,
        Err(message) => {
            eprintln!("{message}");
            ExitCode::from(2)
        }
    }
}

fn run(arguments: &[String]) -> Result<ExitCode, String> {
    if let [first, name, files @ ..] = arguments
        && first == "replay"
    {
        driver::replay(target(name)?, &files.iter().map(PathBuf::from).collect::<Vec<_>>());
        println!("{name}: {} inputs, no finding", files.len());
        return Ok(ExitCode::SUCCESS);
    }
    let mut chosen: Vec<&Target> = Vec::new();
    let mut limits = Limits { time: None, executions: None };
    let (mut seed, mut is_limited) = (0, true);
    let mut arguments = arguments.iter();
    while let Some(argument) = arguments.next() {
        let mut value = || {
            let value = arguments.next().and_then(|value| value.parse::<f64>().ok());
            value.ok_or(format!("{argument} needs a number"))
        };
        match argument.as_str() {
            "--seconds" => limits.time = Some(Duration::from_secs_f64(value()?.max(0.0))),
            "--executions" => limits.executions = Some(value()? as u64),
            "--seed" => seed = value()? as u64,
            "--unlimited" => is_limited = false, // sanitizers reserve terabytes of addresses
            name => chosen.push(target(name)?),
        }
    }
    if limits.time.is_none() && limits.executions.is_none() {
        limits.time = Some(Duration::from_secs(60));
    }
    if chosen.is_empty() {
        chosen = TARGETS.iter().collect();
    }
    if is_limited {
        limit_memory();
        keep_memory();
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut findings = 0;
    for target in chosen {
        let (corpus, found) = (root.join("corpus"), root.join("findings"));
        let report =
            driver::run(target, seed, limits, &corpus.join(target.name), &found.join(target.name));
        let seconds = report.elapsed.as_secs_f64();
        if let Some((message, path)) = &report.finding {
            findings += 1;
            println!("FINDING {}: {message}\n  input: {}", target.name, path.display());
        }
        println!(
            "{}: {} executions in {seconds:.0} s ({:.0} per second of processor time), {} inputs kept, seed {seed}, {} findings",
            target.name,
            report.executions,
            report.executions as f64 / report.processor_time.as_secs_f64().max(0.001),
            report.kept,
            usize::from(report.finding.is_some()),
        );
    }
    Ok(if findings > 0 { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

fn target(name: &str) -> Result<&'static Target, String> {
    let names = || TARGETS.each_ref().map(|target| target.name).join(", ");
    let found = TARGETS.iter().find(|target| target.name == name);
    found.ok_or_else(|| format!("no target {name:?}; there are {}", names()))
}

fn limit_memory() {
    let limit = libc::rlimit { rlim_cur: MAX_MEMORY_BYTES, rlim_max: MAX_MEMORY_BYTES };
    // SAFETY: passes a valid struct to a system call.
    unsafe { libc::setrlimit(libc::RLIMIT_AS, &raw const limit) };
}

/// Keeps freed memory: to give it back and to get it again would take most of the time.
fn keep_memory() {
    #[cfg(target_env = "gnu")]
    // SAFETY: sets two parameters of the allocator.
    unsafe {
        libc::mallopt(libc::M_MMAP_THRESHOLD, 1 << 30);
        libc::mallopt(libc::M_TRIM_THRESHOLD, 1 << 30);
    }
}
