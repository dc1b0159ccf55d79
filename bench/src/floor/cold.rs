//! Reads a cold page of a file, then another that the first names: the least cost of a lookup.

use crate::Result;
use crate::pattern::{PAGE, Random};
use rustix::fs::{SeekFrom, seek};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

pub struct ColdFloor {
    file: File,
    /// First page of each stretch of data, and the number of data pages before it.
    stretches: Vec<(u64, u64)>,
    pages: u64,
    random: Random,
}

impl ColdFloor {
    pub fn new(path: &Path) -> Result<Self> {
        let file = File::open(path)?;
        let (mut stretches, mut pages, mut at) = (Vec::new(), 0, 0);
        // The last data has none after it (ENXIO).
        while let Ok(from) = seek(&file, SeekFrom::Data(at)) {
            at = seek(&file, SeekFrom::Hole(from))?;
            stretches.push((from / PAGE as u64, pages));
            pages += (at - from).div_ceil(PAGE as u64);
        }
        if pages == 0 {
            return Err(format!("{}: holds nothing", path.display()).into());
        }
        Ok(ColdFloor { file, stretches, pages, random: Random::new(pages) })
    }

    pub fn read(&mut self) -> Result<()> {
        let mut page = [0; PAGE];
        for _ in 0..2 {
            let number = (self.random.next() ^ u64::from(page[0])) % self.pages;
            let after = self.stretches.partition_point(|(_, before)| *before <= number);
            let (first, before) = self.stretches[after - 1];
            self.file.read_at(&mut page, (first + number - before) * PAGE as u64)?;
        }
        std::hint::black_box(&page);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_data_are_read() {
        let path = std::env::temp_dir().join(format!("cold-{}", std::process::id()));
        let file = File::create(&path).unwrap();
        file.set_len(64 << 20).unwrap();
        file.write_all_at(&[1; 3 * PAGE], 32 << 20).unwrap();
        let mut floor = ColdFloor::new(&path).unwrap();
        assert!(floor.pages >= 3 && floor.pages < 1000, "{}", floor.pages);
        floor.read().unwrap();
        std::fs::remove_file(&path).unwrap();
    }
}
