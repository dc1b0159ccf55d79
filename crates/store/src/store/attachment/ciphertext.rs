//! The encrypted pages of a sealed object.

use crate::error::Result;
use crate::format::PAGE;
use crate::format::seal::KEY_PAGE;
use crate::medium::Device;
use crate::seal::{KeyPage, PageBytes};
use crate::store::lanes::PageCache;
use crate::store::locks::lock;
use crate::sync::Mutex;
use crate::table::{Located, SharedLayers};
use std::collections::BTreeMap;
use std::sync::Arc;

pub(super) type Images = BTreeMap<u64, Box<PageBytes>>;

pub(super) struct Ciphertext {
    device: Arc<dyn Device>,
    pub(super) layers: SharedLayers,
    page_cache: Option<Arc<Mutex<PageCache>>>,
    /// Pages laid over a following reader's base.
    pub(super) laid: Mutex<Images>,
}

impl Ciphertext {
    pub(super) fn new(
        device: Arc<dyn Device>,
        layers: SharedLayers,
        page_cache: Option<Arc<Mutex<PageCache>>>,
    ) -> Ciphertext {
        Ciphertext { device, layers, page_cache, laid: Mutex::default() }
    }

    pub(super) fn read(&self, page: u64, bytes: &mut PageBytes) -> Result<()> {
        if let Some(image) = lock(&self.laid).get(&page) {
            bytes.copy_from_slice(&image[..]);
            return Ok(());
        }
        let home = {
            let layers = lock(&self.layers);
            layers.read(&*self.device, page * PAGE, bytes)?;
            layers.home(page)
        };
        if let Some(page_cache) = &self.page_cache {
            lock(page_cache).amend(home, bytes);
        }
        Ok(())
    }

    #[cold]
    pub(super) fn read_still(&self, page: u64, bytes: &mut PageBytes) -> Result<()> {
        if self.page_cache.is_none() {
            return self.read(page, bytes);
        }
        let page_cache = self.page_cache.as_deref().map(lock);
        let layers = lock(&self.layers);
        layers.read(&*self.device, page * PAGE, bytes)?;
        if let Some(page_cache) = page_cache {
            page_cache.amend(layers.home(page), bytes);
        }
        Ok(())
    }

    pub(super) fn key_page(&self, object: &Located) -> Result<KeyPage> {
        let mut bytes = Box::new([0; PAGE as usize]);
        self.read(KEY_PAGE, &mut bytes)?;
        KeyPage::read(bytes, object.entry.pages.get())
    }
}

pub(super) fn by_page(mut at: u64, mut bytes: &[u8]) -> impl Iterator<Item = (u64, usize, &[u8])> {
    std::iter::from_fn(move || {
        let (page, offset) = (at / PAGE, (at % PAGE) as usize);
        let (now, rest) = bytes.split_at(bytes.len().min(PAGE as usize - offset));
        (bytes, at) = (rest, at + now.len() as u64);
        (!now.is_empty()).then_some((page, offset, now))
    })
}
