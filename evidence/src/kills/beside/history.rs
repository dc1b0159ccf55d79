//! History of a group of objects: the order of its states, and the bytes of each.
//!
//! One process at a time writes a group; each psync and each growth makes a state. First word and
//! size identify a state, whose bytes follow from the seed and earlier states. A rollback returns
//! to one.

use crate::workloads::journal::{Event, Journal, UNDER_WAY, UNDONE};
use crate::workloads::program::mixed;
use crate::workloads::world::Trouble;
use std::ops::RangeInclusive;
use std::path::Path;

pub(super) const MEMBERS: usize = 2;
pub(super) const GROUPS: usize = 2;
pub(super) const SIZE: u64 = 20 * 4096 + 100;
const LARGEST: u64 = 40 * 4096;
pub(super) const NAMES: usize = 16;

pub(super) const PSYNC: u64 = 1;
const GROW: u64 = 2;
const BACK: u64 = 3;

/// First word of an object, and its size.
pub(super) type Label = (u64, u64);

pub(super) fn label(bytes: &[u8]) -> Label {
    (word(bytes, 0), bytes.len() as u64)
}

pub(super) fn word(bytes: &[u8], number: usize) -> u64 {
    let (words, _) = bytes.as_chunks::<8>();
    words.get(number).map_or(0, |word| u64::from_le_bytes(*word))
}

pub(super) fn name(object: usize) -> String {
    format!("object {object}")
}

pub(super) type Stored = (usize, Vec<u8>);

pub(super) fn stores(mut rng: fastrand::Rng, len: usize) -> Vec<Stored> {
    let mut stores = Vec::new();
    for _ in 0..rng.usize(1..6) {
        let most = len - NAMES;
        let count = match rng.u8(0..24) {
            0..12 => rng.usize(1..=8),
            12..20 => rng.usize(1..=300),
            20..23 => rng.usize(1..=3 * 4096),
            _ => most,
        };
        let at = NAMES + rng.usize(0..=most - count);
        let mut bytes = vec![0; count];
        rng.fill(&mut bytes);
        stores.push((at, bytes));
    }
    stores
}

pub(super) fn store(bytes: &mut [u8], (at, stored): &Stored) {
    bytes[*at..at + stored.len()].copy_from_slice(stored);
}

/// Events: outcome, kind, states of the two objects before and after, sizes afterwards. A state is
/// the number of its event; 0: as created.
pub(super) struct History {
    seed: u64,
    pub(super) group: usize,
    pub(super) journal: Journal,
}

impl History {
    pub(super) fn open(folder: &Path, seed: u64, group: usize) -> Result<History, Trouble> {
        let journal = Journal::open(&folder.join(format!("group-{group}")))?;
        Ok(History { seed, group, journal })
    }

    pub(super) fn object(&self, member: usize) -> usize {
        self.group * MEMBERS + member
    }

    pub(super) fn states(&self, event: u64) -> Result<[u64; MEMBERS], Trouble> {
        if event == 0 {
            return Ok([0; MEMBERS]);
        }
        let event = self.journal.get(event)?;
        Ok(if event[0] == UNDONE { before(&event) } else { after(&event) })
    }

    pub(super) fn label(&self, member: usize, state: u64) -> Result<Label, Trouble> {
        if state == 0 {
            return Ok((0, SIZE));
        }
        let event = self.journal.get(state)?;
        let named = if event[1] == GROW { self.label(member, before(&event)[member])?.0 } else { state };
        Ok((named, event[6 + member]))
    }

    pub(super) fn image(&self, member: usize, state: u64) -> Result<Vec<u8>, Trouble> {
        let (mut line, mut at) = (Vec::new(), state);
        while at != 0 {
            let event = self.journal.get(at)?;
            line.push((at, event));
            at = before(&event)[member];
        }
        let mut bytes = vec![0; SIZE as usize];
        for (state, event) in line.into_iter().rev() {
            if event[1] == GROW {
                bytes.resize(event[6 + member] as usize, 0);
            } else {
                self.stores(member, state, bytes.len()).iter().for_each(|stored| store(&mut bytes, stored));
            }
        }
        Ok(bytes)
    }

