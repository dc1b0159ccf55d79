//! Running transactions, and exclusive access of one thread.
//!
//! A thread announces a transaction in its seat, then looks at the gate; an exclusive thread closes
//! the gate, then looks at the seats. Both are sequentially consistent, so that one sees the other.

use super::sync::total::AtomicU64;
use super::sync::{Condvar, Mutex, MutexGuard, Ordering, SPINS, spin_loop, yield_now};
use std::sync::{Arc, PoisonError};

/// Transactions may begin.
const OPEN: u64 = 0;
/// One thread is alone, or waits for the others to end.
const CLOSED: u64 = 1;
/// A fork's child: nothing begins any more.
const FORKED: u64 = 2;

/// This process is a child of the memory's maker: transactions end without effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ForkedChild;

/// A thread's announcement: 0 for none, else one more than a lower bound of its snapshot.
#[repr(align(128))]
#[derive(Debug)]
pub(crate) struct Seat(AtomicU64);

impl Seat {
    fn free() -> Arc<Seat> {
        Arc::new(Seat(AtomicU64::new(0)))
    }

    pub(crate) fn advance(&self, snapshot: u64) {
        self.0.store(snapshot + 1, Ordering::Release);
    }

    #[inline]
    pub(crate) fn leave(&self) {
        self.0.store(0, Ordering::Release);
    }

    fn wait(&self, done: impl Fn(u64) -> bool) {
        let mut rounds = 0;
        while !done(self.0.load(Ordering::SeqCst)) {
            rounds += 1;
            if rounds < SPINS {
                spin_loop();
            } else {
                yield_now();
            }
        }
    }
}

#[derive(Debug, Default)]
struct Seats {
    all: Vec<Option<Arc<Seat>>>,
}

#[repr(align(128))]
#[derive(Debug)]
pub(crate) struct Gate {
    state: AtomicU64,
    taken: Mutex<bool>,
    given_back: Condvar,
    seats: Mutex<Seats>,
    added: AtomicU64,
}

/// As of a thread's last look at the list.
#[derive(Debug, Default)]
pub(crate) struct KnownSeats {
    seats: Vec<Arc<Seat>>,
    added: u64,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Gate {
    pub(crate) fn new() -> Self {
        Gate {
            state: AtomicU64::new(OPEN),
            taken: Mutex::new(false),
            given_back: Condvar::new(),
            seats: Mutex::new(Seats::default()),
            added: AtomicU64::new(0),
        }
    }

    /// A thread's seat and number. In a fork's child no other thread knows it: locks may be held
    /// for ever there.
    pub(crate) fn seat(&self) -> (Arc<Seat>, u32) {
        let seat = Seat::free();
        if self.is_forked() {
            return (seat, 0);
        }
        let mut seats = lock(&self.seats);
        let number = seats.all.iter().position(Option::is_none).unwrap_or(seats.all.len());
        if number == seats.all.len() {
            seats.all.push(None);
        }
        seats.all[number] = Some(seat.clone());
        // Precedes the seat's first announcement: a thread that misses the count took a number that
        // the seat's snapshot will have.
        self.added.fetch_add(1, Ordering::SeqCst);
        (seat, u32::try_from(number).expect("fewer threads than numbers"))
    }

    pub(crate) fn vacate(&self, number: u32) {
        if !self.is_forked() {
            lock(&self.seats).all[number as usize] = None;
        }
    }

    /// Announces a transaction with snapshot `now` or later; waits for an exclusive thread.
    #[inline]
    pub(crate) fn enter(&self, seat: &Seat, now: u64) -> Result<(), ForkedChild> {
        loop {
            seat.0.store(now + 1, Ordering::SeqCst);
            let state = self.state.load(Ordering::SeqCst);
            if state == OPEN {
                return Ok(());
            }
            seat.leave();
            if state == FORKED {
                return Err(ForkedChild);
            }
            drop(self.wait_for_right());
        }
    }

    #[cold]
    fn wait_for_right(&self) -> MutexGuard<'_, bool> {
        let mut taken = lock(&self.taken);
        while *taken {
            taken = self.given_back.wait(taken).unwrap_or_else(PoisonError::into_inner);
        }
        taken
    }

    /// None begins until [`Gate::open`]. The caller runs none.
    #[cold]
    pub(crate) fn close(&self) -> Result<(), ForkedChild> {
        if self.is_forked() {
            return Err(ForkedChild);
        }
        *self.wait_for_right() = true;
        self.state.store(CLOSED, Ordering::SeqCst);
        self.wait_for_all(|said| said == 0);
        Ok(())
    }

    #[cold]
    pub(crate) fn open(&self) {
        if self.is_forked() {
            return;
        }
        self.state.store(OPEN, Ordering::SeqCst);
        *lock(&self.taken) = false;
        self.given_back.notify_all();
    }

    pub(crate) fn quiesce(&self, sequence: u64) {
        self.wait_for_all(|said| said == 0 || said > sequence);
    }

    /// As [`Gate::quiesce`], without a lock unless there are new seats. Vacated seats announce
    /// nothing.
    pub(crate) fn quiesce_known(&self, sequence: u64, known: &mut KnownSeats) {
        let added = self.added.load(Ordering::SeqCst);
        if added != known.added {
            let seats = lock(&self.seats);
            known.seats = seats.all.iter().flatten().cloned().collect();
            known.added = added;
        }
        known.seats.iter().for_each(|seat| seat.wait(|said| said == 0 || said > sequence));
    }

    /// Seats come and go meanwhile.
    fn wait_for_all(&self, done: impl Fn(u64) -> bool) {
        let seats: Vec<Arc<Seat>> = lock(&self.seats).all.iter().flatten().cloned().collect();
        seats.iter().for_each(|seat| seat.wait(&done));
    }

    pub(crate) fn fork(&self) {
        self.state.store(FORKED, Ordering::SeqCst);
    }

    #[inline]
    pub(crate) fn is_forked(&self) -> bool {
        self.state.load(Ordering::Relaxed) == FORKED
    }
}
