//! A backup with its bases, oldest first, and their damage.

use crate::Progress;
use crate::decode::{Chunk, Decoder};
use crate::error::{BackupError, Result};
use crate::format::{BUFFER, Hash, Header, hex};
use indelible_store::store::Attributes;
use std::collections::{BTreeMap, HashMap};
use std::fs::{self, File};
use std::io::{BufReader, Read};
use std::path::{Path, PathBuf};
use zerocopy::little_endian::U64;

/// Suffix of backups in a folder.
pub(crate) const SUFFIX: &str = "pmobackup";
/// Suffix of interrupted ones, kept as bases of others.
pub(crate) const PART: &str = "pmopart";

pub(crate) struct Link {
    pub path: PathBuf,
    pub header: Header,
    pub objects: Vec<Attributes>,
}

pub(crate) struct Chain {
    /// Oldest first.
    pub links: Vec<Link>,
    /// For each object of the newest, by ID: the first link to read, and from there the number of
    /// valid pages in each.
    pub spans: HashMap<[u8; 16], (usize, Vec<u64>)>,
}

/// A backup's content.
#[derive(Clone, Debug)]
pub struct Kept {
    /// The file.
    pub path: PathBuf,
    /// ID of the backup.
    pub id: String,
    /// ID of the pool.
    pub pool: String,
    /// Bytes of the pool.
    pub pool_len: u64,
    /// Addresses of the pool: first, bytes.
    pub window: (u64, u64),
    /// Seconds since 1970.
    pub created: u64,
    /// Number of its bases.
    pub depth: u32,
    /// The objects.
    pub objects: Vec<Attributes>,
}

/// A damaged place.
#[derive(Clone, Debug)]
pub struct Damage {
    /// The damaged file.
    pub path: PathBuf,
    /// The byte in the file.
    pub at: u64,
    /// An object's name with an offset, or a part of the file.
    pub what: String,
}

/// A verification's result.
#[derive(Clone, Debug)]
pub struct Verified {
    /// The backup.
    pub kept: Kept,
    /// Files that were read.
    pub files: Vec<PathBuf>,
    /// Bytes of objects in them.
    pub bytes: u64,
    /// Its damage, up to a limit.
    pub damage: Vec<Damage>,
}

const MOST: usize = 1000;

pub(crate) fn open(path: &Path) -> Result<Decoder<BufReader<File>>> {
    let file = File::open(path).map_err(BackupError::file("open", path))?;
    Decoder::open(BufReader::with_capacity(BUFFER, file), path)
}

/// The file itself, or the newest backup in a folder of one pool's backups.
pub(crate) fn named(path: &Path) -> Result<PathBuf> {
    newest(path, None)
}

/// The file itself, or the newest backup in a folder; `pool` chooses by the first digits of a
/// pool's ID.
///
/// # Errors
/// `NotABackup`; `SeveralPools` if backups of several pools match; `Damaged` if the folder's last
/// file is unreadable.
pub fn newest(path: &Path, pool: Option<&str>) -> Result<PathBuf> {
    let all = newest_of_each(path, pool)?;
    match &all[..] {
        [] => Err(BackupError::NotABackup(path.to_owned())),
        [one] => Ok(one.clone()),
        _ => {
            let pools = all.iter().map(|path| Ok((describe(path)?.pool, path.clone())));
            Err(BackupError::SeveralPools { folder: path.to_owned(), pools: pools.collect::<Result<_>>()? })
        }
    }
}

/// The newest backup of each pool in a folder, or of the pool whose ID begins with `pool`; a file
/// is its own.
///
/// # Errors
/// As for [`newest`].
pub fn newest_of_each(path: &Path, pool: Option<&str>) -> Result<Vec<PathBuf>> {
    if !path.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let found = entries(path)?;
    let mut all: BTreeMap<[u8; 16], (PathBuf, Header)> = BTreeMap::new();
    let mut last = 0;
    for (path, header) in found.iter().filter_map(|(path, header)| Some((path, header.as_ref().ok()?))) {
        last = last.max(number(path));
        let newer = |before: &(PathBuf, Header)| rank(&before.0, &before.1) < rank(path, header);
        if !is_part(path) && all.get(&header.pool).is_none_or(newer) {
            all.insert(header.pool, (path.clone(), *header));
        }
    }
    // An unreadable newest backup must not be mistaken for an older one.
    let lost = found.into_iter().filter(|(path, _)| !is_part(path) && number(path) > last);
    if let Some(error) = lost.filter_map(|(_, header)| header.err()).next() {
        return Err(error);
    }
    let fits = |id: &[u8; 16]| pool.is_none_or(|pool| hex(id).starts_with(&pool.to_ascii_lowercase()));
    let all: Vec<_> = all.into_iter().filter(|(id, _)| fits(id)).map(|(_, (path, _))| path).collect();
    match pool {
        Some(pool) if all.is_empty() => {
            Err(BackupError::NoBackupOf { folder: path.to_owned(), pool: pool.to_owned() })
        }
        None if all.is_empty() => Err(BackupError::NotABackup(path.to_owned())),
        _ => Ok(all),
    }
}

