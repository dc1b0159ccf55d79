//! Objects and entries looked up once for many pointers.

use super::attached::Attached;
use super::{FOLLOW, LOADS, Space};
use crate::At;
use crate::error::Result;
use crate::far::Far;
use crate::plain::Plain;
use std::fmt;

/// An object of a [`Space`], looked up once by [`Space::home`] to follow many pointers.
#[derive(Clone, Copy)]
pub struct Home<'s> {
    space: &'s Space,
    attached: &'s Attached,
}

/// An entry of an object, looked up once: following a pointer through it is an addition and a
/// bounds check.
///
/// ```
/// # let dir = tempfile::tempdir().unwrap();
/// # let pool = indelible::Pool::format(dir.path().join("p"), 16 << 20)?;
/// use indelible::{CreateOptions, Far, Rights, Space};
///
/// let mut space = Space::new();
/// space.add(&pool);
/// let mut ids = Vec::new();
/// for name in ["index", "data"] {
///     pool.create_with(name, &CreateOptions::new(1 << 20).position_independent(true))?;
///     ids.push(space.attach(&pool, name)?);
/// }
/// let numbers = (0..10_u64).map(|number| space.create(&ids[1], number)).collect::<Result<Vec<_>, _>>()?;
/// // As the object `index` would have them.
/// let pointers = numbers.into_iter().map(|number| space.far(&ids[0], &ids[1], number, Rights::READ));
/// let pointers = pointers.collect::<Result<Vec<Far<u64>>, _>>()?;
///
/// let data = space.home(&ids[0])?.way(pointers[0].index())?;
/// let sum: u64 = pointers.iter().map(|pointer| Ok(*data.get(*pointer)?)).sum::<indelible::Result<u64>>()?;
/// assert_eq!(sum, 45);
/// # Ok::<(), indelible::Error>(())
/// ```
#[derive(Clone, Copy)]
pub struct Way<'s> {
    home: Home<'s>,
    target: &'s Attached,
    index: u32,
}

impl Space {
    /// An object of the space, to follow many pointers from it.
    ///
    /// # Errors
    /// `NotAttached`: it is not in the space.
    pub fn home(&self, id: &[u8; 16]) -> Result<Home<'_>> {
        Ok(Home { space: self, attached: self.here(id, FOLLOW)? })
    }
}

impl<'s> Home<'s> {
    /// The target of a pointer in this object: see [`Space::get`].
    #[inline]
    pub fn get<T: Plain>(self, pointer: Far<T>) -> Result<At<'s, T>> {
        At::new(self.space, self.attached, pointer)
    }

    /// An entry of this object, whose named object is attached for reading, as if a pointer were
    /// followed.
    ///
    /// # Errors
    /// `Dangling`: no such entry (0 is none), or its target is in no pool. `ReadOnly`: it does not
    /// ask for loads. Those of [`Pool::attach_read`](crate::Pool::attach_read). `Damaged`: the
    /// entry is.
    pub fn way(self, index: u32) -> Result<Way<'s>> {
        let (_, target) = self.space.linked(self.attached, index, LOADS)?;
        Ok(Way { home: self, target, index })
    }
}

impl<'s> Way<'s> {
    /// The target of a pointer through this entry; other pointers are followed as by [`Home::get`].
    ///
    /// # Errors
    /// As for [`Space::get`].
    #[inline]
    pub fn get<T: Plain>(self, pointer: Far<T>) -> Result<At<'s, T>> {
        if pointer.index() == self.index && pointer.offset() != 0 {
            return At::within(
                self.home.space,
                self.home.attached,
                self.target,
                self.target.range,
                pointer.offset(),
            );
        }
        self.home.get(pointer)
    }

    /// The object that it leads to.
    #[must_use]
    pub fn target(self) -> Home<'s> {
        Home { space: self.home.space, attached: self.target }
    }
}

impl fmt::Debug for Home<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Home").field(&self.attached.name()).finish()
    }
}

impl fmt::Debug for Way<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Way")
            .field("from", &self.home)
            .field("to", &self.target())
            .field("index", &self.index)
            .finish()
    }
}
