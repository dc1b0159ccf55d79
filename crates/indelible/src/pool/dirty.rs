//! Pages that another process may have stored to since its last psync, for tools beside it.

use super::{Stat, State};
use crate::sys::PAGE;
use crate::sys::pagemap::{Pagemap, Region, Seek};

/// Runs of pages that are asked for at a time.
const REGIONS: usize = 1024;

impl Stat {
    /// Bytes of the pages that the object's writer may have stored to since its last psync: no more
    /// than these. Where stores are not found by the kernel (tracking by `mprotect` or `explicit`),
    /// those of the pages that it stored to since it mapped them. `None`: the object has no writer,
    /// or this process may not look into that one (which needs the right to trace it), or the
    /// kernel cannot tell.
    ///
    /// Costs a scan of the page tables of the object there, and disturbs no process.
    #[must_use]
    pub fn dirty_bytes(&self) -> Option<u64> {
        let process = self.holder.filter(|_| matches!(self.state, State::Writing | State::Persisting))?;
        let map = Pagemap::of(process).ok()?;
        let pages = self.size.div_ceil(PAGE as u64) * PAGE as u64;
        let (mut at, end) =
            (usize::try_from(self.address).ok()?, usize::try_from(self.address + pages).ok()?);
        let (mut regions, mut dirty) = (vec![Region::default(); REGIONS], 0);
        while at < end {
            let (found, reached) = map.scan(at, end, Seek::Existing, &mut regions).ok()?;
            let bytes = |region: &Region| if region.is_dirty() { region.end - region.start } else { 0 };
            dirty += regions[..found].iter().map(bytes).sum::<u64>();
            at = reached;
        }
        Some(dirty)
    }
}
