use crate::arena::{Arena, Record, View};
use crate::layout::{self, File, INITIALS, MAGIC, Node, Posting, Root, Table, VERSION, Word};
use crate::reader::Reader;
use anyhow::{Context, Result, bail};
use indelible::{Object, ReadObject};
use indelible_examples::{Damage, Digest, Fuse, Index, Version, hash};
use std::path::Path;
use std::ptr::null_mut;

const BUCKETS: u64 = 4096;

pub(crate) struct Native {
    arena: Arena,
}

impl Index for Native {
    const NAME: &'static str = "word-index";
    type Attached = ReadObject;
    type Reader<'a> = Reader<'a>;

    fn open(object: Object, fuse: Fuse) -> Result<Self> {
        let mut index = Native { arena: Arena::new(object, fuse) };
        let root = *index.root()?;
        if root.magic == [0; 8] {
            index.make()?;
        }
        index.reader()?;
        Ok(index)
    }

    fn reader(&self) -> Result<Reader<'_>> {
        Reader::new(self.arena.view())
    }

    fn add(&mut self, path: &Path, version: Version, digest: Option<&Digest>) -> Result<()> {
        let path = path.as_os_str().as_encoded_bytes();
        let distinct = digest.map_or(0, |digest| digest.counts.len() as u64);
        let file: *mut File = self.alloc(size_of::<File>() as u64)?.cast();
        let postings: *mut Posting = self.alloc(distinct * size_of::<Posting>() as u64)?.cast();
        for (at, (text, count)) in digest.iter().flat_map(|digest| &digest.counts).enumerate() {
            let word = self.word(text)?;
            let posting = postings.wrapping_add(at);
            let found = self.arena.get(word)?;
            let next = std::mem::replace(&mut found.postings, posting);
            add(&mut found.files, 1);
            add(&mut found.count, *count);
            *self.arena.get(posting)? = Posting { next, word, file, count: *count };
        }
        let (tokens, bytes) = digest.map_or((0, 0), |digest| (digest.tokens, digest.bytes));
        *self.arena.get(file)? = File {
            next: null_mut(),
            hash: hash(path),
            path: self.text(path)?,
            path_len: path.len() as u64,
            size: version.size,
            modified: version.modified,
            postings,
            distinct,
            tokens,
            bytes,
        };
        self.insert(|root| &mut root.files, file)?;
        let root = self.root()?;
        add(&mut root.postings, distinct);
        add(&mut root.tokens, tokens);
        add(&mut root.bytes, bytes);
        Ok(())
    }

    fn remove(&mut self, path: &Path) -> Result<()> {
        let Some((file, _)) = self.reader()?.file_at(path)? else { return Ok(()) };
        let File { hash, path_len, postings, distinct, tokens, bytes, .. } = *self.arena.view().get(file)?;
        self.reader()?.contents(self.arena.view().get(file)?)?;
        for at in 0..distinct as usize {
            let posting = postings.wrapping_add(at);
            let Posting { next, word, count, .. } = *self.arena.view().get(posting)?;
            let Word { postings: first, files, .. } = *self.arena.view().get(word)?;
            match self.before(first, posting, files, |posting| posting.next)? {
                Some(before) => self.arena.get(before)?.next = next,
                None => self.arena.get(word)?.postings = next,
            }
            let word = self.arena.get(word)?;
            take(&mut word.files, 1);
            take(&mut word.count, count);
        }
        let table = self.root()?.files;
        let bucket = table.bucket(hash);
        let first = *self.arena.view().get(bucket)?;
        let next = self.arena.view().get(file)?.next;
        match self.before(first, file, table.len, |file| file.next)? {
            Some(before) => self.arena.get(before)?.next = next,
            None => *self.arena.get(bucket)? = next,
        }
        let root = self.root()?;
        take(&mut root.files.len, 1);
        take(&mut root.postings, distinct);
        take(&mut root.tokens, tokens);
        take(&mut root.bytes, bytes);
        for freed in
            [size_of::<File>() as u64, distinct * size_of::<Posting>() as u64, path_len.next_multiple_of(8)]
        {
            add(&mut root.garbage, freed);
        }
        Ok(())
    }

    fn step(&mut self) -> Result<u64> {
        let root = self.root()?;
        add(&mut root.step, 1);
        Ok(root.step)
    }

    fn psync(&mut self) -> Result<()> {
        Ok(self.arena.object().psync()?)
    }

    fn detach(self) -> Result<()> {
        Ok(self.arena.into_object().detach()?)
    }

    fn attach(object: ReadObject) -> Result<ReadObject> {
        Ok(object)
    }

    fn read(object: &ReadObject) -> Result<Reader<'_>> {
        Reader::new(View::new(object.as_slice()))
    }

    fn check(object: &ReadObject) -> Result<()> {
        crate::check::check(Native::read(object)?)
    }

    fn space(object: &ReadObject) -> Result<(u64, u64)> {
        let reader = Native::read(object)?;
        Ok((reader.used(), reader.root().garbage))
    }
}

