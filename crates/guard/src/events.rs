//! Events from other threads for the guard's loop.

use crate::condition::Condition;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver};

#[derive(Debug)]
pub(crate) enum Event {
    /// A detector's condition, by its index.
    Condition(usize, Condition),
    Recovered(u64, Result<(), String>),
    Stop,
    /// `true`: it has looked for dead processes since the request.
    Finish(bool),
}

#[derive(Clone, Debug)]
pub(crate) struct Sender {
    events: mpsc::Sender<Event>,
    wake: Arc<UnixStream>,
}

/// The loop's end; readable when there are events.
#[derive(Debug)]
pub(crate) struct Events {
    events: Receiver<Event>,
    wake: UnixStream,
}

impl Sender {
    pub(crate) fn new() -> io::Result<(Sender, Events)> {
        let (own, wake) = UnixStream::pair()?;
        own.set_nonblocking(true)?;
        wake.set_nonblocking(true)?;
        let (sender, events) = mpsc::channel();
        Ok((Sender { events: sender, wake: Arc::new(own) }, Events { events, wake }))
    }

    pub(crate) fn send(&self, event: Event) -> bool {
        let sent = self.events.send(event).is_ok();
        let _ = (&*self.wake).write(&[0]);
        sent
    }

    pub(crate) fn condition(&self, nth: usize, condition: Condition) -> bool {
        self.send(Event::Condition(nth, condition))
    }
}

impl Events {
    pub(crate) fn take(&mut self) -> Vec<Event> {
        let mut bytes = [0; 512];
        while matches!(self.wake.read(&mut bytes), Ok(got) if got > 0) {}
        self.events.try_iter().collect()
    }

    #[cfg(test)]
    pub(crate) fn condition(&self) -> Option<(usize, Condition)> {
        match self.events.try_recv() {
            Ok(Event::Condition(nth, condition)) => Some((nth, condition)),
            _ => None,
        }
    }
}

impl AsFd for Events {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.wake.as_fd()
    }
}
