//! Holding up stores on the rungs that otherwise need no signal handler.

use std::io;

use super::watch::Watched;

/// A range that the handler learns of with the first hold, so that an object never held pays nothing.
pub(super) struct Gate {
    base: usize,
    len: usize,
    watched: Option<Watched>,
}

impl Gate {
    pub(super) fn new(base: usize, len: usize) -> Gate {
        Gate { base, len, watched: None }
    }

    pub(super) fn grow(&mut self, len: usize) {
        self.len = len;
        if let Some(watched) = &self.watched {
            // Without a table there is always room.
            let _ = watched.extend(len);
        }
    }

    pub(super) fn hold(&mut self) -> io::Result<()> {
        let watched = match &self.watched {
            Some(watched) => watched,
            // Kept until detach: a thread may come late to the handler after the release.
            None => self.watched.insert(Watched::new(self.base, self.len, None)?),
        };
        watched.hold()
    }

    pub(super) fn release(&self) -> io::Result<()> {
        self.watched.as_ref().map_or(Ok(()), |watched| watched.release(true))
    }
}
