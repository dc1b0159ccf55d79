//! The chunk that a scan is in while it looks at chunks that are not protected whole.

use crate::dirty::policy::ScanPolicy;
use crate::dirty::range::{self, PageRange};

#[derive(Default)]
pub(super) struct NewChunk {
    pub(super) pages: PageRange,
    pub(super) existing: usize,
    pub(super) dirty: usize,
}

impl NewChunk {
    pub(super) fn close(
        &self,
        pending: &[PageRange],
        policy: &mut impl ScanPolicy,
        protect: &mut Vec<PageRange>,
        sparse: &mut (u64, u64),
    ) {
        if self.pages.count == 0 {
            return;
        }
        if policy.protects_whole(self.existing, self.pages.count as usize) {
            range::push(protect, 0, self.pages.start as usize, self.pages.end() as usize);
            return;
        }
        *sparse = (sparse.0 + self.existing as u64, sparse.1 + 1);
        for run in &pending[self.dirty..] {
            range::push(protect, 0, run.start as usize, run.end() as usize);
        }
    }
}
