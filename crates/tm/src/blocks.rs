//! The blocks of a thread: begin, rerun, cancel, commit.
//!
//! A block runs as a transaction, or *directly*: alone, with plain accesses. An inner block is a
//! part of the outer one; the changes before a cancellable one are kept.

mod ending;

use crate::actions::{self, Actions, Called};
use crate::allocations::Allocations;
use crate::codes::{action, property, reason};
use crate::entry::{self, Beginning};
use crate::exceptions::{self, Exceptions};
use crate::fork;
use crate::log::{self, Log};
use crate::mutant::Mutant;
use crate::objects;
use crate::words::{self, Commits, Words};
use indelible_stm::{Checkpoint, CommitError, Receipt, Transaction};
use std::cell::Cell;
use std::ffi::c_int;
use std::sync::atomic::{AtomicU64, Ordering};

const LINE: usize = 64;

#[derive(Clone, Copy, Default)]
struct Marks {
    log: usize,
    allocations: (usize, usize),
    actions: (usize, usize),
    exceptions: exceptions::Mark,
}

struct Level {
    beginning: Beginning,
    properties: u32,
    marks: Marks,
    /// `Some`: an inner block that may be cancelled.
    checkpoint: Option<Checkpoint>,
}

pub(crate) struct Thread {
    transacts: bool,
    /// Whether plain stores are logged for a checkpoint.
    logs: bool,
    /// All frames below this address are the block's alone.
    stack: usize,
    transaction: indelible_stm::Thread<Words, Commits>,
    levels: Vec<Level>,
    irrevocable: bool,
    /// A heap that the block needs room in does not grow.
    full: bool,
    held_still: bool,
    id: u64,
    generation: u32,
    pub(crate) log: Log,
    pub(crate) actions: Actions,
    pub(crate) allocations: Allocations,
    pub(crate) exceptions: Exceptions,
}

/// Compiled code has no errors.
#[cold]
pub(crate) fn fatal(why: &str) -> ! {
    let message = format!("libpmo-tm: {why}\n");
    // SAFETY: bytes of a string.
    unsafe { libc::write(2, message.as_ptr().cast(), message.len()) };
    std::process::abort();
}

/// The end of this thread's stack; 0 if unknown.
#[cold]
fn stack_end() -> usize {
    let mut attributes = std::mem::MaybeUninit::uninit();
    let (mut low, mut len) = (std::ptr::null_mut(), 0);
    // SAFETY: the first call fills the attributes in, if it returns 0; the second reads and the
    // third destroys them.
    unsafe {
        if libc::pthread_getattr_np(libc::pthread_self(), attributes.as_mut_ptr()) != 0 {
            return 0;
        }
        libc::pthread_attr_getstack(attributes.as_ptr(), &raw mut low, &raw mut len);
        libc::pthread_attr_destroy(attributes.as_mut_ptr());
    }
    low.addr() + len
}

struct Owner(Cell<*mut Thread>);

impl Drop for Owner {
    fn drop(&mut self) {
        entry::set_current(0);
        let thread = self.0.get();
        // SAFETY: made by `Thread::make`; no other reference is left.
        let mut thread = unsafe { Box::from_raw(thread) };
        if thread.generation == fork::generation() {
            thread.leave_frames();
            let (_, called) = thread.stop(false);
            drop(thread);
            actions::call(called);
        } else {
            // Its locks may be those of threads that the child lacks.
            std::mem::forget(thread);
        }
    }
}

thread_local! {
    static OWNER: std::cell::OnceCell<Owner> = const { std::cell::OnceCell::new() };
}

#[inline(always)]
fn current() -> *mut Thread {
    std::ptr::with_exposed_provenance_mut(entry::current())
}

impl Thread {
    #[cold]
    fn make() -> *mut Thread {
        static IDS: AtomicU64 = AtomicU64::new(2);
        fork::watch();
        let thread = Box::into_raw(Box::new(Thread {
            transacts: false,
            logs: false,
            stack: 0,
            transaction: words::tm().thread(),
            levels: Vec::new(),
            irrevocable: false,
            full: false,
            held_still: false,
            id: IDS.fetch_add(1, Ordering::Relaxed),
            generation: fork::generation(),
            log: Log::default(),
            actions: Actions::default(),
            allocations: Allocations::default(),
            exceptions: Exceptions::default(),
        }));
        entry::set_current(thread.expose_provenance());
        // In a thread's last destructors it cannot be kept: it is leaked.
        let _ = OWNER.try_with(|owner| match owner.get() {
            Some(owner) => owner.0.set(thread),
            None => drop(owner.set(Owner(Cell::new(thread)))),
        });
        thread
    }

