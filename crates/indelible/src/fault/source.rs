//! Sources of pages: the trait, and its implementations over a device.

use std::sync::{Arc, PoisonError};
use std::time::Duration;

use indelible_stm::ecc::{is_whole, repair};
use indelible_store::medium::Device;
use indelible_store::store::{LivePages, SealedPages};
use indelible_store::table::SharedLayers;

use crate::sys::PAGE;

pub(crate) const SLOW: Duration = Duration::from_micros(100);

pub(crate) type Cause = Box<dyn std::error::Error + Send + Sync>;

#[derive(Debug, thiserror::Error)]
#[error("cannot read page {page} of the object: {source}")]
pub(crate) struct PageError {
    pub(crate) page: usize,
    pub(crate) source: Cause,
}

/// A source never touches a served range, nor waits for a thread that might.
pub(crate) trait PageSource: Send + Sync {
    fn read(&self, first: usize, bytes: &mut [u8]) -> Result<(), PageError>;

    /// Slow reads get a thread, so that other objects need not wait.
    fn is_slow(&self) -> bool {
        false
    }
}

pub(crate) struct Primary {
    pub(crate) device: Arc<dyn Device>,
    pub(crate) offset: u64,
}

impl PageSource for Primary {
    fn read(&self, first: usize, bytes: &mut [u8]) -> Result<(), PageError> {
        each_if_not_all(first, bytes, |page, bytes| {
            self.device.read(self.offset + (page * PAGE) as u64, bytes)
        })
    }
}

fn each_if_not_all<E: Into<Cause>>(
    first: usize,
    bytes: &mut [u8],
    read: impl Fn(usize, &mut [u8]) -> Result<(), E>,
) -> Result<(), PageError> {
    if read(first, bytes).is_ok() {
        return Ok(());
    }
    for (page, bytes) in (first..).zip(bytes.chunks_exact_mut(PAGE)) {
        read(page, bytes).map_err(|error| PageError { page, source: error.into() })?;
    }
    Ok(())
}

pub(crate) struct Live(pub(crate) LivePages);

impl PageSource for Live {
    fn read(&self, first: usize, bytes: &mut [u8]) -> Result<(), PageError> {
        each_if_not_all(first, bytes, |page, bytes| self.0.read((page * PAGE) as u64, bytes))
    }
}

pub(crate) struct Layered {
    pub(crate) device: Arc<dyn Device>,
    pub(crate) layers: SharedLayers,
}

impl PageSource for Layered {
    fn read(&self, first: usize, bytes: &mut [u8]) -> Result<(), PageError> {
        let layers = self.layers.lock().unwrap_or_else(PoisonError::into_inner);
        each_if_not_all(first, bytes, |page, bytes| layers.read(&*self.device, (page * PAGE) as u64, bytes))
    }
}

pub(crate) struct Sealed(pub(crate) Arc<SealedPages>);

impl PageSource for Sealed {
    fn read(&self, first: usize, bytes: &mut [u8]) -> Result<(), PageError> {
        each_if_not_all(first, bytes, |page, bytes| self.0.read_all(page as u64, bytes))
    }
}

pub(crate) struct Decoded(pub(crate) Arc<dyn PageSource>);

#[derive(Debug, thiserror::Error)]
#[error(
    "more bits of the word at offset {offset:#x} are wrong, with those of its check word, than can be repaired"
)]
pub(crate) struct LostWord {
    offset: usize,
}

impl PageSource for Decoded {
    fn read(&self, first: usize, bytes: &mut [u8]) -> Result<(), PageError> {
        let mut pairs = [0; 2 * PAGE];
        for (page, into) in (first..).zip(bytes.chunks_exact_mut(PAGE)) {
            self.0.read(2 * page, &mut pairs).map_err(|error| PageError { page, source: error.source })?;
            let words = into.as_chunks_mut::<8>().0.iter_mut();
            for (nth, (into, [word, check])) in
                words.zip(pairs.as_chunks::<8>().0.as_chunks::<2>().0).enumerate()
            {
                let (word, check) = (u64::from_le_bytes(*word), u64::from_le_bytes(*check));
                let found = if is_whole(word, check) {
                    Ok(word)
                } else {
                    repair(word, check).map(|found| found.word)
                };
                let lost = |_| PageError { page, source: LostWord { offset: page * PAGE + 8 * nth }.into() };
                *into = found.map_err(lost)?.to_le_bytes();
            }
        }
        Ok(())
    }

    fn is_slow(&self) -> bool {
        self.0.is_slow()
    }
}

pub(crate) struct OnSlowMedium(pub(crate) Arc<dyn PageSource>);

impl PageSource for OnSlowMedium {
    fn read(&self, first: usize, bytes: &mut [u8]) -> Result<(), PageError> {
        self.0.read(first, bytes)
    }

    fn is_slow(&self) -> bool {
        true
    }
}
