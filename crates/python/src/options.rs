//! Keywords of Python, as options.

use indelible::{MediumKind, PoolOptions, Tracking};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use std::time::Duration;

pub(crate) fn choice<T: Copy>(what: &str, words: &[(&str, T)], word: &str) -> PyResult<T> {
    words.iter().find(|(known, _)| *known == word).map(|(_, value)| *value).ok_or_else(|| {
        let known: Vec<_> = words.iter().map(|(word, _)| *word).collect();
        PyValueError::new_err(format!("{what} is one of {}, not {word:?}", known.join(", ")))
    })
}

pub(crate) fn options(
    read_only: bool,
    medium: &str,
    tracking: &str,
    allow_remote: bool,
    wait: Option<f64>,
) -> PyResult<PoolOptions> {
    // Stores of Python cannot be marked.
    let rungs: Vec<_> = Tracking::WORDS.into_iter().filter(|(_, rung)| *rung != Tracking::Explicit).collect();
    let mut with = PoolOptions::new()
        .read_only(read_only)
        .inherit_reads(true)
        .medium(choice("medium", &MediumKind::WORDS, medium)?)
        .tracking(choice("tracking", &rungs, tracking)?)
        .allow_remote(allow_remote);
    if let Some(seconds) = wait {
        let why = |_| PyValueError::new_err("wait is a number of seconds, not negative");
        with = with.wait(Duration::try_from_secs_f64(seconds).map_err(why)?);
    }
    Ok(with)
}
