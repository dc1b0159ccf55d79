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
    pub(super) fn next(&self) -> u64 {
        self.first + self.events.len() as u64
    }

    pub(super) fn event(&self, seq: u64) -> Option<&Event> {
        self.events.get(usize::try_from(seq.checked_sub(self.first)?).ok()?)
    }

    pub(super) fn step(&self, model: &mut Model, seq: u64) {
        if let Some(event) = self.event(seq) {
            model.apply(seq, event);
        }
    }

    pub(super) fn state_at(&self, seq: u64) -> Model {
        let mut model = self.base.clone();
        (self.first..seq).for_each(|at| self.step(&mut model, at));
        model
    }

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
