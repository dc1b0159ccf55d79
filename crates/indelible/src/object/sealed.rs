use super::anchored::{Anchored, Opened};
use super::attach_options::Attach;
use super::beside::{Addresses, Follows, Opener};
use super::reader::ReadObject;
use super::writer::Object;
use crate::error::{Cause, Result};
use crate::pool::{Inner, Pool, SealKey, SignKey};
use indelible_store::error::{SealError, StoreError};
use indelible_store::seal::SlotInfo;
use indelible_store::store::{Unlocked, Writer};
use indelible_store::table::Key;

impl Pool {
    /// Attaches a sealed object for writing. `key` is the object's
    /// ([`attach_with_key`](Pool::attach_with_key)), `seal` one that opens it.
    ///
    /// Pages are decrypted into private memory when touched, or before
    /// ([`PoolOptions::prediction`](crate::PoolOptions::prediction)). A broken page raises SIGBUS
    /// when touched, and is an error of [`prefault`](Object::prefault). Core dumps exclude that
    /// memory, and the detach overwrites it. Beyond `ulimit -l` it may be swapped: encrypt the swap
    /// device.
    ///
    /// ```
    /// use indelible::{CreateOptions, Pool, SealKey};
    ///
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let path = dir.path().join("example.pmo");
    /// let pool = Pool::format(&path, 16 << 20)?;
    /// # let key_file = dir.path().join("ledger.key");
    /// # std::fs::write(&key_file, [7; 32]).unwrap();
    /// let key = SealKey::file(std::fs::read(key_file).expect("32 random bytes"))?;
    /// pool.create_with("ledger", &CreateOptions::new(100_000).sealed(&key, "the key file"))?;
    /// let mut ledger = pool.attach_sealed("ledger", b"", &key)?;
    /// ledger.as_mut_slice()[..5].copy_from_slice(b"alice");
    /// ledger.psync()?;
    /// # Ok::<(), indelible::Error>(())
    /// ```
    ///
    /// # Errors
    /// As for [`attach`](Pool::attach). `WrongKey`: nothing was read. `Damaged`: the named page
    /// does not verify. `Sealed`: the object is not sealed.
    pub fn attach_sealed(&self, name: &str, key: &[u8], seal: &SealKey) -> Result<Object> {
        self.attach_as(name, &Attach { seal: Some(seal), ..Attach::with_key(key) })
    }

    /// As [`attach_sealed`](Pool::attach_sealed), for reading.
    ///
    /// # Errors
    /// As for [`attach_read`](Pool::attach_read) and [`attach_sealed`](Pool::attach_sealed).
    pub fn attach_read_sealed(&self, name: &str, key: &[u8], seal: &SealKey) -> Result<ReadObject> {
        self.attach_read_as(name, &Attach { seal: Some(seal), ..Attach::with_key(key) })
    }

    /// As [`attach_snapshot`](Pool::attach_snapshot), of a sealed object. A refresh verifies and
    /// decrypts changed pages.
    ///
    /// # Errors
    /// As for [`attach_snapshot`](Pool::attach_snapshot) and
    /// [`attach_sealed`](Pool::attach_sealed).
    pub fn attach_snapshot_sealed(&self, name: &str, key: &[u8], seal: &SealKey) -> Result<ReadObject> {
        self.attach_beside(name, Follows::new(key, Addresses::Own, Some(Opener::from(seal))))
    }

    /// As [`attach_snapshot_anywhere`](Pool::attach_snapshot_anywhere), of a sealed object.
    ///
    /// # Errors
    /// As for [`attach_snapshot_sealed`](Pool::attach_snapshot_sealed), but for `AddressTaken`.
    pub fn attach_snapshot_sealed_anywhere(
        &self,
        name: &str,
        key: &[u8],
        seal: &SealKey,
    ) -> Result<ReadObject> {
        self.attach_beside(name, Follows::new(key, Addresses::Any, Some(Opener::from(seal))))
    }

    pub(crate) fn unlock(&self, name: &str, key: &[u8], seal: &SealKey) -> Result<Opened, Cause> {
        let inner = self.inner();
        inner.alive()?;
        inner.unlock(name, &Attach::with_key(key), seal)
    }

    /// The key slots in use of a sealed object, attached or not. Needs no seal key.
    ///
    /// # Errors
    /// `NotFound`, `WrongKey`; `Sealed`: it is not sealed; `Held`: a process keeps changing them.
    pub fn key_slots(&self, name: &str, key: &[u8]) -> Result<Vec<SlotInfo>> {
        let inner = self.inner();
        let found = || inner.patiently(|| Ok(inner.store.key_slots(name, Key(key))?));
        let result = inner.alive().and_then(|()| found());
        self.about("list the keys of", name, result)
    }

