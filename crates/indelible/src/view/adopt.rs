//! Changes that others made to a view and its security contexts, taken over.

use super::attached::{Inner, State};
use super::entry::{Entry, Memory};
use super::layout::ViewSlot;
use crate::error::Cause;
use crate::far::Rights;
use crate::security::Seen;
use indelible_store::Mutant;
use std::collections::{BTreeMap, HashMap};

/// The fate of a slot that is known.
enum Change {
    /// It stays, or waits for somebody who may take it away.
    Kept,
    /// It goes on with other wishes, or with other rights.
    Altered(ViewSlot, Rights),
    /// It goes; another object may come.
    Ended,
}

impl Inner {
    /// Brings the slots to what the view's last psync says, if that is another than it was. `whole`: also what takes an object away that is attached; otherwise threads use
    /// such objects, and they stay.
    pub(super) fn follow(&self, state: &mut State, whole: bool) -> Result<(), Cause> {
        let seen = Seen::now(&self.pool, &self.id)?;
        let grants = match Mutant::RevokedKept.is_on() {
            true => None,
            false => state.grants.newer(&self.pool)?,
        };
        if seen == state.seen && !seen.written && grants.is_none() && !(whole && state.behind) {
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
        if let Some(grants) = grants {
            state.grants = grants;
        }
        let may_end = whole || Mutant::ViewAdoptedInUse.is_on();
        let mut ended = Vec::new();
        for (number, entry) in &mut state.entries {
            let want = wanted.get(number).map(|want| (want, state.grants.to(&want.target)));
            match change(entry, want, may_end, &mut state.behind) {
                Change::Kept => drop(wanted.remove(number)),
                Change::Altered(want, allowed) => {
                    if want.rights.and(allowed) != entry.effective() {
                        entry.end();
                    }
                    (entry.want, entry.allowed) = (want, allowed);
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
            let allowed = state.grants.to(&want.target);
            let entry = Entry::reserve(want, allowed, object, &self.pool, self.me.clone());
            state.entries.insert(number, entry);
        }
        state.seen = seen;
        Ok(())
    }
}

fn change(entry: &Entry, wanted: Option<(&ViewSlot, Rights)>, may_end: bool, behind: &mut bool) -> Change {
    let is_there = !matches!(entry.memory, Memory::None);
    match wanted {
        Some((want, allowed)) if (*want, allowed) == (entry.want, entry.allowed) && is_there => Change::Kept,
        _ if entry.is_attached() && !may_end => {
            *behind = true;
            Change::Kept
        }
        Some((want, allowed)) if want.target == entry.want.target && is_there => {
            Change::Altered(*want, allowed)
        }
        _ => Change::Ended,
    }
}
