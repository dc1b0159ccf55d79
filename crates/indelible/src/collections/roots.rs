//! Roots by type: the entry points to a program's data structures.
//!
//! Invariant: a root whose name, type, layout, size and place were compared is a `T` if `check`
//! accepts it; a `&mut self` that lives as long as the reference makes that the only one.

#![allow(unsafe_code)]

use super::into_persist::IntoPersist;
use super::layout::Layout;
use super::persist::{Bounds, Persist, put};
use super::place::{HeapRef, discard, finally, free, lend, pointer, verify};
use super::search::Search;
use super::type_hash::type_hash;
use crate::error::{Cause, Error, ErrorKind, Result};
use crate::heap::layout::NAME_MAX;
use crate::heap::{Heap, HeapError, ReadHeap, Root, RootCache, RootRange, TypeInfo};
use crate::sys::per_process::PerProcess;
use crate::types::{Description, Malformed, fingerprints_are_broken, truncate};
use std::any::TypeId;
use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};

pub(crate) struct Described {
    name: String,
    fingerprint: u128,
    layout: String,
    atomics: bool,
    extended: bool,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Describing {
    layout: fn(&mut Layout),
    name: fn(&mut String),
}

impl Describing {
    pub(crate) fn of<'h, T: Persist<'h>>() -> Describing {
        Describing { layout: T::describe, name: T::type_name }
    }

    pub(crate) fn describe(self) -> Described {
        let (mut layout, mut name) = (Layout::default(), String::new());
        (self.layout)(&mut layout);
        layout.finish();
        (self.name)(&mut name);
        truncate(&mut name, NAME_MAX);
        let (fingerprint, atomics, extended) = (layout.fingerprint(), layout.atomics, layout.extended);
        Described { name, fingerprint, layout: layout.stream, atomics, extended }
    }
}

impl Described {
    pub(super) fn new(name: &str, layout: &str) -> Described {
        let fingerprint = TypeInfo::described(name, layout).fingerprint;
        Described {
            name: name.to_owned(),
            fingerprint,
            layout: layout.to_owned(),
            atomics: false,
            extended: false,
        }
    }

    pub(super) fn read(&self) -> Result<Description, Malformed> {
        Description::parse(&self.layout)
    }

    pub(crate) fn info(&self) -> TypeInfo<'_> {
        TypeInfo { name: &self.name, fingerprint: self.fingerprint, layout: &self.layout }
    }
}

fn known_place<'h, T: Persist<'h>>(
    cache: &RootCache,
    name: &str,
    root: impl FnOnce(&Described) -> Result<Root>,
) -> Result<RootRange> {
    cache.place(name, type_hash::<T>(), || {
        let Root { address, size, .. } = root(&described::<T>())?;
        Ok(RootRange { address, size })
    })
}

pub(super) fn described<'h, T: Persist<'h>>() -> Arc<Described> {
    static MADE: PerProcess<RwLock<HashMap<TypeId, Arc<Described>>>> = PerProcess::new();

    let ty = type_hash::<T>();
    if let Some(made) = MADE.get().read().unwrap_or_else(PoisonError::into_inner).get(&ty) {
        return Arc::clone(made);
    }
    let made = Arc::new(Describing::of::<T>().describe());
    // A violated rule must not last.
    if !fingerprints_are_broken() {
        MADE.get().write().unwrap_or_else(PoisonError::into_inner).insert(ty, Arc::clone(&made));
    }
    made
}

pub(super) fn place<'h, T: Persist<'h>>(root: RootRange, bounds: &Bounds) -> Result<*mut T, HeapError> {
    let address = root.address as u64;
    let wrong = |what| HeapError::Damaged { offset: address.wrapping_sub(bounds.base as u64), what };
    if root.size != size_of::<T>() as u64 || !bounds.holds(address, 1, size_of::<T>().max(1), align_of::<T>())
    {
        return Err(wrong("a root is not where it could be"));
    }
    let at = pointer::<T>(address);
    // SAFETY: in the object, aligned.
    if unsafe { T::check(at, bounds) } { Ok(at) } else { Err(wrong("a root is no value of its type")) }
}

fn expect_extensions<'h, T: Persist<'h>>(described: &Described, root: &Root, bounds: &Bounds) -> Result<()> {
    let known = RootRange { address: root.address, size: root.size };
    match place::<T>(known, bounds) {
        // SAFETY: the value is borrowed, so only atomics change, and values under locks, which the
        // search skips.
        Ok(at) if described.extended => unsafe { T::search(at, bounds, &mut Search::new()) },
        _ => Ok(()),
    }
}

impl Heap {
    pub(super) fn locate<'h, T: Persist<'h>>(&self, name: &str, bounds: &Bounds) -> Result<*mut T> {
        let found = known_place::<T>(&self.root_cache, name, |described| {
            let root = self.find_root(name, &described.info())?;
            self.expect_pointers(&described.info())?;
            match self.trusted.allows(name) {
                true => expect_extensions::<T>(described, &root, bounds).map(|()| root),
                false => Err(self.wrong("use a root of", HeapError::Untrusted { name: name.to_owned() })),
            }
        })?;
        place(found, bounds).map_err(|error| self.wrong("use a root of", error))
    }