impl Native {
    fn make(&mut self) -> Result<()> {
        let free = self.arena.object().as_mut_ptr().wrapping_add(size_of::<Root>());
        *self.root()? = Root {
            magic: MAGIC,
            version: VERSION,
            step: 0,
            free,
            garbage: 0,
            words: Table { buckets: null_mut(), bucket_count: 0, len: 0 },
            files: Table { buckets: null_mut(), bucket_count: 0, len: 0 },
            initials: null_mut(),
            postings: 0,
            tokens: 0,
            bytes: 0,
        };
        self.root()?.words = self.table()?;
        self.root()?.files = self.table()?;
        self.root()?.initials = self.alloc((INITIALS * 8) as u64)?.cast();
        Ok(())
    }

    fn table<T: Node + Record>(&mut self) -> Result<Table<T>> {
        let buckets = self.alloc(BUCKETS * 8)?.cast();
        Ok(Table { buckets, bucket_count: BUCKETS, len: 0 })
    }

    fn root(&mut self) -> Result<&mut Root> {
        let base = self.arena.object().as_mut_ptr();
        Ok(self.arena.get(base.cast())?)
    }

    fn alloc(&mut self, len: u64) -> Result<*mut u8> {
        let at = self.root()?.free;
        let end = at.wrapping_add(len.next_multiple_of(8) as usize);
        self.arena.reach(end).context("the index is full")?;
        self.root()?.free = end;
        Ok(at)
    }

    fn text(&mut self, text: &[u8]) -> Result<*mut u8> {
        let at = self.alloc(text.len() as u64)?;
        self.arena.slice(at, text.len() as u64)?.copy_from_slice(text);
        Ok(at)
    }

    /// The node before `target` in a list; `None` if it is the first.
    fn before<T: Record>(
        &self,
        first: *mut T,
        target: *mut T,
        most: u64,
        next: impl Fn(&T) -> *mut T,
    ) -> Result<Option<*mut T>> {
        if first == target {
            return Ok(None);
        }
        for found in self.arena.view().chain(first, most, &next) {
            let (at, value) = found?;
            if next(value) == target {
                return Ok(Some(at));
            }
        }
        bail!(Damage(format!("{target:p} is not on the list that begins with {first:p}")))
    }

    fn word(&mut self, text: &str) -> Result<*mut Word> {
        let hash = hash(text.as_bytes());
        if let Some((word, _)) = self.reader()?.word_of(text.as_bytes(), hash)? {
            return Ok(word);
        }
        let word: *mut Word = self.alloc(size_of::<Word>() as u64)?.cast();
        let copy = self.text(text.as_bytes())?;
        let list = self.root()?.initials.wrapping_add(layout::initials(text.as_bytes()).start);
        let alike = std::mem::replace(self.arena.get(list)?, word);
        *self.arena.get(word)? = Word {
            next: null_mut(),
            alike,
            hash,
            text: copy,
            len: text.len() as u64,
            postings: null_mut(),
            files: 0,
            count: 0,
        };
        self.insert(|root| &mut root.words, word)?;
        Ok(word)
    }

    fn insert<T: Node + Record>(&mut self, of: fn(&mut Root) -> &mut Table<T>, node: *mut T) -> Result<()> {
        let mut table = *of(self.root()?);
        if table.len >= table.bucket_count {
            table = self.enlarge(table)?;
        }
        self.link(&table, node)?;
        add(&mut table.len, 1);
        *of(self.root()?) = table;
        Ok(())
    }

    fn link<T: Node + Record>(&mut self, table: &Table<T>, node: *mut T) -> Result<()> {
        let bucket = table.bucket(self.arena.view().get(node)?.hash());
        let next = std::mem::replace(self.arena.get(bucket)?, node);
        *self.arena.get(node)?.next_mut() = next;
        Ok(())
    }

    fn enlarge<T: Node + Record>(&mut self, old: Table<T>) -> Result<Table<T>> {
        let chains = self.reader()?.buckets(&old)?.to_vec();
        let bucket_count = old.bucket_count * 2;
        let new = Table { buckets: self.alloc(bucket_count * 8)?.cast(), bucket_count, len: old.len };
        let mut nodes = Vec::new();
        for first in chains {
            for node in self.arena.view().chain(first, old.len, T::next) {
                nodes.push(node?.0);
            }
            for node in nodes.drain(..) {
                self.link(&new, node)?;
            }
        }
        add(&mut self.root()?.garbage, old.bucket_count * 8);
        Ok(new)
    }
}

/// The number may be anything in a damaged object.
fn add(number: &mut u64, more: u64) {
    *number = number.wrapping_add(more);
}

fn take(number: &mut u64, less: u64) {
    *number = number.wrapping_sub(less);
}
