//! Pages that another process may have stored to since its last psync.

use super::{Stat, State};
use crate::sys::PAGE;
use crate::sys::pagemap::{Pagemap, Region, Seek};

const REGIONS: usize = 1024;

impl Stat {
    /// Upper bound of the bytes that the object's writer stored to since its last psync. `None`: no
    /// writer, no right to trace it, or no support by the kernel.
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
