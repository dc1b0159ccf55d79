//! Views with security contexts of threads (S2.16): a thread accesses an object while it is within
//! contexts that allow it.

use super::attached::{AttachedView, Inner, SlotState};
use super::classes::{Classes, Opened, together};
use crate::error::{Error, Result, SecurityError};
use crate::pool::Pool;
use crate::protection::{self, Means, ProtectionError};
use crate::sys::mmap::Protection;
use std::ptr::NonNull;

/// A view in this process, as an [`AttachedView`], whose objects are closed to every thread that is
/// not [within](SwitchedView::within) security contexts which allow the access.
///
/// An object is attached with the rights that any of the view's contexts allows. Objects with the
/// same rights from each context form a *class*, which opens and closes as one. With protection
/// keys (see `pmo doctor`) rights are in a register of the thread. Without them they are the
/// protection of the pages: while any thread is within contexts that allow an access, every thread
/// can make it. A process has at most 15 classes, including the program's other keys; objects of
/// one more cannot be attached.
///
/// A forbidden access is a SIGSEGV, and `EFAULT` for a system call. It stops stray stores and
/// mistakes, not deliberate code (SAFETY.md). Calls of this library on an object by address need
/// the thread's rights as well, except psync.
///
/// ```
/// # let dir = tempfile::tempdir().unwrap();
/// # let pool = indelible::Pool::format(dir.path().join("p"), 16 << 20)?;
/// use indelible::{Rights, SecurityContext, SwitchedView, View};
///
/// pool.create("prices", 4096)?;
/// let mut view = View::create(&pool, "shop", 8)?;
/// view.set(0, "prices", Rights::READ | Rights::WRITE)?;
/// view.psync()?;
/// for (name, rights) in [("clerk", Rights::READ), ("owner", Rights::READ | Rights::WRITE)] {
///     let mut context = SecurityContext::create(&pool, name, 4)?;
///     context.allow("prices", rights)?;
///     context.psync()?;
/// }
/// drop(view);
///
/// let mut shop = SwitchedView::attach(&pool, "shop", &["clerk", "owner"])?;
/// shop.within_mut(&["owner"], |shop| {
///     *shop.get_mut::<u64>(0)? = 7;
///     shop.psync()
/// })??;
/// assert_eq!(shop.within(&["clerk"], |shop| shop.get::<u64>(0).copied())??, 7);
/// let refused = shop.within_mut(&["clerk"], |shop| shop.get_mut::<u64>(0).map(|price| *price = 8))?;
/// assert_eq!(refused.unwrap_err().kind(), indelible::ErrorKind::Denied);
/// # Ok::<(), indelible::Error>(())
/// ```
#[derive(Debug)]
pub struct SwitchedView {
    view: AttachedView,
}

const ENTER: &str = "enter security contexts";
const USE: &str = "use a slot of the view";

impl SwitchedView {
    /// Attaches a view, even one that is open, in security contexts of the same pool, with no
    /// thread within them.
    ///
    /// # Errors
    /// As for [`AttachedView::attach_in`]. `Unsuitable`: there are no contexts. The
    /// [slots](SwitchedView::slots) have objects' errors, such as `NoRoom`: no protection key is
    /// left for another class.
    pub fn attach<S: AsRef<str>>(pool: &Pool, name: &str, contexts: &[S]) -> Result<SwitchedView> {
        SwitchedView::attach_by(pool, name, contexts, protection::means())
    }

    /// As [`attach`](SwitchedView::attach), by page protection even if there are protection keys,
    /// for a program that needs those. Rights are then those of all threads.
    pub fn attach_by_pages<S: AsRef<str>>(pool: &Pool, name: &str, contexts: &[S]) -> Result<SwitchedView> {
        SwitchedView::attach_by(pool, name, contexts, Means::Mprotect)
    }

    fn attach_by<S: AsRef<str>>(
        pool: &Pool,
        name: &str,
        contexts: &[S],
        means: Means,
    ) -> Result<SwitchedView> {
        if contexts.is_empty() {
            let error = Error::new("attach the view", SecurityError::NoContexts);
            return Err(error.pool(pool.path()).object(name));
        }
        Ok(SwitchedView { view: AttachedView::attach_as(pool, name, contexts, Some(Classes::new(means)))? })
    }

