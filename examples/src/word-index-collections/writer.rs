use crate::reader::Reader;
use crate::words::{File, Posting, ROOT, Word, Words};
use anyhow::{Context, Result};
use indelible::collections::PVec;
use indelible::{Heap, HeapOptions, Object, ReadHeap, ReadObject};
use indelible_examples::{Damage, Digest, Fuse, Index, Version, ensure};
use std::path::Path;

pub(crate) struct Collected {
    heap: Heap,
    fuse: Fuse,
}

impl Index for Collected {
    const NAME: &'static str = "word-index-collections";
    type Attached = ReadHeap;
    type Reader<'a> = Reader<'a>;

    fn open(object: Object, fuse: Fuse) -> Result<Self> {
        let mut heap = Heap::open_or_format_with(object, HeapOptions::new().grow(true))?;
        heap.root_or_default::<Words>(ROOT)?;
        Ok(Collected { heap, fuse })
    }

    fn reader(&self) -> Result<Reader<'_>> {
        Ok(Reader(self.heap.root_ref(ROOT)?))
    }

    fn add(&mut self, path: &Path, version: Version, digest: Option<&Digest>) -> Result<()> {
        let path = path.as_os_str().as_encoded_bytes();
        self.make_room(digest.map_or(0, |digest| digest.counts.len()))?;
        let (index, heap) = self.heap.root_and_heap::<Words>(ROOT)?;
        let number = index.next;
        index.next = number.checked_add(1).context("no more files can be numbered")?;
        let mut words = PVec::new_in(heap);
        words.try_reserve(digest.map_or(0, |digest| digest.counts.len()))?;
        for (text, count) in digest.iter().flat_map(|digest| &digest.counts) {
            self.fuse.burn();
            let word = match index.numbers.get(&**text) {
                Some(word) => *word,
                None => index.name(text)?,
            };
            let entry = index.word_mut(word)?;
            entry.count += *count;
            entry.postings.try_push(Posting { file: number, count: u32::try_from(*count)? })?;
            words.try_push(word)?;
        }
        let (tokens, bytes) = digest.map_or((0, 0), |digest| (digest.tokens, digest.bytes));
        index.postings += words.len() as u64;
        index.tokens += tokens;
        index.bytes += bytes;
        let own = PVec::from_in(path.iter().copied(), heap);
        index.paths.try_insert(own.clone(), number)?;
        let Version { size, modified } = version;
        index.files.try_insert(number, File { path: own, size, modified, tokens, bytes, words })?;
        Ok(())
    }

    fn remove(&mut self, path: &Path) -> Result<()> {
        let index = self.heap.root_mut::<Words>(ROOT)?;
        let Some(number) = index.paths.remove(path.as_os_str().as_encoded_bytes()) else { return Ok(()) };
        let gone = || Damage(format!("{} has no file", path.display()));
        let file = index.files.remove(&number).ok_or_else(gone)?;
        for word in &file.words {
            self.fuse.burn();
            let entry = index.word_mut(*word)?;
            let at = entry.posting(number).ok_or_else(gone)?;
            let posting = entry.postings.remove(at);
            entry.count = entry.count.wrapping_sub(posting.count.into());
        }
        index.postings = index.postings.wrapping_sub(file.words.len() as u64);
        index.tokens = index.tokens.wrapping_sub(file.tokens);
        index.bytes = index.bytes.wrapping_sub(file.bytes);
        Ok(())
    }

    fn step(&mut self) -> Result<u64> {
        let index = self.heap.root_mut::<Words>(ROOT)?;
        index.step += 1;
        Ok(index.step)
    }

    fn psync(&mut self) -> Result<()> {
        Ok(self.heap.psync()?)
    }

    fn detach(self) -> Result<()> {
        Ok(self.heap.into_object().detach()?)
    }

    fn attach(object: ReadObject) -> Result<ReadHeap> {
        Ok(ReadHeap::open(object)?)
    }

    fn read(heap: &ReadHeap) -> Result<Reader<'_>> {
        Ok(Reader(heap.root_ref(ROOT)?))
    }

    fn check(heap: &ReadHeap) -> Result<()> {
        let found = heap.check();
        ensure(found.is_empty(), || format!("the heap: {found:?}"))?;
        crate::check::check(Collected::read(heap)?)
    }

    fn space(heap: &ReadHeap) -> Result<(u64, u64)> {
        let stats = heap.stats()?;
        Ok((stats.bytes - stats.free_bytes, stats.class_bytes))
    }
}

impl Collected {
    /// Makes room for the most that a file's words need at once: the vector of all words may be
    /// copied to one of twice the size. Nothing refers to the object here, so that it may move.
    fn make_room(&mut self, words: usize) -> Result<()> {
        let all = self.heap.root_ref::<Words>(ROOT)?.words.len() + words;
        Ok(self.heap.reserve(3 * all * size_of::<Word<'_>>() + words * 256 + (1 << 16))?)
    }
}

impl<'h> Words<'h> {
    fn name(&mut self, text: &str) -> Result<u32> {
        let number = u32::try_from(self.words.len()).context("no more words can be numbered")?;
        self.words.try_push(Word::default())?;
        self.numbers.try_insert(text, number)?;
        Ok(number)
    }

    fn word_mut(&mut self, number: u32) -> Result<&mut Word<'h>, Damage> {
        self.words.get_mut(number as usize).ok_or_else(|| Damage(format!("there is no word {number}")))
    }
}
