//! A space of objects, in which far pointers are followed through any number of objects and pools
//! (S2.9 to S2.12).

mod at;
mod attached;
mod change;
mod closure;
mod ids;
mod links;
mod map;
mod place;
mod recent;
mod records;
mod resolve;
mod slots;
mod vec;
mod way;

pub use at::At;
pub use closure::{Dangling, Reachable};
pub use map::{FarMap, FarPlace};
pub use resolve::Resolver;
pub use vec::FarVec;
pub use way::{Home, Way};

use crate::error::{Error, FarError, Result};
use crate::far::{Far, Rights};
use crate::heap::{Heap, HeapOptions};
use crate::object::{Attach, Finding};
use crate::plain::{Plain, frozen};
use crate::pool::Pool;
use crate::security::Grants;
use attached::{Attached, Content, is_elsewhere, shown};
use ids::Ids;
use indelible_store::{Mutant, table::id_name};
use links::Link;
use place::NoValue;
use slots::Slots;
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Pools, and attached objects of them: far pointers are followed from one to the next.
///
/// A pointer's first use attaches its object for reading, from the first of the [pools](Space::add)
/// that has its ID. [`attach`](Space::attach) attaches objects for stores. Targets are borrowed as
/// the space is, so that no thread stores to bytes being read.
///
/// ```
/// # let dir = tempfile::tempdir().unwrap();
/// use indelible::{CreateOptions, Far, Persist, Plain, Pool, Rights, Space};
///
/// #[derive(Plain, Persist)]
/// #[repr(C)]
/// struct Node {
///     value: u64,
///     #[persist(target)]
///     next: Far<Node>,
/// }
///
/// let pools = ["a.pmo", "b.pmo"].map(|name| Pool::format(dir.path().join(name), 16 << 20).unwrap());
/// let mut space = Space::new();
/// let mut ids = Vec::new();
/// for pool in &pools {
///     space.add(pool);
///     pool.create_with("list", &CreateOptions::new(1 << 20).position_independent(true))?;
///     ids.push(space.attach(pool, "list")?);
/// }
/// // A node in the second object, and a pointer to it in the first.
/// let last = space.create(&ids[1], Node { value: 2, next: Far::null() })?;
/// let next = space.far(&ids[0], &ids[1], last, Rights::READ)?;
/// space.root_or_insert(&ids[0], "first", Node { value: 1, next })?;
/// space.psync_all()?;
///
/// let first = space.root::<Node>(&ids[0], "first")?;
/// let second = first.follow(first.next)?.expect("there is one more");
/// assert_eq!((first.value, second.value), (1, 2));
/// assert!(second.follow(second.next)?.is_none());
/// # Ok::<(), indelible::Error>(())
/// ```
///
/// No reference to a target outlives a change:
///
/// ```compile_fail,E0502
/// # fn example(space: &mut indelible::Space, id: &[u8; 16], far: indelible::Far<u64>) -> indelible::Result<()> {
/// let seen = space.get(id, far)?;
/// *space.get_mut(id, far)? = 7; // error: `space` is borrowed
/// println!("{}", *seen);
/// # Ok(()) }
/// ```
pub struct Space {
    pools: Vec<Pool>,
    resolvers: BTreeMap<String, Box<dyn Resolver>>,
    grants: Option<Grants>,
    attached: Slots<Attached>,
    /// Objects are attached under this lock: none is attached twice.
    numbers: Mutex<Ids>,
}

const FOLLOW: &str = "follow a far pointer from";
const COMPARED: usize = 4;
const LOADS: (Rights, &str) = (Rights::READ, "loads");
const STORES: (Rights, &str) = (Rights::WRITE, "stores");

impl Space {
    /// A space without pools.
    #[must_use]
    pub fn new() -> Self {
        let (attached, numbers) = (Slots::new(), Mutex::default());
        Space { pools: Vec::new(), resolvers: BTreeMap::new(), grants: None, attached, numbers }
    }

