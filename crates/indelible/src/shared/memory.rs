#![allow(unsafe_code)]

use crate::backing::Common;
use crate::error::{Cause, Error, SharedError};
use crate::mapping::Mapping;
use crate::pool::{Inner, Stat};
use crate::sys::bus::Watched;
use crate::sys::sync::{AtomicU32, AtomicU64, Ordering};
use crate::sys::{PAGE, futex};
use indelible_store::store::Sharer;
use indelible_store::table::Key;
use std::any::Any;
use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

pub(super) const WORD: usize = 8;

pub(crate) struct Memory {
    /// Before the mappings: fields drop in order.
    watched: [Watched; 2],
    mapping: Mapping,
    control: Mapping,
    common: Common,
    sharer: Sharer,
    life: u32,
    claims: Mutex<HashSet<u64>>,
    pub(super) pool: Arc<Inner>,
    pub(super) name: String,
}

impl Memory {
    pub(super) fn attach(pool: &Arc<Inner>, name: &str, key: &[u8]) -> Result<Arc<Memory>, Cause> {
        loop {
            let sharer = pool.patiently(|| Ok(pool.store.attach_sharer(name, Key(key))?))?;
            let entry = sharer.object().offset;
            // Held while mapping: one object is mapped once.
            let mut shared = pool.shared();
            match shared.get(&entry).map(Weak::upgrade) {
                Some(Some(found)) => {
                    if let Ok(memory) = Arc::downcast::<Memory>(found) {
                        return Ok(memory);
                    }
                }
                Some(None) if !sharer.is_alone() => {
                    drop(shared);
                    std::thread::yield_now();
                    continue;
                }
                _ => {}
            }
            let memory = Arc::new(Memory::map(pool, name, sharer)?);
            let erased: Arc<dyn Any + Send + Sync> = memory.clone();
            shared.insert(entry, Arc::downgrade(&erased));
            return Ok(memory);
        }
    }

    fn map(pool: &Arc<Inner>, name: &str, mut sharer: Sharer) -> Result<Memory, Cause> {
        let place = pool.memory_place();
        let entry = &sharer.object().entry;
        let (address, len) = (entry.address.get() as usize, entry.content_len() as usize);
        let identity = place.shared(entry.id, entry.binding.get());
        let all = len + PAGE;
        let found = Common::find(place.folders(), &identity, all).map_err(SharedError::from)?;
        let common = match found {
            Some(common) => common,
            None if sharer.is_alone() => {
                Common::create(place.folders(), &identity, all).map_err(SharedError::from)?
            }
            None => return Err(SharedError::Elsewhere { folder: place.folders().memory.to_owned() }.into()),
        };
        let mapping = common.map(Some(address), 0, len).map_err(SharedError::from)?;
        let control = common.map(None, len, PAGE).map_err(SharedError::from)?;
        let watch =
            |mapping: &Mapping| Watched::new(mapping.addr(), mapping.len()).map_err(SharedError::Watch);
        let watched = [watch(&mapping)?, watch(&control)?];
        let life = loop {
            let number = (pool.store.memory_number()? as u32).max(1);
            if common.claim(u64::from(number)).map_err(SharedError::from)? {
                break number;
            }
        };
        sharer.let_others_in()?;
        let claims = Mutex::new(HashSet::from([u64::from(life)]));
        Ok(Memory {
            watched,
            mapping,
            control,
            common,
            sharer,
            life,
            claims,
            pool: pool.clone(),
            name: name.to_owned(),
        })
    }

    /// Removes the file, under the object's lock and its own. `false`: the object is attached.
    pub(super) fn forget(pool: &Arc<Inner>, name: &str, key: &[u8]) -> Result<bool, Cause> {
        let sharer = pool.store.attach_sharer(name, Key(key))?;
        if sharer.is_alone() {
            let (place, entry) = (pool.memory_place(), &sharer.object().entry);
            let identity = place.shared(entry.id, entry.binding.get());
            Common::remove(place.folders(), &identity).map_err(SharedError::from)?;
        }
        Ok(sharer.is_alone())
    }

    #[inline]
    pub(super) fn check(&self) -> Result<(), Cause> {
        self.pool.alive()?;
        if self.watched.iter().any(Watched::is_broken) {
            return Err(SharedError::Cut(self.common.path().to_owned()).into());
        }
        Ok(())
    }

