//! Pointers from object to object.
//!
//! A far pointer has 64 bits: the number of an entry in its object's table (`heap/far`), and an
//! offset in the object that the entry names. It means the same wherever either object lies, in any
//! pool. `Space` finds a pointer's target.

use crate::plain::Plain;
use crate::types::far::{MOST_INDEX, MOST_OFFSET, index, offset, pack};
use std::fmt;
use std::hash::{Hash, Hasher};
use std::marker::PhantomData;
use std::ops::BitOr;

/// A pointer to a `T` in the same object, or in another one. Zeros are null.
///
/// It is a number, free to copy. `Space::get` follows it relative to the
/// object that it was read from: in another object the number means something else.
///
/// ```
/// # extern crate indelible_types as indelible;
/// use indelible::Far;
///
/// let null = Far::<u64>::default();
/// assert!(null.is_null());
/// let inside = Far::<u64>::own(4096).unwrap(); // in the object that it will be stored to
/// assert_eq!((inside.index(), inside.offset()), (0, 4096));
/// assert!(Far::<u64>::own(0).is_none()); // nothing that is pointed at lies at the first byte
/// ```
#[repr(transparent)]
pub struct Far<T> {
    word: u64,
    target: PhantomData<fn() -> T>,
}

impl<T> Far<T> {
    /// A null pointer.
    #[must_use]
    pub const fn null() -> Self {
        Far::from_word(0)
    }

    /// A pointer to the byte `offset` of its own object, from 1 to 2^40 - 1.
    #[must_use]
    pub fn own(offset: u64) -> Option<Self> {
        Far::new(0, offset)
    }

    /// A pointer to the byte `offset`, from 1 to 2^40 - 1, of the object of entry `index`, up to
    /// 2^24 - 1; 0 is its own object. `Heap::far_index` returns an entry's number.
    #[must_use]
    pub fn new(index: u32, offset: u64) -> Option<Self> {
        let fits = index <= MOST_INDEX && (1..=MOST_OFFSET).contains(&offset);
        fits.then(|| Far::from_word(pack(index, offset)))
    }

    /// The pointer with these 64 bits: 24 of the number, above 40 of the offset.
    #[must_use]
    pub const fn from_word(word: u64) -> Self {
        Far { word, target: PhantomData }
    }

    /// Its bits.
    #[must_use]
    #[inline]
    pub const fn word(self) -> u64 {
        self.word
    }

    /// Whether it is null.
    #[must_use]
    #[inline]
    pub const fn is_null(self) -> bool {
        self.word == 0
    }

    /// Number of the entry that names the target's object; 0: its own object.
    #[must_use]
    #[inline]
    pub const fn index(self) -> u32 {
        index(self.word)
    }

    /// Bytes from the start of the target's object.
    #[must_use]
    #[inline]
    pub const fn offset(self) -> u64 {
        offset(self.word)
    }

    /// The value `count` values further in the same object. `None`: out of reach, or this pointer
    /// is null.
    ///
    /// ```
    /// # extern crate indelible_types as indelible;
    /// use indelible::Far;
    ///
    /// let first = Far::<u64>::own(4096).unwrap();
    /// assert_eq!(first.nth(2).unwrap().offset(), 4112);
    /// assert!(Far::<u64>::null().nth(1).is_none());
    /// ```
    #[must_use]
    #[inline]
    pub fn nth(self, count: usize) -> Option<Self> {
        let bytes = (size_of::<T>() as u64).checked_mul(count as u64)?;
        if self.offset() == 0 {
            return None;
        }
        Far::new(self.index(), self.offset().checked_add(bytes)?)
    }

    /// The same place, as one of another type.
    #[must_use]
    pub const fn cast<U>(self) -> Far<U> {
        Far::from_word(self.word)
    }
}

impl<T> Clone for Far<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Far<T> {}

impl<T> Default for Far<T> {
    fn default() -> Self {
        Far::null()
    }
}

impl<T> PartialEq for Far<T> {
    fn eq(&self, other: &Self) -> bool {
        self.word == other.word
    }
}

