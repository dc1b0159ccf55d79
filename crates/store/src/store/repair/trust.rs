//! The mark of typed objects, where repair gives content up.
//!
//! Invariant: the mark of an object is gone, durably, before anything is done that may change or lose what the object
//! psynced. A repair that is killed in between leaves an object that has to be verified although nothing happened to
//! it, never one that is trusted although something did.

use super::Repair;
use super::lanes::TOGETHER;
use super::plan::Plan;
use crate::error::{Part, Result};
use crate::format::entry::{Entry, FLAG_TYPED};
use crate::medium::read_struct;
use crate::store::check::{Claim, Owner, Survey, overlapping};
use zerocopy::IntoBytes;

impl Repair {
    /// Takes the mark from those of the objects that have it; durable on return. `entries`: offsets of intact entries.
    pub(super) fn distrust(&mut self, entries: impl IntoIterator<Item = u64>) -> Result<()> {
        let mut typed = Vec::new();
        for offset in entries {
            let mut entry: Entry = read_struct(&*self.medium, offset)?;
            // Nobody can attach an entry that does not verify.
            if entry.verify(self.seed, offset, self.len) && entry.flags & FLAG_TYPED != 0 {
                entry.flags &= !FLAG_TYPED;
                typed.push((offset, entry.sealed(self.seed)));
            }
        }
        for part in typed.chunks(TOGETHER) {
            self.publish(|batch| {
                part.iter().for_each(|(offset, entry)| batch.copy_lines(*offset, entry.as_bytes()));
            })?;
            for (offset, entry) in part {
                let what = "no longer trusted: a program that uses its typed roots verifies its heap first";
                self.did(Part::Entry, *offset, Some(entry.name()), what);
            }
        }
        Ok(())
    }

    /// Takes the mark from objects that a new table brings back, or settles the space of: those whose pages something
    /// else claims as well, and those that no tree led to.
    pub(super) fn distrust_disputed(&mut self, survey: &Survey, plan: &Plan) -> Result<()> {
        let mut claims = survey.claims().to_vec();
        claims.extend(plan.objects.iter().map(|o| Claim::new(o.primary, o.pages, Owner::Object(o.offset))));
        let disputed = overlapping(claims).into_iter().filter_map(|owner| match owner {
            Owner::Object(entry) => Some(entry),
            _ => None,
        });
        let strays = survey.strays.iter().copied();
        self.distrust(disputed.chain(strays).collect::<std::collections::BTreeSet<_>>())
    }
}
