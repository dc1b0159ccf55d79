//! Holds stores up on the rungs that otherwise need no signal handler.

use std::io;

use super::range::PageRange;
use super::watch::Watched;
use crate::sys::PAGE;

pub(super) struct Gate {
    base: usize,
    len: usize,
    watched: Option<Watched>,
    closed: bool,
}

impl Gate {
    pub(super) fn new(base: usize, len: usize) -> Gate {
        Gate { base, len, watched: None, closed: false }
    }

    pub(super) fn grow(&mut self, len: usize) {
        self.len = len;
        if let Some(watched) = &self.watched {
            let _ = watched.extend(len);
        }
    }

    pub(super) fn hold(&mut self) -> io::Result<()> {
        self.begin()?;
        self.close(PageRange::new(0, self.len / PAGE))
    }

    pub(super) fn begin(&mut self) -> io::Result<()> {
        if !self.closed {
            let watched = match &self.watched {
                Some(watched) => watched,
                // Kept until detach: a thread may enter the handler late, after the release.
                None => self.watched.insert(Watched::new(self.base, self.len, None)?),
            };
            watched.hold();
            self.closed = true;
        }
        Ok(())
    }

    pub(super) fn close(&self, pages: PageRange) -> io::Result<()> {
        let bytes = pages.start as usize * PAGE..pages.end() as usize * PAGE;
        self.watched.as_ref().map_or(Ok(()), |watched| watched.forbid(bytes))
    }

    pub(super) fn release(&mut self) -> io::Result<()> {
        match &self.watched {
            Some(watched) if std::mem::take(&mut self.closed) => watched.release(true),
            _ => Ok(()),
        }
    }
}
