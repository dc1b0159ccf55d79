//! Writes never-psynced pages straight to the primary.

#![allow(unsafe_code)]

use super::{Tracked, absent};
use crate::dirty::PageRange;
use crate::error::Cause;
use crate::shadow::copy_lines;
use crate::sys::PAGE;
use indelible_store::error::StoreError;
use indelible_store::store::Writer;

/// Below, two more barriers cost more than writing twice.
const DIRECT_FROM: u64 = 256;
const PIECE: usize = 64 << 10;

impl Tracked {
    /// Not pages of sealed objects, nor those on a base, which are logged whole when they first
    /// change.
    pub(in crate::object) fn write_fresh(&mut self, writer: &mut Writer) -> Result<(), Cause> {
        let fresh = writer.published().div_ceil(PAGE as u64);
        let end = self.ranges.last().map_or(0, |range| range.end());
        if end <= fresh || pages_from(&self.ranges, fresh) < DIRECT_FROM || !writer.takes_direct_writes() {
            return Ok(());
        }
        let Some(shadow) = &self.shadow else { return Err(absent(&self.lost)) };
        let start = self.stats.start();
        match writer.begin_direct(end * PAGE as u64) {
            Err(StoreError::HasBase) => return Ok(()),
            begun => begun?,
        }
        let mut buffer = vec![0; PIECE];
        for range in &self.ranges {
            let mut page = range.start.max(fresh);
            while page < range.end() {
                let count = (range.end() - page).min((PIECE / PAGE) as u64);
                let bytes = &mut buffer[..count as usize * PAGE];
                for (index, piece) in bytes.chunks_exact_mut(PAGE).enumerate() {
                    // SAFETY: a page of the shadow; the buffer lies outside.
                    unsafe { copy_lines(shadow.page_bytes(page + index as u64), u64::MAX, piece) };
                }
                writer.write_direct(page * PAGE as u64, bytes)?;
                self.stats.direct_bytes += bytes.len() as u64;
                self.changed.push(PageRange { start: page, count });
                page += count;
            }
        }
        writer.end_direct()?;
        self.ranges.retain_mut(|range| {
            range.count = range.end().min(fresh).saturating_sub(range.start);
            range.count > 0
        });
        self.stats.wrote_direct(start);
        Ok(())
    }
}

fn pages_from(ranges: &[PageRange], first: u64) -> u64 {
    ranges.iter().map(|range| range.end().saturating_sub(range.start.max(first))).sum()
}