impl<T> Eq for Far<T> {}

impl<T> Hash for Far<T> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.word.hash(state);
    }
}

impl<T> fmt::Debug for Far<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Far({}:{:#x})", self.index(), self.offset())
    }
}

#[allow(unsafe_code)]
// SAFETY: any 64 bits are one; it is followed by `Space` alone, which checks where it leads.
unsafe impl<T> Plain for Far<T> {
    const SHARED: bool = false;
}

/// Rights that pointers through an entry ask for. They are requests: the object's keys and locks
/// decide.
///
/// ```
/// # extern crate indelible_types as indelible;
/// use indelible::Rights;
///
/// let both = Rights::READ | Rights::WRITE;
/// assert!(both.has(Rights::WRITE) && !Rights::READ.has(Rights::WRITE));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Rights(u8);

impl Rights {
    /// Loads.
    pub const READ: Rights = Rights(1);
    /// Stores.
    pub const WRITE: Rights = Rights(2);
    /// Fetches of code.
    pub const EXECUTE: Rights = Rights(4);

    #[doc(hidden)]
    pub const NONE: Rights = Rights(0);
    #[doc(hidden)]
    pub const ALL: Rights = Rights(7);

    /// Whether all of `other` are among them.
    #[must_use]
    pub const fn has(self, other: Rights) -> bool {
        self.0 & other.0 == other.0
    }

    /// Rights from an entry's bits; `None` for none, and for undefined bits.
    #[must_use]
    pub fn from_bits(bits: u8) -> Option<Rights> {
        (1..=7).contains(&bits).then_some(Rights(bits))
    }

    /// No page is executable, or writable without being readable.
    #[doc(hidden)]
    #[must_use]
    pub fn are_of_pages(self) -> bool {
        self == Rights::READ || self == Rights::READ | Rights::WRITE
    }

    #[doc(hidden)]
    #[must_use]
    pub const fn and(self, other: Rights) -> Rights {
        Rights(self.0 & other.0)
    }

    #[doc(hidden)]
    #[must_use]
    pub fn some(self) -> Option<Rights> {
        Rights::from_bits(self.0)
    }

    /// Bits: 1 for loads, 2 for stores, 4 for fetches of code.
    #[must_use]
    pub const fn bits(self) -> u8 {
        self.0
    }
}

impl BitOr for Rights {
    type Output = Rights;

    fn bitor(self, other: Rights) -> Rights {
        Rights(self.0 | other.0)
    }
}

impl fmt::Display for Rights {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all = [(Rights::READ, 'r'), (Rights::WRITE, 'w'), (Rights::EXECUTE, 'x')];
        all.into_iter()
            .try_for_each(|(right, letter)| write!(f, "{}", if self.has(right) { letter } else { '-' }))
    }
}

/// The object that an entry names.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum FarTarget {
    /// The object with this ID, under any name and in any place.
    Object([u8; 16]),
    /// The object that `resolver` finds for `name` at the first use.
    Name {
        /// Name of the resolver, 1 to 255 bytes: a built-in one, or one of the `Space`.
        resolver: String,
        /// A name for the resolver; both names together have at most 4,096 bytes.
        name: String,
    },
}

impl FarTarget {
    /// The object's ID, or the names of the resolver and of the object. For the project's crates,
    /// which match every variant.
    #[doc(hidden)]
    pub fn id(&self) -> Result<[u8; 16], (&str, &str)> {
        match self {
            FarTarget::Object(id) => Ok(*id),
            FarTarget::Name { resolver, name } => Err((resolver, name)),
        }
    }
}

impl fmt::Display for FarTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FarTarget::Object(id) => id.iter().try_fold((), |(), byte| write!(f, "{byte:02x}")),
            FarTarget::Name { resolver, name } => write!(f, "{resolver}:{name}"),
        }
    }
}

/// An entry of an object's table of other objects.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct FarEntry {
    /// The object that pointers through it lead to.
    pub target: FarTarget,
    /// The rights that they ask for.
    pub rights: Rights,
}
