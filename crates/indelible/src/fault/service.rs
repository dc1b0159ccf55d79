//! The fault-answering thread, and the one path by which pages enter a served range.

#![allow(unsafe_code)]

use std::collections::BTreeMap;
use std::io;
use std::ops;
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use super::BATCH;
use super::ahead::Ahead;
use super::evict::Resident;
use super::range::Range;
use super::source::PageError;
use crate::mapping::SecretBuffer;
use crate::sys::PAGE;
use crate::sys::mmap;
use crate::sys::per_process::PerProcess;
use crate::sys::uffd::{FEATURE_POISON, Reach, Uffd, WP_ASYNC};

pub(super) struct Service {
    pub(super) uffd: Uffd,
    pub(super) ranges: RwLock<BTreeMap<usize, Arc<Range>>>,
    pub(super) ahead: Ahead,
    started: Mutex<bool>,
}

pub(super) fn open() -> io::Result<Uffd> {
    Uffd::open(Reach::UserMode, FEATURE_POISON, WP_ASYNC)
}

impl Service {
    pub(super) fn get() -> io::Result<&'static Service> {
        static SERVICE: PerProcess<Service> = PerProcess::new();
        let service = SERVICE.get_or_try(|_| {
            Ok::<_, io::Error>(Service {
                uffd: open()?,
                ranges: RwLock::new(BTreeMap::new()),
                ahead: Ahead::default(),
                started: Mutex::new(false),
            })
        })?;
        let mut started = service.started.lock().unwrap_or_else(PoisonError::into_inner);
        if !*started {
            let mut buffer = buffer(BATCH)?;
            std::thread::Builder::new()
                .name("indelible-fault".into())
                .spawn(move || service.run(buffer.bytes()))?;
            *started = true;
        }
        Ok(service)
    }

    pub(super) fn predict(&'static self) {
        self.ahead.start(move |range, pages, buffer| self.fill_predicted(range, pages, buffer));
    }

    fn run(&'static self, buffer: &mut [u8]) {
        loop {
            let done = self.uffd.wait(|addr| self.answer(addr, buffer));
            if done.is_err() {
                return;
            }
        }
    }

    fn find(&self, addr: usize) -> Option<Arc<Range>> {
        let ranges = self.ranges.read().unwrap_or_else(PoisonError::into_inner);
        let (_, range) = ranges.range(..=addr).next_back()?;
        (addr - range.base < range.len()).then(|| Arc::clone(range))
    }

    /// No other fault waits for a slow source or for pages filled ahead.
    fn answer(&'static self, addr: usize, buffer: &mut [u8]) {
        let addr = addr & !(PAGE - 1);
        let Some(range) = self.find(addr) else { return };
        self.look_ahead(&range, addr);
        let Some(claimed) = range.claim_or_leave(addr) else {
            if let Some(prediction) = &range.prediction {
                prediction.came_late();
            }
            return;
        };
        if range.is_slow() {
            let (own, pages) = (Arc::clone(&range), claimed.clone());
            let thread = std::thread::Builder::new().name("indelible-slow".into());
            if let Ok(mut buffer) = self::buffer(claimed.len()) {
                let answer = move || self.resolve(&own, pages, buffer.bytes());
                if thread.spawn(answer).is_ok() {
                    return;
                }
            }
        }
        self.resolve(&range, claimed, buffer);
    }

    fn look_ahead(&self, range: &Arc<Range>, addr: usize) {
        let Some(prediction) = &range.prediction else { return };
        if let Some(window) = prediction.missed((addr - range.base) / PAGE, range.pages()) {
            self.ahead.fill(range, window);
        }
    }

    fn resolve(&self, range: &Range, claimed: ops::Range<usize>, buffer: &mut [u8]) {
        self.answer_one(range, &claimed, buffer);
        self.finish(range, &claimed, buffer);
    }

    fn finish(&self, range: &Range, claimed: &ops::Range<usize>, buffer: &mut [u8]) {
        let mut waiting = range.end(claimed);
        while let Some(addr) = waiting.pop() {
            // The install woke its thread, unless the fault came later or the page was dropped.
            if mmap::resident(addr, 1).is_ok_and(|present| present == [true]) {
                let _ = self.uffd.wake(addr, PAGE);
                continue;
            }
            let Some(claimed) = range.claim_or_leave(addr) else { continue };
            self.answer_one(range, &claimed, buffer);
            waiting.extend(range.end(&claimed));
        }
    }

    fn answer_one(&self, range: &Range, claimed: &ops::Range<usize>, buffer: &mut [u8]) {
        let (page, addr) = (claimed.start, range.addr(claimed.start));
        let room = page..claimed.end.min(page + buffer.len() / PAGE);
        let done = range.read_from(&room, buffer).and_then(|(count, paid)| {
            let first = self.install(range, page, &buffer[..PAGE]);
            Self::filled(range, page..page + 1);
            let ahead = match &first {
                Ok(_) => self.install(range, page + 1, &buffer[PAGE..count * PAGE]).unwrap_or(0),
                Err(_) => 0,
            };
            if ahead > 0 {
                Self::filled(range, page + 1..page + count);
            }
            range.give_back(paid - ahead.min(paid));
            wipe(range, &mut buffer[..count * PAGE]);
            first.map(drop).map_err(|error| refused(page, error))
        });
        if let Err(error) = done {
            range.fail(error);
            self.give_up(addr);
        }
    }

    fn fill_predicted(&self, range: &Range, pages: ops::Range<usize>, buffer: &mut [u8]) {
        // In a range with stores the owner decides about eviction, perhaps long after this
        // prediction.
        let has_room = || range.frozen || range.resident.as_ref().is_none_or(Resident::has_room);
        let mut rest = pages;
        while has_room()
            && let Some(claimed) = range.claim_free(rest.clone())
        {
            rest.start = claimed.end;
            match &range.prediction {
                Some(prediction) if prediction.is_measured() => {
                    if range.read(claimed.start, &mut buffer[..claimed.len() * PAGE]).is_ok() {
                        prediction.filled(claimed.clone());
                    }
                    wipe(range, &mut buffer[..claimed.len() * PAGE]);
                }
                prediction => {
                    let installed =
                        self.fill_absent(range, &claimed, buffer).map_or(0, |(_, installed)| installed);
                    if let Some(prediction) = prediction {
                        prediction.filled(claimed.start..claimed.start + installed);
                    }
                }
            }
            self.finish(range, &claimed, buffer);
        }
    }

    pub(super) fn prefault(&self, range: &Range, first: usize, count: usize) -> Result<usize, PageError> {
        let (mut secret, mut plain);
        let buffer = if range.secret {
            secret = buffer(BATCH).map_err(|error| refused(first, error))?;
            secret.bytes()
        } else {
            // Without the system calls of a secret's memory: readers that follow fill single pages.
            plain = vec![0; count.min(BATCH) * PAGE];
            &mut plain[..]
        };
        let mut done = 0;
        while done < count {
            let wanted = first + done..first + count.min(done + BATCH);
            let Some(claimed) = range.claim(wanted) else { return Ok(done) };
            let filled = self.fill_absent(range, &claimed, buffer);
            self.finish(range, &claimed, buffer);
            let (filled, _) = filled?;
            done += filled;
            if filled < claimed.len() {
                break;
            }
        }
        Ok(done)
    }

    fn fill_absent(
        &self,
        range: &Range,
        claimed: &ops::Range<usize>,
        buffer: &mut [u8],
    ) -> Result<(usize, usize), PageError> {
        let (first, count) = (claimed.start, claimed.len());
        let present = mmap::resident(range.addr(first), count).map_err(|error| refused(first, error))?;
        let (mut at, mut all) = (0, 0);
        while at < count {
            if present[at] {
                at += 1;
                continue;
            }
            let run = present[at..].iter().take_while(|present| !**present).count();
            let run = range.reserve(run);
            if run == 0 {
                return Ok((at, all));
            }
            let bytes = &mut buffer[..run * PAGE];
            let read = range.read(first + at, bytes);
            let good = match &read {
                Ok(()) => run,
                Err(error) => error.page.saturating_sub(first + at).min(run),
            };
            let installed = self.install(range, first + at, &bytes[..good * PAGE]);
            range.give_back(run - installed.as_ref().map_or(0, |installed| *installed));
            wipe(range, bytes);
            Self::filled(range, first + at..first + at + good);
            all += installed.map_err(|error| refused(first + at, error))?;
            read?;
            at += run;
        }
        Ok((count, all))
    }

    fn install(&self, range: &Range, page: usize, bytes: &[u8]) -> io::Result<usize> {
        let (addr, protect) = (range.addr(page), range.protect);
        let (mut done, mut installed, mut tries) = (0, 0, 0);
        let mut piece = bytes.len();
        while done < bytes.len() {
            let end = bytes.len().min(done + piece);
            match self.uffd.copy(addr + done, &bytes[done..end], protect) {
                Ok(n) => {
                    done += n;
                    installed += n / PAGE;
                }
                Err(e) => match e.raw_os_error() {
                    Some(libc::EAGAIN) => {}
                    Some(libc::EEXIST) => {
                        // The page also answers another thread's fault.
                        let _ = self.uffd.wake(addr + done, PAGE);
                        done += PAGE;
                    }
                    // Page protection has split the range into several mappings, and a copy fills
                    // one.
                    Some(libc::ENOENT) if piece > PAGE => piece = PAGE,
                    Some(libc::ENOENT) => return Ok(installed),
                    // Lack of memory may pass; a page that cannot be installed raises SIGBUS.
                    _ if tries < TRIES => tries += 1,
                    _ => return Err(e),
                },
            }
        }
        Ok(installed)
    }

    fn filled(range: &Range, pages: ops::Range<usize>) {
        let Some(resident) = &range.resident else { return };
        resident.filled(pages);
        if range.frozen {
            // SAFETY: no thread stores to the range; where bytes are laid over its pages, all are
            // kept.
            unsafe { resident.evict(range.base, |_| true) };
        }
    }

    fn give_up(&self, addr: usize) {
        let mut tried = false;
        loop {
            match self.uffd.poison(addr).map_err(|error| error.raw_os_error()) {
                Err(Some(libc::EAGAIN)) => {}
                // A protected absent page's mark is in the way, or the page is present by now.
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

const TRIES: usize = 3;

fn buffer(pages: usize) -> io::Result<SecretBuffer> {
    SecretBuffer::new(pages).map_err(io::Error::other)
}

fn wipe(range: &Range, bytes: &mut [u8]) {
    if range.secret {
        bytes.fill(0);
    }
}

fn refused(page: usize, error: io::Error) -> PageError {
    PageError { page, source: error.into() }
}
