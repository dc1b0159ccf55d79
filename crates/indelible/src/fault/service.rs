//! The thread that answers faults.

use std::collections::BTreeMap;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, RwLock};

use super::{Fill, FillError};
use crate::sys::PAGE;
use crate::sys::fork::ForkLocal;
use crate::sys::uffd::{FEATURE_POISON, Reach, Uffd, WP_ASYNC, Watch};

/// Pages filled at once, at most.
const BATCH: usize = 64;

/// The faults of this process.
pub(super) struct Service {
    pub(super) uffd: Uffd,
    pub(super) ranges: RwLock<BTreeMap<usize, Arc<Range>>>,
    started: Mutex<bool>,
}

/// One served range.
pub(super) struct Range {
    base: usize,
    len: AtomicUsize,
    ahead: usize,
    protect: bool,
    fill: Arc<Fill>,
    /// Held while pages are filled; taken by `finish` to wait for that.
    filling: Mutex<()>,
    failure: OnceLock<(usize, String)>,
}

impl Service {
    /// The service of this process, running.
    pub(super) fn get() -> io::Result<&'static Service> {
        static SERVICE: ForkLocal<Service> = ForkLocal::new();
        let service = SERVICE.get_or_try(|| {
            Ok::<_, io::Error>(Service {
                uffd: Uffd::open(Reach::Full, FEATURE_POISON, WP_ASYNC)?,
                ranges: RwLock::new(BTreeMap::new()),
                started: Mutex::new(false),
            })
        })?;
        let mut started = service.started.lock().unwrap_or_else(PoisonError::into_inner);
        if !*started {
            std::thread::Builder::new().name("indelible-fault".into()).spawn(|| service.run())?;
            *started = true;
        }
        Ok(service)
    }

    fn run(&self) {
        let mut buffer = vec![0; BATCH * PAGE];
        loop {
            let done = self.uffd.wait(|addr| self.answer(addr, &mut buffer));
            if done.is_err() {
                // Only a broken descriptor ends up here: it is ours, and never closed.
                return;
            }
        }
    }

    fn find(&self, addr: usize) -> Option<Arc<Range>> {
        let ranges = self.ranges.read().unwrap_or_else(PoisonError::into_inner);
        let (_, range) = ranges.range(..=addr).next_back()?;
        (addr - range.base < range.len.load(Ordering::Acquire)).then(|| Arc::clone(range))
    }

    fn answer(&self, addr: usize, buffer: &mut [u8]) {
        let addr = addr & !(PAGE - 1);
        let Some(range) = self.find(addr) else { return };
        let _filling = range.filling.lock().unwrap_or_else(PoisonError::into_inner);
        let filled = range.fill_from(addr, buffer);
        if filled == 0 {
            self.give_up(addr);
            return;
        }
        self.install(addr, &buffer[..filled * PAGE], range.protect);
    }

    /// Puts pages in place, skipping those that are there.
    fn install(&self, addr: usize, bytes: &[u8], protect: bool) {
        let mut done = 0;
        let mut piece = bytes.len();
        while done < bytes.len() {
            let end = bytes.len().min(done + piece);
            match self.uffd.copy(addr + done, &bytes[done..end], protect) {
                Ok(n) => done += n,
                Err(e) => match e.raw_os_error() {
                    // The address space was changing.
                    Some(libc::EAGAIN) => {}
                    Some(libc::EEXIST) => {
                        // This page also answers another thread's fault.
                        let _ = self.uffd.wake(addr + done, PAGE);
                        done += PAGE;
                    }
                    // Page protection has cut the range into several mappings, and a copy fills one.
                    Some(libc::ENOENT) if piece > PAGE => piece = PAGE,
                    // Out of memory: the waiting thread must get SIGBUS.
                    Some(libc::ENOMEM) if done == 0 => return self.give_up(addr),
                    // Read-ahead may go without; an unmapped range needs nothing.
                    _ => return,
                },
            }
        }
    }

    /// Makes the page raise SIGBUS instead of letting its thread wait for ever.
    fn give_up(&self, addr: usize) {
        loop {
            match self.uffd.poison(addr) {
                Err(e) if e.raw_os_error() == Some(libc::EAGAIN) => {}
                Err(_) => {
                    let _ = self.uffd.wake(addr, PAGE);
                    return;
                }
                Ok(()) => return,
            }
        }
    }
}

impl Range {
    pub(super) fn new(base: usize, len: usize, ahead: usize, protect: bool, fill: Arc<Fill>) -> Range {
        Range {
            base,
            len: AtomicUsize::new(len),
            ahead: ahead.min(BATCH - 1),
            protect,
            fill,
            filling: Mutex::new(()),
            failure: OnceLock::new(),
        }
    }

    pub(super) fn watch(&self) -> Watch {
        if self.protect { Watch::MissingAndWrites } else { Watch::Missing }
    }

    pub(super) fn set_len(&self, len: usize) {
        self.len.store(len, Ordering::Release);
    }

    pub(super) fn failure(&self) -> Option<(usize, String)> {
        self.failure.get().cloned()
    }

    /// Waits until no page is being filled.
    pub(super) fn finish(&self) {
        drop(self.filling.lock().unwrap_or_else(PoisonError::into_inner));
    }

    /// Fills the page at `addr` and those ahead of it; returns how many in a row succeeded.
    fn fill_from(&self, addr: usize, buffer: &mut [u8]) -> usize {
        let page = (addr - self.base) / PAGE;
        let end = (self.len.load(Ordering::Acquire) / PAGE).min(page + 1 + self.ahead);
        let (places, _) = buffer.as_chunks_mut::<PAGE>();
        for (done, (index, place)) in (page..end).zip(places).enumerate() {
            if let Err(error) = self.fill_one(index, place) {
                if done == 0 {
                    // The first failure is the one that explains the others.
                    let _ = self.failure.set((index, error.to_string()));
                }
                return done;
            }
        }
        end - page
    }

    fn fill_one(&self, page: usize, place: &mut [u8; PAGE]) -> Result<(), FillError> {
        // A panic must not end the thread that every object depends on.
        catch_unwind(AssertUnwindSafe(|| (self.fill)(page, place)))
            .unwrap_or_else(|_| Err("the callback panicked".into()))
    }
}