    /// Lets another seal key, `new`, open a detached sealed object; returns its slot's number.
    /// `label` is for people.
    ///
    /// # Errors
    /// As for [`attach_sealed`](Pool::attach_sealed). `Sealed`: all slots are in use, or the label
    /// is too long. Nothing has changed, unless the error says otherwise.
    pub fn add_key(
        &self,
        name: &str,
        key: &[u8],
        seal: &SealKey,
        new: &SealKey,
        label: &str,
    ) -> Result<usize> {
        let result = self.change_keys(name, key, seal, |writer, unlocked| {
            Ok(writer.change_keys(unlocked, |page, object_key| page.add(object_key, &new.key, label))?)
        });
        self.about("add a key of", name, result)
    }

    /// Empties a key slot of a detached sealed object. The object's own key stays.
    ///
    /// # Errors
    /// As for [`attach_sealed`](Pool::attach_sealed). `Sealed`: the slot is empty, or the last one.
    pub fn remove_key(&self, name: &str, key: &[u8], seal: &SealKey, slot: usize) -> Result<()> {
        let result = self.change_keys(name, key, seal, |writer, unlocked| {
            Ok(writer.change_keys(unlocked, |page, _| page.remove(slot))?)
        });
        self.about("remove a key of", name, result)
    }

    /// Replaces a seal key of a detached sealed object, as one step; returns the slot's number.
    /// `label`: a new one, or the slot's.
    ///
    /// # Errors
    /// As for [`add_key`](Pool::add_key).
    pub fn change_key(
        &self,
        name: &str,
        key: &[u8],
        seal: &SealKey,
        new: &SealKey,
        label: Option<&str>,
    ) -> Result<usize> {
        let result = self.change_keys(name, key, seal, |writer, unlocked| {
            Ok(writer.change_keys(unlocked, |page, _| page.exchange(&seal.key, &new.key, label))?)
        });
        self.about("change a key of", name, result)
    }

    /// Reseals a detached, sealed object by a new key, which `seals` open, each in its present
    /// slot; all other slots are emptied. The first of `seals` opens the object. It temporarily
    /// needs the object's space twice.
    ///
    /// # Errors
    /// As for [`attach_sealed`](Pool::attach_sealed); `WrongKey`: one of `seals` opens no slot.
    /// `Sealed`: `seals` is empty. `NoRoom`, `NoSpace`: nothing changed.
    pub fn reencrypt(
        &self,
        name: &str,
        key: &[u8],
        seals: &[&SealKey],
        mut progress: impl FnMut(u64, u64),
    ) -> Result<()> {
        let Some(first) = seals.first() else {
            let why = "a sealed object has at least one key";
            let none = StoreError::Seal(SealError::BadKey { why });
            return self.about("give another key to", name, Err(none.into()));
        };
        let owners: Vec<_> = seals.iter().map(|seal| &seal.key).collect();
        let result =
            self.change_keys(name, key, first, |writer, _| Ok(writer.reencrypt(&owners, &mut progress)?));
        self.about("give another key to", name, result)
    }

    /// Reseals a detached, sealed object by a new key, which `new` alone opens, in the slot of
    /// `seal`: the *key epoch* advances. Once the former key file is destroyed, no older copy of an
    /// [erasable](SealKey::erasable) object can be read. It temporarily needs the object's space
    /// twice.
    ///
    /// # Errors
    /// As for [`reencrypt`](Pool::reencrypt). `Sealed`: the object is erasable, and `new` is no key
    /// file.
    pub fn renew_key(
        &self,
        name: &str,
        key: &[u8],
        seal: &SealKey,
        new: &SealKey,
        mut progress: impl FnMut(u64, u64),
    ) -> Result<()> {
        let result = self.change_keys(name, key, seal, |writer, _| {
            Ok(writer.renew(&seal.key, &new.key, &mut progress)?)
        });
        self.about("give another key to", name, result)
    }

    /// Whether a sealed object says that it is [erasable](SealKey::erasable), which only an attach
    /// proves.
    ///
    /// # Errors
    /// As for [`key_slots`](Pool::key_slots).
    pub fn is_erasable(&self, name: &str, key: &[u8]) -> Result<bool> {
        let inner = self.inner();
        let found = || inner.patiently(|| Ok(inner.store.key_page(name, Key(key))?.is_erasable()));
        let result = inner.alive().and_then(|()| found());
        self.about("list the keys of", name, result)
    }

