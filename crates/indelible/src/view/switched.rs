//! Views whose security contexts are those of threads (S2.16): a thread has an object's memory
//! while it is within contexts that allow it.

use super::attached::{AttachedView, Inner, SlotState};
use super::classes::{Classes, Opened, together};
use crate::error::{Error, Result, SecurityError};
use crate::pool::Pool;
use crate::protection::{self, Means, ProtectionError};
use crate::sys::mmap::Protection;
use std::ptr::NonNull;

/// A view in this process, as an [`AttachedView`], whose objects are closed to every thread, but
/// for those that are [within](SwitchedView::within) security contexts which allow the access.
///
/// An object is attached with the rights that any of the view's contexts allows. Objects to which
/// each of the contexts gives the same rights are a *class*; a class opens and closes as one. With
/// protection keys of the processor (`pmo doctor` tells whether there are any) the rights are in a
/// register of the thread, and other threads have nothing of it. Without them they are the
/// protection of the pages: while any thread is within contexts that allow an access, every thread
/// can make it. A process has 15 classes at most, the program's other keys among them; objects of
/// one more cannot be attached.
///
/// An access that is not allowed is a SIGSEGV of the program's, and `EFAULT` for a system call. It
/// stops stray stores and mistakes, not code that means to (SAFETY.md). Calls of this library on an
/// object by its address need the thread's rights as well, but for psync, which opens what it
/// saves.
///
/// ```
/// # fn main() -> indelible::Result<()> {
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
/// # Ok(()) }
/// ```
#[derive(Debug)]
pub struct SwitchedView {
    view: AttachedView,
}

const ENTER: &str = "enter security contexts";
const USE: &str = "use a slot of the view";

impl SwitchedView {
    /// Attaches a view, open or not, in security contexts of the same pool. No thread is within any
    /// of them.
    ///
    /// # Errors
    /// As for [`AttachedView::attach_in`]. `Unsuitable`: there are no contexts. No object makes it
    /// fail: the [slots](SwitchedView::slots) have their errors, `NoRoom` among them: there is no
    /// protection key for one more class.
    pub fn attach<S: AsRef<str>>(pool: &Pool, name: &str, contexts: &[S]) -> Result<SwitchedView> {
        SwitchedView::attach_by(pool, name, contexts, protection::means())
    }

    /// As [`attach`](SwitchedView::attach), by the protection of pages also where there are
    /// protection keys: for a program that needs those itself. Rights are those of all threads
    /// then.
    ///
    /// # Errors
    /// As for [`attach`](SwitchedView::attach).
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

    /// Runs `body` with this thread within some of the view's contexts, which are known by the
    /// names that the view was attached with: for loads. Within contexts already, the thread has
    /// the union of the rights that they give. Threads that are started meanwhile have the same,
    /// where there are protection keys for as long as they live; others that get references have
    /// not.
    ///
    /// # Errors
    /// `NotFound`: one of them is none of the view's. `Forked`. `Io`: the kernel refuses.
    pub fn within<S: AsRef<str>, R>(&self, contexts: &[S], body: impl FnOnce(&Within<'_>) -> R) -> Result<R> {
        Ok(body(&self.enter_view(contexts)?))
    }

    /// As [`within`](SwitchedView::within), for loads and stores.
    ///
    /// # Errors
    /// As for [`within`](SwitchedView::within).
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

    /// This thread is within some of the view's contexts until the result is dropped, for accesses
    /// by address, also if the view is adopted or detached meanwhile. Results may be dropped in any
    /// order: the thread has the rights of those that are left.
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

    /// Numbers of contexts.
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

    /// Whether a thread has its rights for itself, by protection keys; otherwise all threads have
    /// them meanwhile.
    #[must_use]
    pub fn is_by_thread(&self) -> bool {
        let state = self.view.inner.state();
        state.classes.as_ref().is_some_and(|classes| classes.means() == Means::Keys)
    }

    /// How many classes its objects are.
    #[must_use]
    pub fn classes(&self) -> usize {
        self.view.inner.state().classes.as_ref().map_or(0, Classes::len)
    }

    /// Name of the view.
    #[must_use]
    pub fn name(&self) -> &str {
        self.view.name()
    }

    /// The pool of the view and of its objects.
    #[must_use]
    pub fn pool(&self) -> &Pool {
        self.view.pool()
    }

    /// Names of the security contexts, as they were when the view was attached.
    #[must_use]
    pub fn contexts(&self) -> Vec<String> {
        self.view.contexts()
    }

    /// See [`AttachedView::slots`]. A slot says that it is allowed the rights which any of the
    /// contexts gives.
    #[must_use]
    pub fn slots(&self) -> Vec<SlotState> {
        self.view.slots()
    }

    /// See [`AttachedView::bring`]. The bytes are a thread's that is within contexts which allow
    /// it.
    ///
    /// # Errors
    /// As for [`AttachedView::bring`]. `Held`: this process loads from the object elsewhere.
    /// `NoRoom`: there is no protection key for one more class of objects. `Busy`: the object's
    /// class is new, and [`adopt`](SwitchedView::adopt) makes it. `Unsuitable`: its tracking is
    /// `mprotect`.
    pub fn bring(&self, slot: usize) -> Result<NonNull<u8>> {
        self.view.bring(slot)
    }

    /// See [`AttachedView::bring_all`].
    ///
    /// # Errors
    /// As for [`AttachedView::bring_all`].
    pub fn bring_all(&self) -> Result<usize> {
        self.view.bring_all()
    }

    /// See [`AttachedView::adopt`]. Threads that are [inside](SwitchedView::enter) have nothing of
    /// classes that are new.
    ///
    /// # Errors
    /// As for [`AttachedView::adopt`].
    pub fn adopt(&mut self) -> Result<()> {
        self.view.adopt()
    }

    /// See [`AttachedView::psync`]. The thread need not be within a context.
    ///
    /// # Errors
    /// As for [`AttachedView::psync`].
    pub fn psync(&mut self) -> Result<()> {
        self.view.psync()
    }

    /// Detaches the view and all of its objects; stores that were not psynced are forgotten.
    /// Dropping it does the same.
    pub fn detach(self) {}
}

/// Takes this thread out of all security contexts of any view: for a thread that inherited some
/// from the thread which started it, and for code that catches a jump (`longjmp`) over the end of
/// an [`Inside`]. The thread first drops those that it still has.
///
/// # Errors
/// `Io`: the kernel refuses.
pub fn leave_contexts() -> Result<()> {
    let left = protection::close_all().map_err(ProtectionError::Open);
    left.map_err(|error| Error::new("leave security contexts", SecurityError::from(error)))
}

/// A thread is within security contexts as long as this is there, but for handlers of signals,
/// which begin within none, and for jumps out of one; see [`SwitchedView::enter`].
#[derive(Debug)]
#[must_use = "dropped, the thread is out of the contexts again"]
pub struct Inside {
    _opened: Opened,
}

/// A view, for a thread that is within some of its security contexts; see [`SwitchedView::within`].
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
    ///
    /// # Errors
    /// As for [`AttachedView::psync`].
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
