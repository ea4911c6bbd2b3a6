//! Learns merges from counts.

use std::ops::ControlFlow;

use byteweld_core::train::{self as core, KnownMerge, Options, Stop, TieBreak};
use pyo3::exceptions::{PyMemoryError, PyValueError};
use pyo3::prelude::*;

use crate::convert::threads;
use crate::counts::Counts;
use crate::error::raise;
use crate::names::ByName;

/// (left, right, new, count, removed)
type LearnedMerge = (u32, u32, u32, u64, u64);

/// Learns merges; returns them, the reason why training stopped, and the number of tokens before
/// the first merge. `progress` is called with the merges learned since the last call.
#[pyfunction]
#[pyo3(signature = (counts, *, base_ids, first_id, max_new_ids, reserved, forbidden, known, tie_break, min_frequency, max_token_bytes, num_threads, progress))]
#[expect(clippy::too_many_arguments, reason = "keyword-only in Python")]
pub(crate) fn train(
    py: Python<'_>,
    counts: &Bound<'_, Counts>,
    base_ids: Vec<Option<u32>>,
    first_id: u32,
    max_new_ids: usize,
    reserved: Vec<(Vec<u8>, u32)>,
    forbidden: Vec<Vec<u8>>,
    known: Vec<(u32, u32, u32)>,
    tie_break: ByName<TieBreak>,
    min_frequency: u64,
    max_token_bytes: Option<usize>,
    num_threads: Option<i128>,
    progress: Option<Py<PyAny>>,
) -> PyResult<(Vec<LearnedMerge>, &'static str, u64)> {
    let base_ids = <[Option<u32>; 256]>::try_from(base_ids)
        .map_err(|_| PyValueError::new_err("base_ids must have 256 entries"))?;
    let options = Options {
        base_ids,
        first_id,
        max_new_ids,
        reserved,
        forbidden,
        known: known
            .into_iter()
            .map(|(left, right, new)| KnownMerge { left, right, new })
            .collect(),
        tie_break: tie_break.0,
        min_frequency,
        max_token_bytes,
        threads: threads(num_threads)?.get(),
    };
    let counts = &counts.get().table;
    let mut failure = None;
    let mut reported = 0;
    let trained = py.detach(|| {
        core::train(counts, &options, &mut |merges| {
            let outcome = Python::attach(|py| {
                py.check_signals()?;
                let Some(call) = &progress else { return Ok(()) };
                call.call1(py, (as_tuples(&merges[reported..])?,)).map(drop)
            });
            reported = merges.len();
            match outcome {
                Ok(()) => ControlFlow::Continue(()),
                Err(error) => {
                    failure = Some(error);
                    ControlFlow::Break(())
                }
            }
        })
    });
    let trained = match (failure, trained) {
        (Some(error), _) => return Err(error),
        (None, Err(error)) => return Err(raise(py, error)),
        (None, Ok(trained)) => trained,
    };
    let stop = match trained.stop {
        Stop::Size => "size",
        Stop::NoPairs => "no pairs",
        Stop::MinFrequency => "min frequency",
    };
    Ok((as_tuples(&trained.merges)?, stop, trained.first_tokens))
}

fn as_tuples(merges: &[core::LearnedMerge]) -> PyResult<Vec<LearnedMerge>> {
    let mut tuples = Vec::new();
    tuples.try_reserve_exact(merges.len()).map_err(|_| PyMemoryError::new_err(()))?;
    tuples.extend(merges.iter().map(|m| (m.left, m.right, m.new, m.count, m.removed)));
    Ok(tuples)
}
