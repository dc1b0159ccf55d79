//! Recoveries of memory left by processes: each on its own thread, limited per user, so that no
//! user starves another.

use crate::events::{Event, Sender};
use crate::writer::Departed;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

/// Recoveries at a time of all users but root.
const AT_A_TIME: usize = 16;
const OF_A_USER: usize = 4;
/// Others are left to the next attach.
const WAITING: usize = 256;

/// Brings a dead process's memory to the pool, with its user's rights and in bounded time. Fails
/// with a text if the process still has it, or if it cannot be brought there.
pub type Recover = Arc<dyn Fn(&Departed) -> Result<(), String> + Send + Sync>;

pub(crate) struct Recoveries {
    recover: Recover,
    sender: Sender,
    next: u64,
    waiting: VecDeque<(u64, Departed)>,
    running: BTreeMap<u64, Departed>,
}

impl Recoveries {
    pub(crate) fn new(recover: Recover, sender: Sender) -> Recoveries {
        Recoveries { recover, sender, next: 0, waiting: VecDeque::new(), running: BTreeMap::new() }
    }

    /// First in line if `urgent`. `None`: too many of its user wait.
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

    pub(crate) fn end(&mut self, number: u64) -> Option<Departed> {
        let departed = self.running.remove(&number);
        self.go_on();
        departed
    }

    pub(crate) fn all(&self) -> impl Iterator<Item = (u64, &Departed)> {
        let waiting = self.waiting.iter().map(|(number, departed)| (*number, departed));
        waiting.chain(self.running.iter().map(|(number, departed)| (*number, departed)))
    }

    /// The longest waiting recovery of the users with the fewest running ones.
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
        for user in 2..=4 {
            (0..10).for_each(|_| assert!(recoveries.begin(of(user), true).is_some()));
        }
        assert_eq!(recoveries.running.len(), AT_A_TIME);
        recoveries.begin(of(0), false).unwrap();
        assert_eq!(next(&mut recoveries), 0);
        let late = recoveries.begin(of(9), false).unwrap();
        let first = *recoveries.running.keys().next().unwrap();
        assert!(!recoveries.running.contains_key(&late));
        recoveries.end(first).unwrap();
        assert_eq!(next(&mut recoveries), 9);
        *gate.0.lock().unwrap() = true;
        gate.1.notify_all();
    }
}
