use super::{Cure, Found, Owner, Severity, Survey};
use crate::error::{Part, Result, StoreError};
use crate::format::{MAX_POOL, PAGE};
use crate::medium::{Device, Lengthened, Medium};
use crate::store::pool::{in_force, settled_superblocks};
use std::collections::BTreeMap;
use std::sync::Arc;

pub(super) fn whole(device: Arc<dyn Device>) -> Result<(Arc<dyn Device>, Option<u64>)> {
    let len = device.len();
    match in_force(&settled_superblocks(&*device)?, len) {
        Err(StoreError::Truncated { pool, .. }) if pool <= MAX_POOL => {
            Ok((Arc::new(Lengthened::new(device, pool)), Some(len)))
        }
        _ => Ok((device, None)),
    }
}

impl Survey {
    pub(super) fn judge_cut(&mut self, cut: u64) {
        let pool = self.medium.len();
        let (first, end) = (cut / PAGE, pool / PAGE);
        let harmless = |owner| matches!(owner, Owner::Free | Owner::Chunk);
        let lost = self.claims().iter().filter(|claim| claim.end > first && claim.first < end);
        let lost: Vec<_> = lost.filter(|claim| !harmless(claim.owner)).copied().collect();
        let mut objects = BTreeMap::new();
        for claim in &lost {
            if let Owner::Object(entry) = claim.owner {
                *objects.entry(entry).or_insert(0) += (claim.end.min(end) - claim.first.max(first)) * PAGE;
            }
        }
        for (entry, bytes) in &objects {
            let what = format!("{bytes} bytes of its space were cut off with the end of the pool");
            let remedy = "remove it, or restore it from a backup: these bytes would read as zeros";
            let (found, name) =
                (Found(Severity::Error, Part::Entry, *entry, Cure::Restore), self.name_at(*entry));
            self.report.add_with(found, Some(name), what, remedy.into());
        }
        let gone = format!("the last {} of {pool} bytes of the pool were cut off", pool - cut);
        let known = self.owners_are_known() && self.damaged.is_empty();
        let (what, remedy) = if !known || lost.iter().any(|claim| !matches!(claim.owner, Owner::Object(_))) {
            (
                format!("{gone}, and parts of its table or of lanes with them"),
                format!(
                    "if the file is whole elsewhere, use that; else `truncate -s {pool} POOL`, then `pmo repair --drop-damaged`, \
                     which brings back the objects whose entries are left"
                ),
            )
        } else if objects.is_empty() {
            (
                format!("{gone}, in which there was free space alone"),
                format!("`truncate -s {pool} POOL` brings everything back"),
            )
        } else {
            (
                format!("{gone}, with bytes of the objects named here"),
                format!(
                    "if the file is whole elsewhere, use that; else `truncate -s {pool} POOL` brings back everything but the bytes of \
                     these objects"
                ),
            )
        };
        self.report.add_with(Found(Severity::Error, Part::Superblock, 0, Cure::Restore), None, what, remedy);
    }
}
