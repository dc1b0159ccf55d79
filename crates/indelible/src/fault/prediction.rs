//! Prediction for one served range. A page filled ahead raises no fault, so a *measured* range
//! reads and decrypts predicted pages, then discards them: each first touch faults. The predictor
//! learns of a touch only if it would fault without measuring.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::predict::{PredictionDepth, Predictor, Window};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PredictionParams {
    pub(crate) depth: PredictionDepth,
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
    /// Faults of absent pages.
    pub faults: u64,
    /// Faults of pages that were being filled ahead.
    pub late: u64,
    /// Pages filled by prediction.
    pub filled: u64,
    /// Distinct pages touched, only if measured, as the fields below.
    pub touched: u64,
    /// Distinct pages predicted.
    pub predicted: u64,
    /// Pages predicted, then touched.
    pub used: u64,
    /// Used pages that were ready when touched.
    pub in_time: u64,
}

impl PredictionStats {
    /// Share of predicted pages that were touched. `None`: no prediction, or not measured.
    #[must_use]
    pub fn accuracy(&self) -> Option<f64> {
        part(self.used, self.predicted)
    }

    /// Share of touched pages that were predicted. `None`: no touch, or not measured.
    #[must_use]
    pub fn coverage(&self) -> Option<f64> {
        part(self.used, self.touched)
    }

    /// Share of used pages that were ready in time. `None`: no use, or not measured.
    #[must_use]
    pub fn timeliness(&self) -> Option<f64> {
        part(self.in_time, self.used)
    }
}

fn part(some: u64, all: u64) -> Option<f64> {
    (all > 0).then(|| some as f64 / all as f64)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Standing {
    Absent,
    Predicted,
    Ready,
    Touched,
}

#[derive(Default)]
struct Measured {
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

    fn touch(&mut self, page: usize) -> bool {
        let before = std::mem::replace(self.at(page), Standing::Touched);
        self.touched += u64::from(before != Standing::Touched);
        self.used += u64::from(matches!(before, Standing::Predicted | Standing::Ready));
        self.in_time += u64::from(before == Standing::Ready);
        before != Standing::Ready
    }
}

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

    pub(super) fn is_measured(&self) -> bool {
        self.measured.is_some()
    }

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

    pub(super) fn came_late(&self) {
        self.late.fetch_add(1, Ordering::Relaxed);
    }

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