    /// The slots that a [rotation](Pool::reencrypt) with these keys keeps.
    ///
    /// # Errors
    /// As for [`key_slots`](Pool::key_slots); `WrongKey`: one of `seals` opens no slot.
    pub fn slots_of(&self, name: &str, key: &[u8], seals: &[&SealKey]) -> Result<Vec<SlotInfo>> {
        let inner = self.inner();
        let owners: Vec<_> = seals.iter().map(|seal| &seal.key).collect();
        let found =
            || Ok(inner.patiently(|| Ok(inner.store.key_page(name, Key(key))?))?.opened_by(&owners)?);
        let result = inner.alive().and_then(|()| found());
        self.about(
            "list the keys of",
            name,
            result.map(|slots| slots.into_iter().map(|(slot, _)| slot).collect()),
        )
    }

    /// Re-signs a detached, signed, sealed object; `seal` holds the former [key that
    /// signs](SealKey::signed_by).
    ///
    /// # Errors
    /// As for [`attach_sealed`](Pool::attach_sealed). `Damaged`: the object is not signed.
    /// `Sealed`: the sign key is missing.
    pub fn change_signer(&self, name: &str, key: &[u8], seal: &SealKey, new: &SignKey) -> Result<()> {
        let changed = self.change_keys(name, key, seal, |writer, _| Ok(writer.change_signer(&new.0)?));
        self.about("change the sign key of", name, changed)
    }

    /// Renames a detached, sealed object, whose root authenticates the name. `seal` has its [key
    /// that signs](SealKey::signed_by), if any.
    ///
    /// # Errors
    /// As for [`attach_sealed`](Pool::attach_sealed) and [`rename`](Pool::rename). Nothing has
    /// changed, unless the error says otherwise.
    pub fn rename_sealed(&self, name: &str, new: &str, key: &[u8], seal: &SealKey) -> Result<()> {
        let renamed = self.change_keys(name, key, seal, |writer, _| Ok(writer.rename(new)?));
        self.about("rename", name, renamed)
    }

    /// Binds a detached, sealed object to its present name and ID: one of an earlier release, a
    /// copy, or a renamed one, for which `seal` has the name that it was [sealed
    /// as](SealKey::sealed_as).
    ///
    /// # Errors
    /// As for [`attach_sealed`](Pool::attach_sealed); `ObjectReadOnly` of a snapshot.
    pub fn bind_name(&self, name: &str, key: &[u8], seal: &SealKey) -> Result<()> {
        let bound = self.change_keys(name, key, seal, |writer, _| Ok(writer.bind_name()?));
        self.about("bind the name of", name, bound)
    }

    /// Accepts the object's present state as the newest, whatever `seal`'s
    /// [anchor](SealKey::anchored) was told; without one, the object loses its anchor.
    ///
    /// # Errors
    /// As for [`attach_sealed`](Pool::attach_sealed), except those of the anchor's record. `Io`:
    /// the anchor cannot be written.
    pub fn set_anchor(&self, name: &str, key: &[u8], seal: &SealKey) -> Result<()> {
        let inner = self.inner();
        let result = self.unlock(name, key, seal).and_then(|opened| {
            let mut writer = inner.attach_for_a_change(name, key, &opened)?;
            let anchored = Anchored::set(&mut writer, opened.anchor.as_ref())?;
            if anchored.is_none() {
                writer.set_anchored(false)?;
            }
            Anchored::leave_changed(anchored, writer)
        });
        self.about("set the anchor of", name, result)
    }

    /// After an error nothing happened, except if the anchor's error
    /// [says](AnchorError::after_a_change) that it was not told.
    pub(crate) fn change_keys<R>(
        &self,
        name: &str,
        key: &[u8],
        seal: &SealKey,
        change: impl FnOnce(&mut Writer, &Unlocked) -> Result<R, Cause>,
    ) -> Result<R, Cause> {
        let inner = self.inner();
        let opened = self.unlock(name, key, seal)?;
        let mut writer = inner.attach_for_a_change(name, key, &opened)?;
        let anchored = Anchored::begin(&mut writer, opened.anchor.as_ref())?;
        match change(&mut writer, &opened) {
            Ok(out) => Anchored::leave_changed(anchored, writer).map(|()| out),
            Err(cause) => {
                let _ = Anchored::leave(anchored, writer);
                Err(cause)
            }
        }
    }
}

impl Inner {
    pub(super) fn unlock(&self, name: &str, how: &Attach<'_>, seal: &SealKey) -> Result<Opened, Cause> {
        let unlock = || Ok(self.store.unlock(name, Key(how.key), &seal.key)?);
        Ok(Opened { unlocked: self.patiently_for(how.wait, unlock)?, anchor: seal.anchor.clone() })
    }

    fn attach_for_a_change(&self, name: &str, key: &[u8], opened: &Unlocked) -> Result<Writer, Cause> {
        self.patiently(|| {
            self.store.expect_not_held_still()?;
            Ok(self.store.attach_sealed_writer(name, Key(key), opened)?)
        })
    }
}
