//! Opening and formatting pools.

use super::{Inner, Pool, PoolOptions, identity, options, patiently, registry, windows};
use crate::error::{Cause, Error, ErrorKind, Result};
use crate::media::{Access, Media};
use indelible_store::store::{Store, Window};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

impl PoolOptions {
    /// Opens an existing pool with these options.
    ///
    /// # Errors
    /// As for [`Pool::open`].
    pub fn open(&self, path: impl AsRef<Path>) -> Result<Pool> {
        let path = path.as_ref();
        self.open_cause(path).map_err(|cause| Error::new("open", cause).pool(path))
    }

    fn open_cause(&self, path: &Path) -> Result<Pool, Cause> {
        let access = if self.read_only { Access::ReadOnly } else { Access::ReadWrite };
        let mut media = crate::media::open(path, &self.as_media(access))?;
        let settings = self.settings()?;
        let inner = patiently(self.wait.unwrap_or(Duration::ZERO), || {
            registry::share(&mut media, self.read_only, &settings, |media| {
                if !self.read_only {
                    media.claim(path, self.allow_remote)?;
                }
                let store = Store::open(media.device().clone(), identity())?;
                Ok(Inner::new(path, media.clone(), store, settings.clone()))
            })
        })?;
        if let Some(wait) = self.wait {
            inner.set_wait(wait);
        }
        Ok(Pool { inner })
    }

    /// Creates and formats a pool with these options.
    ///
    /// # Errors
    /// As for [`Pool::format`].
    pub fn format(&self, path: impl AsRef<Path>, len: u64) -> Result<Pool> {
        let path = path.as_ref();
        self.format_cause(path, len).map_err(|cause| Error::new("format", cause).pool(path))
    }

    fn format_cause(&self, path: &Path, len: u64) -> Result<Pool, Cause> {
        let settings = self.settings()?;
        let zeroed = path.metadata().map_or(true, |metadata| metadata.is_file());
        let mut media = self.create_media(path, len)?;
        media.claim(path, self.allow_remote)?;
        if !zeroed && !self.force {
            options::refuse_data(path, &media)?;
        }
        let store =
            Store::format(media.device().clone(), identity(), &self.as_format(zeroed, windows::known))?;
        media.publish(path)?;
        let superblock = store.superblock();
        let window = Window { start: superblock.window.get(), len: superblock.window_len.get() };
        windows::remember(window, superblock.length.get());
        let inner = Inner::new(path, media, store, settings);
        if let Some(wait) = self.wait {
            inner.set_wait(wait);
        }
        Ok(Pool { inner: registry::add(inner) })
    }

    /// Opens the pool at `path`, or formats one of `len` bytes there if nothing is.
    ///
    /// # Errors
    /// As for [`Pool::open_or_format`].
    pub fn open_or_format(&self, path: impl AsRef<Path>, len: u64) -> Result<Pool> {
        let path = path.as_ref();
        let missing = |error: &Error| error.kind() == ErrorKind::NoPool && !self.read_only;
        match self.open(path) {
            Err(error) if missing(&error) => match self.format(path, len) {
                // Another process was faster.
                Err(error) if error.kind() == ErrorKind::PoolExists => self.open(path),
                formatted => formatted,
            },
            opened => opened,
        }
    }

    /// Opens, or formats, a pool on any device: a simulated one, say.
    ///
    /// # Errors
    /// As for [`Pool::open`] and [`Pool::format`].
    pub fn on_device(&self, device: Arc<dyn indelible_store::medium::Device>, format: bool) -> Result<Pool> {
        let path = Path::new("(device)");
        let open = || -> Result<Pool, Cause> {
            let store = if format {
                Store::format(device.clone(), identity(), &self.as_format(true, windows::known))?
            } else {
                Store::open(device.clone(), identity())?
            };
            Ok(Pool { inner: Inner::new(path, Media::from_device(device.clone()), store, self.settings()?) })
        };
        open().map_err(|cause| Error::new(if format { "format" } else { "open" }, cause).pool(path))
    }
}