    #[inline]
    pub(crate) fn with<R>(act: impl FnOnce(&mut Thread) -> R) -> Option<R> {
        // SAFETY: null, or the thread's own, to which there is no other reference (2).
        unsafe { current().as_mut() }.filter(|thread| !thread.levels.is_empty()).map(act)
    }

    /// The thread, if accesses to this address are those of a transaction.
    #[inline(always)]
    pub(crate) fn transacting<'t>(address: usize) -> Option<&'t mut Thread> {
        // SAFETY: as for `with`.
        let thread = unsafe { current().as_mut() }?;
        let here = entry::stack();
        let own = address.wrapping_sub(here) < thread.stack.wrapping_sub(here)
            && !Mutant::DeadFramesWritten.is_on();
        (thread.transacts && !own && !thread.exceptions.have(address)).then_some(thread)
    }

    /// Logs bytes before a store in place, except those that the transaction restores.
    ///
    /// # Safety
    /// As for [`Log::keep`].
    pub(crate) unsafe fn keep(&mut self, address: usize, len: usize) {
        let mut at = address;
        while at < address + len {
            let (line, first) = (at & !(LINE - 1), at % LINE);
            let most = (LINE - first).min(address + len - at);
            let theirs = match self.transacts {
                true => self.running().map_or(0, |running| running.changed_in_place(line)),
                false => 0,
            };
            // A run of bytes of one line of which the transaction restores all, or none.
            let rest = theirs >> first;
            let run = if rest & 1 == 1 { rest.trailing_ones() } else { rest.trailing_zeros() };
            let run = most.min(run as usize);
            if rest & 1 == 0 {
                // SAFETY: the caller's promise.
                unsafe { self.log.keep(at, run) };
            }
            at += run;
        }
    }

    /// The thread ends in the block: its frames are replaced by others.
    fn leave_frames(&mut self) {
        if self.levels.is_empty() {
            return;
        }
        let end = stack_end();
        self.stack = end;
        if let Some(mut running) = self.transaction.running() {
            running.forget(log::frames(end));
        }
    }

    /// Those that compiled code logs for a rerun (`own`), or all if an inner block may be
    /// cancelled.
    #[inline(always)]
    pub(crate) fn logging<'t>(own: bool) -> Option<&'t mut Thread> {
        // SAFETY: as for `with`.
        unsafe { current().as_mut() }.filter(|thread| thread.logs || own && thread.transacts)
    }

    pub(crate) fn is_irrevocable(&self) -> bool {
        self.irrevocable
    }

    pub(crate) fn id(&self) -> u64 {
        self.id
    }

    #[inline(always)]
    pub(crate) fn running(&mut self) -> Option<indelible_stm::Transaction<'_, 'static, Words, Commits>> {
        self.transaction.running()
    }

    fn marks(&self) -> Marks {
        Marks {
            log: self.log.mark(),
            allocations: self.allocations.mark(),
            actions: self.actions.mark(),
            exceptions: self.exceptions.mark(),
        }
    }

    fn start(&mut self) -> u32 {
        let properties = self.levels.first().map_or(0, |level| level.properties);
        self.irrevocable |=
            properties & property::GOES_IRREVOCABLE != 0 || properties & property::INSTRUMENTED == 0;
        let begun = match self.irrevocable {
            true => self.transaction.begin_alone(),
            false => self.transaction.begin(),
        };
        if begun.is_err() {
            fatal("a block begins where another transactional memory of this process runs one");
        }
        self.transacts = !self.irrevocable;
        self.logs = false;
        self.irrevocable.then(objects::expose);
        self.code(properties)
    }

    fn code(&self, properties: u32) -> u32 {
        let plain = !self.transacts && !self.logs && properties & property::UNINSTRUMENTED != 0;
        match plain || properties & property::INSTRUMENTED == 0 {
            true => action::RUN_UNINSTRUMENTED,
            false => action::RUN_INSTRUMENTED,
        }
    }

    /// Except stores to dead frames below `stack`; returns the actions to call.
    fn undo(&mut self, to: Marks, stack: usize) -> Called {
        // SAFETY: logged bytes are the thread's own, and no other thread had the bytes stored in
        // place (1).
        unsafe { self.log.undo(to.log, stack) };
        self.exceptions.undo(to.exceptions);
        self.allocations.take_made(to.allocations).free();
        self.actions.take_undo(to.actions)
    }

