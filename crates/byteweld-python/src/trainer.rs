//! Counts to merges.

use std::ops::ControlFlow;

use byteweld_core::train::{self as core, Options, Stop, TieBreak};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::counts::Counts;
use crate::error::raise;

/// (left, right, new, count)
type LearnedMerge = (u32, u32, u32, u64);

/// Learns merges; returns them with the reason why the training stopped.
#[pyfunction]
#[pyo3(signature = (counts, *, base_ids, first_id, max_new_ids, reserved, tie_break, min_frequency, max_token_bytes, progress))]
#[expect(clippy::too_many_arguments, reason = "keyword-only in Python")]
pub(crate) fn train(
    py: Python<'_>,
    counts: &Bound<'_, Counts>,
    base_ids: Vec<Option<u32>>,
    first_id: u32,
    max_new_ids: usize,
    reserved: Vec<(Vec<u8>, u32)>,
    tie_break: &str,
    min_frequency: u64,
    max_token_bytes: Option<usize>,
    progress: Option<Py<PyAny>>,
) -> PyResult<(Vec<LearnedMerge>, &'static str)> {
    let base_ids = <[Option<u32>; 256]>::try_from(base_ids)
        .map_err(|_| PyValueError::new_err("base_ids must have 256 entries"))?;
    let tie_break = match tie_break {
        "smallest-ids" => TieBreak::SmallestIds,
        "greatest-bytes" => TieBreak::GreatestBytes,
        "smallest-bytes" => TieBreak::SmallestBytes,
        other => return Err(PyValueError::new_err(format!("unknown tie_break {other:?}"))),
    };
    let options = Options {
        base_ids,
        first_id,
        max_new_ids,
        reserved,
        tie_break,
        min_frequency,
        max_token_bytes,
    };
    let counts = &counts.get().inner;
    let mut failure = None;
    let trained = py.detach(|| {
        let words: Vec<(&[u8], u64)> = counts.iter().collect();
        core::train(&words, &options, &mut |merges| {
            let outcome = Python::attach(|py| {
                py.check_signals()?;
                progress.as_ref().map_or(Ok(()), |call| call.call1(py, (merges,)).map(drop))
            });
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
    Ok((trained.merges.into_iter().map(|m| (m.left, m.right, m.new, m.count)).collect(), stop))
}
