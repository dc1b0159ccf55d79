use crate::gate::Gate;
use crate::lock_word::{acquire, exclusive, release_exclusive, release_shared, shared};
use crate::sys::total::AtomicU64;
use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::thread;
use std::time::Duration;

const NOW: u32 = 7;
const BEFORE: u64 = 6 << 32;
const PATIENCE: Duration = Duration::from_secs(3600);

struct Guarded {
    word: AtomicU64,
    gate: Gate,
    data: UnsafeCell<usize>,
}

// SAFETY: the models show it; loom checks every access.
#[allow(unsafe_code)]
unsafe impl Sync for Guarded {}
// SAFETY: as above.
#[allow(unsafe_code)]
unsafe impl Send for Guarded {}

impl Guarded {
    fn new() -> Arc<Guarded> {
        let word = AtomicU64::new(BEFORE | 1 << 31);
        Arc::new(Guarded { word, gate: Gate::default(), data: UnsafeCell::new(0) })
    }

    fn add(&self) {
        // SAFETY: loom reports an access that is not exclusive before it happens.
        #[allow(unsafe_code)]
        self.data.with_mut(|data| unsafe { *data += 1 });
    }

    fn get(&self) -> usize {
        // SAFETY: loom reports a store beside it.
        #[allow(unsafe_code)]
        self.data.with(|data| unsafe { *data })
    }

    fn add_locked(&self) {
        acquire(&self.word, NOW, exclusive);
        self.add();
        release_exclusive(&self.word);
    }

    fn add_inside(&self) {
        self.gate.enter();
        self.add();
        self.add();
        self.gate.leave();
    }
}

pub(crate) fn a_lock_has_one_holder() {
    let guarded = Guarded::new();
    let other = guarded.clone();
    let thread = thread::spawn(move || other.add_locked());
    guarded.add_locked();
    thread.join().unwrap();
    assert_eq!(guarded.get(), 2);
}

/// A shared holder sees another's stores or not, but none concurrently.
pub(crate) fn a_lock_is_shared_or_exclusive() {
    let guarded = Guarded::new();
    let other = guarded.clone();
    let thread = thread::spawn(move || {
        acquire(&other.word, NOW, shared);
        let seen = other.get();
        release_shared(&other.word, NOW);
        seen
    });
    guarded.add_locked();
    assert!(thread.join().unwrap() <= 1);
    guarded.add_locked();
    assert_eq!(guarded.get(), 2);
}

pub(crate) fn a_cut_holds_whole_sections() {
    let guarded = Guarded::new();
    let other = guarded.clone();
    let thread = thread::spawn(move || other.add_inside());
    let cut = guarded.gate.close(PATIENCE).map(|_closed| guarded.get());
    assert!(matches!(cut, Ok(0 | 2)), "{cut:?}");
    thread.join().unwrap();
}

/// The two sections exclude each other by a lock of the object.
pub(crate) fn a_cut_beside_two_sections_ends() {
    let guarded = Guarded::new();
    let threads = [(); 2].map(|()| {
        let other = guarded.clone();
        thread::spawn(move || {
            other.gate.enter();
            other.add_locked();
            other.gate.leave();
        })
    });
    let cut = guarded.gate.close(PATIENCE).map(|_closed| guarded.get());
    assert!(matches!(cut, Ok(0..=2)), "{cut:?}");
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    assert_eq!(guarded.get(), 2);
}

pub(crate) fn a_gate_opens_beside_a_cut() {
    let guarded = Guarded::new();
    let cutting = Arc::new(UnsafeCell::new(()));
    let storing = {
        let other = guarded.clone();
        thread::spawn(move || other.add_inside())
    };
    let cut = |guarded: &Guarded, cutting: &UnsafeCell<()>| {
        let mut closed = guarded.gate.close(PATIENCE).unwrap();
        let seen = guarded.get();
        closed.open();
        // loom reports concurrent cuts.
        cutting.with_mut(|_| thread::yield_now());
        drop(closed);
        seen
    };
    let other = {
        let (guarded, cutting) = (guarded.clone(), Sent(cutting.clone()));
        thread::spawn(move || {
            let cutting = cutting;
            cut(&guarded, &cutting.0)
        })
    };
    let seen = [cut(&guarded, &cutting), other.join().unwrap()];
    assert!(seen.iter().all(|seen| matches!(seen, 0 | 2)), "{seen:?}");
    storing.join().unwrap();
}

struct Sent(Arc<UnsafeCell<()>>);

// SAFETY: loom checks every access.
#[allow(unsafe_code)]
unsafe impl Send for Sent {}
