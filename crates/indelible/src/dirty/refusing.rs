use super::backend::Backend;
use super::cut::Cut;
use super::range::PageRange;
use std::io;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refused {
    Settle,
    Release,
}

/// Fails the next such call.
pub(super) struct Refusing {
    pub(super) backend: Box<dyn Backend>,
    pub(super) next: Option<Refused>,
}

impl Refusing {
    fn fails(&mut self, refused: Refused) -> io::Result<()> {
        match self.next.take_if(|next| *next == refused) {
            Some(_) => Err(io::ErrorKind::OutOfMemory.into()),
            None => Ok(()),
        }
    }
}

impl Backend for Refusing {
    fn collect(&mut self, out: &mut Vec<PageRange>) -> io::Result<()> {
        self.backend.collect(out)
    }

    fn settle(&mut self, changed: &[PageRange], unchanged: &[PageRange]) -> io::Result<()> {
        self.fails(Refused::Settle)?;
        self.backend.settle(changed, unchanged)
    }

    fn hold(&mut self, cut: Cut<'_>) -> io::Result<()> {
        self.backend.hold(cut)
    }

    fn copy_of(&self, page: u64) -> Option<*const u8> {
        self.backend.copy_of(page)
    }

    fn release(&mut self) -> io::Result<()> {
        self.backend.release()?;
        self.fails(Refused::Release)
    }

    fn grow(&mut self, pages: usize) -> io::Result<()> {
        self.backend.grow(pages)
    }

    fn as_any(&mut self) -> &mut dyn std::any::Any {
        self
    }
}
