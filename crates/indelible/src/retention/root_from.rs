use super::reset::Reset;
use super::versions::{Converted, First, Opened, Taken, Then, Versions};
use crate::collections::{HeapRef, IntoPersist, Persist};
use crate::error::{Error, ErrorKind, Result};
use crate::heap::Heap;

impl Heap {
    /// The root `name`, of any version of its type: converted, or reset, as the next calls decide.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let pool = indelible::Pool::format(dir.path().join("p"), 16 << 20)?;
    /// # let mut heap = pool.heap("o", 1 << 20)?;
    /// use indelible::Persist;
    /// use indelible::collections::PString;
    ///
    /// mod v1 { // the types of the last release; fingerprints have the names of types, not of modules
    ///     # use indelible::{Persist, collections::PString};
    ///     #[derive(Persist, Default)]
    ///     #[repr(C)]
    ///     pub struct Config<'h> {
    ///         pub host: PString<'h>,
    ///         pub port: u16,
    ///     }
    /// }
    ///
    /// #[derive(Persist, Default)]
    /// #[repr(C)]
    /// struct Config<'h> {
    ///     address: PString<'h>, // host and port
    ///     seconds: u32,
    /// }
    /// # let old = heap.root_or_default::<v1::Config>("config")?;
    /// # old.host.push_str("localhost");
    /// # old.port = 80;
    ///
    /// let config: &mut Config = heap
    ///     .root_from::<v1::Config>("config")
    ///     .convert(|old, heap| {
    ///         let address = PString::from_in(&format!("{}:{}", old.host, old.port), heap);
    ///         Ok(Config { address, seconds: 30 })
    ///     })
    ///     .or_default()?;
    /// assert_eq!((&*config.address, config.seconds), ("localhost:80", 30));
    /// heap.psync()?; // the old value until here, the new one from here on
    /// # assert_eq!(heap.stats()?.blocks, 2);
    /// # Ok::<(), indelible::Error>(())
    /// ```
    ///
    /// A converter makes the new value beside the old one; an error, a panic or a full heap leaves
    /// the old value unchanged. Then the new value takes the root, and the old one is dropped with
    /// its blocks. The next psync makes all of it durable atomically.
    ///
    /// Converters form a chain, from the oldest known version to the program's; the heap's
    /// fingerprint selects the begin. A missing link does not compile:
    ///
    /// ```compile_fail,E0631
    /// # fn example(heap: &mut indelible::Heap) -> indelible::Result<()> {
    /// # fn second_to_third(old: &u16, _: indelible::collections::HeapRef<'_>) -> indelible::retention::Converted<u32> { Ok(u32::from(*old)) }
    /// heap.root_from::<u8>("config").convert(second_to_third).open()?; // error: its argument is a `&u16`
    /// # Ok(()) }
    /// ```
    ///
    /// A root of the last version is opened as by [`root_mut`](Heap::root_mut).
    pub fn root_from<'h, 'n, T: Persist<'h>>(&'h mut self, name: &'n str) -> RootFrom<'h, 'n, First<T>> {
        RootFrom { place: HeapRef::new(self), heap: self, name, versions: First::new() }
    }
}

/// A root to be opened as the last of these versions: see [`Heap::root_from`].
#[derive(Debug)]
#[must_use = "it does nothing until it is opened"]
pub struct RootFrom<'h, 'n, C> {
    heap: &'h Heap,
    place: HeapRef<'h>,
    name: &'n str,
    versions: C,
}

/// As [`RootFrom`]; resets a root of any other type.
#[must_use = "it does nothing until it is opened"]
pub struct OrReset<'h, 'n, C, F> {
    from: RootFrom<'h, 'n, C>,
    told: F,
}

