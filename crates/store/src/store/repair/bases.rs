//! Repair of ties, counts of users, objects without their base, and leftovers.

use super::settled::SettledRepair;
use crate::error::{Part, Result};
use crate::store::check::{Survey, users};
use zerocopy::little_endian::U64;

impl SettledRepair<'_> {
    pub(super) fn mend_bases(
        &mut self,
        mut survey: Survey,
        progress: &mut dyn FnMut(u64, u64),
    ) -> Result<()> {
        while self.options.drop_damaged && !survey.baseless.is_empty() {
            for &offset in &survey.baseless {
                self.drop_baseless(offset)?;
            }
            survey = self.survey(progress)?;
        }
        if self.options.drop_damaged && !survey.untied.is_empty() {
            for &offset in &survey.untied {
                self.drop_ties(offset)?;
            }
            survey = self.survey(progress)?;
        }
        let (users, before) = (users(&survey.objects), self.actions.len());
        for base in survey.objects.iter().filter(|object| object.is_base) {
            let found = users.get(&base.offset).copied().unwrap_or(0);
            if base.users < found || base.users > found && survey.damaged.is_empty() {
                self.update(|table| {
                    let mut located = table.entry(base.offset)?;
                    located.entry.users = U64::new(found);
                    table.put_entry(&located)
                })?;
                let what = format!("{found} objects rest on it: the count was corrected");
                self.did(Part::Entry, base.offset, None, what);
            }
        }
        if self.actions.len() > before {
            survey = self.survey(progress)?;
        }
        while self.reap(&survey)? {
            survey = self.survey(progress)?;
        }
        Ok(())
    }

    fn drop_ties(&mut self, offset: u64) -> Result<()> {
        let mut name = String::new();
        self.update(|table| {
            let mut located = table.entry(offset)?;
            name = located.entry.name();
            table.drop_ties(&mut located)
        })?;
        self.did(Part::Ties, offset, Some(name), "its ties were dropped");
        self.losing("which objects it is to outlive");
        Ok(())
    }

    fn drop_baseless(&mut self, offset: u64) -> Result<()> {
        let mut name = String::new();
        self.update(|table| {
            let located = table.entry(offset)?;
            name = located.entry.name();
            table.destroy_alone(&located)
        })?;
        self.did(Part::Entry, offset, Some(name), "dropped: its base is gone");
        self.losing("the object: the pages that it never changed were the base's");
        Ok(())
    }
}
