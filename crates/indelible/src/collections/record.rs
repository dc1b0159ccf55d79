//! Records: roots used by their types' descriptions alone. A record consists of numbers, arrays,
//! structs and far pointers: it owns nothing, and has no addresses.

use super::place::HeapRef;
use super::root_value::OldValue;
use crate::error::{Cause, Error, ErrorKind, Result};
use crate::heap::{Heap, HeapError, ReadHeap, Root, TypeInfo};
use crate::types::{Description, Kind, Pointer as How};

const USE: &str = "use a record of";

fn layout_of(name: &str, ty: &TypeInfo<'_>) -> Result<(u64, u64), HeapError> {
    let cannot = |why| Err(HeapError::Record { name: name.to_owned(), why });
    let of = match Description::parse(ty.layout) {
        Ok(of) => of,
        Err(error) => return cannot(format!("its type is not described: {error}")),
    };
    // Otherwise a type with that fingerprint would accept its bytes.
    if ty.fingerprint != TypeInfo::described(ty.name, ty.layout).fingerprint {
        return cannot("the fingerprint is not that of its description".to_owned());
    }
    let plain = |kind: &Kind| {
        use Kind::{Alias, Array, Pointer, Scalar, Struct};
        let far = matches!(kind, Pointer { how: How::Far, .. });
        far || matches!(kind, Scalar { .. } | Array { .. } | Struct { .. } | Alias { .. })
    };
    let root = of.get(of.root());
    match of.all().all(|ty| plain(&ty.kind)) {
        true => Ok((root.size, root.align)),
        false => {
            cannot("its type has something else than numbers, arrays, structs and far pointers".to_owned())
        }
    }
}

fn is_record(root: &Root) -> bool {
    let Root { name, type_name, fingerprint, layout, .. } = root;
    layout_of(name, &TypeInfo { name: type_name, fingerprint: *fingerprint, layout }).is_ok()
}

fn placed(root: Root, (size, align): (u64, u64), base: usize, len: usize) -> Result<Root, HeapError> {
    let start = root.address.checked_sub(base);
    let inside = start.and_then(|start| start.checked_add(size as usize)).is_some_and(|end| end <= len);
    match inside && root.size == size && (root.address as u64).is_multiple_of(align) {
        true => Ok(root),
        false => {
            let offset = root.address.wrapping_sub(base) as u64;
            Err(HeapError::Damaged { offset, what: "a root is not where it could be" })
        }
    }
}

impl Heap {
    fn refused(&self, error: HeapError) -> Error {
        self.attached().error(USE, Cause::Heap(error))
    }

    fn untrusted(&self, name: &str) -> Error {
        self.refused(HeapError::Untrusted { name: name.to_owned() })
    }

    /// The root `name`, of a type known by its description only; if missing, made of the bytes
    /// `first`.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let pool = indelible::Pool::format(dir.path().join("p"), 16 << 20)?;
    /// # let mut heap = pool.heap("o", 1 << 20)?;
    /// use indelible::{Persist, TypeInfo};
    ///
    /// let described = TypeInfo::described("Point", "Point:8:4 { x@0:4 u32 y@4:4 u32 } ");
    /// heap.record("here", &described, &[0, 0, 0, 0, 7, 0, 0, 0])?;
    ///
    /// #[derive(Persist)]
    /// #[repr(C)]
    /// struct Point { x: u32, y: u32 }
    ///
    /// assert_eq!(heap.root_mut::<Point>("here")?.y, 7);
    /// # Ok::<(), indelible::Error>(())
    /// ```
    ///
    /// # Errors
    /// `RootType` if it is of another type, with the first difference, or if no record can be of
    /// this type; `Untrusted`, see [`verify`](Heap::verify); `Damaged`, `BadName`, `HeapFull`.
    pub fn record(&mut self, name: &str, ty: &TypeInfo<'_>, first: &[u8]) -> Result<Root> {
        match self.find_record(name, ty) {
            Err(error) if error.kind() == ErrorKind::RootMissing => {}
            found => return found,
        }
        if !self.trusted.allows_new() {
            return Err(self.untrusted(name));
        }
        self.put_record(name, ty, first, Heap::name_root)?;
        self.find_record(name, ty)
    }