enum Found<'a, 'h, T> {
    Open(&'h mut T),
    Missing(Error),
    Unknown(Opened<'a, 'h>),
}

impl<'h, 'n, C: Versions<'h>> RootFrom<'h, 'n, C> {
    /// Adds a version, and its converter from the one before.
    pub fn convert<T, F>(self, convert: F) -> RootFrom<'h, 'n, Then<C, F, T>>
    where
        T: Persist<'h>,
        F: FnOnce(&C::Last, HeapRef<'h>) -> Converted<T>,
    {
        let RootFrom { heap, place, name, versions } = self;
        RootFrom { heap, place, name, versions: Then::new(versions, convert) }
    }

    /// Resets a root of any other type: its contents are dropped, its blocks freed, and the root is
    /// made anew. `told` is the only record of it.
    ///
    /// ```
    /// # fn main() -> indelible::Result<()> {
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let pool = indelible::Pool::format(dir.path().join("p"), 16 << 20)?;
    /// # let mut heap = pool.heap("o", 1 << 20)?;
    /// use indelible::collections::{PHashMap, PString, PVec};
    ///
    /// // An earlier version of the program:
    /// heap.root_or_default::<PVec<PString>>("cache")?.push("something");
    ///
    /// let cache: &mut PHashMap<u64, PString> =
    ///     heap.root_from("cache").or_reset(|reset| eprintln!("{reset}")).or_default()?;
    /// assert!(cache.is_empty());
    /// # assert_eq!(heap.stats()?.blocks, 1);
    /// # Ok(()) }
    /// ```
    ///
    /// The heap's own description of the old type finds the blocks. If the value's own blocks
    /// cannot be told, the reset is refused.
    pub fn or_reset<F: FnOnce(&Reset)>(self, told: F) -> OrReset<'h, 'n, C, F> {
        OrReset { from: self, told }
    }

    /// The root's value.
    ///
    /// # Errors
    /// `RootMissing`; `RootType`: it is of none of the versions, or a converter failed; this
    /// library's error of a converter; `Untrusted`, `Damaged`, `HeapFull`. The root is unchanged.
    pub fn open(self) -> Result<&'h mut C::Last> {
        match self.find()? {
            Found::Open(value) => Ok(value),
            Found::Unknown(opened) => Err(opened.unknown::<C>()),
            Found::Missing(error) => Err(error),
        }
    }

    /// The root's value; made with `default()` if absent.
    ///
    /// # Errors
    /// As for [`open`](RootFrom::open), except `RootMissing`.
    pub fn or_default(self) -> Result<&'h mut C::Last>
    where
        C::Last: Default,
    {
        self.or_insert_with(|_| C::Last::default())
    }

    /// The root's value; made with `make` if absent.
    ///
    /// # Errors
    /// As for [`open`](RootFrom::open), except `RootMissing`.
    pub fn or_insert_with<V: IntoPersist<'h, C::Last>>(
        self,
        make: impl FnOnce(HeapRef<'h>) -> V,
    ) -> Result<&'h mut C::Last> {
        let (heap, place, name) = (self.heap, self.place, self.name);
        match self.find()? {
            Found::Open(value) => Ok(value),
            Found::Missing(_) => heap.root_or_insert(place, name, make),
            Found::Unknown(opened) => Err(opened.unknown::<C>()),
        }
    }

    fn find(self) -> Result<Found<'h, 'h, C::Last>> {
        let RootFrom { heap, place, name, versions } = self;
        match heap.root_value::<C::Last>(place, name) {
            Ok(value) => return Ok(Found::Open(value.into_mut())),
            Err(error) => match error.kind() {
                ErrorKind::RootMissing => return Ok(Found::Missing(error)),
                ErrorKind::RootType => {}
                _ => return Err(error),
            },
        }
        let opened = Opened { heap, place, root: heap.find_any_root(name)? };
        match versions.take(&opened)? {
            Taken::Stored(value) => Ok(Found::Open(value.into_mut())),
            Taken::Made(value, old) => heap.exchange(place, name, old, value).map(Found::Open),
            Taken::Unknown => Ok(Found::Unknown(opened)),
        }
    }
}

impl<'h, C: Versions<'h>, F: FnOnce(&Reset)> OrReset<'h, '_, C, F> {
    /// The root's value; `default()` if absent or reset.
    ///
    /// # Errors
    /// As for [`or_insert_with`](OrReset::or_insert_with).
    pub fn or_default(self) -> Result<&'h mut C::Last>
    where
        C::Last: Default,
    {
        self.or_insert_with(|_| C::Last::default())
    }

    /// The root's value; made with `make` if absent or reset.
    ///
    /// # Errors
    /// `RootType`: the root is of another type and its value's own blocks cannot be told: the heap
    /// has no description, or one that does not explain all bytes, or a raw pointer leads to a
    /// block without an owner. `Damaged`: the value is. Otherwise as for [`RootFrom::open`]. The
    /// root is unchanged.
    pub fn or_insert_with<V: IntoPersist<'h, C::Last>>(
        self,
        make: impl FnOnce(HeapRef<'h>) -> V,
    ) -> Result<&'h mut C::Last> {
        let OrReset { from, told } = self;
        let (heap, place, name) = (from.heap, from.place, from.name);
        let opened = match from.find()? {
            Found::Open(value) => return Ok(value),
            Found::Missing(_) => return heap.root_or_insert(place, name, make),
            Found::Unknown(opened) => opened,
        };
        let (reset, old) = Reset::of::<C::Last>(&opened)?;
        let value = make(place).into_persist(place)?;
        let value = heap.exchange(place, name, old, value)?;
        told(&reset);
        Ok(value)
    }
}
