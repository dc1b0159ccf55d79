//! Durable bytes, and the alternatives that a power cut may leave.
//!
//! Invariants, for every unit `u` in `pending`:
//!
//! 1. `versions` is not empty, and its events ascend.
//! 2. The last version is what `latest` holds at `u`; a unit that is not pending holds the same in
//!    `latest` and in `durable`.
//! 3. `stuck <= versions.len()`; the first `stuck` versions were pending when making them durable
//!    failed. If that is all of them, the unit is clean but lost.
//! 4. Its page is present in `latest`, from which pages are never removed.

use super::blocks::Blocks;
use super::config::TearUnit;
use super::event::{Event, EventKind, Extent, Fill};
use super::pages::{PAGE, Pages};
use super::watch::WORD;
use std::collections::BTreeMap;

#[derive(Clone)]
pub(super) struct Version {
    pub(super) event: u64,
    content: Box<[u8]>,
}

#[derive(Clone, Default)]
pub(super) struct Unit {
    pub(super) versions: Vec<Version>,
    stuck: usize,
}

#[derive(Clone)]
pub(super) struct Model {
    unit: u64,
    durable: Pages,
    latest: Pages,
    pending: BTreeMap<u64, Unit>,
    blocks: Blocks,
    marks: Vec<u64>,
    len: u64,
    /// The event that lengthened the medium, and its length, until a barrier.
    extended: Option<(u64, u64)>,
}

impl Model {
    pub(super) fn settled(contents: Pages, blocks: Blocks, len: u64, unit: TearUnit) -> Self {
        Self {
            len,
            extended: None,
            unit: unit.bytes() as u64,
            durable: contents.clone(),
            latest: contents,
            pending: BTreeMap::new(),
            blocks,
            marks: Vec::new(),
        }
    }

    pub(super) fn pending(&self) -> &BTreeMap<u64, Unit> {
        &self.pending
    }

    pub(super) fn blocks(&self) -> &Blocks {
        &self.blocks
    }

    pub(super) fn len(&self) -> u64 {
        self.len
    }

    pub(super) fn marks(&self) -> &[u64] {
        &self.marks
    }

    pub(super) fn forget_marks(&mut self) {
        self.marks.clear();
    }

    pub(super) fn apply(&mut self, seq: u64, event: &Event) {
        self.blocks.apply(seq, event);
        if event.kind == EventKind::Evicted {
            return event.extents.iter().for_each(|extent| self.decide(extent));
        }
        for extent in &event.extents {
            self.change(seq, extent);
        }
        match event.kind {
            EventKind::Write
            | EventKind::Stream
            | EventKind::WriteDurable
            | EventKind::Zero
            | EventKind::Discard
            | EventKind::Evicted => {}
            EventKind::Persisted { write, offset, len } => {
                self.harden(&self.pending_in(offset, len), write + 1);
            }
            EventKind::PersistFailed { offset, len } | EventKind::WritebackFailed { offset, len } => {
                self.stick(&self.pending_in(offset, len))
            }
            EventKind::Barrier { before } => {
                self.harden(&self.pending_in(0, u64::MAX), before);
                if let Some((_, len)) = self.extended.take_if(|(event, _)| *event < before) {
                    self.len = len;
                }
            }
            EventKind::BarrierFailed => self.stick(&self.pending_in(0, u64::MAX)),
            EventKind::Damage => {
                let damaged = event.ranges().flat_map(|(at, len)| self.pending_in(at, len));
                self.harden(&damaged.collect::<Vec<_>>(), seq + 1);
            }
            EventKind::Extended(len) => self.extended = Some((seq, len)),
            EventKind::Mark(mark) => self.marks.push(mark),
        }
    }

    fn decide(&mut self, extent: &Extent) {
        if let Fill::Bytes(bytes) = &extent.fill {
            self.durable.write(extent.offset, bytes);
            self.latest.write(extent.offset, bytes);
            self.pending.remove(&(extent.offset / self.unit));
        }
    }

    pub(super) fn evicted(&self, mut chosen: impl FnMut() -> bool, rng: &mut fastrand::Rng) -> Vec<Extent> {
        let mut extents = Vec::new();
        let units: Vec<(u64, &Unit)> = self.pending.iter().map(|(at, unit)| (at * self.unit, unit)).collect();
        for page in units.chunk_by(|a, b| a.0 / PAGE == b.0 / PAGE) {
            if page.iter().any(|(_, unit)| unit.stuck < unit.versions.len()) || !chosen() {
                continue;
            }
            let lost = self.blocks.is_lost(page[0].0 / PAGE);
            for (at, unit) in page {
                let mut content = vec![0; self.unit as usize];
                // Writes to a lost block are never read from it.
                let left = if lost { 0 } else { rng.usize(..=unit.versions.len()) };
                match left.checked_sub(1) {
                    Some(version) => content.copy_from_slice(&unit.versions[version].content),
                    None => self.durable.read(*at, &mut content),
                }
                extents.push(Extent::bytes(*at, &content));
            }
        }
        extents
    }

