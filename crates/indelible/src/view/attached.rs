use super::classes::Classes;
use super::entry::{Entry, Memory, is_for_lack_of_rights};
use super::layout::ViewSlot;
use super::{name_of, read};
use crate::error::{Cause, Error, Result, SecurityError, ViewError};
use crate::far::Rights;
use crate::fault::reserved::{Owner, Reserved};
use crate::pool::{Pool, Seen};
use crate::raw::{Permission, pin, pin_all, unpin_all};
use crate::security::Grants;
use crate::sys::fork;
use indelible_store::slices;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// A view in this process: its objects are in memory at their addresses, each from its first use
/// on.
///
/// Attaching a view reserves its objects' addresses. The first touch of one by any thread, in any
/// language, attaches the object while the thread waits: for stores if its slot asks for them and
/// the object allows them, else for loads. If that fails, or the access is not allowed, the program
/// gets the SIGSEGV; [`slots`](AttachedView::slots) has the error.
///
/// System calls raise no SIGSEGV, but return `EFAULT` for the address of an unused object:
/// [`bring`](AttachedView::bring) attaches it without a touch. A thread that touches an object
/// first must not have SIGSEGV blocked.
///
/// Changes of the view are followed at the next first touch and by [`adopt`](AttachedView::adopt),
/// which alone detaches objects.
pub struct AttachedView {
    pub(super) inner: Arc<Inner>,
}

pub(super) struct Inner {
    pub(super) me: Weak<Inner>,
    pub(super) pool: Pool,
    pub(super) id: [u8; 16],
    pub(super) name: String,
    generation: u32,
    state: Mutex<State>,
}

pub(super) struct State {
    pub(super) entries: BTreeMap<usize, Entry>,
    pub(super) seen: Seen,
    pub(super) grants: Grants,
    pub(super) classes: Option<Classes>,
    /// Changes of the view wait for [`adopt`](AttachedView::adopt).
    pub(super) behind: bool,
    window: Option<Reserved>,
    ended: bool,
}

/// State of a slot's addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SlotMemory {
    /// Nothing: there is no such object, or its addresses are taken.
    Absent,
    /// Reserved addresses: the first use attaches the object.
    Reserved,
    /// The object, for loads.
    Reading,
    /// The object, for loads and stores.
    Writing,
}

/// A slot of an attached view.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct SlotState {
    /// The slot, as in force here.
    pub of: ViewSlot,
    /// The rights that the security contexts allow; `None`: none at all.
    pub allowed: Option<Rights>,
    /// The object's name at its lookup.
    pub name: String,
    /// The object's first address; 0: no such object.
    pub address: usize,
    /// Bytes reserved for it.
    pub len: usize,
    /// State of these addresses.
    pub memory: SlotMemory,
    /// The last failure to attach the object.
    pub refused: Option<Error>,
}

const WINDOW: usize = usize::MAX;

const USE: &str = "use a slot of the view";

impl AttachedView {
    /// Attaches a view, even one that is open.
    ///
    /// # Errors
    /// As for [`View::read`](super::View::read). Objects cause no error: the
    /// [slots](AttachedView::slots) have theirs.
    pub fn attach(pool: &Pool, name: &str) -> Result<AttachedView> {
        AttachedView::attach_in::<&str>(pool, name, &[])
    }

    /// As [`attach`](AttachedView::attach), in [security contexts](crate::SecurityContext) of the
    /// same pool: an object is attached with its slot's rights as far as any context allows. A
    /// forbidden access is a SIGSEGV, and `Denied` from methods of this type. Without contexts
    /// everything is allowed.
    ///
    /// The contexts are read again at each object's attach, and by [`adopt`](AttachedView::adopt).
    /// While one cannot be read, no more objects are attached.
    ///
    /// # Errors
    /// As for [`attach`](AttachedView::attach). Those of
    /// [`SecurityContext::read`](crate::SecurityContext::read) for each context. `Unsuitable`:
    /// contexts are delegated to each other in a circle.
    pub fn attach_in<S: AsRef<str>>(pool: &Pool, name: &str, contexts: &[S]) -> Result<AttachedView> {
        AttachedView::attach_as(pool, name, contexts, None)
    }

    pub(super) fn attach_as<S: AsRef<str>>(
        pool: &Pool,
        name: &str,
        contexts: &[S],
        classes: Option<Classes>,
    ) -> Result<AttachedView> {
        let failed = |cause: Cause| Error::new("attach the view", cause).pool(pool.path()).object(name);
        let found = pool.inner().alive().and_then(|()| Ok(pool.inner().store.find(name)?)).map_err(failed)?;
        let state = State {
            entries: BTreeMap::new(),
            seen: Seen::UNKNOWN,
            grants: Grants::of(pool, contexts).map_err(failed)?,
            classes,
            behind: false,
            window: None,
            ended: false,
        };
        let inner = Arc::new_cyclic(|me| Inner {
            me: me.clone(),
            pool: pool.clone(),
            id: found.entry.id,
            name: found.entry.name(),
            generation: fork::generation(),
            state: Mutex::new(state),
        });
        let mut state = inner.state();
        inner.follow(&mut state, true).map_err(failed)?;
        state.window = Some(inner.window().map_err(|error| failed(ViewError::Reserve(error).into()))?);
        drop(state);
        let view = AttachedView { inner };
        let mut state = view.inner.state();
        view.inner.bring_at_once(&mut state)?;
        drop(state);
        Ok(view)
    }