    fn wrong(&self, operation: &'static str, error: HeapError) -> Error {
        self.attached().error(operation, Cause::Heap(error))
    }

    /// The root `name`, of type `T`.
    ///
    /// # Errors
    /// `RootMissing`; `RootType`, with both layouts, if of another type, or one of its first
    /// 10,000 values has an [extension](crate::retention::extendible) of another type; `Untrusted`,
    /// see [`verify`](Heap::verify); `Damaged`.
    ///
    /// A task that keeps the reference across an `.await` does not compile ("implementation of
    /// `Persist` is not general enough"): it uses [`root_in_task`](Heap::root_in_task).
    pub fn root_ref<'h, T: Persist<'h> + Sync>(&'h self, name: &str) -> Result<&'h T> {
        let at = self.locate::<T>(name, &HeapRef::new(self).bounds())?;
        // SAFETY: the invariant; shared as long as `self` is.
        Ok(unsafe {
            verify(at);
            &*at
        })
    }

    /// As [`root_ref`](Heap::root_ref), for storing.
    pub fn root_mut<'h, T: Persist<'h>>(&'h mut self, name: &str) -> Result<&'h mut T> {
        Ok(self.root_and_heap_of(name)?.0)
    }

    /// The heap, to make values in while it is borrowed as a whole, as for values under a lock.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let pool = indelible::Pool::format(dir.path().join("p"), 16 << 20)?;
    /// # let mut heap = pool.heap("o", 1 << 20)?;
    /// use indelible::collections::{PBox, PMutex, PString, PVec};
    ///
    /// heap.root_or_insert_with("names", |place| PMutex::<PVec<PBox<PString>>>::new_in(PVec::new(), place))?;
    /// let names = heap.root_ref::<PMutex<PVec<PBox<PString>>>>("names")?;
    /// let name = PBox::new_in("alice", heap.heap_ref()?); // without the lock
    /// names.lock().push(name);
    /// heap.psync_cut()?;
    /// # Ok::<(), indelible::Error>(())
    /// ```
    ///
    /// # Errors
    /// `Untrusted`: blocks of a heap with foreign bytes might overlap; see
    /// [`verify`](Heap::verify).
    pub fn heap_ref(&self) -> Result<HeapRef<'_>> {
        match self.trusted.allows_new() {
            true => Ok(HeapRef::new(self)),
            false => Err(self.wrong("make values in", HeapError::ForeignBytes)),
        }
    }

    fn root_and_heap_of<'h, T: Persist<'h>>(&'h mut self, name: &str) -> Result<(&'h mut T, HeapRef<'h>)> {
        let heap = HeapRef::new(self);
        let at = self.locate::<T>(name, &heap.bounds())?;
        // SAFETY: the invariant.
        Ok((unsafe { lend(at) }, heap))
    }

    /// The root `name`, made with `T::default()` if missing.
    ///
    /// # Errors
    /// `RootType`, `Untrusted`, `Damaged`, `BadName`, `HeapFull`.
    pub fn root_or_default<'h, T: Persist<'h> + Default>(&'h mut self, name: &str) -> Result<&'h mut T> {
        self.root_or_insert_with(name, |_| T::default())
    }

    /// The root `name`, and the heap, to make further values in.
    ///
    /// # Errors
    /// As for [`root_or_default`](Heap::root_or_default).
    pub fn root_and_heap<'h, T: Persist<'h> + Default>(
        &'h mut self,
        name: &str,
    ) -> Result<(&'h mut T, HeapRef<'h>)> {
        let heap = HeapRef::new(self);
        Ok((self.root_or_insert(heap, name, |_| T::default())?, heap))
    }

    /// Two roots at once, each made with its default if missing.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let pool = indelible::Pool::format(dir.path().join("p"), 16 << 20)?;
    /// # let mut heap = pool.heap("o", 1 << 20)?;
    /// use indelible::collections::{PHashMap, PString, PVec};
    ///
    /// let (log, index) = heap.roots2::<PVec<PString>, PHashMap<PString, u64>>("log", "index")?;
    /// log.push("hello");
    /// index.insert("hello", 0);
    /// heap.psync()?; // both, as one step
    /// # Ok::<(), indelible::Error>(())
    /// ```
    ///
    /// # Errors
    /// As for [`root_or_default`](Heap::root_or_default); `BadName` if both are one.
    pub fn roots2<'h, A: Persist<'h> + Default, B: Persist<'h> + Default>(
        &'h mut self,
        first: &str,
        second: &str,
    ) -> Result<(&'h mut A, &'h mut B)> {
        if first == second {
            return Err(self.wrong("use two roots of", HeapError::OneRoot { name: first.to_owned() }));
        }
        let heap = HeapRef::new(self);
        let one = std::ptr::from_mut(self.root_or_insert(heap, first, |_| A::default())?);
        let two = std::ptr::from_mut(self.root_or_insert(heap, second, |_| B::default())?);
        if one.addr() < two.addr() + size_of::<B>() && two.addr() < one.addr() + size_of::<A>() {
            let offset = two.addr() as u64 - heap.base();
            return Err(
                self.wrong("use two roots of", HeapError::Damaged { offset, what: "two roots overlap" })
            );
        }
        // SAFETY: the invariant, of each: they share no byte or block.
        Ok(unsafe { (&mut *one, &mut *two) })
    }

    /// The root `name`, made with `make` if missing.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let pool = indelible::Pool::format(dir.path().join("p"), 16 << 20)?;
    /// # pool.create("o", 1 << 20)?;
    /// # let mut heap = indelible::Heap::format(pool.attach("o")?)?;
    /// use indelible::collections::PString;
    ///
    /// let name = heap.root_or_insert_with::<PString, _>("name", |_| "alice")?;
    /// name.push_str(" and bob");
    /// assert_eq!(name, "alice and bob");
    /// # Ok::<(), indelible::Error>(())
    /// ```
    ///
    /// # Errors
    /// As for [`root_or_default`](Heap::root_or_default).
    pub fn root_or_insert_with<'h, T: Persist<'h>, V: IntoPersist<'h, T>>(
        &'h mut self,
        name: &str,
        make: impl FnOnce(HeapRef<'h>) -> V,
    ) -> Result<&'h mut T> {
        self.root_or_insert(HeapRef::new(self), name, make)
    }