    pub(super) fn stores(&self, member: usize, state: u64, len: usize) -> Vec<Stored> {
        let mut stores = stores(mixed(self.seed, self.object(member) as u64, state), len);
        stores.push((0, state.to_le_bytes().to_vec()));
        stores
    }

    pub(super) fn find(
        &self,
        found: &[(usize, Label)],
        events: RangeInclusive<u64>,
    ) -> Result<Option<[u64; MEMBERS]>, Trouble> {
        for event in events.rev() {
            let states = self.states(event)?;
            let mut same = true;
            for (member, label) in found {
                same &= self.label(*member, states[*member])? == *label;
            }
            if same {
                return Ok(Some(states));
            }
        }
        Ok(None)
    }

    pub(super) fn begin_psync(&self, members: [bool; MEMBERS]) -> Result<u64, Trouble> {
        let next = self.journal.last()? + 1;
        self.begin(PSYNC, |member, state, len| if members[member] { (next, len) } else { (state, len) })
    }

    pub(super) fn begin_growth(&self, grows: usize, by: u64) -> Result<Option<(u64, u64)>, Trouble> {
        let (next, mut size) = (self.journal.last()? + 1, 0);
        let len = self.label(grows, self.states(next - 1)?[grows])?.1;
        if len + by > LARGEST {
            return Ok(None);
        }
        let number = self.begin(GROW, |member, state, len| {
            if member == grows {
                size = len + by;
                return (next, size);
            }
            (state, len)
        })?;
        Ok(Some((number, size)))
    }

    pub(super) fn begin_return(&self, returns: usize, to: u64) -> Result<u64, Trouble> {
        let size = self.label(returns, to)?.1;
        self.begin(BACK, |member, state, len| if member == returns { (to, size) } else { (state, len) })
    }

    /// `change`: a member's state and size afterwards, by those before.
    fn begin(
        &self,
        kind: u64,
        mut change: impl FnMut(usize, u64, u64) -> (u64, u64),
    ) -> Result<u64, Trouble> {
        let states = self.states(self.journal.last()?)?;
        let mut event = [UNDER_WAY, kind, states[0], states[1], 0, 0, 0, 0];
        for (member, state) in states.into_iter().enumerate() {
            let len = self.label(member, state)?.1;
            (event[4 + member], event[6 + member]) = change(member, state, len);
        }
        self.journal.begin(&event)
    }
}

pub(super) fn before(event: &Event) -> [u64; MEMBERS] {
    [event[2], event[3]]
}

pub(super) fn after(event: &Event) -> [u64; MEMBERS] {
    [event[4], event[5]]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_follow_from_the_events() {
        let folder = tempfile::tempdir().unwrap();
        let history = History::open(folder.path(), 7, 1).unwrap();
        let first = history.begin_psync([true, false]).unwrap();
        history.journal.end(first, true).unwrap();
        let both = history.begin_psync([true, true]).unwrap();
        history.journal.end(both, false).unwrap();
        assert_eq!(history.states(both).unwrap(), [first, 0], "it did not happen");
        let (grown, size) = history.begin_growth(0, 5000).unwrap().unwrap();
        history.journal.end(grown, true).unwrap();
        assert_eq!((history.label(0, grown).unwrap(), size), ((first, SIZE + 5000), SIZE + 5000));
        let mut image = history.image(0, first).unwrap();
        assert_eq!(label(&image), (first, SIZE));
        image.resize(size as usize, 0);
        assert_eq!(history.image(0, grown).unwrap(), image);
        let returned = history.begin_return(0, first).unwrap();
        history.journal.end(returned, true).unwrap();
        assert_eq!(history.states(returned).unwrap(), [first, 0]);
        let found = |labels: &[(usize, Label)], events| history.find(labels, events).unwrap();
        assert_eq!(found(&[(0, (first, size)), (1, (0, SIZE))], 0..=returned), Some([grown, 0]));
        assert_eq!(found(&[(0, (first, size))], returned..=returned), None);
        assert_eq!(found(&[(0, (both, SIZE))], 0..=returned), None, "no process may see what did not happen");
    }
}