    /// The existing record `name`.
    ///
    /// # Errors
    /// As for [`record`](Heap::record); `RootMissing`.
    pub fn find_record(&self, name: &str, ty: &TypeInfo<'_>) -> Result<Root> {
        let layout = layout_of(name, ty).map_err(|error| self.refused(error))?;
        let root = self.root(name, ty)?;
        if !self.trusted.allows(name) {
            return Err(self.untrusted(name));
        }
        let (base, len) = (HeapRef::new(self).base() as usize, self.attached().len());
        placed(root, layout, base, len).map_err(|error| self.refused(error))
    }

    /// Gives the record `name` another type and bytes, if it still has the bytes `old`. Its block
    /// is freed.
    ///
    /// # Errors
    /// As for [`find_record`](Heap::find_record), and `HeapFull`: it is unchanged.
    pub fn convert_record(
        &mut self,
        name: &str,
        (from, old): (&TypeInfo<'_>, &[u8]),
        (to, new): (&TypeInfo<'_>, &[u8]),
    ) -> Result<bool> {
        let root = self.find_record(name, from)?;
        let start = root.address - HeapRef::new(self).base() as usize;
        if self.attached().as_slice()[start..start + root.size as usize] != *old {
            return Ok(false);
        }
        self.exchange_for_record(name, to, new)?;
        Ok(true)
    }

    /// Drops the root `name` with all its blocks, and makes it a record of these bytes. Returns the
    /// number and bytes of freed blocks.
    ///
    /// # Errors
    /// `RootMissing`; `RootType` if its own blocks cannot be determined; `Untrusted`, `Damaged`,
    /// `HeapFull`: it is unchanged.
    pub fn reset_to_record(&mut self, name: &str, ty: &TypeInfo<'_>, first: &[u8]) -> Result<(u64, u64)> {
        if !self.is_trusted() {
            return Err(self.untrusted(name));
        }
        self.exchange_for_record(name, ty, first)
    }

    fn exchange_for_record(&mut self, name: &str, ty: &TypeInfo<'_>, bytes: &[u8]) -> Result<(u64, u64)> {
        let found = self.reclaimed(name).map_err(|error| self.refused(error))?;
        self.put_record(name, ty, bytes, Heap::replace_root)?;
        let freed = (found.count(), found.bytes);
        OldValue::of_blocks(found).discard();
        Ok(freed)
    }

    fn put_record(
        &self,
        name: &str,
        ty: &TypeInfo<'_>,
        bytes: &[u8],
        refer: impl FnOnce(&Heap, &str, *const u8, u64, &TypeInfo<'_>) -> Result<()>,
    ) -> Result<()> {
        let (size, align) = layout_of(name, ty).map_err(|error| self.refused(error))?;
        if bytes.len() as u64 != size {
            let why = format!("its type has {size} bytes, its value {}", bytes.len());
            return Err(self.refused(HeapError::Record { name: name.to_owned(), why }));
        }
        self.put_bytes(bytes, align as usize, |block| refer(self, name, block, size, ty))
    }

    /// All roots that could be records.
    ///
    /// # Errors
    /// `Damaged`.
    pub fn records(&self) -> Result<Vec<Root>> {
        Ok(self.roots()?.into_iter().filter(is_record).collect())
    }
}

impl ReadHeap {
    /// As [`Heap::find_record`].
    pub fn find_record(&self, name: &str, ty: &TypeInfo<'_>) -> Result<Root> {
        let refused = |error| self.object().error(USE, Cause::Heap(error));
        let layout = layout_of(name, ty).map_err(refused)?;
        let (base, len) = (self.object().as_ptr().addr(), self.object().len());
        placed(self.root(name, ty)?, layout, base, len).map_err(refused)
    }
}