    /// Runs `body` with this thread within some of the view's contexts, by their names at attach,
    /// for loads. Nested contexts give the union of rights. Threads started in `body` have the same
    /// rights; others do not, even with references.
    ///
    /// # Errors
    /// `NotFound`: one of them is not the view's. `Forked`. `Io`: the kernel refuses.
    pub fn within<S: AsRef<str>, R>(&self, contexts: &[S], body: impl FnOnce(&Within<'_>) -> R) -> Result<R> {
        Ok(body(&self.enter_view(contexts)?))
    }

    /// As [`within`](SwitchedView::within), for loads and stores.
    pub fn within_mut<S: AsRef<str>, R>(
        &mut self,
        contexts: &[S],
        body: impl FnOnce(&mut Within<'_>) -> R,
    ) -> Result<R> {
        Ok(body(&mut self.enter_view(contexts)?))
    }

    fn enter_view<S: AsRef<str>>(&self, contexts: &[S]) -> Result<Within<'_>> {
        let contexts = self.numbers(contexts)?;
        Ok(Within { _inside: self.enter_numbers(&contexts)?, view: self, contexts })
    }

    /// Puts this thread within some of the view's contexts until the result is dropped, for
    /// accesses by address, even if the view is adopted or detached before.
    ///
    /// # Errors
    /// As for [`within`](SwitchedView::within).
    pub fn enter<S: AsRef<str>>(&self, contexts: &[S]) -> Result<Inside> {
        self.enter_numbers(&self.numbers(contexts)?)
    }

    fn enter_numbers(&self, contexts: &[usize]) -> Result<Inside> {
        let inner = &self.view.inner;
        let state = inner.live_state(ENTER)?;
        let opened =
            state.classes.as_ref().map_or_else(|| Ok(Opened::new()), |classes| classes.open(contexts));
        Ok(Inside { _opened: opened.map_err(|error| inner.error(ENTER, SecurityError::from(error)))? })
    }

    fn numbers<S: AsRef<str>>(&self, contexts: &[S]) -> Result<Vec<usize>> {
        let state = self.view.inner.live_state(ENTER)?;
        let number = |name: &S| {
            let found = state.grants.names().iter().position(|known| known == name.as_ref());
            found.ok_or_else(|| {
                self.view.inner.error(ENTER, SecurityError::NotAContextOf(name.as_ref().to_owned()))
            })
        };
        contexts.iter().map(number).collect()
    }

    /// Whether rights belong to each thread, by protection keys; otherwise to all threads.
    #[must_use]
    pub fn is_by_thread(&self) -> bool {
        let state = self.view.inner.state();
        state.classes.as_ref().is_some_and(|classes| classes.means() == Means::Keys)
    }

    /// Number of classes.
    #[must_use]
    pub fn classes(&self) -> usize {
        self.view.inner.state().classes.as_ref().map_or(0, Classes::len)
    }

    /// The view's name.
    #[must_use]
    pub fn name(&self) -> &str {
        self.view.name()
    }

    /// The pool of the view and its objects.
    #[must_use]
    pub fn pool(&self) -> &Pool {
        self.view.pool()
    }

    /// Names of the security contexts when the view was attached.
    #[must_use]
    pub fn contexts(&self) -> Vec<String> {
        self.view.contexts()
    }

    /// See [`AttachedView::slots`]. A slot's allowed rights are those from any context.
    #[must_use]
    pub fn slots(&self) -> Vec<SlotState> {
        self.view.slots()
    }

    /// See [`AttachedView::bring`]. Threads within contexts that allow it have the bytes.
    ///
    /// # Errors
    /// As for [`AttachedView::bring`]. `Held`: this process loads from the object elsewhere.
    /// `NoRoom`: no protection key is left for another class. `Busy`: the object's class is new,
    /// and [`adopt`](SwitchedView::adopt) makes it. `Unsuitable`: its tracking is `mprotect`.
    pub fn bring(&self, slot: usize) -> Result<NonNull<u8>> {
        self.view.bring(slot)
    }

    /// See [`AttachedView::bring_all`].
    pub fn bring_all(&self) -> Result<usize> {
        self.view.bring_all()
    }

    /// See [`AttachedView::adopt`]. Threads that are [inside](SwitchedView::enter) get no access to
    /// new classes.
    pub fn adopt(&mut self) -> Result<()> {
        self.view.adopt()
    }

    /// See [`AttachedView::psync`]. The thread need not be within a context.
    pub fn psync(&mut self) -> Result<()> {
        self.view.psync()
    }

    /// See [`AttachedView::detach`].
    pub fn detach(self) {}
}

/// Takes this thread out of all security contexts of any view: for a thread that inherited some,
/// and after a caught jump (`longjmp`) over the end of an [`Inside`].
///
/// # Errors
/// `Io`: the kernel refuses.
pub fn leave_contexts() -> Result<()> {
    let left = protection::close_all().map_err(ProtectionError::Open);
    left.map_err(|error| Error::new("leave security contexts", SecurityError::from(error)))
}

/// Keeps a thread within security contexts, except in signal handlers, which begin within none, and
/// after jumps out of one; see [`SwitchedView::enter`].
#[derive(Debug)]
#[must_use = "dropped, the thread is out of the contexts again"]
pub struct Inside {
    _opened: Opened,
}

/// A view, for a thread within some of its security contexts; see [`SwitchedView::within`].
#[derive(Debug)]
pub struct Within<'v> {
    _inside: Inside,
    view: &'v SwitchedView,
    contexts: Vec<usize>,
}

impl Within<'_> {
    pub(super) fn inner(&self) -> &Inner {
        &self.view.view.inner
    }

    /// As [`SwitchedView::psync`].
    pub fn psync(&mut self) -> Result<()> {
        self.inner().psync()
    }

    pub(super) fn expect_loads(&self, slot: usize) -> Result<()> {
        self.expect(slot, Protection::Read, "loads")
    }

    pub(super) fn expect_stores(&self, slot: usize) -> Result<()> {
        self.expect(slot, Protection::ReadWrite, "stores")
    }

    fn expect(&self, slot: usize, access: Protection, what: &'static str) -> Result<()> {
        self.inner().with_slot(slot, |entry, grants| {
            if together(&entry.rights, &self.contexts) >= access || !entry.asks_for(access) {
                return Ok(());
            }
            let names = self.contexts.iter().filter_map(|number| grants.names().get(*number));
            let contexts = names.map(|name| format!("{name:?}")).collect::<Vec<_>>().join(", ");
            let cause = SecurityError::Denied { what, contexts };
            Err(self.inner().error(USE, cause).object(&entry.name))
        })
    }
}