    /// Adds a pool to search, after earlier ones; of several with the same object, the first
    /// counts.
    pub fn add(&mut self, pool: &Pool) {
        self.pools.push(pool.clone());
        self.forget();
    }

    /// The pools, in search order.
    #[must_use]
    pub fn pools(&self) -> &[Pool] {
        &self.pools
    }

    fn numbers(&self) -> MutexGuard<'_, Ids> {
        self.numbers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Limits pointers between objects to the rights that a pool's [security
    /// contexts](crate::SecurityContext) give, as read now, replacing earlier ones. Attaches by
    /// name, and pointers within an object, are not limited.
    ///
    /// # Errors
    /// As for [`AttachedView::attach_in`](crate::AttachedView::attach_in): the contexts are
    /// unchanged.
    pub fn set_contexts<S: AsRef<str>>(&mut self, pool: &Pool, contexts: &[S]) -> Result<()> {
        let grants = Grants::of(pool, contexts);
        let grants =
            grants.map_err(|cause| Error::new("set the security contexts", cause).pool(pool.path()))?;
        self.grants = grants.are_limited().then_some(grants);
        self.forget();
        Ok(())
    }

    fn reach(&self, id: &[u8; 16]) -> Result<Option<(u32, &Attached)>> {
        if let Some(number) = self.near(id) {
            return Ok(self.attached.get(number).map(|attached| (number as u32, attached)));
        }
        let mut numbers = self.numbers();
        if let Some(number) = numbers.get(id) {
            return Ok(self.attached.get(*number as usize).map(|attached| (*number, attached)));
        }
        let name = id_name(id);
        for pool in &self.pools {
            match pool.attach_read(&name) {
                Ok(object) => {
                    let number = numbers.len() as u32;
                    let attached = self.attached.set(number as usize, Attached::reading(object)?);
                    numbers.insert(*id, number);
                    return Ok(attached.map(|attached| (number, attached)));
                }
                Err(error) if is_elsewhere(&error) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(None)
    }

    #[inline]
    fn near(&self, id: &[u8; 16]) -> Option<usize> {
        (0..COMPARED).find(|number| self.attached.get(*number).is_some_and(|attached| attached.id == *id))
    }

    #[inline]
    fn number(&self, id: &[u8; 16], operation: &'static str) -> Result<usize> {
        let number = self.near(id).or_else(|| self.numbers().get(id).map(|number| *number as usize));
        number.ok_or_else(|| not_here(id, operation))
    }

    #[inline]
    fn here(&self, id: &[u8; 16], operation: &'static str) -> Result<&Attached> {
        let number = self.number(id, operation)?;
        self.attached.get(number).ok_or_else(|| not_here(id, operation))
    }

    #[inline]
    fn here_mut(&mut self, id: &[u8; 16], operation: &'static str) -> Result<&mut Attached> {
        let number = self.number(id, operation)?;
        self.attached.get_mut(number).ok_or_else(|| not_here(id, operation))
    }

    /// Attaches an object for reading, unless it is in the space.
    ///
    /// # Errors
    /// `Dangling`: no pool has it; and as for [`Pool::attach_read`].
    pub fn attach_read(&self, id: &[u8; 16]) -> Result<()> {
        let missing = || FarError::NoObject { target: shown(id), pools: self.pools.len() };
        self.reach(id)?.map(drop).ok_or_else(|| Error::new("attach", missing()))
    }

    /// Attaches an object for writing; opens its growing heap, or makes one if it is blank; returns
    /// its ID. The pool need not be a searched one.
    ///
    /// # Errors
    /// As for [`Pool::attach`] and [`Heap::open_or_format`]; `Exists`: it is in the space already.
    pub fn attach(&mut self, pool: &Pool, name: &str) -> Result<[u8; 16]> {
        let object = pool.attach_as(name, &Attach { finding: Finding::Typed, ..Attach::with_key(b"") })?;
        self.insert(Heap::open_or_format_with(object, HeapOptions::new().grow(true))?)
    }

    /// Adds a heap attached for writing; returns the object's ID. [`remove`](Space::remove) returns
    /// the heap.
    ///
    /// # Errors
    /// `Exists`: the object is in the space already; the heap is dropped. `Damaged`.
    pub fn insert(&mut self, heap: Heap) -> Result<[u8; 16]> {
        let attached = Attached::writing(heap)?;
        let id = attached.id;
        let number = self.numbers().len() as u32;
        if self.numbers().contains_key(&id) {
            return Err(attached.error("add to a space", FarError::Here(shown(&id))));
        }
        self.attached.set(number as usize, attached);
        self.numbers().insert(id, number);
        self.forget();
        Ok(id)
    }

    /// Removes an object: detaches a reader, returns a writer's heap. `None`, too, if it is not in
    /// the space.
    pub fn remove(&mut self, id: &[u8; 16]) -> Option<Heap> {
        let all = std::mem::replace(&mut self.attached, Slots::new());
        let mut numbers = Ids::default();
        let mut removed = None;
        for attached in all.into_values() {
            if attached.id == *id {
                removed = Some(attached.content);
                continue;
            }
            let number = numbers.len();
            numbers.insert(attached.id, number as u32);
            self.attached.set(number, attached);
        }
        *self.numbers() = numbers;
        self.forget();
        match removed? {
            Content::Writing { heap, .. } => Some(*heap),
            Content::Reading(_) | Content::Bare(_) => None,
        }
    }

    /// Reattaches a read object for writing, which needs exclusive access. On failure its next use
    /// attaches it for reading.
    ///
    /// # Errors
    /// `NotAttached`: it is not in the space. As for [`attach`](Space::attach).
    pub fn upgrade(&mut self, id: &[u8; 16]) -> Result<()> {
        let attached = self.here(id, "attach")?;
        if matches!(attached.content, Content::Writing { .. }) {
            return Ok(());
        }
        drop(self.remove(id));
        let name = id_name(id);
        for pool in self.pools.clone() {
            match self.attach(&pool, &name) {
                Err(error) if is_elsewhere(&error) => {}
                attached => return attached.map(drop),
            }
        }
        Err(Error::new("attach", FarError::NoObject { target: shown(id), pools: self.pools.len() }))
    }

    /// Forgets resolved entries: names, and which pool has an object.
    pub fn resolve_again(&mut self) {
        self.forget();
    }

    fn forget(&mut self) {
        self.attached.iter_mut().for_each(Attached::forget);
    }

    /// IDs of the space's objects, in order of arrival.
    #[must_use]
    pub fn objects(&self) -> Vec<[u8; 16]> {
        self.attached.iter().map(|attached| attached.id).collect()
    }

    /// The target of a pointer that lies in the object `home`; its object is attached for reading
    /// on first use. Any bytes are a `T`, so a pointer of another type yields a wrong value,
    /// nothing worse.
    ///
    /// # Errors
    /// `NotAttached`: `home` is not in the space. `Dangling`: the pointer is null, its entry is
    /// missing, or its object is in no pool, hidden, or too short. `ReadOnly`: the entry does not
    /// ask for loads. `Denied`: no [security context](Space::set_contexts) allows them. Those of
    /// [`Pool::attach_read`], such as `Held`: another process writes it. `Damaged`: the entry is.
    pub fn get<T: Plain>(&self, home: &[u8; 16], pointer: Far<T>) -> Result<At<'_, T>> {
        At::new(self, self.here(home, FOLLOW)?, pointer)
    }

    /// The value of the root `name` of an object.
    ///
    /// # Errors
    /// As for [`Heap::root_ref`]; `NotAttached`: it is not in the space. `NotAHeap`.
    pub fn root<T>(&self, home: &[u8; 16], name: &str) -> Result<At<'_, T>>
    where
        T: Plain + Sync + for<'h> crate::Persist<'h>,
    {
        const { frozen::<T>() };
        let home = self.here(home, "use a root of")?;
        let value = match &home.content {
            Content::Writing { heap, .. } => heap.root_ref::<T>(name)?,
            Content::Reading(heap) => heap.root_ref::<T>(name)?,
            Content::Bare(object) => {
                let none = crate::error::HeapError::NotAHeap;
                return Err(object.error("use a root of", crate::error::Cause::Heap(none)));
            }
        };
        Ok(At::of(self, home, value))
    }

    #[inline]
    fn linked<'s>(
        &'s self,
        home: &'s Attached,
        index: u32,
        (needed, what): (Rights, &'static str),
    ) -> Result<(Link, &'s Attached)> {
        let link = match home.links.get(index as usize) {
            Some(link) => link,
            None => self.look_up(home, index, (needed, what))?,
        };
        if !link.rights.has(needed) {
            let asked = home.entry(index)?.rights;
            let target = self.attached.get(link.target as usize).map_or("", Attached::name);
            return Err(self.refused(home, (index, asked), target, (needed, what)));
        }
        match self.attached.get(link.target as usize) {
            Some(target) => Ok((link, target)),
            None => Err(home.error(FOLLOW, FarError::NotHere(index.to_string()))),
        }
    }

    #[cold]
    #[inline(never)]
    fn refused(
        &self,
        home: &Attached,
        (index, asked): (u32, Rights),
        target: &str,
        (needed, what): (Rights, &'static str),
    ) -> Error {
        match &self.grants {
            Some(grants) if asked.has(needed) => {
                let target = target.to_owned();
                home.error(FOLLOW, FarError::Denied { target, what, contexts: grants.shown() })
            }
            _ => home.error(FOLLOW, FarError::Rights { index, has: asked.to_string(), needed: what }),
        }
    }

    #[cold]
    #[inline(never)]
    fn look_up(&self, home: &Attached, index: u32, (needed, what): (Rights, &'static str)) -> Result<Link> {
        let entry = home.entry(index)?;
        let id = self.resolve(home, &entry.target)?;
        let missing = || FarError::NoObject { target: entry.target.to_string(), pools: self.pools.len() };
        let allowed = self.grants.as_ref().map_or(Rights::ALL, |grants| grants.to(&id));
        let rights = entry.rights.and(allowed);
        if !rights.has(needed) && !Mutant::DeniedAttached.is_on() {
            // A refused access attaches and locks nothing.
            let target = entry.target.to_string();
            return Err(self.refused(home, (index, entry.rights), &target, (needed, what)));
        }
        let (target, _) = self.reach(&id)?.ok_or_else(|| home.error(FOLLOW, missing()))?;
        let link = Link { target, rights };
        match home.links.set(index as usize, link) {
            true => Ok(link),
            false => Err(home.error(FOLLOW, missing())),
        }
    }

    #[cold]
    #[inline(never)]
    fn no_value<T>(home: &Attached, target: &Attached, offset: u64, why: NoValue) -> Error {
        Space::no_values::<T>(home, target, (offset, 1), why)
    }

    #[cold]
    #[inline(never)]
    fn no_values<T>(
        home: &Attached,
        target: &Attached,
        (offset, count): (u64, usize),
        why: NoValue,
    ) -> Error {
        home.error(
            FOLLOW,
            match why {
                NoValue::Beyond => FarError::Beyond {
                    target: shown(&target.id),
                    offset,
                    needed: size_of::<T>().saturating_mul(count),
                    len: target.now().len(),
                },
                NoValue::Misaligned => FarError::Misaligned { offset, align: align_of::<T>() },
            },
        )
    }
}

#[cold]
fn not_here(id: &[u8; 16], operation: &'static str) -> Error {
    Error::new(operation, FarError::NotHere(shown(id)))
}

impl Default for Space {
    fn default() -> Self {
        Space::new()
    }
}

impl std::fmt::Debug for Space {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let objects: Vec<&str> = self.attached.iter().map(Attached::name).collect();
        f.debug_struct("Space").field("pools", &self.pools).field("objects", &objects).finish()
    }
}
