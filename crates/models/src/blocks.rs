use crate::allocation;
use crate::cache::Cache;
use crate::span::{Site, Span, place};
use crate::sys::total::AtomicU8;
use loom::sync::Arc;
use loom::sync::Mutex;
use loom::thread;
use std::ptr::NonNull;

const SIZE: usize = 1024;
const DATA: usize = 1 << 20;

/// A model's allocation that the heap takes for permanent; freed after each order.
struct Made<T: 'static>(NonNull<T>);

impl<T> Made<T> {
    fn new(thing: T) -> (Made<T>, &'static T) {
        let thing: &'static T = Box::leak(Box::new(thing));
        (Made(NonNull::from(thing)), thing)
    }
}

impl<T> Drop for Made<T> {
    fn drop(&mut self) {
        // SAFETY: made from a box, and the model's threads have ended.
        #[allow(unsafe_code)]
        drop(unsafe { Box::from_raw(self.0.as_ptr()) });
    }
}

struct Setup {
    span: &'static Span,
    caches: [&'static Cache; 2],
    /// The heap's lock: owners change under it.
    lock: Arc<Mutex<()>>,
    _made: (Made<Span>, Made<[AtomicU8; 2]>, Made<Cache>, Made<Cache>),
}

impl Setup {
    fn new() -> Setup {
        let (span_made, span) = Made::new(Span::blank());
        let (bytes_made, bytes) = Made::new([(); 2].map(|()| AtomicU8::new(allocation::FREE)));
        let (first_made, first) = Made::new(Cache::blank());
        let (second_made, second) = Made::new(Cache::blank());
        let site = Site { page: 1, pages: 1, class: 0, size: SIZE, data: DATA, first: 0 };
        // SAFETY: the allocation bytes exist as long as the span.
        #[allow(unsafe_code)]
        unsafe {
            span.become_of(&site, bytes, true)
        };
        span.own(first);
        first.enter(span);
        let setup = Setup {
            span,
            caches: [first, second],
            lock: Arc::new(Mutex::new(())),
            _made: (span_made, bytes_made, first_made, second_made),
        };
        for block in 0..2 {
            let taken = first.take(0).or_else(|| first.take_next(0)).unwrap();
            assert_eq!(span.block(taken.addr().get()), Some(block));
        }
        setup
    }

    fn free(&self, block: usize) -> thread::JoinHandle<bool> {
        let span = self.span;
        thread::spawn(move || span.free_for_owner(block))
    }
}

/// Returns whether the span was empty.
fn advance(cache: &'static Cache) -> (bool, usize) {
    let mut released = 0;
    let found = cache.advance(0, &mut |_| released += 1);
    (found, released)
}

pub(crate) fn of_two_frees_one_is_refused() {
    let setup = Setup::new();
    let thread = setup.free(1);
    let mine = setup.span.free_for_owner(1);
    assert!(mine != thread.join().unwrap());
}

/// Two threads free a block each while the owner looks, and again when they are done: both are
/// there then.
pub(crate) fn blocks_that_others_freed_come_back() {
    let setup = Setup::new();
    let threads = [setup.free(0), setup.free(1)];
    let early = advance(setup.caches[0]);
    threads.into_iter().for_each(|thread| assert!(thread.join().unwrap()));
    let late = if early.1 == 0 && !early.0 { advance(setup.caches[0]) } else { early };
    assert!(late.0 || late.1 == 1, "{early:?} {late:?}");
    setup.caches[0].open_inbox(&mut |_| {});
    assert_eq!(
        [0, 1].map(|block| setup.span.allocation(block).load(std::sync::atomic::Ordering::Relaxed)),
        [allocation::FREE; 2]
    );
}

/// The owner frees one block and looks while another thread frees the other.
pub(crate) fn a_block_freed_while_its_owner_looks() {
    let setup = Setup::new();
    let thread = setup.free(1);
    let owner = setup.caches[0];
    let early = advance(owner);
    if early == (false, 0) {
        assert!(!setup.span.free_unheeded(0), "the owner has to look");
        setup.span.free(0);
        let _ = owner.look(setup.span);
    }
    thread.join().unwrap();
    let mut released = early.1;
    owner.open_inbox(&mut |_| released += 1);
    let known = setup.span.has_free() || owner.take(0).is_some();
    assert!(known || released == 1, "{early:?} {released}");
}

/// The owner ends, another thread takes the span, a third frees a block: the new owner finds it.
pub(crate) fn a_block_freed_as_its_owner_ends() {
    let setup = Setup::new();
    let thread = setup.free(1);
    let [old, new] = setup.caches;
    {
        let _heap = setup.lock.lock().unwrap();
        old.clear();
        setup.span.disown();
    }
    {
        let _heap = setup.lock.lock().unwrap();
        setup.span.own(new);
        // Blocks sent to an ended thread go to the span's present owner.
        old.open_inbox(&mut |_| panic!("it is another thread's"));
    }
    setup.span.put(place::FULL);
    thread.join().unwrap();
    old.open_inbox(&mut |_| panic!("it is another thread's"));
    new.open_inbox(&mut |_| panic!("a block is in use"));
    assert!(setup.span.has_free());
}
