//! Objects that get other addresses: every pointer in them changes by the difference, or nothing
//! happens (docs/decisions/0041-rebase.md).

mod image;
mod pointers;

use super::error::HeapError;
use super::layout::MAGIC;
use crate::error::{Cause, Error, Result, TransactionError};
use crate::pool::Pool;
use image::Image;
use indelible_store::format::PAGE;
use indelible_store::format::entry::{FLAG_ECC, FLAG_POSITION_INDEPENDENT};
use indelible_store::store::{Attributes, Revived};

/// Magic of a Python package's array (crates/python/FORMAT.md); its version follows.
const ARRAY: [u8; 8] = *b"PMO-NDAR";

impl Pool {
    /// As [`copy_to`](Pool::copy_to), with new addresses and adjusted pointers, also within this
    /// pool.
    ///
    /// All pointers must be known: the object was never psynced, is
    /// [position-independent](crate::CreateOptions::position_independent), an array of the Python
    /// package, or a heap that is described throughout. Addresses kept in other forms do not
    /// change.
    ///
    /// ```
    /// use indelible::Pool;
    /// use indelible::collections::PVec;
    ///
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let path = dir.path().join("example.pmo");
    /// let pool = Pool::format(&path, 16 << 20)?;
    /// let mut list = pool.heap("list", 1 << 20)?;
    /// list.root_or_default::<PVec<u64>>("numbers")?.extend(0..100);
    /// list.psync()?;
    /// pool.copy_rebased("list", b"", &pool, "trial", &mut |_, _| {})?;
    /// let mut trial = pool.heap("trial", 0)?; // beside the other
    /// trial.root_or_default::<PVec<u64>>("numbers")?.push(100);
    /// assert_eq!(list.root_or_default::<PVec<u64>>("numbers")?.len(), 100);
    /// # Ok::<(), indelible::Error>(())
    /// ```
    ///
    /// # Errors
    /// As for [`copy_to`](Pool::copy_to). `Unsuitable`: not all pointers are known, or one leads
    /// out of the object. `Damaged`: the heap is. `NoAddresses`.
    pub fn copy_rebased(
        &self,
        name: &str,
        key: &[u8],
        other: &Pool,
        copy: &str,
        progress: &mut dyn FnMut(u64, u64),
    ) -> Result<()> {
        self.copy_with(name, key, other, copy, progress, Some(&Pool::rebase))
    }

    /// As [`move_to`](Pool::move_to), with new addresses and adjusted pointers, as by
    /// [`copy_rebased`](Pool::copy_rebased).
    ///
    /// # Errors
    /// As for [`move_to`](Pool::move_to) and [`copy_rebased`](Pool::copy_rebased).
    pub fn move_rebased(
        &self,
        name: &str,
        key: &[u8],
        other: &Pool,
        progress: &mut dyn FnMut(u64, u64),
    ) -> Result<()> {
        self.move_with(name, key, other, progress, Some(&Pool::rebase))
    }

    /// Adjusts the pointers of an object that comes to a pool with its bytes from the address in
    /// `kept`. Not part of the stable interface.
    ///
    /// # Errors
    /// As for [`copy_rebased`](Pool::copy_rebased): the object is unchanged, or must not be
    /// published.
    #[doc(hidden)]
    pub fn rebase(kept: &Attributes, revived: &Revived) -> Result<()> {
        let end = kept.end().min(revived.extent_len());
        let distance = revived.address().wrapping_sub(kept.address);
        if end == 0 || distance == 0 || kept.flags & FLAG_POSITION_INDEPENDENT != 0 {
            return Ok(());
        }
        if kept.flags & FLAG_ECC != 0 {
            let cause = TransactionError::Checked("pointers in it are not changed");
            return Err(Error::new("rebase", cause).object(&kept.name));
        }
        shift(kept, revived, end, distance).map_err(|cause| Error::new("rebase", cause).object(&kept.name))
    }
}

fn shift(kept: &Attributes, revived: &Revived, end: u64, distance: u64) -> Result<(), Cause> {
    let mut image = Image::new(kept.size)?;
    image.fill(end, |at, bytes| revived.read(at, bytes))?;
    let first = &image.bytes()[..PAGE as usize];
    if first[..12] == [&ARRAY[..], &[1, 0, 0, 0]].concat()
        || image.bytes()[..end as usize].iter().all(|byte| *byte == 0)
    {
        return Ok(());
    }
    if first[..8] != MAGIC.to_le_bytes() {
        let why =
            "it holds no heap, and nothing says where its pointers are, or that it is position-independent"
                .to_owned();
        return Err(HeapError::Pinned { why }.into());
    }
    let links = pointers::find(&image, kept.address, kept.size)?;
    let bytes = image.bytes_mut();
    let mut pages: Vec<u64> = Vec::new();
    for link in links {
        let at = (link - kept.address) as usize;
        let Some(word) = bytes.get_mut(at..).and_then(|bytes| bytes.first_chunk_mut::<8>()) else { continue };
        let target = u64::from_le_bytes(*word);
        if target != 0 {
            *word = target.wrapping_add(distance).to_le_bytes();
            pages.push(at as u64 / PAGE);
        }
    }
    pages.dedup();
    for run in pages.chunk_by(|a, b| a + 1 == *b) {
        let (from, to) = (run[0] * PAGE, (run[run.len() - 1] + 1) * PAGE);
        revived.write(from, &bytes[from as usize..to as usize])?;
    }
    Ok(())
}
