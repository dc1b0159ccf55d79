//! Changes that others made to a view, taken over.

use super::attached::{Inner, State};
use super::entry::{Entry, Memory};
use super::layout::ViewSlot;
use crate::error::Cause;
use indelible_store::Mutant;
use std::collections::{BTreeMap, HashMap};

/// The fate of a slot that is known.
enum Change {
    /// It stays, or waits for somebody who may take it away.
    Kept,
    /// It goes on with other wishes.
    Altered(ViewSlot),
    /// It goes; another object may come.
    Ended,
}

impl Inner {
    /// Brings the slots to what the view's last psync says, if that is another than it was. `whole`: also what takes an object away that is attached; otherwise threads use
    /// such objects, and they stay.
    pub(super) fn follow(&self, state: &mut State, whole: bool) -> Result<(), Cause> {
        let seen = self.seen_now()?;
        if seen == state.seen && !seen.written && !(whole && state.behind) {
            return Ok(());
        }
        let mut wanted: BTreeMap<usize, ViewSlot> =
            self.read()?.into_iter().map(|slot| (slot.slot, slot)).collect();
        let known = |slot: &&ViewSlot| {
            state.entries.get(&slot.slot).is_some_and(|entry| {
                entry.want.target == slot.target && !matches!(entry.memory, Memory::None)
            })
        };
        let ids: Vec<[u8; 16]> =
            wanted.values().filter(|slot| !known(slot)).map(|slot| slot.target).collect();
        let found = self.pool.inner().store.find_ids(&ids)?;
        let mut found: HashMap<[u8; 16], _> = ids.into_iter().zip(found).collect();
        state.behind = false;
        let may_end = whole || Mutant::ViewAdoptedInUse.is_on();
        let mut ended = Vec::new();
        for (number, entry) in &mut state.entries {
            match change(entry, wanted.get(number), may_end, &mut state.behind) {
                Change::Kept => drop(wanted.remove(number)),
                Change::Altered(want) => {
                    if want.rights != entry.want.rights {
                        entry.end();
                    }
                    entry.want = want;
                    wanted.remove(number);
                }
                Change::Ended => ended.push(*number),
            }
        }
        for number in ended {
            state.entries.remove(&number);
        }
        for (number, want) in wanted {
            // One object in two slots has no addresses left for the second.
            let Some(object) = found.remove(&want.target) else { continue };
            let object = object.map_err(Cause::from);
            state.entries.insert(number, Entry::reserve(want, object, &self.pool, self.me.clone()));
        }
        state.seen = seen;
        Ok(())
    }
}

fn change(entry: &Entry, wanted: Option<&ViewSlot>, may_end: bool, behind: &mut bool) -> Change {
    match wanted {
        Some(want) if *want == entry.want && !matches!(entry.memory, Memory::None) => Change::Kept,
        _ if entry.is_attached() && !may_end => {
            *behind = true;
            Change::Kept
        }
        Some(want) if want.target == entry.want.target && !matches!(entry.memory, Memory::None) => {
            Change::Altered(*want)
        }
        _ => Change::Ended,
    }
}