    /// The view's name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.inner.name
    }

    /// The pool of the view and its objects.
    #[must_use]
    pub fn pool(&self) -> &Pool {
        &self.inner.pool
    }

    /// Names of the security contexts when the view was attached.
    #[must_use]
    pub fn contexts(&self) -> Vec<String> {
        self.inner.state().grants.names().to_vec()
    }

    /// The set slots, and the state of their addresses.
    #[must_use]
    pub fn slots(&self) -> Vec<SlotState> {
        self.inner.state().entries.values().map(SlotState::of).collect()
    }

    /// Attaches a slot's object if need be; returns its first address. Finds slots that are new in
    /// the view.
    ///
    /// # Errors
    /// `NotFound`: the slot is empty. `Denied`: no security context allows loads. As for
    /// [`Pool::attach`](crate::Pool::attach) and [`Pool::attach_read`](crate::Pool::attach_read).
    pub fn bring(&self, slot: usize) -> Result<std::ptr::NonNull<u8>> {
        let (base, _) = self.inner.range(slot)?;
        Ok(base)
    }

    /// Attaches all remaining objects, those for writing in one step of the pool; returns the
    /// number of attached ones.
    ///
    /// # Errors
    /// The pool's table could not be changed: no object for writing is attached. Other errors are
    /// those of the [slots](AttachedView::slots).
    pub fn bring_all(&self) -> Result<usize> {
        let mut state = self.inner.live_state(USE)?;
        self.inner.ask_contexts(&mut state)?;
        self.inner.bring_group(&mut state, |_| true)?;
        Ok(state.entries.values().filter(|entry| entry.is_attached()).count())
    }

    /// Adopts all changes of the view and its security contexts. Detaches objects of emptied or
    /// changed slots: their unpsynced stores are lost.
    ///
    /// # Errors
    /// As for [`View::read`](super::View::read), and for
    /// [`SecurityContext::read`](crate::SecurityContext::read) of each context: nothing changes.
    pub fn adopt(&mut self) -> Result<()> {
        let mut state = self.inner.live_state("adopt the view")?;
        let followed = self.inner.follow(&mut state, true);
        followed.map_err(|cause| self.inner.error("adopt the view", cause))?;
        self.inner.bring_at_once(&mut state)
    }

    /// Detaches the view and its objects, as dropping does; unpsynced stores are lost.
    pub fn detach(self) {}
}

impl Drop for AttachedView {
    fn drop(&mut self) {
        // A fork owns none of the objects, and its parent's other thread may have locked the state.
        if fork::is_stale(self.inner.generation) {
            return;
        }
        let mut state = self.inner.state();
        state.ended = true;
        state.window = None;
        let mut entries = std::mem::take(&mut state.entries);
        // A thread that answers a touch finds the view gone.
        drop(state);
        // Touches are answered until after the memory is gone.
        unpin_all(entries.values_mut().filter_map(Entry::take_object).collect());
        drop(entries);
    }
}