/// Order of one pool's backups: by the pool's state, then the number in the name. The clock decides
/// only between renamed files of earlier releases.
pub(crate) fn rank(path: &Path, header: &Header) -> ([u64; 3], u64, u64, u32) {
    (header.state.map(U64::get), number(path), header.created.get(), header.depth.get())
}

/// The number at a name's end; 0: none.
pub(crate) fn number(path: &Path) -> u64 {
    let stem = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
    stem.rsplit_once('-').and_then(|(_, number)| number.parse().ok()).unwrap_or(0)
}

fn is_part(path: &Path) -> bool {
    path.extension().is_some_and(|end| end == PART)
}

/// Intact headers, interrupted ones included.
pub(crate) fn files(folder: &Path) -> Result<Vec<(PathBuf, Header)>> {
    let intact = |(path, header): (PathBuf, Result<Header>)| Some((path, header.ok()?));
    Ok(entries(folder)?.into_iter().filter_map(intact).collect())
}

/// All files with a backup's name.
fn entries(folder: &Path) -> Result<Vec<(PathBuf, Result<Header>)>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).map_err(BackupError::file("read", folder))? {
        let path = entry.map_err(BackupError::file("read", folder))?.path();
        let hidden = path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"."));
        if !hidden && path.extension().is_some_and(|end| end == SUFFIX || end == PART) {
            let header = open(&path).map(|decoder| decoder.header);
            found.push((path, header));
        }
    }
    Ok(found)
}

impl Chain {
    /// Finds the bases in its folder.
    pub fn open(path: &Path) -> Result<Self> {
        let newest = open(path)?;
        Self::below(Link { path: path.to_owned(), header: newest.header, objects: newest.objects })
    }

    fn below(newest: Link) -> Result<Self> {
        let folder = newest.path.parent().filter(|folder| *folder != "").unwrap_or(Path::new(".")).to_owned();
        let mut links = vec![newest];
        let known = if links[0].header.depth.get() > 0 { files(&folder)? } else { Vec::new() };
        while let Some(Link { path, header, .. }) = links.last().filter(|link| link.header.depth.get() > 0) {
            let missing = || BackupError::BaseMissing {
                path: path.clone(),
                parent: hex(&header.parent),
                folder: folder.clone(),
            };
            let fits = |found: &Header| {
                found.id == header.parent
                    && found.pool == header.pool
                    && found.depth.get() + 1 == header.depth.get()
            };
            let (below, _) = known.iter().find(|(_, found)| fits(found)).ok_or_else(missing)?;
            let decoder = open(below)?;
            if !fits(&decoder.header) {
                return Err(missing());
            }
            links.push(Link { path: below.clone(), header: decoder.header, objects: decoder.objects });
        }
        links.reverse();
        Ok(Chain { spans: spans(&links), links })
    }

    pub fn kept(&self) -> Kept {
        let newest = &self.links[self.links.len() - 1];
        Kept::of(&newest.path, &newest.header, &newest.objects)
    }

    /// Passes all chunks, oldest first, to `visit` with the number of their link. Proves each file,
    /// and that it is the next one's base. Returns the newest one's hash.
    ///
    /// # Errors
    /// `Damaged`, `BaseSwapped`; `Interrupted` for the newest, unless it is read `as_base`.
    pub fn read(
        &self,
        as_base: bool,
        visit: &mut dyn FnMut(usize, &Attributes, &Chunk) -> Result<()>,
    ) -> Result<Hash> {
        let mut below = None;
        for (number, link) in self.links.iter().enumerate() {
            let mut decoder = open(&link.path)?;
            if decoder.header != link.header || decoder.objects != link.objects {
                let what = "it changed while it was read".into();
                return Err(BackupError::Damaged { path: link.path.clone(), at: 0, what });
            }
            self.expect_base(number, below)?;
            decoder.each(&mut |chunk| {
                let chunk = chunk?;
                visit(number, &link.objects[chunk.object], chunk)
            })?;
            if decoder.is_interrupted() && !as_base && number + 1 == self.links.len() {
                return Err(BackupError::Interrupted(link.path.clone()));
            }
            below = decoder.whole();
        }
        Ok(below.unwrap_or_default())
    }

