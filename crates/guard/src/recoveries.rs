//! Recoveries of memory that processes left: each on a thread of its own, a few at a time.

use crate::events::{Event, Sender};
use crate::writer::Departed;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

/// Recoveries at a time.
const AT_A_TIME: usize = 4;
/// Recoveries that wait, at most. One that is left out is the next attach's.
const WAITING: usize = 1024;

/// Brings to the pool what a process left in memory, with the rights of its user; an error, for people, if the process has it still, or it cannot be brought there.
pub type Recover = Arc<dyn Fn(&Departed) -> Result<(), String> + Send + Sync>;

/// See the module.
pub(crate) struct Recoveries {
    recover: Recover,
    sender: Sender,
    next: u64,
    waiting: VecDeque<(u64, Departed)>,
    /// Those that have begun.
    running: BTreeMap<u64, Departed>,
}

impl Recoveries {
    pub(crate) fn new(recover: Recover, sender: Sender) -> Recoveries {
        Recoveries { recover, sender, next: 0, waiting: VecDeque::new(), running: BTreeMap::new() }
    }

    /// Begins one, ahead of those that wait if it is `urgent`. Returns its number; `None`: too many wait.
    pub(crate) fn begin(&mut self, departed: Departed, urgent: bool) -> Option<u64> {
        if self.waiting.len() >= WAITING {
            return None;
        }
        self.next += 1;
        let job = (self.next, departed);
        if urgent {
            self.waiting.push_front(job)
        } else {
            self.waiting.push_back(job)
        }
        self.go_on();
        Some(self.next)
    }

    /// One has ended: the process that it was for.
    pub(crate) fn end(&mut self, number: u64) -> Option<Departed> {
        let departed = self.running.remove(&number);
        self.go_on();
        departed
    }

    fn go_on(&mut self) {
        while self.running.len() < AT_A_TIME {
            let Some((number, departed)) = self.waiting.pop_front() else { return };
            self.running.insert(number, departed.clone());
            let (recover, sender) = (self.recover.clone(), self.sender.clone());
            let work = move || {
                let done = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| recover(&departed)));
                sender.send(Event::Recovered(number, done.unwrap_or_else(|_| Err("it panicked".into()))));
            };
            if let Err(error) = std::thread::Builder::new().name("recovery".into()).spawn(work) {
                self.sender.send(Event::Recovered(number, Err(error.to_string())));
            }
        }
    }
}
