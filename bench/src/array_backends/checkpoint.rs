use super::{ArrayBackend, Opened, Place, Touched};
use crate::Result;
use std::fs::File;
use std::io::Write;
use std::path::PathBuf;
use zerocopy::IntoBytes;

struct Checkpoint {
    arrays: Vec<Vec<u64>>,
    dir: PathBuf,
}

pub fn open(place: &Place<'_>, lengths: &[usize]) -> Result<Opened> {
    let arrays = lengths.iter().map(|len| vec![0; len.div_ceil(8)]).collect();
    Ok(Opened::Ready(Box::new(Checkpoint { arrays, dir: place.dir.to_owned() })))
}

impl ArrayBackend for Checkpoint {
    fn arrays(&mut self) -> Vec<&mut [u8]> {
        self.arrays.iter_mut().map(|words| words.as_mut_slice().as_mut_bytes()).collect()
    }

    fn sync(&mut self, _: &mut [Touched]) -> Result<()> {
        let new = self.dir.join("new");
        let mut file = File::create(&new)?;
        for array in &self.arrays {
            file.write_all(array.as_bytes())?;
        }
        file.sync_data()?;
        std::fs::rename(&new, self.dir.join("arrays"))?;
        Ok(File::open(&self.dir)?.sync_all()?)
    }
}
