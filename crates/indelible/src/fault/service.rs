//! The thread that answers faults, and the one way in which pages get into a served range.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use super::BATCH;
use super::range::Range;
use super::source::PageError;
use crate::sys::PAGE;
use crate::sys::fork::ForkLocal;
use crate::sys::mmap;
use crate::sys::uffd::{FEATURE_POISON, Reach, Uffd, WP_ASYNC};

/// The faults of this process.
pub(super) struct Service {
    pub(super) uffd: Uffd,
    pub(super) ranges: RwLock<BTreeMap<usize, Arc<Range>>>,
    started: Mutex<bool>,
}

/// Opens the descriptor, with the widest reach that this user may have.
pub(super) fn open() -> io::Result<Uffd> {
    Uffd::open(Reach::UserMode, FEATURE_POISON, WP_ASYNC)
}

impl Service {
    /// The service of this process, running.
    pub(super) fn get() -> io::Result<&'static Service> {
        static SERVICE: ForkLocal<Service> = ForkLocal::new();
        let service = SERVICE.get_or_try(|| {
            Ok::<_, io::Error>(Service {
                uffd: open()?,
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

    fn run(&'static self) {
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
        (addr - range.base < range.len()).then(|| Arc::clone(range))
    }

    /// Answers a fault, or has it answered: nobody else's faults wait for a slow source, nor for pages that are filled ahead.
    fn answer(&'static self, addr: usize, buffer: &mut [u8]) {
        let addr = addr & !(PAGE - 1);
        let Some(range) = self.find(addr) else { return };
        if !range.take_or_leave(addr) {
            return;
        }
        if range.is_slow() {
            let own = Arc::clone(&range);
            let thread = std::thread::Builder::new().name("indelible-slow".into());
            let answer = move || {
                let mut buffer = vec![0; BATCH * PAGE];
                self.resolve(&own, addr, &mut buffer);
                self.finish(&own, &mut buffer);
            };
            if thread.spawn(answer).is_ok() {
                return;
            }
        }
        self.resolve(&range, addr, buffer);
        self.finish(&range, buffer);
    }

    /// Ends the turn, having answered the faults that came meanwhile.
    fn finish(&self, range: &Range, buffer: &mut [u8]) {
        while let Some(addr) = range.next() {
            self.resolve(range, addr, buffer);
        }
    }

    /// Answers one fault, with pages ahead of it.
    fn resolve(&self, range: &Range, addr: usize, buffer: &mut [u8]) {
        let page = (addr - range.base) / PAGE;
        let done = range.read_from(addr, buffer).and_then(|count| {
            self.install(addr, &buffer[..PAGE], range.protect).map_err(|error| refused(page, error))?;
            let ahead = self.install(addr + PAGE, &buffer[PAGE..count * PAGE], range.protect);
            // Pages ahead may be missing for now.
            range.filled_ahead(ahead.unwrap_or(0));
            Ok(())
        });
        if let Err(error) = done {
            range.fail(error);
            self.give_up(addr);
        }
    }

    /// Fills those of `count` pages from `first` on that are absent; returns how many are present then, from the first on:
    /// fewer if no more may be filled ahead. A page that its source does not have stays absent.
    pub(super) fn prefault(&self, range: &Range, first: usize, count: usize) -> Result<usize, PageError> {
        let mut buffer = vec![0; BATCH * PAGE];
        let mut done = 0;
        while done < count {
            let piece = BATCH.min(count - done);
            if !range.take() {
                return Ok(done);
            }
            let filled = self.fill_absent(range, first + done, piece, &mut buffer);
            self.finish(range, &mut buffer);
            let filled = filled?;
            done += filled;
            if filled < piece {
                break;
            }
        }
        Ok(done)
    }

    /// As [`prefault`](Self::prefault), during the caller's turn, for at most a batch.
    fn fill_absent(
        &self,
        range: &Range,
        first: usize,
        count: usize,
        buffer: &mut [u8],
    ) -> Result<usize, PageError> {
        let addr = |page: usize| range.base + page * PAGE;
        let present = mmap::resident(addr(first), count).map_err(|error| refused(first, error))?;
        let mut at = 0;
        while at < count {
            if present[at] {
                at += 1;
                continue;
            }
            let run = present[at..].iter().take_while(|present| !**present).count();
            let run = range.allowed(run);
            if run == 0 {
                return Ok(at);
            }
            let bytes = &mut buffer[..run * PAGE];
            let read = range.read(first + at, bytes);
            let good = match &read {
                Ok(()) => run,
                Err(error) => error.page.saturating_sub(first + at).min(run),
            };
            let installed = self
                .install(addr(first + at), &bytes[..good * PAGE], range.protect)
                .map_err(|error| refused(first + at, error))?;
            range.filled_ahead(installed);
            read?;
            at += run;
        }
        Ok(count)
    }

    /// Puts pages in place, skipping those that are there; returns how many it has put.
    fn install(&self, addr: usize, bytes: &[u8], protect: bool) -> io::Result<usize> {
        let (mut done, mut installed) = (0, 0);
        let mut piece = bytes.len();
        while done < bytes.len() {
            let end = bytes.len().min(done + piece);
            match self.uffd.copy(addr + done, &bytes[done..end], protect) {
                Ok(n) => {
                    done += n;
                    installed += n / PAGE;
                }
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
                    // An unmapped range needs nothing.
                    Some(libc::ENOENT) => return Ok(installed),
                    _ => return Err(e),
                },
            }
        }
        Ok(installed)
    }

    /// Makes the page raise SIGBUS instead of letting its thread wait for ever.
    fn give_up(&self, addr: usize) {
        let mut tried = false;
        loop {
            match self.uffd.poison(addr).map_err(|error| error.raw_os_error()) {
                Err(Some(libc::EAGAIN)) => {}
                // The mark of a protected absent page is in the way, or the page is there by now: then it is compared once more.
                Err(Some(libc::EEXIST)) if !tried => {
                    tried = true;
                    let _ = self.uffd.unprotect(addr, PAGE);
                }
                Err(_) => {
                    let _ = self.uffd.wake(addr, PAGE);
                    return;
                }
                Ok(()) => return,
            }
        }
    }
}

/// The error of the kernel, which would not put the page in place.
fn refused(page: usize, error: io::Error) -> PageError {
    PageError { page, source: error.into() }
}
