//! The driver finds what is planted, writes it, and draws the same inputs for the same seed.

use std::cell::RefCell;
use std::path::PathBuf;

use super::*;

fn folder(name: &str) -> PathBuf {
    std::env::temp_dir().join(format!("byteweld-fuzz-{name}-{}", std::process::id()))
}

fn run_planted(run: fn(&[u8]) -> u64, name: &str, executions: u64) -> Report {
    let target = Target { name: "planted", run, is_numbered: false, seeds: Vec::new };
    let limits = Limits { time: None, executions: Some(executions) };
    let findings = folder(name);
    let report = super::run(&target, 7, limits, &findings.join("none"), &findings);
    fs::remove_dir_all(findings).unwrap();
    report
}

#[test]
fn a_planted_panic_is_found() {
    // Three bytes that random input does not contain, but that kept inputs lead to one by one.
    let planted = |input: &[u8]| {
        let matched = input.iter().zip(b"zq!").take_while(|(a, b)| a == b).count();
        assert_ne!(matched, 3, "found {input:?}");
        matched as u64
    };
    let report = run_planted(planted, "panic", 1_000_000);
    let (message, _) = report.finding.unwrap();
    assert!(message.contains("found [122, 113, 33"), "{message}");
}

#[test]
fn executions_are_exact_and_inputs_depend_on_the_seed_alone() {
    thread_local!(static INPUTS: RefCell<Vec<Vec<u8>>> = const { RefCell::new(Vec::new()) });
    let collect = |input: &[u8]| {
        INPUTS.with_borrow_mut(|inputs| inputs.push(input.to_vec()));
        input.first().copied().unwrap_or(0).into()
    };
    let all = ["first", "second"].map(|name| {
        assert_eq!(run_planted(collect, name, 2_000).executions, 2_000);
        INPUTS.take()
    });
    assert_eq!(all[0].len(), 2_000);
    assert_eq!(all[0], all[1]);
}

#[test]
fn every_target_runs_a_few_thousand_inputs_without_a_finding() {
    for target in &crate::TARGETS {
        let limits = Limits { time: None, executions: Some(2_000) };
        let findings = folder(target.name);
        let report = super::run(target, 1, limits, &findings.join("none"), &findings);
        assert!(report.finding.is_none(), "{}: {:?}", target.name, report.finding);
        fs::remove_dir_all(findings).unwrap();
    }
}
