//! A process of a program that follows an object, whoever writes it.

use indelible_store::error::Result;
use indelible_store::format::entry::FLAG_HIDDEN;
use indelible_store::store::{Reader, Store};
use indelible_store::table::{Key, Layers};
use std::sync::Arc;

/// See the module.
pub(super) struct Follower {
    store: Arc<Store>,
    reader: Reader,
    /// As they were when it came: it knows them by heart.
    layers: Layers,
    pub(super) shown: Vec<u8>,
}

impl Follower {
    /// Looks at what the last psync left.
    pub(super) fn begin(store: &Arc<Store>, name: &str) -> Result<Follower> {
        let mut reader = store.attach_snapshot(name, Key::default())?;
        let layers = reader.take_layers().unwrap_or_else(|| Layers::alone(reader.object()));
        let mut follower = Follower { store: store.clone(), reader, layers, shown: Vec::new() };
        follower.shown = follower.look()?;
        Ok(follower)
    }

    /// Whether it has the object of that name attached.
    pub(super) fn has_the_name(&self) -> bool {
        !self.reader.object().entry.has(FLAG_HIDDEN)
    }

    fn look(&self) -> Result<Vec<u8>> {
        let mut bytes = vec![0; self.reader.object().entry.size.get() as usize];
        self.layers.read(&**self.store.device(), 0, &mut bytes)?;
        Ok(bytes)
    }

    /// Looks once more, and ends. `false`: what it follows has changed beneath it.
    pub(super) fn end(self) -> Result<bool> {
        let same = self.look()? == self.shown;
        self.store.end_snapshot(self.reader)?;
        Ok(same)
    }
}
