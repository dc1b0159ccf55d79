use indelible_store::medium::{LockKey, LockMode};
use std::collections::HashMap;

#[derive(Default)]
pub(super) struct LockTable {
    held: HashMap<LockKey, Vec<(u64, LockMode)>>,
}

impl LockTable {
    pub(super) fn try_lock(&mut self, holder: u64, key: LockKey, mode: LockMode) -> bool {
        let refused = match self.strongest_other(holder, key) {
            None => false,
            Some(LockMode::Shared) => mode == LockMode::Exclusive,
            Some(LockMode::Exclusive) => true,
        };
        if refused {
            return false;
        }
        let holders = self.held.entry(key).or_default();
        holders.retain(|(who, _)| *who != holder);
        holders.push((holder, mode));
        true
    }

    pub(super) fn unlock(&mut self, holder: u64, key: LockKey) {
        if let Some(holders) = self.held.get_mut(&key) {
            holders.retain(|(who, _)| *who != holder);
            if holders.is_empty() {
                self.held.remove(&key);
            }
        }
    }

    pub(super) fn release_all(&mut self, holder: u64) {
        self.held.retain(|_, holders| {
            holders.retain(|(who, _)| *who != holder);
            !holders.is_empty()
        });
    }

    pub(super) fn strongest_other(&self, holder: u64, key: LockKey) -> Option<LockMode> {
        let others = self.held.get(&key)?.iter().filter(|(who, _)| *who != holder);
        others.map(|(_, mode)| *mode).reduce(|a, b| if a == LockMode::Exclusive { a } else { b })
    }

    pub(super) fn held_by(&self, holder: u64) -> Vec<(LockKey, LockMode)> {
        let mut held: Vec<_> = self
            .held
            .iter()
            .flat_map(|(key, holders)| holders.iter().map(move |(who, mode)| (*who, *key, *mode)))
            .filter(|(who, ..)| *who == holder)
            .map(|(_, key, mode)| (key, mode))
            .collect();
        held.sort_by_key(|(key, _)| *key);
        held
    }
}
