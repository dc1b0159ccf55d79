//! Prediction for one served range: the predictor, and counts of how well it does.
//!
//! Measuring: a page that is filled ahead raises no fault, so its first touch goes unseen. A range
//! that is *measured* has predicted pages read and decrypted as ever, and then thrown away: each
//! page's first touch is a fault, and is told to the predictor only if it were one without
//! measuring.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::predict::{PredictionDepth, Predictor, Window};

/// How pages of a range are predicted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PredictionParams {
    pub(crate) depth: PredictionDepth,
    /// See the module.
    pub(crate) measured: bool,
}

/// Counts of an attached object's prediction.
///
/// ```
/// # let counts = indelible::PredictionStats::default();
/// // Of the pages that were predicted, those that were touched; of those that were touched, those that were predicted.
/// println!("accuracy {:?}, coverage {:?}", counts.accuracy(), counts.coverage());
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct PredictionStats {
    /// Faults of pages that were absent.
    pub faults: u64,
    /// How many of those were faults of pages that were just being filled ahead.
    pub late: u64,
    /// Pages filled ahead because they were predicted.
    pub filled: u64,
    /// Pages touched, each counted once. Only if it is measured, as are those that follow.
    pub touched: u64,
    /// Pages predicted, each counted once.
    pub predicted: u64,
    /// Pages predicted, and touched afterwards.
    pub used: u64,
    /// How many of those pages were ready when they were touched.
    pub in_time: u64,
}

impl PredictionStats {
    /// The part of the predicted pages that was touched. `None`: none was predicted, or the range
    /// is not measured.
    #[must_use]
    pub fn accuracy(&self) -> Option<f64> {
        part(self.used, self.predicted)
    }

    /// The part of the touched pages that was predicted before. `None`: none was touched, or the
    /// range is not measured.
    #[must_use]
    pub fn coverage(&self) -> Option<f64> {
        part(self.used, self.touched)
    }

    /// The part of the predicted pages that was ready when it was touched. `None`: none was
    /// touched, or the range is not measured.
    #[must_use]
    pub fn timeliness(&self) -> Option<f64> {
        part(self.in_time, self.used)
    }
}

fn part(some: u64, all: u64) -> Option<f64> {
    (all > 0).then(|| some as f64 / all as f64)
}

/// Standing of a page of a measured range.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Standing {
    Absent,
    Predicted,
    Ready,
    Touched,
}

#[derive(Default)]
struct Measured {
    /// One for each page; missing ones are absent pages.
    pages: Vec<Standing>,
    touched: u64,
    predicted: u64,
    used: u64,
    in_time: u64,
}

impl Measured {
    fn at(&mut self, page: usize) -> &mut Standing {
        if self.pages.len() <= page {
            self.pages.resize(page + 1, Standing::Absent);
        }
        &mut self.pages[page]
    }

    fn predict(&mut self, page: usize) {
        if *self.at(page) == Standing::Absent {
            *self.at(page) = Standing::Predicted;
            self.predicted += 1;
        }
    }

    /// Counts a touch; returns whether it was a fault without measuring.
    fn touch(&mut self, page: usize) -> bool {
        let before = std::mem::replace(self.at(page), Standing::Touched);
        self.touched += u64::from(before != Standing::Touched);
        self.used += u64::from(matches!(before, Standing::Predicted | Standing::Ready));
        self.in_time += u64::from(before == Standing::Ready);
        before != Standing::Ready
    }
}

/// See the module.
pub(super) struct Prediction {
    predictor: Mutex<Predictor>,
    faults: AtomicU64,
    late: AtomicU64,
    filled: AtomicU64,
    measured: Option<Mutex<Measured>>,
}

impl Prediction {
    pub(super) fn new(params: PredictionParams) -> Prediction {
        Prediction {
            predictor: Mutex::new(Predictor::new(params.depth)),
            faults: AtomicU64::new(0),
            late: AtomicU64::new(0),
            filled: AtomicU64::new(0),
            measured: params.measured.then(Mutex::default),
        }
    }

    fn measured(&self) -> Option<MutexGuard<'_, Measured>> {
        Some(self.measured.as_ref()?.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Whether predicted pages are thrown away.
    pub(super) fn is_measured(&self) -> bool {
        self.measured.is_some()
    }

    /// A page of `pages` was touched, and absent; returns the pages to be filled next.
    pub(super) fn missed(&self, page: usize, pages: usize) -> Option<Window> {
        self.faults.fetch_add(1, Ordering::Relaxed);
        if !self.measured().is_none_or(|mut measured| measured.touch(page)) {
            return None;
        }
        let window = self.predictor.lock().unwrap_or_else(PoisonError::into_inner).missed(page, pages)?;
        if let Some(mut measured) = self.measured() {
            window.pages().for_each(|page| measured.predict(page));
        }
        Some(window)
    }

    /// A page was touched that another thread was filling.
    pub(super) fn came_late(&self) {
        self.late.fetch_add(1, Ordering::Relaxed);
    }

    /// Predicted pages were filled, or read by a range that is measured.
    pub(super) fn filled(&self, pages: impl ExactSizeIterator<Item = usize>) {
        let count = pages.len() as u64;
        if let Some(mut measured) = self.measured() {
            for page in pages {
                let standing = measured.at(page);
                if *standing == Standing::Predicted {
                    *standing = Standing::Ready;
                }
            }
        }
        self.filled.fetch_add(count, Ordering::Relaxed);
    }

    pub(super) fn stats(&self) -> PredictionStats {
        let [faults, late, filled] =
            [&self.faults, &self.late, &self.filled].map(|count| count.load(Ordering::Relaxed));
        let mut stats = PredictionStats { faults, late, filled, ..PredictionStats::default() };
        if let Some(measured) = self.measured() {
            (stats.touched, stats.predicted) = (measured.touched, measured.predicted);
            (stats.used, stats.in_time) = (measured.used, measured.in_time);
        }
        stats
    }
}
