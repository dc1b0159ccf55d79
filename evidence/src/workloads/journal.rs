//! A process's journal of actions, in a file outside of the pool.
//!
//! An event is written before the action, its outcome afterwards. Files outlive SIGKILL: later
//! processes know the acknowledged events, others read the progress.

use super::world::Trouble;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

pub(crate) type Event = [u64; WORDS];

const WORDS: usize = 8;
const LEN: u64 = WORDS as u64 * 8;

pub(crate) const UNDER_WAY: u64 = 0;
pub(crate) const DONE: u64 = 1;
/// It did not happen, and must never be seen.
pub(crate) const UNDONE: u64 = 2;

pub(crate) struct Journal {
    file: File,
}

impl Journal {
    pub(crate) fn open(path: &Path) -> Result<Journal, Trouble> {
        let file = File::options().read(true).write(true).create(true).truncate(false).open(path);
        Ok(Journal { file: file.map_err(trouble)? })
    }

    pub(crate) fn last(&self) -> Result<u64, Trouble> {
        Ok(self.file.metadata().map_err(trouble)?.len() / LEN)
    }

    pub(crate) fn get(&self, number: u64) -> Result<Event, Trouble> {
        let mut bytes = [0; LEN as usize];
        self.file.read_exact_at(&mut bytes, (number - 1) * LEN).map_err(trouble)?;
        let (words, _) = bytes.as_chunks::<8>();
        Ok(std::array::from_fn(|word| u64::from_le_bytes(words[word])))
    }

    pub(crate) fn begin(&self, event: &Event) -> Result<u64, Trouble> {
        let number = self.last()? + 1;
        let bytes: Vec<u8> = event.iter().flat_map(|word| word.to_le_bytes()).collect();
        self.file.write_all_at(&bytes, (number - 1) * LEN).map_err(trouble)?;
        Ok(number)
    }

    pub(crate) fn set(&self, number: u64, word: usize, value: u64) -> Result<(), Trouble> {
        let at = (number - 1) * LEN + word as u64 * 8;
        self.file.write_all_at(&value.to_le_bytes(), at).map_err(trouble)
    }

    pub(crate) fn end(&self, number: u64, happened: bool) -> Result<(), Trouble> {
        self.set(number, 0, if happened { DONE } else { UNDONE })
    }

    pub(crate) fn under_way(&self) -> Result<Option<(u64, Event)>, Trouble> {
        let last = self.last()?;
        if last == 0 {
            return Ok(None);
        }
        let event = self.get(last)?;
        Ok((event[0] == UNDER_WAY).then_some((last, event)))
    }

    pub(crate) fn known(&self) -> Result<u64, Trouble> {
        let last = self.last()?;
        Ok(if self.under_way()?.is_some() { last - 1 } else { last })
    }
}

fn trouble(error: std::io::Error) -> Trouble {
    Trouble::Wrong(format!("the journal of a process fails: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_read_as_they_were_written() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal");
        let journal = Journal::open(&path).unwrap();
        assert_eq!((journal.last().unwrap(), journal.known().unwrap()), (0, 0));
        let event = [UNDER_WAY, 3, 4, 5, 6, 7, 8, u64::MAX];
        assert_eq!(journal.begin(&event).unwrap(), 1);
        journal.end(1, false).unwrap();
        assert_eq!(journal.begin(&event).unwrap(), 2);
        let other = Journal::open(&path).unwrap();
        assert_eq!((other.last().unwrap(), other.known().unwrap()), (2, 1));
        assert_eq!(other.under_way().unwrap(), Some((2, event)));
        journal.set(2, 7, 9).unwrap();
        journal.end(2, true).unwrap();
        assert_eq!(other.under_way().unwrap(), None);
        assert_eq!(other.get(1).unwrap(), [UNDONE, 3, 4, 5, 6, 7, 8, u64::MAX]);
        assert_eq!(other.get(2).unwrap(), [DONE, 3, 4, 5, 6, 7, 8, 9]);
    }
}
