//! Making a backup: writes the pages of held objects that differ from the backup below.

use crate::Progress;
use crate::encode::{Encoder, Packed, Pages};
use crate::error::{BackupError, Result};
use crate::format::{CHUNK, FEATURES, Header, MAGIC, PAGE, PageHash, VERSION, hash, hex, pages};
use crate::index_file::{self, Index, Whole};
use crate::source::{Choice, Held, Source};
use crate::workers::{Buffers, in_order};
use indelible::Pool;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};
use zerocopy::FromZeros;

/// A finished backup.
#[derive(Clone, Debug)]
pub struct Summary {
    /// Its file, unless it is a stream.
    pub path: Option<PathBuf>,
    /// ID of the backup.
    pub id: String,
    /// Number of objects.
    pub objects: u64,
    /// Bytes of the objects, holes included.
    pub size: u64,
    /// Bytes of the pages in it.
    pub held: u64,
    /// Its length in bytes.
    pub bytes: u64,
    /// The backup that it rests on; `None`: it is full.
    pub base: Option<PathBuf>,
    /// It continues an interrupted one.
    pub resumed: bool,
    /// Why it is full despite earlier backups of the pool.
    pub why_full: Option<String>,
    /// IDs of other pools with backups in the folder.
    pub others: Vec<String>,
}

#[derive(Default)]
pub(crate) struct Before<'a> {
    pub below: Option<&'a Index>,
    pub state: [u64; 3],
    /// Gets the pages of this backup.
    pub index: Option<&'a mut Indexed>,
}

/// The index of a backup that is being made.
pub(crate) struct Indexed {
    pub file: index_file::Writer,
    /// The objects' IDs, and the backup's file, once it is written.
    pub done: Option<(Vec<[u8; 16]>, Whole)>,
}

/// Writes a full backup of a pool, valid once this returns.
///
/// # Errors
/// The pool's, the stream's; `WrongKey` of an object that has a key; `NoRoomToKeep`.
pub fn backup_to(
    pool: &Pool,
    choice: &Choice<'_>,
    out: &mut dyn Write,
    progress: Progress<'_>,
) -> Result<Summary> {
    backup(pool, choice, Path::new("the stream"), out, Before::default(), progress)
}

/// As [`backup_to`], on another backup. `path` is for messages.
pub(crate) fn backup(
    pool: &Pool,
    choice: &Choice<'_>,
    path: &Path,
    out: &mut dyn Write,
    before: Before<'_>,
    progress: Progress<'_>,
) -> Result<Summary> {
    let mut id = [0; 16];
    getrandom::fill(&mut id).map_err(|error| {
        BackupError::file("draw random bytes for", path)(std::io::Error::other(error.to_string()))
    })?;
    let source = Source::hold(pool, &id, choice)?;
    write_all(&[(pool, source)], &id, path, out, before, progress)
}

