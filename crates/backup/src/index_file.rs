//! An index as a file beside a backup: its loss or damage costs a reading of the chain, and nothing
//! else.
//!
//! It is used while each file of the chain has the length, and the last bytes, that it had when the
//! index was made. FORMAT.md, section 11.

use crate::chain::{Chain, Link};
use crate::format::{BUFFER, Hash, Header, PageHash};
use crate::partial::FOR_OWNER;
use indelible_files::DIRECT;
use sha2::{Digest, Sha256};
use std::collections::HashMap;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use zerocopy::little_endian::{U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

const MAGIC: [u8; 8] = *b"PMOINDEX";
const VERSION: u32 = 1;
const SUFFIX: &str = "pmoindex";

/// Without zero pages.
pub(crate) struct Index {
    /// By ID, ascending.
    pub objects: HashMap<[u8; 16], Vec<PageHash>>,
    /// The backup's header, and the whole's hash.
    pub header: Header,
    pub whole: Hash,
    /// The chain's files, oldest first.
    pub files: Vec<Whole>,
}

/// A file of a chain, as long as it is unchanged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub(crate) struct Whole {
    pub id: [u8; 16],
    /// Its bytes.
    pub len: U64,
    /// The whole's hash, which its last bytes are.
    pub whole: Hash,
}

/// Behind the pages, the objects and the files of the chain; before a hash of all.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
struct Tail {
    files: U32,
    objects: U32,
    pages: U64,
    version: U32,
    /// Zero.
    reserved: U32,
    magic: [u8; 8],
}

/// An object's pages, which follow those of the object before it.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
struct Count {
    id: [u8; 16],
    pages: U64,
}

const _: () = assert!(size_of::<Tail>() == 32 && size_of::<Count>() == 24 && size_of::<Whole>() == 56);

/// The name of a backup's index.
pub(crate) fn beside(backup: &Path) -> PathBuf {
    backup.with_extension(SUFFIX)
}

impl Link {
    /// This file, if its last bytes are `whole`.
    pub(crate) fn whole(&self, whole: Hash) -> Option<Whole> {
        let file = File::options().read(true).custom_flags(DIRECT).open(&self.path).ok()?;
        let len = file.metadata().ok()?.len();
        let mut last = [0; size_of::<Hash>()];
        let at = len.checked_sub(last.len() as u64)?;
        file.read_exact_at(&mut last, at).ok()?;
        (last == whole).then_some(Whole { id: self.header.id, len: len.into(), whole })
    }
}

/// `None`: it is missing, damaged, of another release, or of another chain.
pub(crate) fn read(backup: &Path, chain: &Chain) -> Option<Index> {
    let bytes = std::fs::read(beside(backup)).ok()?;
    let (bytes, proof) = bytes.split_last_chunk::<32>()?;
    let sum: Hash = Sha256::digest(bytes).into();
    let (rest, tail) = Tail::read_from_suffix(bytes).ok()?;
    let known = sum == *proof && tail.magic == MAGIC && tail.version.get() == VERSION;
    let lens =
        known.then(|| (tail.pages.get() as usize, tail.objects.get() as usize, tail.files.get() as usize))?;
    let (pages, rest) = <[PageHash]>::ref_from_prefix_with_elems(rest, lens.0).ok()?;
    let (counts, rest) = <[Count]>::ref_from_prefix_with_elems(rest, lens.1).ok()?;
    let files = <[Whole]>::ref_from_bytes_with_elems(rest, lens.2).ok()?;
    let same = |(link, file): (&Link, &Whole)| link.whole(file.whole).as_ref() == Some(file);
    let parents = chain.links.iter().skip(1).map(|link| link.header.parent_hash);
    let is_chain = files.len() == chain.links.len()
        && chain.links.iter().zip(files).all(same)
        && files.iter().map(|file| file.whole).zip(parents).all(|(whole, parent)| whole == parent);
    let newest = chain.links.last().filter(|_| is_chain)?;
    let mut rest = pages;
    let mut take = |count: &Count| {
        let (own, others) = rest.split_at_checked(count.pages.get() as usize)?;
        rest = others;
        Some((count.id, own.to_vec()))
    };
    let objects = counts.iter().map(&mut take).collect::<Option<_>>()?;
    let whole = files.last()?.whole;
    Some(Index { objects, header: newest.header, whole, files: files.to_vec() })
}

/// Writes an index while its backup is made. A failure leaves no index, and concerns nothing else.
pub(crate) struct Writer {
    path: PathBuf,
    out: BufWriter<File>,
    sum: Sha256,
    counts: Vec<Count>,
    pages: u64,
    failed: bool,
}

impl Writer {
    /// `None`: the file cannot be made.
    pub fn begin(path: PathBuf) -> Option<Writer> {
        let mut options = File::options();
        options.write(true).create(true).truncate(true).mode(FOR_OWNER).custom_flags(DIRECT);
        let out = BufWriter::with_capacity(BUFFER, options.open(&path).ok()?);
        Some(Writer { path, out, sum: Sha256::new(), counts: Vec::new(), pages: 0, failed: false })
    }

    fn put(&mut self, bytes: &[u8]) {
        self.sum.update(bytes);
        self.failed |= self.out.write_all(bytes).is_err();
    }

    /// The next pages that are not zeros, ascending by object and page.
    pub fn pages(&mut self, object: u32, pages: &[PageHash]) {
        let at = object as usize;
        if self.counts.len() <= at {
            self.counts.resize(at + 1, Count { id: [0; 16], pages: 0.into() });
        }
        let count = self.counts[at].pages.get();
        self.counts[at].pages = (count + pages.len() as u64).into();
        self.pages += pages.len() as u64;
        self.put(pages.as_bytes());
    }

    /// Ends the index, and gives it the name of one beside `backup`.
    pub fn end(mut self, ids: &[[u8; 16]], files: &[Whole], backup: &Path) -> io::Result<()> {
        self.counts.resize(ids.len(), Count { id: [0; 16], pages: 0.into() });
        let mut counts = std::mem::take(&mut self.counts);
        counts.iter_mut().zip(ids).for_each(|(count, id)| count.id = *id);
        self.put(counts.as_bytes());
        self.put(files.as_bytes());
        let tail = Tail {
            files: (files.len() as u32).into(),
            objects: (ids.len() as u32).into(),
            pages: self.pages.into(),
            version: VERSION.into(),
            reserved: 0.into(),
            magic: MAGIC,
        };
        self.put(tail.as_bytes());
        let sum: Hash = self.sum.clone().finalize().into();
        self.put(&sum);
        if self.failed {
            return Err(io::ErrorKind::WriteZero.into());
        }
        // A power cut may tear it, which its hash tells.
        self.out.flush()?;
        std::fs::rename(&self.path, beside(backup))
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        // After the rename the name is free, or another file has it.
        let _ = std::fs::remove_file(&self.path);
    }
}
