//! Bytes written to a disk, as counted by the kernel.

use crate::Result;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

const SECTOR: u64 = 512;
const SECTORS_WRITTEN: usize = 6;

pub struct Traffic {
    statistics: PathBuf,
    folder: std::fs::File,
}

impl Traffic {
    pub fn of(folder: &Path) -> Option<Traffic> {
        let device = std::fs::metadata(folder).ok()?.dev();
        let (major, minor) = (rustix::fs::major(device), rustix::fs::minor(device));
        let statistics = PathBuf::from(format!("/sys/dev/block/{major}:{minor}/stat"));
        let traffic = Traffic { statistics, folder: std::fs::File::open(folder).ok()? };
        traffic.written().ok()?;
        Some(traffic)
    }

    /// After a sync.
    pub fn settled(&self) -> Result<u64> {
        rustix::fs::syncfs(&self.folder)?;
        self.written()
    }

    fn written(&self) -> Result<u64> {
        let text = std::fs::read_to_string(&self.statistics)?;
        let sectors: u64 =
            text.split_whitespace().nth(SECTORS_WRITTEN).ok_or("no statistics of the device")?.parse()?;
        Ok(sectors * SECTOR)
    }
}