    fn pending_in(&self, offset: u64, len: u64) -> Vec<u64> {
        let units = match len {
            0 => 0..0,
            _ => offset / self.unit..offset.saturating_add(len).div_ceil(self.unit),
        };
        self.pending.range(units).map(|(at, _)| *at).collect()
    }

    fn stick(&mut self, units: &[u64]) {
        for at in units {
            if let Some(unit) = self.pending.get_mut(at) {
                unit.stuck = unit.versions.len();
            }
        }
    }

    /// Makes versions from events below `before` durable. Lost units without a new write, and those
    /// of lost blocks, stay undecided.
    fn harden(&mut self, units: &[u64], before: u64) {
        for at in units {
            let Some(unit) = self.pending.get_mut(at) else {
                continue;
            };
            let count = unit.versions.iter().take_while(|v| v.event < before).count();
            if count <= unit.stuck {
                continue;
            }
            if self.blocks.is_lost(at * self.unit / PAGE) {
                unit.stuck = count;
                continue;
            }
            self.durable.write(at * self.unit, &unit.versions[count - 1].content);
            unit.versions.drain(..count);
            unit.stuck = 0;
            if unit.versions.is_empty() {
                self.pending.remove(at);
            }
        }
    }

    fn change(&mut self, seq: u64, extent: &Extent) {
        match &extent.fill {
            Fill::Bytes(bytes) => {
                let mut at = extent.offset;
                while at < extent.end() {
                    let next = ((at / self.unit + 1) * self.unit).min(extent.end());
                    let from = (at - extent.offset) as usize;
                    let to = (next - extent.offset) as usize;
                    self.change_unit(seq, at, &bytes[from..to]);
                    at = next;
                }
            }
            Fill::Zeros(_) => self.zero(seq, extent),
        }
    }

    /// By invariant 4 they include pages that read as zeros now and may hold other bytes after a
    /// cut.
    fn zero(&mut self, seq: u64, extent: &Extent) {
        let mut units = Vec::new();
        for page in self.latest.present(extent.offset, extent.len()) {
            let start = (page * PAGE).max(extent.offset);
            let end = ((page + 1) * PAGE).min(extent.end());
            units.extend(start / self.unit..end.div_ceil(self.unit));
        }
        units.sort_unstable();
        units.dedup();
        for unit in units {
            let start = (unit * self.unit).max(extent.offset);
            let end = ((unit + 1) * self.unit).min(extent.end());
            let zeros = [0; PAGE as usize];
            self.change_unit(seq, start, &zeros[..(end - start) as usize]);
        }
    }

    fn change_unit(&mut self, seq: u64, offset: u64, bytes: &[u8]) {
        let at = offset / self.unit;
        let stuck = self.pending.get(&at).is_some_and(|unit| unit.stuck == unit.versions.len());
        let mut old = vec![0; bytes.len()];
        self.latest.read(offset, &mut old);
        // The write counts only where it makes a stuck unit dirty again.
        if old == bytes && !stuck {
            return;
        }
        self.latest.write(offset, bytes);
        let mut content = vec![0; self.unit as usize].into_boxed_slice();
        self.latest.read(at * self.unit, &mut content);
        self.pending.entry(at).or_default().versions.push(Version { event: seq, content });
    }

    pub(super) fn differing_words(&self) -> Vec<(usize, u64)> {
        let mut words = Vec::new();
        let mut durable = vec![0; self.unit as usize];
        for (place, (at, unit)) in self.pending.iter().enumerate() {
            self.durable.read(at * self.unit, &mut durable);
            for word in 0..self.unit / WORD {
                let range = (word * WORD) as usize..((word + 1) * WORD) as usize;
                let differs = |version: &Version| version.content[range.clone()] != durable[range.clone()];
                if unit.versions.iter().any(differs) {
                    words.push((place, (at * self.unit) / WORD + word));
                }
            }
        }
        words
    }

    pub(super) fn states(&self, limit: u64) -> Option<u64> {
        self.pending.values().try_fold(1u64, |product, unit| {
            product.checked_mul(unit.versions.len() as u64 + 1).filter(|n| *n <= limit)
        })
    }

