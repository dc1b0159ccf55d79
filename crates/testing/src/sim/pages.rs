//! Sparse bytes with structural sharing: a clone costs one pointer per written 256 KiB, and clones
//! share unchanged pages.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};
use twox_hash::XxHash3_64;

pub(super) const PAGE: u64 = 4096;
const PAGES_PER_CHUNK: u64 = 64;

#[derive(Clone)]
struct Page {
    bytes: [u8; PAGE as usize],
    digest: OnceLock<u64>,
}

#[derive(Clone)]
struct Chunk {
    pages: [Option<Arc<Page>>; PAGES_PER_CHUNK as usize],
    digest: OnceLock<u64>,
}

impl Chunk {
    fn new() -> Self {
        Self { pages: std::array::from_fn(|_| None), digest: OnceLock::new() }
    }
}

#[derive(Clone, Default)]
pub(super) struct Pages {
    chunks: BTreeMap<u64, Arc<Chunk>>,
}

fn split(offset: u64, len: u64) -> impl Iterator<Item = (u64, usize, usize)> {
    let end = offset + len;
    let mut at = offset;
    std::iter::from_fn(move || {
        if at == end {
            return None;
        }
        let (number, within) = (at / PAGE, at % PAGE);
        let step = (PAGE - within).min(end - at);
        at += step;
        Some((number, within as usize, step as usize))
    })
}

impl Pages {
    fn page(&self, number: u64) -> Option<&Page> {
        let chunk = self.chunks.get(&(number / PAGES_PER_CHUNK))?;
        chunk.pages[(number % PAGES_PER_CHUNK) as usize].as_deref()
    }

    fn slot(&mut self, number: u64) -> &mut Option<Arc<Page>> {
        let chunk = self.chunks.entry(number / PAGES_PER_CHUNK).or_insert_with(|| Arc::new(Chunk::new()));
        let chunk = Arc::make_mut(chunk);
        chunk.digest = OnceLock::new();
        &mut chunk.pages[(number % PAGES_PER_CHUNK) as usize]
    }

    pub(super) fn read(&self, offset: u64, buf: &mut [u8]) {
        let mut rest = buf;
        for (number, within, step) in split(offset, rest.len() as u64) {
            let (head, tail) = rest.split_at_mut(step);
            match self.page(number) {
                Some(page) => head.copy_from_slice(&page.bytes[within..within + step]),
                None => head.fill(0),
            }
            rest = tail;
        }
    }

    pub(super) fn write(&mut self, offset: u64, bytes: &[u8]) {
        let mut rest = bytes;
        for (number, within, step) in split(offset, bytes.len() as u64) {
            let (head, tail) = rest.split_at(step);
            rest = tail;
            // Zeros over an absent page allocate no memory.
            if self.page(number).is_none() && head.iter().all(|b| *b == 0) {
                continue;
            }
            let page = self
                .slot(number)
                .get_or_insert_with(|| Arc::new(Page { bytes: [0; PAGE as usize], digest: OnceLock::new() }));
            let page = Arc::make_mut(page);
            page.digest = OnceLock::new();
            page.bytes[within..within + step].copy_from_slice(head);
        }
    }

    pub(super) fn zero(&mut self, offset: u64, len: u64) {
        for number in self.present(offset, len) {
            let start = (number * PAGE).max(offset);
            let end = ((number + 1) * PAGE).min(offset + len);
            if end - start == PAGE {
                *self.slot(number) = None;
            } else {
                self.write(start, &[0; PAGE as usize][..(end - start) as usize]);
            }
        }
    }

    pub(super) fn present(&self, offset: u64, len: u64) -> Vec<u64> {
        if len == 0 {
            return Vec::new();
        }
        let (first, last) = (offset / PAGE, (offset + len - 1) / PAGE);
        self.chunks
            .range(first / PAGES_PER_CHUNK..=last / PAGES_PER_CHUNK)
            .flat_map(|(at, chunk)| {
                (0..PAGES_PER_CHUNK)
                    .filter(|slot| chunk.pages[*slot as usize].is_some())
                    .map(move |slot| at * PAGES_PER_CHUNK + slot)
            })
            .filter(|number| (first..=last).contains(number))
            .collect()
    }

    /// Pages cache theirs, so that an image costs only its unshared pages.
    pub(super) fn digest(&self) -> u64 {
        self.chunks.iter().fold(0, |sum: u64, (at, chunk)| {
            sum.wrapping_add(*chunk.digest.get_or_init(|| chunk_digest(*at, chunk)))
        })
    }
}

fn chunk_digest(at: u64, chunk: &Chunk) -> u64 {
    chunk.pages.iter().zip(at * PAGES_PER_CHUNK..).fold(0, |sum: u64, (page, number)| {
        let Some(page) = page else { return sum };
        sum.wrapping_add(*page.digest.get_or_init(|| {
            // A page of zeros equals an absent one.
            if page.bytes.iter().all(|b| *b == 0) {
                0
            } else {
                XxHash3_64::oneshot_with_seed(number, &page.bytes)
            }
        }))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digest_depends_on_contents_alone() {
        let mut a = Pages::default();
        a.write(5000, &[1; 9000]);
        let before = a.digest();
        let mut b = a.clone();
        b.write(6000, &[2]);
        assert_ne!(b.digest(), before);
        b.write(6000, &[1]);
        assert_eq!(b.digest(), before);
        assert_eq!(a.digest(), before, "a clone is independent");
        b.zero(0, 1 << 40);
        assert_eq!(b.digest(), Pages::default().digest());
        a.write(5000, &[0; 9000]);
        assert_eq!(a.digest(), Pages::default().digest());
    }

    #[test]
    fn content_moved_to_another_page_is_other_content() {
        let (mut a, mut b) = (Pages::default(), Pages::default());
        a.write(0, &[1]);
        b.write(PAGE, &[1]);
        assert_ne!(a.digest(), b.digest());
    }

    #[test]
    fn partial_zero_keeps_its_surroundings() {
        let mut pages = Pages::default();
        pages.write(4000, &[9; 200]);
        pages.zero(4050, 100);
        let mut got = [0; 200];
        pages.read(4000, &mut got);
        assert_eq!((&got[..50], &got[50..150], &got[150..]), (&[9; 50][..], &[0; 100][..], &[9; 50][..]));
        assert_eq!(pages.present(0, 1 << 40), [0, 1]);
    }
}
