use super::NAMES;
use crate::sealed;
use indelible_store::error::Result;
use indelible_store::format::entry::FLAG_HIDDEN;
use indelible_store::store::{Followed, Reader, Store};
use indelible_store::table::{Key, Layers};
use std::sync::Arc;

pub(super) struct Follower {
    store: Arc<Store>,
    reader: Reader,
    layers: Layers,
    object: usize,
    based: Vec<u8>,
    pub(super) shown: Vec<u8>,
}

impl Follower {
    pub(super) fn begin(store: &Arc<Store>, object: usize) -> Result<Follower> {
        if let Some(base) = store.attach_base(NAMES[object], Key::default())? {
            let mut follower = Follower::of(store, base, object)?;
            if follower.lay() {
                return Ok(follower);
            }
            store.end_snapshot(follower.reader)?;
        }
        Follower::of(store, store.attach_snapshot(NAMES[object], Key::default())?, object)
    }

    fn of(store: &Arc<Store>, mut reader: Reader, object: usize) -> Result<Follower> {
        if let Err(error) = sealed::open(&mut reader) {
            store.end_snapshot(reader)?;
            return Err(error);
        }
        let layers = reader.take_layers().unwrap_or_else(|| Layers::alone(reader.object()));
        let (based, shown) = (Vec::new(), Vec::new());
        let mut follower = Follower { store: store.clone(), reader, layers, object, based, shown };
        follower.based = follower.look()?;
        follower.shown.clone_from(&follower.based);
        Ok(follower)
    }

    pub(super) fn again(&mut self, object: usize) -> bool {
        object == self.object && !self.has_the_name() && self.lay()
    }

    /// `false`: the log does not have them.
    fn lay(&mut self) -> bool {
        match self.store.follow(&mut self.reader) {
            Followed::Newest => true,
            Followed::Newer(lines) => {
                for (offset, bytes) in lines.iter() {
                    let Some(shown) = self.shown.get_mut(offset as usize..) else { continue };
                    let len = bytes.len().min(shown.len());
                    shown[..len].copy_from_slice(&bytes[..len]);
                }
                true
            }
            Followed::Lost => false,
        }
    }

    pub(super) fn has_the_name(&self) -> bool {
        !self.reader.object().entry.has(FLAG_HIDDEN)
    }

    fn look(&self) -> Result<Vec<u8>> {
        if let Some(pages) = self.reader.sealed_pages() {
            return sealed::bytes(&pages);
        }
        let mut bytes = vec![0; self.reader.object().entry.size.get() as usize];
        self.layers.read(&**self.store.device(), 0, &mut bytes)?;
        Ok(bytes)
    }

    /// `false`: the followed state changed.
    pub(super) fn end(self) -> Result<bool> {
        // Pages of a sealed object get the bytes laid over them.
        let sealed = self.reader.object().is_sealed();
        let same = self.look()? == if sealed { self.shown.clone() } else { self.based.clone() };
        self.store.end_snapshot(self.reader)?;
        Ok(same)
    }
}