    pub(super) fn contents(&self, picks: &[usize]) -> Pages {
        let mut contents = self.durable.clone();
        for ((at, unit), pick) in self.pending.iter().zip(picks) {
            if let Some(version) = pick.checked_sub(1).and_then(|i| unit.versions.get(i)) {
                contents.write(at * self.unit, &version.content);
            }
        }
        contents
    }

    #[cfg(test)]
    pub(super) fn latest(&self) -> &Pages {
        &self.latest
    }
}

#[cfg(test)]
mod tests {
    use super::super::choice::Choice;
    use super::*;
    use crate::Seeded;

    #[test]
    fn extremes_are_what_they_say() {
        let mut rng = Seeded::new(1);
        for _ in 0..300 {
            let unit = [TearUnit::Word, TearUnit::Line, TearUnit::Sector][rng.usize(..3)];
            let mut model = Model::settled(Pages::default(), Blocks::default(), 0, unit);
            let mut failed = false;
            for seq in 0..rng.u64(1..30) {
                let (offset, len) = (rng.u64(..9000), rng.u64(1..900));
                let bytes = vec![rng.u8(..3); len as usize];
                let (kind, extents) = match rng.u8(..6) {
                    0 => (EventKind::Barrier { before: seq }, vec![]),
                    1 if rng.u8(..4) == 0 => (EventKind::BarrierFailed, vec![]),
                    2 => (EventKind::Zero, vec![Extent::zeros(offset, len)]),
                    3 => (EventKind::Damage, vec![Extent::bytes(offset, &bytes)]),
                    _ => (EventKind::Write, vec![Extent::bytes(offset, &bytes)]),
                };
                failed |= kind == EventKind::BarrierFailed;
                model.apply(seq, &Event { kind, holder: 0, extents });
                let image = |choice: Choice| model.contents(&choice.picks(&model)).digest();
                assert_eq!(image(Choice::All), model.latest().digest());
                assert_eq!(image(Choice::Exact(0)), image(Choice::None));
                if !failed && matches!(kind, EventKind::Barrier { .. }) {
                    assert!(model.pending().is_empty());
                }
            }
        }
    }

    fn write(model: &mut Model, seq: u64, byte: u8) {
        let extents = vec![Extent::bytes(0, &[byte; 8])];
        model.apply(seq, &Event { kind: EventKind::Write, holder: 0, extents });
    }

    fn happen(model: &mut Model, seq: u64, kind: EventKind) {
        model.apply(seq, &Event { kind, holder: 0, extents: vec![] });
    }

    fn first_byte(model: &Model, choice: Choice) -> u8 {
        let mut byte = [0];
        model.contents(&choice.picks(model)).read(0, &mut byte);
        byte[0]
    }

    #[test]
    fn a_write_during_a_barrier_is_not_covered_by_it() {
        let mut model = Model::settled(Pages::default(), Blocks::default(), 0, TearUnit::Word);
        write(&mut model, 0, 1);
        happen(&mut model, 1, EventKind::BarrierFailed);
        write(&mut model, 2, 2);
        write(&mut model, 3, 3);
        happen(&mut model, 4, EventKind::Barrier { before: 3 });
        assert_eq!(first_byte(&model, Choice::None), 2);
        assert_eq!(first_byte(&model, Choice::All), 3);
        happen(&mut model, 5, EventKind::Barrier { before: 5 });
        assert_eq!(first_byte(&model, Choice::None), 3);
    }

    #[test]
    fn a_write_during_a_durable_write_is_not_covered_by_it() {
        let mut model = Model::settled(Pages::default(), Blocks::default(), 0, TearUnit::Word);
        write(&mut model, 0, 1);
        write(&mut model, 1, 2);
        happen(&mut model, 2, EventKind::Persisted { write: 0, offset: 0, len: 8 });
        assert_eq!(first_byte(&model, Choice::None), 1);
        assert_eq!(first_byte(&model, Choice::All), 2);
    }

    #[test]
    fn single_writes_take_their_place_in_the_order() {
        let mut model = Model::settled(Pages::default(), Blocks::default(), 0, TearUnit::Word);
        (0..3).for_each(|seq| write(&mut model, seq, seq as u8 + 1));
        let only = [0, 1, 2].map(|event| first_byte(&model, Choice::Only(event)));
        let all_but = [0, 1, 2].map(|event| first_byte(&model, Choice::AllBut(event)));
        assert_eq!((only, all_but), ([1, 2, 3], [0, 1, 2]));
        let random = (0..100).map(|seed| first_byte(&model, Choice::Random(seed)));
        let seen: std::collections::BTreeSet<u8> = random.collect();
        assert_eq!(seen.len(), 4);
    }
}
