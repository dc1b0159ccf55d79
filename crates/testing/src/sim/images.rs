use super::choice::{Choice, undecided_events};
use super::cut::{CrashImage, Cut};
use super::model::Model;
use super::recording::Recording;
use crate::seed::derived;

/// How many images to make, evenly spread; [`CrashImages::points_skipped`] counts omitted points.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// At most so many subsets are all made, and nothing else.
    pub exhaustive: u64,
    /// Pending writes that persist alone, and are lost alone.
    pub singles: usize,
    pub random: u64,
    pub points: u64,
    pub seed: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self { exhaustive: 256, singles: 16, random: 16, points: u64::MAX, seed: 0 }
    }
}

impl Limits {
    fn choices(&self, model: &Model, seq: u64) -> Vec<Choice> {
        if let Some(states) = model.states(self.exhaustive.max(1)) {
            return (0..states).map(Choice::Exact).collect();
        }
        let mut choices = vec![Choice::None, Choice::All];
        let events = undecided_events(model);
        for (i, event) in events.iter().enumerate() {
            if kept(i as u64, events.len() as u64, self.singles as u64) {
                choices.extend([Choice::Only(*event), Choice::AllBut(*event)]);
            }
        }
        let mut rng = derived(self.seed, seq);
        choices.extend((0..self.random).map(|_| Choice::Random(rng.u64(..))));
        choices
    }
}

fn kept(i: u64, total: u64, limit: u64) -> bool {
    let (i, total, limit) = (u128::from(i), u128::from(total), u128::from(limit));
    limit >= total || (i + 1) * limit / total > i * limit / total
}

/// A lazy iterator over images; holds the log, one state, and one point's choices.
pub struct CrashImages {
    recording: Recording,
    limits: Limits,
    state: Model,
    at: u64,
    choices: std::vec::IntoIter<Choice>,
    points_seen: u64,
    points_total: u64,
    points_kept: u64,
}

impl CrashImages {
    pub(super) fn new(recording: Recording, limits: Limits) -> Self {
        let points_total = 1 + recording.events.iter().filter(|e| e.is_point()).count() as u64;
        let mut images = Self {
            state: recording.base.clone(),
            at: recording.first,
            recording,
            limits,
            choices: Vec::new().into_iter(),
            points_seen: 0,
            points_total,
            points_kept: 0,
        };
        images.enter_point();
        images
    }

    #[must_use]
    pub fn points(&self) -> u64 {
        self.points_kept
    }

    /// Points omitted by [`Limits::points`] so far.
    #[must_use]
    pub fn points_skipped(&self) -> u64 {
        self.points_seen - self.points_kept
    }

    fn enter_point(&mut self) {
        if kept(self.points_seen, self.points_total, self.limits.points) {
            self.points_kept += 1;
            self.choices = self.limits.choices(&self.state, self.at).into_iter();
        }
        self.points_seen += 1;
    }

    fn advance(&mut self) -> bool {
        let Some(event) = self.recording.event(self.at) else {
            return false;
        };
        let is_point = event.is_point();
        self.recording.step(&mut self.state, self.at);
        self.at += 1;
        if is_point {
            self.enter_point();
        }
        true
    }
}

impl Iterator for CrashImages {
    type Item = CrashImage;

    fn next(&mut self) -> Option<CrashImage> {
        loop {
            if let Some(choice) = self.choices.next() {
                let cut = Cut { before: self.at, choice };
                return Some(self.recording.image(&self.state, cut));
            }
            if !self.advance() {
                return None;
            }
        }
    }
}
