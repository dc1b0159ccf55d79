//! Rung 3: the program marks its stores; nothing is searched.

use super::backend::Backend;
use super::cut::Cut;
use super::gate::Gate;
use super::range::PageRange;
use crate::sys::PAGE;
use std::io;

pub(super) struct Explicit {
    gate: Gate,
}

impl Explicit {
    pub(super) fn new(base: usize, len: usize) -> Explicit {
        Explicit { gate: Gate::new(base, len) }
    }
}

impl Backend for Explicit {
    fn collect(&mut self, _: &mut Vec<PageRange>) -> io::Result<()> {
        Ok(())
    }

    fn settle(&mut self, _: &[PageRange], _: &[PageRange]) -> io::Result<()> {
        Ok(())
    }

    fn hold(&mut self, cut: Cut<'_>) -> io::Result<()> {
        let held = match cut {
            Cut::Pages(pages) => self.gate.begin().and_then(|()| self.gate.close(pages)),
            _ => self.gate.hold(),
        };
        if held.is_err() {
            let _ = self.gate.release();
        }
        held
    }

    fn release(&mut self) -> io::Result<()> {
        self.gate.release()
    }

    fn grow(&mut self, pages: usize) -> io::Result<()> {
        self.gate.grow(pages * PAGE);
        Ok(())
    }

    #[cfg(test)]
    fn as_any(&mut self) -> &mut dyn std::any::Any {
        self
    }
}
