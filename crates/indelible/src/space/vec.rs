use super::{At, Space};
use crate::error::Result;
use crate::far::Far;
use crate::plain::Plain;
use indelible_derive::{Persist, Plain};

/// A vector of plain values in a block of its object. Without addresses, it may lie in
/// position-independent objects, in a struct or as a root.
///
/// Read by [`At`], store by the [`Space`]: both know the object. `FarVec<u8>` is text of any
/// length.
///
/// ```
/// # let dir = tempfile::tempdir().unwrap();
/// # let pool = indelible::Pool::format(dir.path().join("p"), 16 << 20)?;
/// use indelible::{CreateOptions, FarVec, Space};
///
/// pool.create_with("numbers", &CreateOptions::new(1 << 20).position_independent(true))?;
/// let mut space = Space::new();
/// let id = space.attach(&pool, "numbers")?;
/// space.root_or_insert(&id, "primes", FarVec::<u64>::new())?;
/// let primes = space.root::<FarVec<u64>>(&id, "primes")?.here();
/// space.vec_extend(&id, primes, &[2, 3, 5])?;
/// space.vec_mut(&id, primes)?[2] = 7;
/// assert_eq!(space.get(&id, primes)?.values()?, [2, 3, 7]);
/// # Ok::<(), indelible::Error>(())
/// ```
#[derive(Plain, Persist)]
#[repr(C)]
pub struct FarVec<T> {
    #[persist(target)]
    first: Far<T>,
    len: u64,
    room: u64,
}

impl<T> FarVec<T> {
    /// Empty, without a block.
    #[must_use]
    pub const fn new() -> Self {
        FarVec { first: Far::null(), len: 0, room: 0 }
    }

    /// Number of values.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.len as usize
    }

    /// Whether it has none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }
}

impl<T> Default for FarVec<T> {
    fn default() -> Self {
        FarVec::new()
    }
}

impl<T> Clone for FarVec<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for FarVec<T> {}

impl<T> std::fmt::Debug for FarVec<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "FarVec({} values at {:?})", self.len, self.first)
    }
}

impl<'s, T: Plain> At<'s, FarVec<T>> {
    /// The values.
    ///
    /// # Errors
    /// `Dangling`: they lie outside the object, which is damaged.
    pub fn values(&self) -> Result<&'s [T]> {
        match self.is_empty() {
            true => Ok(&[]),
            false => self.follow(self.first)?.map_or(Ok(&[]), |first| first.slice(self.len())),
        }
    }
}

impl Space {
    /// A vector's values, for storing.
    ///
    /// # Errors
    /// As for [`get_mut`](Space::get_mut).
    pub fn vec_mut<T: Plain>(&mut self, home: &[u8; 16], vec: Far<FarVec<T>>) -> Result<&mut [T]> {
        let (owner, head) = self.head(home, vec)?;
        match head.is_empty() {
            true => Ok(&mut []),
            false => self.slice_mut(&owner, head.first, head.len()),
        }
    }

    /// Appends values to a vector.
    ///
    /// # Errors
    /// As for [`get_mut`](Space::get_mut) and [`create`](Space::create): the vector is unchanged.
    pub fn vec_extend<T: Plain + Copy>(
        &mut self,
        home: &[u8; 16],
        vec: Far<FarVec<T>>,
        values: &[T],
    ) -> Result<()> {
        let (owner, mut head) = self.head(home, vec)?;
        let (len, former) = (head.len(), head.first);
        let needed = len.saturating_add(values.len());
        let moves = needed as u64 > head.room;
        if moves {
            let before = match len {
                0 => Vec::new(),
                _ => self.get(&owner, head.first)?.slice(len)?.to_vec(),
            };
            let room = needed.max(2 * len).max(4);
            head.first = self.reserve(&owner, room, false)?;
            head.room = room as u64;
            self.slice_mut(&owner, head.first, len)?.copy_from_slice(&before);
        }
        if !values.is_empty() {
            self.expect_block(&owner, head.first, needed)?;
            let behind = head.first.nth(len).unwrap_or_default();
            self.slice_mut(&owner, behind, values.len())?.copy_from_slice(values);
        }
        head.len = needed as u64;
        *self.get_mut(home, vec)? = head;
        if moves && !former.is_null() { self.free(&owner, former) } else { Ok(()) }
    }

    /// Appends a value to a vector.
    ///
    /// # Errors
    /// As for [`vec_extend`](Space::vec_extend).
    pub fn vec_push<T: Plain + Copy>(
        &mut self,
        home: &[u8; 16],
        vec: Far<FarVec<T>>,
        value: T,
    ) -> Result<()> {
        self.vec_extend(home, vec, &[value])
    }

    /// Truncates a vector to `len` values; an empty one has no block.
    ///
    /// # Errors
    /// As for [`get_mut`](Space::get_mut).
    pub fn vec_truncate<T: Plain>(&mut self, home: &[u8; 16], vec: Far<FarVec<T>>, len: usize) -> Result<()> {
        let (owner, head) = self.head(home, vec)?;
        if len >= head.len() {
            return Ok(());
        }
        let shorter = if len == 0 { FarVec::new() } else { FarVec { len: len as u64, ..head } };
        *self.get_mut(home, vec)? = shorter;
        if len == 0 { self.free(&owner, head.first) } else { Ok(()) }
    }

    pub(super) fn head<H: Plain + Copy>(&self, home: &[u8; 16], at: Far<H>) -> Result<([u8; 16], H)> {
        let (owner, offset) = self.target(home, at)?;
        Ok((owner.id, *At::new(self, owner, Far::own(offset).unwrap_or_default())?))
    }
}
