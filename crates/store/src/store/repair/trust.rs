//! The mark of typed objects when repair gives up content.
//!
//! Invariant: an object's mark is durably gone before repair changes or loses any of its psynced
//! bytes. A repair killed in between costs only another verification.

use super::Repair;
use super::plan::{Plan, entries_are_known};
use super::scan;
use super::settled::{SettledRepair, TOGETHER};
use crate::error::{Part, Result};
use crate::format::LINE;
use crate::format::entry::{Entry, FLAG_TYPED};
use crate::medium::read_struct;
use crate::store::check::{Object, Owner, Survey, overlapping};
use std::collections::BTreeSet;
use std::mem::offset_of;
use zerocopy::IntoBytes;

impl Repair {
    /// Clears all marks in place, few at a time, while the damaged lane keeps the pool closed. A
    /// torn entry lacks one bit, which [`unmarked`] corrects.
    pub(super) fn distrust_all(&mut self, progress: &mut dyn FnMut(u64, u64)) -> Result<()> {
        let survey = self.survey(progress)?;
        let mut entries: BTreeSet<u64> = survey.objects.iter().map(|object| object.offset).collect();
        entries.extend(&survey.strays);
        if !entries_are_known(&survey) {
            let scanned = scan::entries(&*self.medium, self.seed, self.len, progress)?;
            entries.extend(scanned.objects.iter().map(|object| object.offset));
        }
        for part in self.without_mark(entries)?.chunks(TOGETHER) {
            for (offset, entry) in part {
                self.medium.write(*offset, &entry.as_bytes()[..LINE as usize])?;
            }
            self.medium.barrier()?;
            self.did_distrust(part);
        }
        Ok(())
    }

    fn without_mark(&self, entries: impl IntoIterator<Item = u64>) -> Result<Vec<(u64, Entry)>> {
        let mut changed = Vec::new();
        for offset in entries {
            let mut entry: Entry = read_struct(&*self.medium, offset)?;
            if entry.verify(self.seed, offset, self.len) && entry.has(FLAG_TYPED) {
                entry.set(FLAG_TYPED, false);
                changed.push((offset, entry.sealed(self.seed)));
            }
        }
        Ok(changed)
    }

    fn did_distrust(&mut self, entries: &[(u64, Entry)]) {
        for (offset, entry) in entries {
            let what = "no longer trusted: a program that uses its typed roots verifies its heap first";
            self.did(Part::Entry, *offset, Some(entry.name()), what);
        }
    }
}

impl SettledRepair<'_> {
    /// Durable on return.
    pub(super) fn distrust(&mut self, entries: impl IntoIterator<Item = u64>) -> Result<()> {
        for part in self.without_mark(entries)?.chunks(TOGETHER) {
            self.publish(|batch| {
                part.iter().for_each(|(offset, entry)| batch.copy_lines(*offset, entry.as_bytes()));
            })?;
            self.did_distrust(part);
        }
        Ok(())
    }

    pub(super) fn distrust_disputed(&mut self, survey: &Survey, plan: &Plan) -> Result<()> {
        let mut claims = survey.claims().to_vec();
        claims.extend(plan.objects.iter().flat_map(Object::claims));
        let disputed = overlapping(claims).into_iter().filter_map(|owner| match owner {
            Owner::Object(entry) => Some(entry),
            _ => None,
        });
        let strays = survey.strays.iter().copied();
        self.distrust(disputed.chain(strays).collect::<BTreeSet<_>>())
    }
}

pub(super) fn unmarked(mut mended: Entry, at: usize, seed: u64) -> Entry {
    if at == offset_of!(Entry, flags) && mended.has(FLAG_TYPED) {
        mended.set(FLAG_TYPED, false);
        return mended.sealed(seed);
    }
    mended
}
