//! All images that power cuts may leave, those that a judge cannot tell apart taken together.
//!
//! # What is left out, and why nothing is lost
//!
//! *Points.* A cut after a write leaves every image that a cut before it does, and more. So the
//! power is cut only where that ends: before a barrier or a durable write returns, before a mark
//! (from there on more is promised), and at the end of the log.
//!
//! *Unread units.* At a point, each undecided unit is a decision: which of its versions is left.
//! The judge runs on a medium that notes which words it reads that differ between versions and that
//! it did not itself overwrite before. A judge is a function of the bytes it reads. Hence two
//! images that agree in the decisions it met on one of them take it through the same steps on both,
//! to the same verdict: the decisions it did not meet need no enumeration. The others are
//! enumerated depth first, each branch running the judge again. If the judge asks its questions in
//! another order although the answers were the same, it is not such a function; that is an error
//! and not ignored.
//!
//! *Torn durable writes.* The store's durable writes all prove themselves by a checksum over the
//! whole: a batch, a header, a superblock slot. For such a write in flight, on `n` units, one
//! subset is the whole and 2^n - 1 are not, and all of those must be refused alike. That is a claim
//! about the store and not a fact, so some of them are judged: all where [`ClassLimits::torn`]
//! allows, else none of the units, all but one, just one, and random ones. The same holds for a
//! batch that is written in pieces, header last, and made durable by the barrier after it
//! (`whole.rs` tells how it is recognised).
//!
//! Each class weighs as many images as it stands for; that the weights of a point add up to the
//! number of its images is checked at every point.

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

/// How far to enumerate.
#[derive(Clone, Copy, Debug)]
pub struct ClassLimits {
    /// Classes at one point; beyond them the point counts as cut short.
    pub per_point: u64,
    /// How many of the ways to tear a durable write are judged.
    pub torn: u64,
    /// Whether unread units are left out. Without, with `torn` at its maximum, every image is made.
    pub merge: bool,
    /// Chooses the ways to tear.
    pub seed: u64,
}

impl Default for ClassLimits {
    fn default() -> Self {
        ClassLimits { per_point: 20_000, torn: 7, merge: true, seed: 0 }
    }
}

/// Counters of an enumeration.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ClassReport {
    /// Points at which the power was cut.
    pub points: u64,
    /// Points with more classes than [`ClassLimits::per_point`].
    pub cut_short: u64,
    /// Binary logarithm of the number of legal images at all points together.
    pub legal_log2: f64,
    /// Classes judged, further ways to tear included.
    pub judged: u64,
    /// Classes that stand for more than one image.
    pub merged: u64,
}

/// One undecided thing.
enum Decision {
    /// The unit at this place among the pending ones has so many versions.
    Unit { place: usize, states: usize },
    /// A durable write, or a batch in pieces, in flight on the units at these places, and which
    /// subsets of them stand for a torn one.
    Write { places: Vec<usize>, torn: Vec<Vec<bool>> },
}

impl Decision {
    /// Ways to decide it that are tried.
    fn arity(&self) -> usize {
        match self {
            Decision::Unit { states, .. } => *states,
            Decision::Write { torn, .. } => torn.len() + 1,
        }
    }

    /// Images it stands for when it does not matter; modulo 2^128.
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

    /// Images that its `pick`th way stands for; modulo 2^128. The first torn way stands for those
    /// that are not tried.
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

/// The decisions at one point.
pub(crate) struct Point {
    recording: Arc<Recording>,
    model: Model,
    before: u64,
    decisions: Vec<Decision>,
    words: Words,
    merge: bool,
}

/// An image to be judged, on a medium that notes all reads.
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
            // A header may be yet to come: then its pieces are judged one by one.
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

    /// Binary logarithm of the number of images.
    fn log2(&self) -> f64 {
        self.decisions.iter().map(Decision::log2).sum()
    }

    /// Shows `judge` one image of each class. False if there are more than `most`.
    pub(crate) fn explore<E>(
        &self,
        most: u64,
        report: &mut ClassReport,
        mut judge: impl FnMut(&Candidate) -> Result<(), E>,
    ) -> Result<bool, E> {
        // The decisions met so far, in order, and how each is decided.
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

    /// Images that agree with this path.
    fn weight(&self, path: &[(u32, usize)]) -> u128 {
        let mut decided = vec![None; self.decisions.len()];
        path.iter().for_each(|(number, pick)| decided[*number as usize] = Some(*pick));
        self.decisions.iter().zip(decided).fold(1, |product: u128, (decision, pick)| {
            product.wrapping_mul(pick.map_or(decision.weight(), |pick| decision.weight_of(pick)))
        })
    }
}

/// Subsets that stand for all in which something is missing: all of these if there are at most
/// `most`.
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

/// The points of a log at which the set of images is at its largest, one after another.
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
