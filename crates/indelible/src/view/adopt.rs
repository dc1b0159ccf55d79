use super::attached::{Inner, State};
use super::classes::{self, Classes};
use super::entry::{Entry, Memory};
use super::layout::ViewSlot;
use crate::error::Cause;
use crate::far::Rights;
use crate::pool::Seen;
use crate::security::Grants;
use crate::sys::mmap::Protection;
use indelible_store::Mutant;
use std::collections::{BTreeMap, HashMap};

#[derive(PartialEq, Eq)]
struct Wish {
    want: ViewSlot,
    allowed: Rights,
    rights: Vec<Protection>,
}

impl Wish {
    fn of(want: ViewSlot, grants: &Grants, classes: Option<&Classes>) -> Wish {
        let rights = classes.map_or_else(Vec::new, |_| classes::rights(&want, grants));
        Wish { want, allowed: grants.to(&want.target), rights }
    }

    fn is_in_force(&self, entry: &Entry) -> bool {
        (self.want, self.allowed) == (entry.want, entry.allowed) && self.rights == entry.rights
    }
}

enum Change {
    Kept,
    Altered(Wish),
    Ended,
}

impl Inner {
    /// `whole`: also detaches objects; otherwise they are in use, and stay.
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
            let wish = wanted.get(number).map(|want| Wish::of(*want, &state.grants, state.classes.as_ref()));
            match change(entry, wish, may_end, &mut state.behind) {
                Change::Kept => drop(wanted.remove(number)),
                Change::Altered(wish) => {
                    if wish.want.rights.and(wish.allowed) != entry.effective() {
                        entry.end();
                    }
                    (entry.want, entry.allowed) = (wish.want, wish.allowed);
                    entry.have_rights(wish.rights);
                    wanted.remove(number);
                }
                Change::Ended => ended.push(*number),
            }
        }
        for number in ended {
            state.entries.remove(&number);
        }
        for (number, want) in wanted {
            // An object in two slots has no addresses for the second.
            let Some(object) = found.remove(&want.target) else { continue };
            let object = object.map_err(Cause::from);
            let wish = Wish::of(want, &state.grants, state.classes.as_ref());
            let mut entry = Entry::reserve(want, wish.allowed, object, &self.pool, self.me.clone());
            entry.have_rights(wish.rights);
            state.entries.insert(number, entry);
        }
        self.classify(state, whole);
        state.seen = seen;
        Ok(())
    }

    fn classify(&self, state: &mut State, make: bool) {
        let Some(classes) = &mut state.classes else { return };
        let mut all = || {
            classes.prune();
            let lacking = state.entries.values_mut().map(|entry| !entry.classify(classes, make));
            lacking.filter(|lacking| *lacking).count() > 0
        };
        // The second time, classes that objects left are free for others.
        let lacking = all() && all();
        classes.prune();
        state.behind |= lacking;
    }
}

fn change(entry: &Entry, wish: Option<Wish>, may_end: bool, behind: &mut bool) -> Change {
    let is_there = !matches!(entry.memory, Memory::None);
    match wish {
        Some(wish) if wish.is_in_force(entry) && is_there => Change::Kept,
        _ if entry.is_attached() && !may_end => {
            *behind = true;
            Change::Kept
        }
        Some(wish) if wish.want.target == entry.want.target && is_there => Change::Altered(wish),
        _ => Change::Ended,
    }
}