/// Writes held objects of several pools as one backup, of the first pool.
pub(crate) fn write_all(
    sources: &[(&Pool, Source)],
    id: &[u8; 16],
    path: &Path,
    out: &mut dyn Write,
    before: Before<'_>,
    progress: Progress<'_>,
) -> Result<Summary> {
    let Some((pool, _)) = sources.first() else { return Err(BackupError::NoObject(String::new())) };
    let all = || sources.iter().flat_map(|(_, source)| source.held.iter().map(move |held| (source, held)));
    let superblock = pool.store().superblock();
    let mut header = Header::new_zeroed();
    (header.magic, header.version, header.features) = (MAGIC, VERSION.into(), FEATURES.into());
    (header.id, header.pool) = (*id, superblock.id);
    let info = pool.store().info()?;
    header.pool_len = info.length.into();
    (header.window, header.window_len) = (superblock.window, superblock.window_len);
    header.created = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs()).into();
    // The newest has the highest state.
    let psyncs = all().map(|(_, held)| held.attributes.psyncs).fold(0, u64::wrapping_add);
    let Before { below, state, mut index } = before;
    header.state = [info.position.0, info.position.1, psyncs].max(state).map(Into::into);
    let objects = all().count();
    header.objects = (objects as u32).into();
    if let Some(below) = below {
        (header.parent, header.parent_hash) = (below.header.id, below.whole);
        header.depth = (below.header.depth.get() + 1).into();
        header.created = header.created.get().max(below.header.created.get()).into();
    }
    let mut encoder = Encoder::new(out, path, &header)?;
    for (_, held) in all() {
        encoder.object(&held.attributes)?;
    }
    let size = all().map(|(_, held)| held.attributes.size).sum();
    let (mut done, mut starts) = (0, Vec::new());
    for (_, held) in all() {
        starts.push(done);
        done += held.attributes.size;
    }
    let pieces = all().zip(&starts).zip(0..).flat_map(|(((source, held), start), object)| {
        let known =
            below.and_then(|below| below.objects.get(&held.attributes.id)).map_or(&[][..], Vec::as_slice);
        let firsts = (0..last(held, known)).step_by(CHUNK as usize);
        firsts.map(move |first| Piece { source, held, start: *start, object, first, known })
    });
    let (mut kept, buffers) = (0, Buffers::default());
    in_order(
        pieces,
        |piece| (piece.start + (piece.first * PAGE).min(piece.held.attributes.size), piece.pack(&buffers)),
        |(done, chunk)| {
            let Done { object, live, packed } = chunk?;
            if let Some((packed, bytes)) = packed {
                encoder.pages(&packed)?;
                buffers.give(packed.body);
                kept += bytes;
            }
            if let Some(index) = &mut index {
                index.file.pages(object, &live);
            }
            progress(done, size);
            Ok(())
        },
    )?;
    progress(done, size);
    sources.iter().try_for_each(|(_, source)| source.expect_same())?;
    let (whole, bytes) = encoder.end()?;
    if let Some(index) = index {
        let ids = all().map(|(_, held)| held.attributes.id).collect();
        index.done = Some((ids, Whole { id: *id, len: bytes.into(), whole }));
    }
    Ok(Summary {
        path: None,
        id: hex(id),
        objects: objects as u64,
        size,
        held: kept,
        bytes,
        base: None,
        resumed: false,
        why_full: None,
        others: Vec::new(),
    })
}

/// The end of pages that may be nonzero.
fn last(held: &Held, known: &[PageHash]) -> u64 {
    let known = known.last().map_or(0, |known| known.page.get() + 1);
    pages(held.attributes.published).max(known).min(held.attributes.pages())
}

struct Piece<'s> {
    source: &'s Source,
    held: &'s Held,
    /// Bytes of the objects before it.
    start: u64,
    object: u32,
    first: u64,
    /// Of the whole object.
    known: &'s [PageHash],
}

/// A chunk.
struct Done {
    object: u32,
    /// Its pages that are not zeros.
    live: Vec<PageHash>,
    /// Its changes, with the bytes of their pages.
    packed: Option<(Packed, u64)>,
}

impl Piece<'_> {
    fn pack(&self, buffers: &Buffers) -> Result<Done> {
        let Piece { source, held, object, first, known, .. } = *self;
        let count = CHUNK.min(held.attributes.pages() - first);
        let mut bytes = buffers.take((count * PAGE) as usize);
        source.read(held, first * PAGE, &mut bytes)?;
        let mut known = known[known.partition_point(|known| known.page.get() < first)..].iter().peekable();
        let (mut hashes, mut live) = (Vec::new(), Vec::with_capacity(count as usize));
        let (mut mask, mut gone, mut kept) = (0_u64, 0_u64, 0);
        for bit in 0..count {
            let at = (bit * PAGE) as usize..((bit + 1) * PAGE) as usize;
            let before = known.next_if(|known| known.page.get() == first + bit);
            if bytes[at.clone()] == [0; PAGE as usize] {
                gone |= u64::from(before.is_some()) << bit;
                continue;
            }
            let own = PageHash { page: (first + bit).into(), hash: hash(&[&bytes[at.clone()]]) };
            live.push(own);
            if before != Some(&own) {
                mask |= 1 << bit;
                hashes.push(own.hash);
                if at.start != kept {
                    bytes.copy_within(at, kept);
                }
                kept += PAGE as usize;
            }
        }
        let pages = Pages { object, first, held: mask, gone, hashes: &hashes, bytes: &bytes[..kept] };
        let packed = (mask | gone != 0).then(|| (pages.pack(buffers), kept as u64));
        buffers.give(bytes);
        Ok(Done { object, live, packed })
    }
}