impl Inner {
    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn live_state(&self, operation: &'static str) -> Result<MutexGuard<'_, State>> {
        match fork::is_stale(self.generation) {
            true => Err(self.error(operation, Cause::Forked)),
            false => Ok(self.state()),
        }
    }

    pub(super) fn error(&self, operation: &'static str, cause: impl Into<Cause>) -> Error {
        Error::new(operation, cause).pool(self.pool.path()).object(&self.name)
    }

    fn window(&self) -> std::io::Result<Reserved> {
        let superblock = self.pool.inner().store.superblock();
        let start = superblock.window.get() as usize;
        let end = start.saturating_add(superblock.window_len.get() as usize);
        Reserved::window(start..end, self.me.clone(), WINDOW)
    }

    pub(super) fn read(&self) -> Result<Vec<ViewSlot>, Cause> {
        read(&self.pool, &name_of(&self.id))
    }

    pub(super) fn with_slot<R>(
        &self,
        slot: usize,
        then: impl FnOnce(&Entry, &Grants) -> Result<R>,
    ) -> Result<R> {
        let mut state = self.live_state(USE)?;
        if !state.entries.contains_key(&slot) {
            self.follow(&mut state, false).map_err(|cause| self.error(USE, cause))?;
        }
        if state.entries.get(&slot).is_some_and(|entry| !entry.is_attached()) {
            self.ask_contexts(&mut state)?;
        }
        let State { entries, grants, .. } = &mut *state;
        let entry = entries.get_mut(&slot).ok_or_else(|| self.error(USE, ViewError::Empty(slot)))?;
        entry.bring(&self.pool, grants, true)?;
        then(entry, grants)
    }

    fn ask_contexts(&self, state: &mut State) -> Result<()> {
        if !state.grants.are_limited() {
            return Ok(());
        }
        self.follow(state, false).map_err(|cause| self.error(USE, cause))
    }

    pub(super) fn no_stores(&self, entry: &Entry, contexts: &Grants) -> Error {
        let cause: Cause = match entry.want.rights.has(Rights::WRITE) && !entry.allowed.has(Rights::WRITE) {
            true => SecurityError::Denied { what: "stores", contexts: contexts.shown() }.into(),
            false => {
                let has = entry.want.rights.to_string();
                ViewError::ForReading { slot: entry.want.slot, has }.into()
            }
        };
        self.error(USE, cause).object(&entry.name)
    }

    /// Slots keep their failures; a touch retries them.
    fn bring_at_once(&self, state: &mut State) -> Result<()> {
        self.bring_group(state, |want| want.at_once).or_else(unless_cut)
    }

    fn bring_group(&self, state: &mut State, which: impl Fn(&ViewSlot) -> bool) -> Result<()> {
        let waiting = |entry: &&mut Entry| entry.is_reserved() && which(&entry.want);
        let State { entries, grants, .. } = state;
        let entries = entries.values_mut().filter(waiting);
        let mut entries: Vec<&mut Entry> = entries.filter_map(|entry| entry.unless_denied(grants)).collect();
        for entry in &mut entries {
            entry.give_way();
        }
        let (mut writing, reading): (Vec<&mut Entry>, Vec<&mut Entry>) =
            entries.into_iter().partition(|entry| entry.is_for_writing());
        for entry in reading {
            let attached = pin(&self.pool, &name_of(&entry.want.target), Permission::Read);
            entry.settle(attached, true).or_else(unless_cut)?;
        }
        if writing.is_empty() {
            return Ok(());
        }
        let names: Vec<String> = writing.iter().map(|entry| name_of(&entry.want.target)).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        match pin_all(&self.pool, &names) {
            Ok(all) => {
                let mut settled = Ok(());
                for ((entry, attached), name) in writing.iter_mut().zip(all).zip(names) {
                    let attached = attached.or_else(|error| match is_for_lack_of_rights(&error) {
                        true => pin(&self.pool, name, Permission::Read),
                        false => Err(error),
                    });
                    settled = settled.and(entry.settle(attached, true).or_else(unless_cut));
                }
                settled
            }
            Err(error) => {
                for entry in writing {
                    let _ = entry.settle(Err(error.clone()), true);
                }
                Err(error)
            }
        }
    }
}

/// An error of a slot, unless its wait ended early: then the caller makes the call again.
fn unless_cut(error: Error) -> Result<()> {
    if slices::was_cut() { Err(error) } else { Ok(()) }
}

impl Owner for Inner {
    fn touched(&self, number: usize) -> bool {
        if fork::is_stale(self.generation) {
            return false;
        }
        let mut state = self.state();
        if state.ended {
            return false;
        }
        // If the view cannot be read, the known slots count; if a context cannot, nothing is
        // allowed.
        let followed = self.follow(&mut state, false);
        let State { entries, grants, .. } = &mut *state;
        match (entries.get_mut(&number), followed) {
            (None, _) => false,
            (Some(entry), Err(cause)) if grants.are_limited() => {
                entry.refused = Some(self.error(USE, cause).object(&entry.name));
                false
            }
            (Some(entry), _) => entry.bring(&self.pool, grants, false).is_ok(),
        }
    }
}

impl SlotState {
    fn of(entry: &Entry) -> SlotState {
        let memory = match &entry.memory {
            Memory::None => SlotMemory::Absent,
            Memory::Reserved { .. } => SlotMemory::Reserved,
            Memory::Object { object, .. } if object.is_writable() => SlotMemory::Writing,
            Memory::Object { .. } => SlotMemory::Reading,
        };
        let (of, name, refused) = (entry.want, entry.name.clone(), entry.refused.clone());
        let (allowed, address, len) = (entry.allowed.some(), entry.address, entry.len);
        SlotState { of, allowed, name, address, len, memory, refused }
    }

    /// Whether it can be stored to here.
    #[must_use]
    pub fn is_writable(&self) -> bool {
        self.memory == SlotMemory::Writing
    }

    /// The rights that the slot asks for.
    #[must_use]
    pub fn rights(&self) -> Rights {
        self.of.rights
    }
}

impl std::fmt::Debug for AttachedView {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AttachedView")
            .field("name", &self.inner.name)
            .field("slots", &self.slots().len())
            .finish()
    }
}
