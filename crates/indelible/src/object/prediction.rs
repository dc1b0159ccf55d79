//! Prediction of the pages of sealed objects: how well it does.

use super::reader::ReadObject;
use super::writer::Object;
use crate::fault::PredictionStats;

impl Object {
    /// Counts of the pages that were decrypted before they were touched, since the attach. `None`:
    /// nothing is predicted, as the object is not sealed, or was decrypted whole. How many of them
    /// were used is counted with [`measure_prediction`](crate::PoolOptions::measure_prediction).
    #[must_use]
    pub fn prediction(&self) -> Option<PredictionStats> {
        self.core().shadow().ok()?.prediction()
    }
}

impl ReadObject {
    /// As [`Object::prediction`].
    #[must_use]
    pub fn prediction(&self) -> Option<PredictionStats> {
        self.prediction_counts()
    }
}