    pub(super) fn check_whole(&self) -> Result<(), Cause> {
        self.check()?;
        match self.common.is_whole().map_err(SharedError::from)? {
            true => Ok(()),
            false => Err(SharedError::Cut(self.common.path().to_owned()).into()),
        }
    }

    pub(super) fn len(&self) -> usize {
        self.sharer.object().entry.size.get() as usize
    }

    pub(super) fn base(&self) -> *mut u8 {
        self.mapping.base().as_ptr()
    }

    #[inline]
    pub(super) fn words(&self) -> &[AtomicU64] {
        let words = self.mapping.base().cast::<AtomicU64>();
        // SAFETY: mapped as long as `self` is, accessed as atomics alone (1); a page that is gone
        // is replaced on touch (4).
        unsafe { std::slice::from_raw_parts(words.as_ptr(), self.mapping.len() / WORD) }
    }

    #[inline]
    pub(super) fn half(&self, offset: usize) -> Option<&AtomicU32> {
        if !offset.is_multiple_of(4) || offset >= self.mapping.len() {
            return None;
        }
        // SAFETY: as for `words`; aligned, and inside.
        Some(unsafe { &*self.mapping.base().as_ptr().add(offset).cast::<AtomicU32>() })
    }

    pub(super) fn ends(&self) -> &AtomicU32 {
        // SAFETY: as for `words`; the first bytes of a page.
        unsafe { &*self.control.base().as_ptr().cast::<AtomicU32>() }
    }

    pub(super) fn tell_end(&self) {
        self.ends().fetch_add(1, Ordering::Release);
        let _ = futex::wake(self.ends(), u32::MAX);
    }

    pub(super) fn store(&self, at: usize, bytes: &[u8]) {
        let (whole, rest) = bytes.as_chunks::<WORD>();
        let words = &self.words()[at..];
        for (word, bytes) in words.iter().zip(whole) {
            word.store(u64::from_le_bytes(*bytes), Ordering::Relaxed);
        }
        if !rest.is_empty() {
            let mut last = [0; WORD];
            last[..rest.len()].copy_from_slice(rest);
            words[whole.len()].store(u64::from_le_bytes(last), Ordering::Relaxed);
        }
    }

    pub(super) fn load(&self, at: usize, bytes: &mut [u8]) {
        let words = &self.words()[at..];
        let (whole, rest) = bytes.as_chunks_mut::<WORD>();
        let count = whole.len();
        for (word, bytes) in words.iter().zip(whole) {
            *bytes = word.load(Ordering::Relaxed).to_le_bytes();
        }
        if !rest.is_empty() {
            let len = rest.len();
            rest.copy_from_slice(&words[count].load(Ordering::Relaxed).to_le_bytes()[..len]);
        }
    }

    pub(super) fn life(&self) -> u32 {
        self.life
    }

    pub(super) fn begin_life(&self) -> Result<u32, Cause> {
        loop {
            let number = (self.pool.store.memory_number()? as u32).max(1);
            if self.claim(u64::from(number))? {
                return Ok(number);
            }
        }
    }

    pub(super) fn stat(&self) -> Result<Stat, Error> {
        self.pool.stat_attached(&self.name, self.sharer.object())
    }

    fn claims(&self) -> MutexGuard<'_, HashSet<u64>> {
        self.claims.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn claim(&self, claim: u64) -> Result<bool, SharedError> {
        let mut claims = self.claims();
        let taken = !claims.contains(&claim) && self.common.claim(claim)?;
        if taken {
            claims.insert(claim);
        }
        Ok(taken)
    }

    pub(super) fn give_up(&self, claim: u64) {
        let mut claims = self.claims();
        if claims.remove(&claim) {
            self.common.give_up(claim);
        }
    }

    pub(super) fn is_claimed(&self, claim: u64) -> Result<bool, SharedError> {
        Ok(self.claims().contains(&claim) || self.common.is_claimed(claim)?)
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        if self.pool.alive().is_err() {
            return;
        }
        self.pool.shared().remove(&self.sharer.object().offset);
        self.claims().drain().for_each(|claim| self.common.give_up(claim));
        self.tell_end();
    }
}
