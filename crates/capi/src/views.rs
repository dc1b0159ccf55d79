//! Views: a program's objects, attached on first use.

use crate::args::{self, fill, text, texts};
use crate::guard::{Failure, Result, guarded, status};
use crate::handles::{pmo_pool, pool};
use indelible::{AttachedView, Inside, Pool, Resumed, SwitchedView, View};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ffi::{c_char, c_int, c_uint, c_void};
use std::ptr::{NonNull, null, null_mut};
use std::sync::{Mutex, PoisonError};

const NAME: &str = "name of the view";
const CONTEXT: &str = "name of a security context";

struct Views {
    attached: BTreeMap<([u8; 16], String), Attached>,
    started: Option<(Pool, String, Option<Resumed>)>,
}

enum Attached {
    Process(AttachedView),
    Threads(SwitchedView),
}

impl Attached {
    fn key(&self) -> ([u8; 16], String) {
        let (pool, name) = match self {
            Attached::Process(view) => (view.pool(), view.name()),
            Attached::Threads(view) => (view.pool(), view.name()),
        };
        (pool.id(), name.to_owned())
    }

    fn bring(&self, slot: usize) -> indelible::Result<NonNull<u8>> {
        match self {
            Attached::Process(view) => view.bring(slot),
            Attached::Threads(view) => view.bring(slot),
        }
    }

    fn psync(&mut self) -> indelible::Result<()> {
        match self {
            Attached::Process(view) => view.psync(),
            Attached::Threads(view) => view.psync(),
        }
    }

    fn adopt(&mut self) -> indelible::Result<()> {
        match self {
            Attached::Process(view) => view.adopt(),
            Attached::Threads(view) => view.adopt(),
        }
    }
}

thread_local! {
    static INSIDE: RefCell<Vec<Inside>> = const { RefCell::new(Vec::new()) };
}

/// The last destructors of a thread have none.
fn own<R>(look: impl FnOnce(&mut Vec<Inside>) -> R) -> Result<R> {
    let gone = |_| Failure::argument("the thread is at its end");
    INSIDE.try_with(|all| look(&mut all.borrow_mut())).map_err(gone)
}

static VIEWS: Mutex<Views> = Mutex::new(Views { attached: BTreeMap::new(), started: None });

fn views<R>(f: impl FnOnce(&mut Views) -> Result<R>) -> Result<R> {
    f(&mut VIEWS.lock().unwrap_or_else(PoisonError::into_inner))
}

