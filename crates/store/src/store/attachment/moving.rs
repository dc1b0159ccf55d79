//! Growth of an object in use that cannot be extended in place: it moves to a larger extent, and
//! its memory stays.
//!
//! Memory still shows the former extent, which becomes a hidden object, locked by this process,
//! until the detach or a new mapping.
//!
//! A base stays, because memory may be mapped from the lowest one; only own pages are copied.

use super::former::Former;
use super::grow::{pages_of, reach};
use super::writer::Writer;
use crate::error::Result;
use crate::format::PAGE;
use crate::format::entry::FLAG_SPARSE;
use crate::medium::{Epoch, Medium};
use crate::mutant::Mutant;
use crate::store::lanes::Changing;
use crate::table::{Layers, Located};
use std::ops::Range;
use zerocopy::little_endian::U64;

impl Writer {
    pub(super) fn move_beside(&mut self, changing: &Changing, size: u64, kept: bool) -> Result<()> {
        let store = self.store.clone();
        let (pages, sparse) = (pages_of(&self.object, size)?, self.object.entry.has(FLAG_SPARSE));
        let (mut object, object_lock) = store.create_lender(pages, sparse)?;
        let copied = match self.copy_into(changing, &object) {
            Ok(copied) => copied,
            Err(error) => {
                store.remove_former(Former { object, object_lock });
                return Err(error);
            }
        };
        let moved = self.exchange_with(&mut object, &copied, size);
        let former = Former { object, object_lock };
        let layers = match moved {
            Ok(layers) => layers,
            Err(error) if error.is_refusal() => {
                store.remove_former(former);
                return Err(error);
            }
            Err(error) => {
                self.former.push(former);
                return Err(error);
            }
        };
        self.take_layers(layers);
        if kept && !Mutant::FormerFreed.is_on() {
            self.former.push(former);
        } else {
            store.remove_former(former);
        }
        Ok(())
    }

    /// Durable after a barrier of the returned epoch.
    fn copy_into(&mut self, changing: &Changing, larger: &Located) -> Result<Epoch> {
        self.settle_to_move(changing)?;
        let layers = self.store.view(|table| table.layers(&self.object))?;
        let own = own_runs(&self.object, layers.as_ref());
        self.store.copy(&self.object, layers.as_ref(), larger, own)
    }

    fn exchange_with(&mut self, larger: &mut Located, copied: &Epoch, size: u64) -> Result<Option<Layers>> {
        if !Mutant::EarlyExchange.is_on() {
            copied.barrier()?;
        }
        let (store, lane) = (self.store.clone(), self.lane.index);
        let (moved, former, layers) = store.update(|table| {
            let mut moved = table.entry(self.object.offset)?;
            let mut former = table.entry(larger.offset)?;
            table.stock_up(true)?;
            reach(table, &mut moved, former.entry.extent_len())?;
            std::mem::swap(&mut moved.entry.primary, &mut former.entry.primary);
            std::mem::swap(&mut moved.entry.pages, &mut former.entry.pages);
            former.entry.size = U64::new(former.entry.extent_len());
            moved.entry.size = U64::new(size);
            store.bind(table, &mut moved, lane)?;
            table.put_entry(&former)?;
            let layers = table.layers(&moved)?;
            Ok((moved, former, layers))
        })?;
        (self.object, *larger) = (moved, former);
        Ok(layers)
    }

    /// Gives up the extents that [growth](Writer::grow_beside) kept: nothing is mapped from them.
    pub fn give_former_up(&mut self) {
        for former in self.former.drain(..) {
            self.store.remove_former(former);
        }
    }
}

fn own_runs(object: &Located, layers: Option<&Layers>) -> Vec<Range<u64>> {
    let pages = object.entry.pages.get();
    let runs = layers.map_or_else(|| std::iter::once(0..pages).collect(), |layers| layers.own_runs(pages));
    runs.into_iter().map(|run| run.start * PAGE..run.end * PAGE).collect()
}
