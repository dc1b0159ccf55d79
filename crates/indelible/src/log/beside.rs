//! A log read in place, beside its writer.
//!
//! Invariants:
//! 1. A psync with `newest` as its header is durable. No later psync changes the records before its
//!    end.
//! 2. Those records lie in place, with the lines of `ahead` laid over them in their order.

use super::format::{HEADER, Header};
use crate::error::{Cause, LogError};
use crate::pool::Inner;
use indelible_store::error::StoreError;
use indelible_store::store::{Followed, InPlace};
use indelible_store::table::Key;
use std::sync::Arc;
use std::time::Duration;

const CHUNK: usize = 256 << 10;
/// Bytes of lines kept before the log is reattached, whose lane then has fewer.
const MOST: usize = 64 << 20;
const ATTEMPTS: u32 = 50;
const PAUSE: Duration = Duration::from_micros(500);

pub(super) struct Beside {
    pool: Arc<Inner>,
    name: String,
    key: Vec<u8>,
    place: InPlace,
    newest: Header,
    ahead: Vec<(usize, Vec<u8>)>,
    buffer: Vec<u8>,
    begin: usize,
}

impl Beside {
    pub(super) fn attach(pool: &Arc<Inner>, name: &str, key: &[u8]) -> Result<Option<Beside>, Cause> {
        pool.alive()?;
        if pool.store.is_read_only() {
            return Ok(None);
        }
        for _ in 0..ATTEMPTS {
            let found = pool.patiently(|| Ok(pool.store.attach_in_place(name, Key(key))?))?;
            let Some(place) = found else {
                recover(pool, name, key)?;
                continue;
            };
            let (name, key) = (name.to_owned(), key.to_vec());
            let (ahead, buffer) = (Vec::new(), Vec::new());
            let newest = Header::EMPTY;
            let mut beside = Beside { pool: pool.clone(), name, key, place, newest, ahead, buffer, begin: 0 };
            if beside.find_newest()? {
                return Ok(Some(beside));
            }
        }
        Ok(None)
    }

    pub(super) fn key(&self) -> &[u8] {
        &self.key
    }

    pub(super) fn newest(&self) -> Header {
        self.newest
    }

    fn decode(&self, first: &[u8]) -> Result<Header, Cause> {
        let header = Header::decode(first, self.place.object().entry.size.get() as usize)?;
        Ok(header.unwrap_or(Header::EMPTY))
    }

    fn look(&mut self) -> Result<Option<bool>, Cause> {
        match self.place.follow() {
            Followed::Lost => Ok(None),
            Followed::Newest => Ok(Some(false)),
            Followed::Newer(lines) => {
                for (offset, bytes) in lines.iter() {
                    if offset == 0 {
                        self.newest = self.decode(bytes)?;
                    }
                    self.ahead.push((offset as usize, bytes.to_vec()));
                }
                Ok(Some(true))
            }
        }
    }

    fn find_newest(&mut self) -> Result<bool, Cause> {
        let has_header = |ahead: &[(usize, Vec<u8>)]| ahead.iter().any(|(offset, _)| *offset == 0);
        if self.look()?.is_none() {
            return Ok(false);
        }
        if has_header(&self.ahead) {
            return Ok(true);
        }
        let mut first = [0; HEADER];
        let len = HEADER.min(self.place.object().entry.size.get() as usize);
        if !self.place.read(0, &mut first[..len])? || self.look()?.is_none() {
            return Ok(false);
        }
        // The header in place is the shown psync's, unless a later one stored another.
        if !has_header(&self.ahead) {
            self.newest = self.decode(&first[..len])?;
        }
        Ok(true)
    }

    fn attach_again(&mut self) -> Result<bool, Cause> {
        let Some(again) = Beside::attach(&self.pool, &self.name, &self.key)? else { return Ok(false) };
        if again.place.object().entry.id != self.place.object().entry.id {
            let why = "another log has its name now";
            return Err(LogError::Damaged { at: 0, why }.into());
        }
        let (buffer, begin) = (std::mem::take(&mut self.buffer), self.begin);
        *self = Beside { buffer, begin, ..again };
        Ok(true)
    }

    pub(super) fn refresh(&mut self, at: usize) -> Result<Option<bool>, Cause> {
        self.pool.alive()?;
        let held: usize = self.ahead.iter().map(|(_, bytes)| bytes.len()).sum();
        let before = self.newest;
        let newer = match if held > MOST { None } else { self.look()? } {
            Some(newer) => newer,
            None if self.attach_again()? => self.newest != before,
            None => return Ok(None),
        };
        self.ahead.retain(|(offset, bytes)| offset + bytes.len() > at);
        Ok(Some(newer))
    }

    /// At least `len` bytes from `at` on, up to a header's `end`. `None`: unreadable in
    /// place.
    pub(super) fn bytes(&mut self, at: usize, len: usize, end: usize) -> Result<Option<&[u8]>, Cause> {
        let has = |begin: usize, buffer: &[u8]| begin <= at && at + len <= begin + buffer.len();
        if !has(self.begin, &self.buffer) {
            self.pool.alive()?;
            let mut buffer = vec![0; len.max(CHUNK).min(end - at)];
            while !self.is_ahead(at, buffer.len()) && !self.place.read(at as u64, &mut buffer)? {
                if !self.attach_again()? {
                    return Ok(None);
                }
            }
            for (offset, bytes) in &self.ahead {
                let (from, to) = (at.max(*offset), (at + buffer.len()).min(offset + bytes.len()));
                if from < to {
                    buffer[from - at..to - at].copy_from_slice(&bytes[from - offset..to - offset]);
                }
            }
            (self.buffer, self.begin) = (buffer, at);
        }
        Ok(Some(&self.buffer[at - self.begin..]))
    }

    fn is_ahead(&self, at: usize, len: usize) -> bool {
        let reached = self.ahead.iter().fold(at, |reached, (offset, bytes)| {
            if *offset <= reached { reached.max(offset + bytes.len()) } else { reached }
        });
        reached >= at + len
    }
}

/// Recovers a dead writer's psyncs, unless another process is about to write.
fn recover(pool: &Inner, name: &str, key: &[u8]) -> Result<(), Cause> {
    match pool.store.attach_reader(name, Key(key)) {
        Ok(reader) => drop(reader),
        Err(StoreError::Held { .. }) => std::thread::sleep(PAUSE),
        Err(error) => return Err(error.into()),
    }
    Ok(())
}
