//! A log and the state it starts from.

use super::config::SimConfig;
use super::cut::{CrashImage, Cut};
use super::event::Event;
use super::model::Model;

/// Event `first + i` of the medium is `events[i]`; `base` is the state before event `first`.
#[derive(Clone)]
pub(super) struct Recording {
    pub(super) config: SimConfig,
    pub(super) base: Model,
    pub(super) first: u64,
    pub(super) events: Vec<Event>,
}

impl Recording {
    /// Number of the next event.
    pub(super) fn next(&self) -> u64 {
        self.first + self.events.len() as u64
    }

    pub(super) fn event(&self, seq: u64) -> Option<&Event> {
        self.events.get(usize::try_from(seq.checked_sub(self.first)?).ok()?)
    }

    /// Takes event `seq` into `model`, which is the state before it.
    pub(super) fn step(&self, model: &mut Model, seq: u64) {
        if let Some(event) = self.event(seq) {
            model.apply(seq, event);
        }
    }

    /// The state when events below `seq` have happened.
    pub(super) fn state_at(&self, seq: u64) -> Model {
        let mut model = self.base.clone();
        (self.first..seq).for_each(|at| self.step(&mut model, at));
        model
    }

    /// The image that a cut leaves, given the state at its event.
    pub(super) fn image(&self, model: &Model, cut: Cut) -> CrashImage {
        CrashImage {
            contents: model.contents(&cut.choice.picks(model)),
            blocks: model.blocks().clone(),
            len: model.len(),
            config: self.config,
            cut,
            marks: model.marks().to_vec(),
        }
    }
}