    /// Actions may run blocks then.
    fn stop(&mut self, again: bool) -> (Option<Level>, Called) {
        (self.transacts, self.logs) = (false, false);
        self.irrevocable.then(|| objects::close(false));
        let first = self.levels.drain(..).next();
        // One that could not commit is over.
        if self.transaction.running().is_some() {
            self.transaction.abort(again);
        }
        let stack = std::mem::take(&mut self.stack);
        (first, self.undo(Marks::default(), stack))
    }

    fn own<'t>() -> &'t mut Thread {
        // SAFETY: null, or the thread's own (2).
        unsafe { current().as_mut() }.unwrap_or_else(|| fatal("no block runs"))
    }

    #[inline]
    fn ready<'t>() -> &'t mut Thread {
        // SAFETY: null, or the thread's own (2).
        let there = unsafe { current().as_ref() };
        if !there.is_some_and(|thread| !thread.levels.is_empty() || thread.generation == fork::generation()) {
            Thread::make();
        }
        Thread::own()
    }

    pub(crate) fn in_transaction<'t>() -> Option<Transaction<'t, 'static, Words, Commits>> {
        // SAFETY: as for `with`.
        let thread = unsafe { current().as_mut() }.filter(|thread| !thread.levels.is_empty())?;
        thread.transaction.running()
    }

    /// At once if the block is alone, else before a rerun. `false`: it has met a limit, now or in a
    /// former run of this block.
    pub(crate) fn grow(address: usize, needed: usize) -> bool {
        let thread = Thread::own();
        if thread.full {
            return false;
        }
        if thread.irrevocable {
            return objects::grow(address, needed);
        }
        Thread::again_after(false, || {
            let grown = Thread::alone(|| objects::grow(address, needed));
            Thread::own().full = grown != Some(true);
        })
    }

    #[cold]
    pub(crate) fn again() -> ! {
        Thread::again_after(true, || {})
    }

    /// Runs the outermost block again after `act`, which leaves nothing owned.
    fn again_after(conflict: bool, act: impl FnOnce()) -> ! {
        Thread::own().running().and_then(|running| running.lost()).into_iter().for_each(objects::lost);
        let irrevocable = Thread::own().irrevocable;
        let (first, called) = Thread::own().stop(conflict);
        actions::call(called);
        act();
        let Some(first) = first else { fatal("no block runs that could be run again") };
        let (thread, beginning) = (Thread::own(), first.beginning);
        (thread.irrevocable, thread.stack) = (irrevocable, beginning.stack);
        thread.levels.push(first);
        let code = thread.start();
        // SAFETY: the block runs (1), and the caller owns nothing (3).
        unsafe { beginning.go_on(code | action::RESTORE) }
    }

    pub(crate) fn go_irrevocable() {
        if Thread::with(|thread| !std::mem::replace(&mut thread.irrevocable, true)) == Some(true) {
            Thread::again();
        }
    }

    /// `None`: a block runs on this thread.
    pub(crate) fn alone<R>(act: impl FnOnce() -> R) -> Option<R> {
        if Thread::ready().transaction.begin_alone().is_err() {
            return None;
        }
        let result = act();
        Thread::own().transaction.abort(false);
        Some(result)
    }

    /// Before a fork: no other thread's block is underway.
    pub(crate) fn hold_still() {
        let thread = Thread::ready();
        if thread.levels.is_empty() {
            thread.held_still = thread.transaction.begin_alone().is_ok();
        }
    }

    pub(crate) fn go_on() {
        let thread = Thread::own();
        if std::mem::take(&mut thread.held_still) {
            thread.transaction.abort(false);
        }
    }
}

/// `_ITM_beginTransaction`, given its return address.
///
/// # Safety
/// Called by the code of [`entry`] alone.
pub(crate) unsafe extern "C" fn begin(properties: u32, beginning: *const Beginning) -> u32 {
    // SAFETY: the code of `entry` has filled the beginning in.
    let (thread, beginning) = (Thread::ready(), unsafe { Beginning::copy(beginning) });
    if thread.levels.is_empty() {
        (thread.stack, thread.full) = (beginning.stack, false);
        thread.levels.push(Level { beginning, properties, marks: Marks::default(), checkpoint: None });
        return thread.start() | action::SAVE;
    }
    let checkpoint = (properties & property::HAS_NO_ABORT == 0)
        .then(|| thread.running().map_or_else(Checkpoint::default, |running| running.checkpoint()));
    thread.logs |= checkpoint.is_some();
    let marks = thread.marks();
    thread.levels.push(Level { beginning, properties, marks, checkpoint });
    thread.code(properties) | action::SAVE
}
