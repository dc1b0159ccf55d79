//! Recoveries of memory that processes left: each on a thread of its own, a few at a time, and of
//! each user a few, so that those of one user keep no other user's waiting for good.

use crate::events::{Event, Sender};
use crate::writer::Departed;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

/// Recoveries at a time; those of root begin beside as many of other users.
const AT_A_TIME: usize = 16;
/// Recoveries at a time of one user.
const OF_A_USER: usize = 4;
/// Recoveries of a user that wait, at most. One that is left out is the next attach's.
const WAITING: usize = 256;

/// Brings a dead process's memory to the pool, with the rights of its user, and in a bounded time,
/// whatever that user does; an error, for people, if the process has it still, or it cannot be
/// brought there.
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

    /// Begins one, ahead of those that wait if it is `urgent`. Returns its number; `None`: too many
    /// of its user wait.
    pub(crate) fn begin(&mut self, departed: Departed, urgent: bool) -> Option<u64> {
        if self.waiting.iter().filter(|(_, waits)| waits.uid == departed.uid).count() >= WAITING {
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

    /// Those still under way, by number.
    pub(crate) fn all(&self) -> impl Iterator<Item = (u64, &Departed)> {
        let waiting = self.waiting.iter().map(|(number, departed)| (*number, departed));
        waiting.chain(self.running.iter().map(|(number, departed)| (*number, departed)))
    }

    /// The place of the recovery that is next: of the users that have the fewest, the one that
    /// waits longest.
    fn turn(&self) -> Option<usize> {
        let running = |user| self.running.values().filter(|other| other.uid == user).count();
        let full = self.running.values().filter(|other| other.uid != 0).count() >= AT_A_TIME;
        let waiting =
            self.waiting.iter().enumerate().map(|(place, (_, job))| (running(job.uid), place, job.uid));
        let may = waiting.filter(|(count, _, user)| *count < OF_A_USER && (*user == 0 || !full));
        may.min().map(|(_, place, _)| place)
    }

    fn go_on(&mut self) {
        while let Some((number, departed)) = self.turn().and_then(|place| self.waiting.remove(place)) {
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::{Condvar, Mutex};

    #[test]
    fn recoveries_of_one_user_do_not_stall_those_of_another() {
        // Those of users other than root and 9 end when they are let go.
        let gate = Arc::new((Mutex::new(false), Condvar::new()));
        let at_gate = gate.clone();
        let recover: Recover = Arc::new(move |departed| {
            let (open, opened) = &*at_gate;
            let wait = ![0, 9].contains(&departed.uid);
            drop(opened.wait_while(open.lock().unwrap(), |open| wait && !*open).unwrap());
            Ok(())
        });
        let (sender, mut events) = Sender::new().unwrap();
        let mut recoveries = Recoveries::new(recover, sender);
        let of = |uid| Departed { pool: "/p".into(), id: [0; 16], number: 1, pid: 1, uid, gid: uid };
        let mut next = |recoveries: &mut Recoveries| loop {
            let mut ended = events.take().into_iter().filter_map(|event| match event {
                Event::Recovered(number, done) => Some((number, done)),
                _ => None,
            });
            if let Some((number, done)) = ended.next() {
                assert_eq!((ended.count(), done), (0, Ok(())));
                return recoveries.end(number).unwrap().uid;
            }
            std::thread::yield_now();
        };
        let begun = (0..1000).filter(|_| recoveries.begin(of(1), false).is_some()).count();
        assert_eq!(begun, OF_A_USER + WAITING, "what waits is bounded");
        assert_eq!(recoveries.running.len(), OF_A_USER);
        recoveries.begin(of(9), false).unwrap();
        assert_eq!(next(&mut recoveries), 9);
        // Users with all places between them do not stall root, and another one is next.
        for user in 2..=4 {
            (0..10).for_each(|_| assert!(recoveries.begin(of(user), true).is_some()));
        }
        assert_eq!(recoveries.running.len(), AT_A_TIME);
        recoveries.begin(of(0), false).unwrap();
        assert_eq!(next(&mut recoveries), 0);
        let late = recoveries.begin(of(9), false).unwrap();
        let first = *recoveries.running.keys().next().unwrap();
        assert!(!recoveries.running.contains_key(&late));
        // One has ended, as its time was over.
        recoveries.end(first).unwrap();
        assert_eq!(next(&mut recoveries), 9);
        *gate.0.lock().unwrap() = true;
        gate.1.notify_all();
    }
}