    /// Removes a root, drops its value, and frees its blocks.
    ///
    /// # Errors
    /// As for [`root_ref`](Heap::root_ref).
    pub fn drop_root<'h, T: Persist<'h>>(&'h mut self, name: &str) -> Result<()> {
        let heap = HeapRef::new(self);
        let at = self.locate::<T>(name, &heap.bounds())?;
        self.remove_root(name)?;
        finally(
            // SAFETY: the root's value, which has no name any more.
            || unsafe { discard(at) },
            // SAFETY: the root's block.
            || unsafe { free(at.addr() as u64) },
        );
        Ok(())
    }

    /// The heap is borrowed exclusively; each root is used once.
    pub(crate) fn root_or_insert<'h, T: Persist<'h>, V: IntoPersist<'h, T>>(
        &self,
        heap: HeapRef<'h>,
        name: &str,
        make: impl FnOnce(HeapRef<'h>) -> V,
    ) -> Result<&'h mut T> {
        match self.locate::<T>(name, &heap.bounds()) {
            // SAFETY: the invariant.
            Ok(at) => return Ok(unsafe { lend(at) }),
            Err(error) if error.kind() != ErrorKind::RootMissing => return Err(error),
            Err(_) if !self.trusted.allows_new() => {
                let untrusted = HeapError::Untrusted { name: name.to_owned() };
                return Err(self.wrong("make a root in", untrusted));
            }
            Err(_) => {}
        }
        let value = make(heap).into_persist(heap)?;
        heap.expect_own(&value);
        let at = heap.bytes(size_of::<T>(), align_of::<T>())?.cast::<T>().as_ptr();
        let made =
            self.name_root(name, at.cast(), size_of::<T>() as u64, &Describing::of::<T>().describe().info());
        if let Err(error) = made {
            // SAFETY: a block that no other code knows of.
            unsafe { free(at.addr() as u64) };
            return Err(error);
        }
        // SAFETY: a new block, large enough; then the invariant.
        unsafe {
            put(at, value);
            Ok(lend(at))
        }
    }
}

impl ReadHeap {
    /// The root `name`, of type `T`.
    ///
    /// # Errors
    /// `RootMissing`; `RootType`, with both layouts, if of another type; `Damaged`;
    /// `ReadOnly` if a `T` has atomics.
    pub fn root_ref<'h, T: Persist<'h> + Sync>(&'h self, name: &str) -> Result<&'h T> {
        self.value_of(name)
    }

    /// As [`root_ref`](ReadHeap::root_ref), of a type that threads cannot share, such as one with
    /// [`PRc`](super::PRc).
    pub fn root_alone<'h, T: Persist<'h>>(&'h mut self, name: &str) -> Result<&'h T> {
        self.value_of(name)
    }

    fn value_of<'h, T: Persist<'h>>(&'h self, name: &str) -> Result<&'h T> {
        self.register();
        let bounds = Bounds { base: self.object().as_ptr().addr(), len: self.object().len() };
        let found = known_place::<T>(&self.root_cache, name, |described| {
            let root = self.root(name, &described.info())?;
            match described.atomics {
                false => expect_extensions::<T>(described, &root, &bounds).map(|()| root),
                true => {
                    let atomics = HeapError::Atomics { ty: described.name.clone() };
                    Err(self.object().error("use a root of", Cause::Heap(atomics)))
                }
            }
        })?;
        let wrong = |error| self.object().error("use a root of", Cause::Heap(error));
        let at = place::<T>(found, &bounds).map_err(wrong)?;
        // SAFETY: the invariant; no thread stores to an object attached for reading.
        Ok(unsafe { &*at })
    }
}