impl Views {
    /// NULL is the view that the program was started in.
    ///
    /// # Safety
    /// `name` is NULL, or a zero-terminated string.
    unsafe fn find(&mut self, handle: *mut pmo_pool, name: *const c_char) -> Result<&mut Attached> {
        let (id, name) = match (&self.started, name.is_null()) {
            (Some((pool, name, _)), true) => (pool.id(), name.clone()),
            (None, true) => return Err(Failure::argument("pmo_view_start has found no view")),
            // SAFETY: the caller's promise.
            (_, false) => (pool(handle)?.id(), unsafe { text(name, NAME) }?.to_owned()),
        };
        let found = self.attached.get_mut(&(id, name));
        found.ok_or_else(|| Failure::argument("the view is not attached (pmo_view_attach)"))
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn pmo_view_create(handle: *mut pmo_pool, name: *const c_char, slots: usize) -> c_int {
    status(|| {
        // SAFETY: the caller's promise.
        View::create(&pool(handle)?, unsafe { text(name, NAME) }?, slots)?;
        Ok(())
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn pmo_view_set(
    handle: *mut pmo_pool,
    view: *const c_char,
    slot: usize,
    object: *const c_char,
    rights: c_uint,
) -> c_int {
    status(|| {
        // SAFETY: the caller's promise.
        let (view, object) = unsafe { (text(view, NAME)?, text(object, "name of the object")?) };
        let rights = args::rights(rights)?;
        let mut view = View::open(&pool(handle)?, view)?;
        view.set(slot, object, rights)?;
        Ok(view.psync()?)
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn pmo_view_clear(handle: *mut pmo_pool, view: *const c_char, slot: usize) -> c_int {
    status(|| {
        // SAFETY: the caller's promise.
        let mut view = View::open(&pool(handle)?, unsafe { text(view, NAME) }?)?;
        view.clear(slot)?;
        Ok(view.psync()?)
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn pmo_view_attach(handle: *mut pmo_pool, view: *const c_char) -> c_int {
    // SAFETY: the caller's promise; there are no contexts.
    status(|| unsafe { attach(handle, view, (null(), 0), in_process) })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn pmo_view_attach_in(
    handle: *mut pmo_pool,
    view: *const c_char,
    contexts: *const *const c_char,
    count: usize,
) -> c_int {
    // SAFETY: the caller's promise.
    status(|| unsafe { attach(handle, view, (contexts, count), in_process) })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn pmo_view_attach_switched(
    handle: *mut pmo_pool,
    view: *const c_char,
    contexts: *const *const c_char,
    count: usize,
) -> c_int {
    let by_threads = |pool: &Pool, name: &str, contexts: &[&str]| {
        SwitchedView::attach(pool, name, contexts).map(Attached::Threads)
    };
    // SAFETY: the caller's promise.
    status(|| unsafe { attach(handle, view, (contexts, count), by_threads) })
}

fn in_process(pool: &Pool, name: &str, contexts: &[&str]) -> indelible::Result<Attached> {
    AttachedView::attach_in(pool, name, contexts).map(Attached::Process)
}

/// # Safety
/// As for [`text`] and [`texts`].
unsafe fn attach(
    handle: *mut pmo_pool,
    view: *const c_char,
    (contexts, count): (*const *const c_char, usize),
    how: impl FnOnce(&Pool, &str, &[&str]) -> indelible::Result<Attached>,
) -> Result<()> {
    // SAFETY: the caller's promise.
    let (name, contexts) = unsafe { (text(view, NAME)?, texts(contexts, count, CONTEXT)?) };
    let pool = pool(handle)?;
    views(|views| {
        let key = (pool.id(), name.to_owned());
        if views.attached.contains_key(&key) {
            return Err(Failure::argument("the view is attached already"));
        }
        views.attached.insert(key, how(&pool, name, &contexts)?);
        Ok(())
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn pmo_view_enter(
    handle: *mut pmo_pool,
    view: *const c_char,
    contexts: *const *const c_char,
    count: usize,
) -> c_int {
    status(|| {
        // SAFETY: the caller's promise.
        let contexts = unsafe { texts(contexts, count, CONTEXT) }?;
        // SAFETY: the caller's promise.
        let inside = views(|views| match unsafe { views.find(handle, view) }? {
            Attached::Threads(view) => Ok(view.enter(&contexts)?),
            Attached::Process(_) => {
                Err(Failure::argument("its contexts are the process's (pmo_view_attach_switched)"))
            }
        })?;
        own(|all| all.push(inside))
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn pmo_view_leave() -> c_int {
    status(|| match own(Vec::pop)? {
        Some(inside) => {
            drop(inside);
            Ok(())
        }
        None => Err(Failure::argument("the thread has entered no contexts (pmo_view_enter)")),
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn pmo_view_leave_all() -> c_int {
    status(|| {
        let _ = own(|all| while all.pop().is_some() {});
        Ok(indelible::leave_contexts()?)
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn pmo_view_at(handle: *mut pmo_pool, view: *const c_char, slot: usize) -> *mut c_void {
    guarded(null_mut(), || {
        // SAFETY: the caller's promise.
        views(|views| Ok(unsafe { views.find(handle, view) }?.bring(slot)?.as_ptr().cast()))
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn pmo_view_psync(handle: *mut pmo_pool, view: *const c_char) -> c_int {
    // SAFETY: the caller's promise.
    status(|| views(|views| Ok(unsafe { views.find(handle, view) }?.psync()?)))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn pmo_view_adopt(handle: *mut pmo_pool, view: *const c_char) -> c_int {
    // SAFETY: the caller's promise.
    status(|| views(|views| Ok(unsafe { views.find(handle, view) }?.adopt()?)))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn pmo_view_detach(handle: *mut pmo_pool, view: *const c_char) -> c_int {
    status(|| {
        views(|views| {
            // SAFETY: the caller's promise.
            let found = unsafe { views.find(handle, view) }?;
            let key = found.key();
            views.attached.remove(&key);
            Ok(())
        })
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn pmo_view_start(resumed: *mut c_int) -> c_int {
    status(|| {
        views(|views| {
            let found = AttachedView::from_environment()?;
            let Some((view, how)) = found else {
                return Err(Failure::argument("PMO_VIEW is not set (start the program with `pmo run`)"));
            };
            if !resumed.is_null() {
                // SAFETY: the caller's promise.
                unsafe { fill(resumed, how.is_some().into()) }?;
            }
            let (pool, name) = (view.pool().clone(), view.name().to_owned());
            views.attached.insert((pool.id(), name.clone()), Attached::Process(view));
            views.started = Some((pool, name, how));
            Ok(())
        })
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn pmo_view_lost(slot: usize) -> c_int {
    guarded(-1, || {
        views(|views| {
            let Some((_, _, how)) = &views.started else {
                return Err(Failure::argument("pmo_view_start has found no view"));
            };
            let objects = how.iter().flat_map(|how| &how.objects);
            Ok(objects.into_iter().any(|left| left.slot == slot && (left.in_use || left.gone)).into())
        })
    })
}
