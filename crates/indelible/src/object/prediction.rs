use super::reader::ReadObject;
use super::writer::Object;
use crate::fault::PredictionStats;

impl Object {
    /// Counts of pages decrypted ahead since the attach; `None`: the object is not sealed, or was
    /// decrypted whole.
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
