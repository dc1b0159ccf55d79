#![allow(unsafe_code)]

use super::beside::{Addresses, Follows};
use super::reader::{Inherited, ReadCore};
use crate::error::Cause;
use crate::pool::Inner as PoolInner;
use indelible_store::store::{Followed, Lines, Reader};
use indelible_store::table::Key;

impl ReadCore {
    /// Shows the newest psync, after calling `changing`; returns whether there was one. If the
    /// object cannot be mapped, it has no bytes.
    ///
    /// # Safety
    /// No thread reads the object meanwhile or has a reference into it.
    pub(crate) unsafe fn refresh(&mut self, changing: impl FnOnce()) -> Result<bool, Cause> {
        self.pool.alive()?;
        let (Some(follows), Some(reader)) = (&mut self.follows, &mut self.reader) else { return Ok(false) };
        let shown = reader.shown();
        if let Some(shadow) = &mut self.shadow {
            match self.pool.store.follow(reader) {
                Followed::Newest => return Ok(false),
                Followed::Newer(lines) => {
                    changing();
                    // SAFETY: the caller's promise.
                    if unsafe { follows.lay(shadow, &lines) } {
                        return Ok(true);
                    }
                    self.shadow = None;
                    return self.attach_newer(shown, &mut || {});
                }
                Followed::Lost => {}
            }
        }
        let mut changing = Some(changing);
        self.attach_newer(shown, &mut || changing.take().map_or((), |changing| changing()))
    }

    /// Maps psync number `shown` in place of the present state, on another reader's base if
    /// possible.
    fn attach_newer(&mut self, shown: Option<u64>, changing: &mut dyn FnMut()) -> Result<bool, Cause> {
        let (pool, name) = (self.pool.clone(), self.name.clone());
        let Some(follows) = &mut self.follows else { return Ok(false) };
        let gone = self.shadow.is_none();
        if let Some((base, lines)) = Self::base_of_others(&pool, &name, follows)? {
            let changed = gone || base.shown() != shown;
            self.show(base, changing)?;
            if self.lay_first(&lines) {
                return Ok(changed);
            }
        }
        let Some(follows) = &mut self.follows else { return Ok(false) };
        let newer = pool.patiently(|| Ok(pool.store.attach_snapshot(&name, Key(&follows.key))?))?;
        let newer = follows.open(&pool, newer)?;
        let changed = gone || newer.shown() != shown;
        self.show(newer, changing)?;
        Ok(changed)
    }

    pub(super) fn base_of_others(
        pool: &PoolInner,
        name: &str,
        follows: &mut Follows,
    ) -> Result<Option<(Reader, Lines)>, Cause> {
        let Some(base) = pool.store.attach_base(name, Key(&follows.key))? else { return Ok(None) };
        let mut base = follows.open(pool, base)?;
        match pool.store.follow(&mut base) {
            Followed::Newest => Ok(Some((base, Lines::default()))),
            Followed::Newer(lines) => Ok(Some((base, lines))),
            Followed::Lost => {
                pool.store.end_snapshot(base)?;
                Ok(None)
            }
        }
    }

    pub(super) fn lay_first(&mut self, lines: &Lines) -> bool {
        let (Some(follows), Some(shadow)) = (&mut self.follows, &mut self.shadow) else { return false };
        // SAFETY: no thread has read them yet.
        let laid = unsafe { follows.lay(shadow, lines) };
        if !laid {
            self.shadow = None;
        }
        laid
    }

    fn show(&mut self, mut newer: Reader, changing: &mut dyn FnMut()) -> Result<(), Cause> {
        let pool = self.pool.clone();
        let Some(follows) = &mut self.follows else { return Ok(()) };
        let address = |reader: &Reader| reader.object().entry.address;
        let elsewhere = |before: &Reader| address(before) != address(&newer);
        if follows.addresses == Addresses::Own && self.reader.as_ref().is_some_and(elsewhere) {
            let _ = pool.store.end_snapshot(newer);
            return Err(Cause::Replaced);
        }
        if let (Some(shadow), Some(older)) = (&mut self.shadow, &self.reader) {
            match newer.succeed(older) {
                // Decrypted pages stay; only differing ones are decrypted again.
                Ok(Some(lines)) => {
                    changing();
                    follows.laid.clear();
                    // SAFETY: the caller's promise.
                    if unsafe { follows.lay(shadow, &lines) } {
                        let _ = self.reader.replace(newer).map(|before| pool.store.end_snapshot(before));
                        return Ok(());
                    }
                }
                Ok(None) => {}
                Err(error) => {
                    let _ = pool.store.end_snapshot(newer);
                    return Err(error.into());
                }
            }
        }
        changing();
        follows.laid.clear();
        (self.shadow, self.inherited) = (None, Inherited::No);
        let mapped = ReadCore::map(&pool, &mut newer, follows.addresses);
        let _ = self.reader.replace(newer).map(|before| pool.store.end_snapshot(before));
        let (shadow, inherited) = mapped?;
        (self.shadow, self.inherited) = (Some(shadow), inherited);
        Ok(())
    }

    pub(super) fn newer(&self) -> Result<Option<ReadCore>, Cause> {
        self.pool.alive()?;
        let (Some(follows), Some(reader)) = (&self.follows, &self.reader) else { return Ok(None) };
        if self.shadow.is_some() && self.pool.store.is_newest(reader) {
            return Ok(None);
        }
        let mut newer = match reader.again()? {
            Some(again) => {
                let mut follows = Follows::new(&follows.key, Addresses::Any, follows.opener.clone());
                let again = follows.open(&self.pool, again)?;
                ReadCore::following(self.pool.clone(), &self.name, again, follows)?
            }
            None => {
                let follows = Follows::new(&follows.key, Addresses::Any, follows.opener.clone());
                ReadCore::beside(self.pool.clone(), &self.name, follows)?
            }
        };
        // SAFETY: no other thread knows of it yet.
        unsafe { newer.refresh(|| {}) }?;
        let same = self.shadow.is_some() && newer.reader.as_ref().is_some_and(|newer| newer.shows_as(reader));
        Ok((!same).then_some(newer))
    }
}