    fn expect_base(&self, number: usize, below: Option<Hash>) -> Result<()> {
        let link = &self.links[number];
        if number > 0 && below != Some(link.header.parent_hash) {
            let base = self.links[number - 1].path.clone();
            return Err(BackupError::BaseSwapped { path: link.path.clone(), base });
        }
        Ok(())
    }

    /// The object's valid pages in this link; 0 if the newest backup lacks it, or it began later.
    pub fn limit(&self, number: usize, id: &[u8; 16]) -> u64 {
        let Some((from, limits)) = self.spans.get(id) else { return 0 };
        number.checked_sub(*from).and_then(|at| limits.get(at)).copied().unwrap_or(0)
    }
}

fn spans(links: &[Link]) -> HashMap<[u8; 16], (usize, Vec<u64>)> {
    let mut spans: HashMap<[u8; 16], (usize, Vec<u64>)> = HashMap::new();
    for (number, link) in links.iter().enumerate().rev() {
        for object in &link.objects {
            let own = object.pages();
            if number + 1 == links.len() {
                spans.insert(object.id, (number, vec![own]));
            } else if let Some((from, limits)) =
                spans.get_mut(&object.id).filter(|(from, _)| *from == number + 1)
            {
                // A page that a shrink removed and a growth brought back is another page.
                let later = limits.first().copied().unwrap_or(0);
                *from = number;
                limits.insert(0, own.min(later));
            }
        }
    }
    spans
}

impl Kept {
    pub(crate) fn of(path: &Path, header: &Header, objects: &[Attributes]) -> Self {
        Kept {
            path: path.to_owned(),
            id: hex(&header.id),
            pool: hex(&header.pool),
            pool_len: header.pool_len.get(),
            window: (header.window.get(), header.window_len.get()),
            created: header.created.get(),
            depth: header.depth.get(),
            objects: objects.to_vec(),
        }
    }
}

/// A backup's content, by its start. `path` may be a folder, for its newest backup.
///
/// # Errors
/// It is no backup, or its start is damaged.
pub fn describe(path: &Path) -> Result<Kept> {
    let path = named(path)?;
    let decoder = open(&path)?;
    Ok(Kept::of(&path, &decoder.header, &decoder.objects))
}

/// Reads every byte of a backup and its bases. `path` may be a folder, for its newest backup.
///
/// # Errors
/// It is unreadable or no backup, or a base is missing. Damage is listed instead.
pub fn verify(path: &Path, progress: Progress<'_>) -> Result<Verified> {
    let chain = Chain::open(&named(path)?)?;
    let kept = chain.kept();
    let files = chain.links.iter().map(|link| link.path.clone()).collect();
    let mut verified = Verified { kept, files, bytes: 0, damage: Vec::new() };
    let mut below = None;
    for number in 0..chain.links.len() {
        let mut decoder = open(&chain.links[number].path)?;
        let before = verified.damage.len();
        read_all(&mut decoder, &mut verified, progress)?;
        if decoder.is_interrupted() && number + 1 == chain.links.len() {
            return Err(BackupError::Interrupted(chain.links[number].path.clone()));
        }
        // A damaged base was reported.
        if let Some(Err(error)) = below.map(|below| chain.expect_base(number, Some(below))) {
            let what = error.to_string();
            verified.damage.push(Damage { path: chain.links[number].path.clone(), at: 0, what });
        }
        below = if verified.damage.len() == before { decoder.whole() } else { None };
    }
    Ok(verified)
}

/// As [`verify`], of a full backup in a stream.
///
/// # Errors
/// As for [`verify`].
pub fn verify_stream(input: &mut dyn Read, name: &Path, progress: Progress<'_>) -> Result<Verified> {
    let mut decoder = Decoder::open(input, name)?;
    let kept = Kept::of(name, &decoder.header, &decoder.objects);
    let mut verified = Verified { kept, files: vec![name.to_owned()], bytes: 0, damage: Vec::new() };
    read_all(&mut decoder, &mut verified, progress)?;
    Ok(verified)
}

fn read_all(decoder: &mut Decoder<impl Read>, verified: &mut Verified, progress: Progress<'_>) -> Result<()> {
    let total = decoder.objects.iter().map(|object| object.size).fold(0, u64::saturating_add);
    decoder.each(&mut |chunk| match chunk {
        Ok(chunk) => {
            verified.bytes += chunk.bytes.len() as u64;
            progress(verified.bytes.min(total), total);
            Ok(())
        }
        Err(BackupError::Damaged { path, at, what }) => {
            if verified.damage.len() < MOST {
                verified.damage.push(Damage { path, at, what });
            }
            Ok(())
        }
        Err(error) => Err(error),
    })
}
