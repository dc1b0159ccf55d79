use super::objects::Object;
use super::{Cure, Found, Severity, Survey};
use crate::error::Part;
use std::collections::{BTreeMap, BTreeSet};

pub(in crate::store) fn users<'o>(objects: impl IntoIterator<Item = &'o Object>) -> BTreeMap<u64, u64> {
    let mut users = BTreeMap::new();
    for object in objects.into_iter().filter(|object| object.base != 0) {
        *users.entry(object.base).or_default() += 1;
    }
    users
}

impl Survey {
    pub(super) fn judge_bases(&mut self) {
        let resting: Vec<Object> = self.objects.iter().filter(|object| object.base != 0).copied().collect();
        let bases: BTreeMap<u64, Object> =
            self.objects.iter().filter(|object| object.is_base).map(|base| (base.offset, *base)).collect();
        let users = users(&self.objects);
        let mut chains = Chains { bases: &bases, known: BTreeMap::new() };
        for object in &resting {
            let what = match bases.get(&object.base) {
                Some(base) if base.pages < object.based => "its base is smaller than what it takes from it",
                Some(_) if !chains.ends(object) => "its bases rest on each other",
                Some(_) => continue,
                None => "its base is gone, or damaged: pages that it never changed are lost",
            };
            let found = Found(Severity::Error, Part::Entry, object.offset, Cure::Drop);
            self.find_of(object.offset, found, what);
            self.baseless.push(object.offset);
        }
        // A damaged entry's base is unknown.
        let known = self.damaged.is_empty();
        for base in bases.values() {
            let found = users.get(&base.offset).copied().unwrap_or(0);
            if base.users < found || known && base.users != found {
                let what = format!("{found} objects rest on it, its entry counts {}", base.users);
                let count = Found(Severity::Error, Part::Entry, base.offset, Cure::Count);
                self.find_of(base.offset, count, what);
            }
        }
    }
}

struct Chains<'b> {
    bases: &'b BTreeMap<u64, Object>,
    known: BTreeMap<u64, bool>,
}

impl Chains<'_> {
    fn ends(&mut self, object: &Object) -> bool {
        let (mut met, mut at) = (BTreeSet::from([object.offset]), object.base);
        let ends = loop {
            if at == 0 {
                break true;
            }
            if let Some(ends) = self.known.get(&at) {
                break *ends;
            }
            if !met.insert(at) {
                break false;
            }
            at = self.bases.get(&at).map_or(0, |base| base.base);
        };
        self.known.extend(met.into_iter().map(|offset| (offset, ends)));
        ends
    }
}
