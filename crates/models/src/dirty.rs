use crate::bitmap::Tree;
use crate::pages::Pages;
use crate::turn::{Passed, Turn};
use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::sync::atomic::{AtomicUsize, Ordering};
use loom::thread;

fn found(tree: &Tree) -> Vec<usize> {
    let mut pages = Vec::new();
    tree.for_each(|page| pages.push(page));
    pages
}

/// A handler sets a bit while the owner clears another of its word, whose summary has a neighbour.
pub(crate) fn a_bit_set_during_a_clear_is_found() {
    let tree = Arc::new(Tree::new(64 * 3));
    tree.set(0);
    tree.set(64);
    let handler = tree.clone();
    let thread = thread::spawn(move || handler.set(1));
    tree.clear(0);
    thread.join().unwrap();
    assert_eq!(found(&tree), [1, 64]);
}

/// As before, without a neighbour: the summary of the summary.
pub(crate) fn a_bit_set_during_a_clear_of_everything_is_found() {
    let tree = Arc::new(Tree::new(64 * 65));
    tree.set(0);
    let handler = tree.clone();
    let thread = thread::spawn(move || handler.set(1));
    tree.clear(0);
    thread.join().unwrap();
    assert_eq!(found(&tree), [1]);
}

pub(crate) fn bits_set_at_once_are_found() {
    let tree = Arc::new(Tree::new(64 * 3));
    let handler = tree.clone();
    let thread = thread::spawn(move || handler.set(70));
    tree.set(3);
    thread.join().unwrap();
    assert_eq!(found(&tree), [3, 70]);
}

/// A range with data for the thread whose turn it is; loom reports concurrent access.
struct Watched {
    turn: Turn,
    table: UnsafeCell<usize>,
}

// SAFETY: the models show it; loom checks every access.
#[allow(unsafe_code)]
unsafe impl Sync for Watched {}
// SAFETY: as above.
#[allow(unsafe_code)]
unsafe impl Send for Watched {}

impl Watched {
    fn new() -> Arc<Watched> {
        let watched = Watched { turn: Turn::default(), table: UnsafeCell::new(0) };
        watched.turn.publish(1000, 100);
        Arc::new(watched)
    }

    fn touch(&self) {
        // SAFETY: loom reports an access that is not exclusive before it happens.
        #[allow(unsafe_code)]
        self.table.with_mut(|table| unsafe { *table += 1 });
    }

    fn fault(&self) -> Passed<()> {
        self.turn.pass(1050, || false, || 2, |_| self.touch())
    }
}

pub(crate) fn a_hold_excludes_handlers() {
    let watched = Watched::new();
    let handler = watched.clone();
    let thread = thread::spawn(move || matches!(handler.fault(), Passed::Done(()) | Passed::Held(_)));
    let hold = watched.turn.hold(1, thread::yield_now);
    watched.touch();
    hold.release();
    assert!(thread.join().unwrap());
}

pub(crate) fn a_withdrawn_range_is_left_alone() {
    let watched = Watched::new();
    let handler = watched.clone();
    let thread = thread::spawn(move || matches!(handler.fault(), Passed::Done(()) | Passed::Gone));
    watched.turn.withdraw();
    watched.turn.drain(thread::yield_now);
    watched.touch();
    assert!(thread.join().unwrap());
}

pub(crate) fn a_hold_sees_what_handlers_set() {
    let shared = Arc::new((Turn::default(), Tree::new(130), AtomicUsize::new(0)));
    shared.0.publish(1000, 100);
    let handler = shared.clone();
    let thread = thread::spawn(move || {
        let (turn, tree, writable) = &*handler;
        let open = |_: &crate::turn::Claim| {
            tree.set(65);
            writable.store(1, Ordering::SeqCst);
        };
        _ = turn.pass(1050, || false, || 2, open);
    });
    let (turn, tree, writable) = &*shared;
    let hold = turn.hold(1, thread::yield_now);
    assert_eq!(!found(tree).is_empty(), writable.load(Ordering::SeqCst) == 1);
    hold.release();
    thread.join().unwrap();
}

/// A handler makes a page writable while its owner protects it again; only the handler touches a
/// neighbour.
pub(crate) fn a_page_is_never_writable_without_its_bit() {
    let shared = Arc::new((Turn::default(), Pages::new(2, 1), [AtomicUsize::new(0), AtomicUsize::new(0)]));
    shared.0.publish(1000, 100);
    let allow = |writable: &[AtomicUsize; 2], pages: std::ops::Range<usize>| {
        pages.for_each(|page| writable[page].store(1, Ordering::SeqCst));
        true
    };
    {
        let (turn, pages, writable) = &*shared;
        _ = turn.pass(1050, || false, || 2, |claim| pages.open(claim, 0, |pages| allow(writable, pages)));
    }
    let handler = shared.clone();
    let thread = thread::spawn(move || {
        let (turn, pages, writable) = &*handler;
        // The second fault makes neighbours writable, too.
        let open = |claim: &crate::turn::Claim| pages.open(claim, 1, |pages| allow(writable, pages));
        matches!(turn.pass(1050, || false, || 2, open), Passed::Done(true))
    });
    let (turn, pages, writable) = &*shared;
    let hold = turn.hold(1, thread::yield_now);
    let forbid = |pages: std::ops::Range<usize>| {
        pages.for_each(|page| writable[page].store(0, Ordering::SeqCst));
        Ok::<(), ()>(())
    };
    pages.close(&hold, 0..1, forbid).unwrap();
    hold.release();
    let opened = thread.join().unwrap();
    let mut bits = Vec::new();
    pages.for_each(|page| bits.push(page));
    for (page, writable) in writable.iter().enumerate() {
        assert_eq!(bits.contains(&page), writable.load(Ordering::SeqCst) == 1, "page {page}: {bits:?}");
    }
    assert_eq!(bits.contains(&1), opened);
}

pub(crate) fn a_handler_that_waits_is_woken() {
    let turn = Arc::new(Turn::default());
    turn.publish(1000, 100);
    let handler = turn.clone();
    let thread = thread::spawn(move || match handler.pass(1050, || false, || 2, |_| ()) {
        // As the kernel does: sleeps only while the value is unchanged.
        Passed::Held(value) => {
            handler.held.compare_exchange(value, value, Ordering::SeqCst, Ordering::SeqCst).is_ok()
        }
        _ => false,
    });
    let woken = turn.hold(1, thread::yield_now).release();
    let asleep = thread.join().unwrap();
    assert!(woken || !asleep);
}
