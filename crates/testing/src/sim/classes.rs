//! All images of power cuts, merging those that a judge cannot tell apart.
//!
//! # What is left out, and why nothing is lost
//!
//! *Points.* A cut after a write leaves every image of a cut before it. So the power is cut only
//! before a barrier or a durable write returns, before a mark, and at the end of the log.
//!
//! *Unread units.* At a point, each undecided unit is a decision: its version. The judge's medium
//! notes the words read that differ between versions and were not overwritten before. As a judge is
//! a function of the bytes it reads, images that agree in the decisions met on one of them get the
//! same verdict. So only met ones are enumerated, depth first, with a run of the judge per branch.
//! A judge that asks in another order after the same answers is an error.
//!
//! *Torn durable writes.* Each durable write of the store has a checksum over the whole. For one in
//! flight on `n` units, the 2^n - 1 incomplete subsets must be refused alike. As that is a claim,
//! some are judged: all where [`ClassLimits::torn`] allows, else none of the units, all but one,
//! just one, and random ones. The same holds for a batch in pieces, header last, made durable by
//! the next barrier (`whole.rs`).
//!
//! Each class weighs as many images as it stands for; at every point the weights must add up to the
//! number of images.

use super::choice::Choice;
use super::cut::{CrashImage, Cut};
use super::event::EventKind;
use super::medium::SimMedium;
use super::model::Model;
use super::recording::Recording;
use super::watch::{Watch, Words};
use super::whole::wholes;
use crate::seed::derived;
use std::collections::BTreeMap;
use std::sync::Arc;

#[derive(Clone, Copy, Debug)]
pub struct ClassLimits {
    /// Classes at one point; more cut the point short.
    pub per_point: u64,
    /// Judged ways to tear a durable write.
    pub torn: u64,
    /// Whether unread units are merged. Without, and with `torn` at its maximum, every image is
    /// made.
    pub merge: bool,
    pub seed: u64,
}

