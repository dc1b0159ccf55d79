use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};

const PAGE: usize = 4096;

#[derive(Clone, Default)]
pub(crate) struct Pages(HashMap<u64, Box<[u8; PAGE]>>);

impl Pages {
    pub(crate) fn read(&self, under: &Pages, at: u64, out: &mut [u8]) {
        for (number, within, part) in pieces(at, out.len()) {
            match self.0.get(&number).or_else(|| under.0.get(&number)) {
                Some(page) => out[part.clone()].copy_from_slice(&page[within..within + part.len()]),
                None => out[part].fill(0),
            }
        }
    }

    pub(crate) fn write(&mut self, under: &Pages, at: u64, data: &[u8]) {
        for (number, within, part) in pieces(at, data.len()) {
            let page = self.0.entry(number).or_insert_with(|| match under.0.get(&number) {
                Some(page) if part.len() < PAGE => page.clone(),
                _ => Box::new([0; PAGE]),
            });
            page[within..within + part.len()].copy_from_slice(&data[part]);
        }
    }

    pub(crate) fn fold(&mut self, over: Pages) {
        self.0.extend(over.0);
    }

    pub(crate) fn fingerprint(&self, under: &Pages) -> u64 {
        let mut changed: Vec<_> =
            self.0.iter().filter(|(number, page)| under.page(**number) != ***page).collect();
        changed.sort_unstable_by_key(|(number, _)| **number);
        let mut hasher = DefaultHasher::new();
        changed.hash(&mut hasher);
        hasher.finish()
    }

    pub(crate) fn numbers(&self) -> Vec<u64> {
        let mut numbers: Vec<u64> = self.0.keys().copied().collect();
        numbers.sort_unstable();
        numbers
    }

    pub(crate) const fn page_size() -> u64 {
        PAGE as u64
    }

    fn page(&self, number: u64) -> [u8; PAGE] {
        self.0.get(&number).map_or([0; PAGE], |page| **page)
    }
}

fn pieces(at: u64, len: usize) -> impl Iterator<Item = (u64, usize, std::ops::Range<usize>)> {
    let mut done = 0;
    std::iter::from_fn(move || {
        let position = at + done as u64;
        let within = (position % PAGE as u64) as usize;
        let part = done..len.min(done + PAGE - within);
        done = part.end;
        (!part.is_empty()).then_some((position / PAGE as u64, within, part))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_overlay_changes_what_is_read_and_leaves_what_is_below() {
        let (mut base, mut over, none) = (Pages::default(), Pages::default(), Pages::default());
        base.write(&none, 4000, &[1; 5000]);
        over.write(&base, 4090, &[2; 10]);
        let mut read = [9; 20];
        over.read(&base, 4085, &mut read);
        assert_eq!(read[..5], [1; 5]);
        assert_eq!(read[5..15], [2; 10]);
        assert_eq!(read[15..], [1; 5]);
        base.read(&none, 3990, &mut read);
        assert_eq!((read[..10].to_vec(), read[10..].to_vec()), (vec![0; 10], vec![1; 10]));
        let before = over.fingerprint(&base);
        assert_ne!(before, Pages::default().fingerprint(&base));
        base.fold(over.clone());
        assert_eq!(over.fingerprint(&base), Pages::default().fingerprint(&base));
        assert_eq!(base.numbers(), [0, 1, 2]);
    }
}
