//! Ties: intact lists without cycles.

use super::objects::Object;
use super::{Cure, Found, Severity, Survey};
use crate::error::Part;
use crate::format::entry::Entry;
use crate::medium::read_struct;
use crate::table::{id_key, tied_to};
use std::collections::{BTreeMap, BTreeSet};

impl Survey {
    /// A repair drops damaged or cyclic lists; their objects stay.
    pub(super) fn judge_ties(&mut self) {
        let tied: Vec<u64> =
            self.objects.iter().filter(|object| object.ties.1 > 0).map(|object| object.offset).collect();
        if tied.is_empty() {
            return;
        }
        let entries: BTreeMap<(u64, u64), u64> =
            self.objects.iter().map(|object| (object.id, object.offset)).collect();
        let mut targets: BTreeMap<u64, Vec<u64>> = BTreeMap::new();
        let mut kept = BTreeSet::new();
        for &offset in &tied {
            let list = read_struct::<Entry>(&*self.medium, offset)
                .map_err(Into::into)
                .and_then(|entry| tied_to(&*self.medium, self.seed, &entry));
            match list {
                Ok(list) => {
                    let found = list.iter().filter_map(|id| entries.get(&id_key(id)).copied());
                    targets.insert(offset, found.collect());
                }
                Err(error) => {
                    kept.insert(offset);
                    self.find_untied(offset, Severity::Error, &format!("its ties cannot be read: {error}"));
                }
            }
        }
        for offset in cyclic(&targets) {
            let what = "it is to outlive itself, by its ties and those of others: neither can ever go";
            self.find_untied(offset, Severity::Warning, what);
        }
        kept.extend(targets.iter().filter(|(_, targets)| !targets.is_empty()).map(|(offset, _)| *offset));
        for object in self.objects.iter_mut().filter(|object: &&mut Object| kept.contains(&object.offset)) {
            object.tied = true;
        }
    }

    fn find_untied(&mut self, offset: u64, severity: Severity, what: &str) {
        self.find_of(offset, Found(severity, Part::Ties, offset, Cure::Untie), what);
        self.untied.push(offset);
    }
}

fn cyclic(targets: &BTreeMap<u64, Vec<u64>>) -> BTreeSet<u64> {
    let mut left: BTreeMap<u64, BTreeSet<u64>> =
        targets.iter().map(|(from, to)| (*from, to.iter().copied().collect())).collect();
    loop {
        let before = left.len();
        let reached: BTreeSet<u64> = left.values().flatten().copied().collect();
        left.retain(|from, _| reached.contains(from));
        let leading: BTreeSet<u64> = left.keys().copied().collect();
        left.retain(|_, to| {
            to.retain(|to| leading.contains(to));
            !to.is_empty()
        });
        if left.len() == before {
            return leading;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_on_a_cycle_or_between_two_is_cyclic() {
        let of = |ties: &[(u64, &[u64])]| {
            let targets = ties.iter().map(|(from, to)| (*from, to.to_vec())).collect();
            cyclic(&targets).into_iter().collect::<Vec<_>>()
        };
        assert_eq!(of(&[(1, &[2, 3]), (2, &[3]), (3, &[4])]), []);
        assert_eq!(of(&[(1, &[1])]), [1]);
        assert_eq!(of(&[(1, &[2]), (2, &[3, 9]), (3, &[2]), (4, &[1]), (9, &[8])]), [2, 3]);
        assert_eq!(of(&[(1, &[2]), (2, &[1]), (3, &[1, 4]), (4, &[3])]), [1, 2, 3, 4]);
    }
}