impl Default for ClassLimits {
    fn default() -> Self {
        ClassLimits { per_point: 20_000, torn: 7, merge: true, seed: 0 }
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ClassReport {
    pub points: u64,
    /// Points with more classes than [`ClassLimits::per_point`].
    pub cut_short: u64,
    /// Binary logarithm of the number of legal images at all points.
    pub legal_log2: f64,
    pub judged: u64,
    /// Classes that stand for more than one image.
    pub merged: u64,
}

enum Decision {
    Unit {
        place: usize,
        states: usize,
    },
    /// A durable write, or a batch in pieces, in flight on these units, and the subsets that stand
    /// for a torn one.
    Write {
        places: Vec<usize>,
        torn: Vec<Vec<bool>>,
    },
}

impl Decision {
    fn arity(&self) -> usize {
        match self {
            Decision::Unit { states, .. } => *states,
            Decision::Write { torn, .. } => torn.len() + 1,
        }
    }

    fn weight(&self) -> u128 {
        match self {
            Decision::Unit { states, .. } => *states as u128,
            Decision::Write { places, .. } => power_of_two(places.len()),
        }
    }

    fn log2(&self) -> f64 {
        match self {
            Decision::Unit { states, .. } => (*states as f64).log2(),
            Decision::Write { places, .. } => places.len() as f64,
        }
    }

    /// Images of the `pick`th way, modulo 2^128. The first torn way stands for all untried ones.
    fn weight_of(&self, pick: usize) -> u128 {
        match self {
            Decision::Write { places, torn } if pick == 0 => {
                power_of_two(places.len()).wrapping_sub(torn.len() as u128)
            }
            _ => 1,
        }
    }

    fn apply(&self, pick: usize, picks: &mut [u32]) {
        match self {
            Decision::Unit { place, .. } => picks[*place] = pick as u32,
            Decision::Write { places, torn } => {
                for (nth, place) in places.iter().enumerate() {
                    picks[*place] = u32::from(torn.get(pick).is_none_or(|kept| kept[nth]));
                }
            }
        }
    }
}

fn power_of_two(exponent: usize) -> u128 {
    1_u128.checked_shl(exponent as u32).unwrap_or(0)
}

pub(crate) struct Point {
    recording: Arc<Recording>,
    model: Model,
    before: u64,
    decisions: Vec<Decision>,
    words: Words,
    merge: bool,
}

pub(crate) struct Candidate {
    pub(crate) image: CrashImage,
    pub(crate) medium: SimMedium,
}

impl Point {
    fn new(
        recording: &Arc<Recording>,
        wholes: &BTreeMap<u64, u64>,
        model: &Model,
        before: u64,
        limits: &ClassLimits,
    ) -> Point {
        let mut decisions = Vec::new();
        let mut of_place = Vec::new();
        let mut writes: BTreeMap<u64, u32> = BTreeMap::new();
        for (place, unit) in model.pending().values().enumerate() {
            let whole = wholes.get(&unit.versions[0].event).filter(|whole| **whole < before);
            let next = decisions.len() as u32;
            let (1, Some(whole)) = (unit.versions.len(), whole) else {
                decisions.push(Decision::Unit { place, states: unit.versions.len() + 1 });
                of_place.push(next);
                continue;
            };
            let number = *writes.entry(*whole).or_insert(next);
            if number == next {
                decisions.push(Decision::Write { places: Vec::new(), torn: Vec::new() });
            }
            if let Decision::Write { places, .. } = &mut decisions[number as usize] {
                places.push(place);
            }
            of_place.push(number);
        }
        for (number, decision) in decisions.iter_mut().enumerate() {
            if let Decision::Write { places, torn } = decision {
                let stream = before.wrapping_mul(31).wrapping_add(number as u64);
                *torn = ways_to_tear(places.len(), limits.torn, &mut derived(limits.seed, stream));
            }
        }
        let mut words: Vec<(u64, u32)> = Vec::new();
        for (place, word) in model.differing_words() {
            words.push((word, of_place[place]));
        }
        words.sort_unstable();
        let (recording, words) = (recording.clone(), words.into());
        Point { recording, model: model.clone(), before, decisions, words, merge: limits.merge }
    }

    fn candidate(&self, path: &[(u32, usize)]) -> Candidate {
        let mut picks = vec![0; self.model.pending().len()];
        for decision in &self.decisions {
            decision.apply(0, &mut picks);
        }
        for (number, pick) in path {
            self.decisions[*number as usize].apply(*pick, &mut picks);
        }
        let cut = Cut { before: self.before, choice: Choice::Picks(picks.into()) };
        let image = self.recording.image(&self.model, cut);
        let medium = image.medium();
        medium.lock().watch = Some(Watch::new(self.words.clone(), self.decisions.len()));
        Candidate { image, medium }
    }

    fn log2(&self) -> f64 {
        self.decisions.iter().map(Decision::log2).sum()
    }

    pub(crate) fn explore<E>(
        &self,
        most: u64,
        report: &mut ClassReport,
        mut judge: impl FnMut(&Candidate) -> Result<(), E>,
    ) -> Result<bool, E> {
        let mut path: Vec<(u32, usize)> = Vec::new();
        let all: Vec<u32> = (0..self.decisions.len() as u32).collect();
        let (mut weights, mut judged) = (0_u128, 0);
        loop {
            let candidate = self.candidate(&path);
            judge(&candidate)?;
            judged += 1;
            report.judged += 1;
            let touched = match (self.merge, &candidate.medium.lock().watch) {
                (true, Some(watch)) => watch.touched().to_vec(),
                _ => all.clone(),
            };
            let same = touched.len() >= path.len() && path.iter().zip(&touched).all(|(a, b)| a.0 == *b);
            assert!(same, "the judge asks {touched:?} after {path:?} at {}: it is no function", self.before);
            path.extend(touched[path.len()..].iter().map(|number| (*number, 0)));
            let weight = self.weight(&path);
            report.merged += u64::from(weight != 1);
            weights = weights.wrapping_add(weight);
            loop {
                let Some((number, pick)) = path.pop() else {
                    let product = |sum: u128, decision: &Decision| sum.wrapping_mul(decision.weight());
                    let images = self.decisions.iter().fold(1, product);
                    assert_eq!(weights, images, "the classes do not add up to the images");
                    return Ok(true);
                };
                if pick + 1 < self.decisions[number as usize].arity() {
                    path.push((number, pick + 1));
                    break;
                }
            }
            if judged >= most {
                return Ok(false);
            }
        }
    }

    fn weight(&self, path: &[(u32, usize)]) -> u128 {
        let mut decided = vec![None; self.decisions.len()];
        path.iter().for_each(|(number, pick)| decided[*number as usize] = Some(*pick));
        self.decisions.iter().zip(decided).fold(1, |product: u128, (decision, pick)| {
            product.wrapping_mul(pick.map_or(decision.weight(), |pick| decision.weight_of(pick)))
        })
    }
}

fn ways_to_tear(units: usize, most: u64, rng: &mut fastrand::Rng) -> Vec<Vec<bool>> {
    if units < 64 && (1_u64 << units) - 1 <= most {
        return (0..(1_u64 << units) - 1)
            .map(|bits| (0..units).map(|i| bits >> i & 1 == 1).collect())
            .collect();
    }
    let mut ways = vec![vec![false; units]];
    while (ways.len() as u64) < most.max(1) {
        let special = rng.usize(..units);
        let way = match ways.len() % 3 {
            1 => (0..units).map(|i| i != special).collect(),
            2 => (0..units).map(|i| i == special).collect(),
            _ => (0..units).map(|i| i != special && rng.bool()).collect(),
        };
        ways.push(way);
    }
    ways
}

pub(crate) fn points(medium: &SimMedium, limits: ClassLimits) -> impl Iterator<Item = (Point, f64)> {
    let recording = Arc::new(medium.lock().recording.clone());
    let wholes = wholes(&recording);
    let mut model = recording.base.clone();
    let (mut at, end) = (recording.first, recording.next());
    let (mut grown, mut done) = (true, false);
    std::iter::from_fn(move || {
        while !done {
            let ends = recording.event(at).is_none_or(|event| !only_adds(event.kind));
            let point = (ends && grown).then(|| Point::new(&recording, &wholes, &model, at, &limits));
            if let Some(event) = recording.event(at) {
                grown = (grown && !ends) || only_adds(event.kind) || matches!(event.kind, EventKind::Mark(_));
            }
            done = at == end;
            recording.step(&mut model, at);
            at += 1;
            if let Some(point) = point {
                let log2 = point.log2();
                return Some((point, log2));
            }
        }
        None
    })
}

/// Whether a cut after the event leaves all that a cut before it does, and promises no more.
fn only_adds(kind: EventKind) -> bool {
    use EventKind as K;
    match kind {
        K::Write
        | K::Stream
        | K::WriteDurable
        | K::Zero
        | K::Discard
        | K::BarrierFailed
        | K::PersistFailed { .. }
        | K::WritebackFailed { .. } => true,
        K::Evicted | K::Persisted { .. } | K::Barrier { .. } | K::Extended(_) | K::Damage | K::Mark(_) => {
            false
        }
    }
}
