//! Pages that the program drops itself (`MADV_DONTNEED`, as allocators do).
//!
//! A dropped page of a private mapping comes back as the file has it, which may lack pending lines:
//! older than the last psync. Therefore userfaultfd announces each drop, and pending lines are
//! written to the file before the dropping thread goes on. Without announcements a dropped page may
//! come back older (SAFETY.md).
//!
//! Invariant: the function given to [`before`] never waits for a thread that may be dropping pages,
//! nor touches an object's memory.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Mutex, PoisonError};

use crate::sys::fork;
use crate::sys::per_process::PerProcess;
use crate::sys::uffd::{EVENT_REMOVE, Reach, Uffd, WP_ASYNC};

type WriteOut = Box<dyn Fn() + Send + Sync>;

struct Service {
    uffd: Uffd,
    objects: Mutex<(u64, BTreeMap<u64, WriteOut>)>,
}

fn service() -> io::Result<&'static Service> {
    static SERVICE: PerProcess<Service> = PerProcess::new();
    static STARTED: PerProcess<Mutex<bool>> = PerProcess::new();
    let service = SERVICE.get_or_try(|_| {
        let uffd = Uffd::open(Reach::UserMode, WP_ASYNC | EVENT_REMOVE, 0)?;
        uffd.never_wait()?;
        Ok::<_, io::Error>(Service { uffd, objects: Mutex::default() })
    })?;
    let mut started = STARTED.get().lock().unwrap_or_else(PoisonError::into_inner);
    if !*started {
        std::thread::Builder::new().name("indelible-drop".into()).spawn(|| service.run())?;
        *started = true;
    }
    Ok(service)
}

impl Service {
    fn run(&self) {
        // Ends only with a broken descriptor.
        while self.uffd.wait_for_removals(|| self.write_out()).is_ok() {}
    }

    fn write_out(&self) {
        let objects = self.objects.lock().unwrap_or_else(PoisonError::into_inner);
        objects.1.values().for_each(|write_out| write_out());
    }
}

pub(crate) fn watcher() -> io::Result<&'static Uffd> {
    Ok(&service()?.uffd)
}

pub(crate) struct Announced {
    number: u64,
    generation: u32,
}

pub(crate) fn before(write_out: impl Fn() + Send + Sync + 'static) -> Option<Announced> {
    let mut objects = service().ok()?.objects.lock().unwrap_or_else(PoisonError::into_inner);
    objects.0 += 1;
    let number = objects.0;
    objects.1.insert(number, Box::new(write_out));
    Some(Announced { number, generation: fork::generation() })
}

impl Drop for Announced {
    fn drop(&mut self) {
        if !fork::is_stale(self.generation)
            && let Ok(service) = service()
        {
            service.objects.lock().unwrap_or_else(PoisonError::into_inner).1.remove(&self.number);
        }
    }
}
