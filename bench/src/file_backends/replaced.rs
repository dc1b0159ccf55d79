use super::files::{open_file, read_whole};
use super::{FileBackend, Place, Purpose};
use crate::Result;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

struct Replaced(PathBuf);

struct Open {
    path: PathBuf,
    file: Option<File>,
    len: u64,
}

pub fn open(place: &Place<'_>) -> Result<Box<dyn FileBackend>> {
    Ok(Box::new(Replaced(place.dir.to_owned())))
}

impl FileBackend for Replaced {
    fn folder(&self, path: &str) -> Result<()> {
        Ok(std::fs::create_dir_all(self.0.join(path))?)
    }

    fn create(&self, name: &str, _: usize, _: usize) -> Result<Box<dyn super::File + '_>> {
        Ok(Box::new(Open { path: self.0.join(name), file: None, len: 0 }))
    }

    fn open(&self, name: &str, _: Purpose) -> Result<Box<dyn super::File + '_>> {
        let path = self.0.join(name);
        let file = open_file(&path, Purpose::Read)?;
        let len = file.metadata()?.len();
        Ok(Box::new(Open { path, file: Some(file), len }))
    }

    fn delete(&self, name: &str) -> Result<()> {
        Ok(std::fs::remove_file(self.0.join(name))?)
    }

    fn size(&self, name: &str) -> Result<u64> {
        Ok(std::fs::metadata(self.0.join(name))?.len())
    }
}

impl super::File for Open {
    fn append(&mut self, bytes: &[u8]) -> Result<()> {
        let mut whole = Vec::new();
        self.read(&mut whole)?;
        whole.extend_from_slice(bytes);
        let new = self.path.with_extension("new");
        let file = File::options().read(true).write(true).create(true).truncate(true).open(&new)?;
        file.write_all_at(&whole, 0)?;
        file.sync_data()?;
        std::fs::rename(&new, &self.path)?;
        let folder = self.path.parent().ok_or("a file without a folder")?;
        File::open(folder)?.sync_all()?;
        self.len = whole.len() as u64;
        self.file = Some(file);
        Ok(())
    }

    fn read(&mut self, buffer: &mut Vec<u8>) -> Result<()> {
        buffer.clear();
        match &self.file {
            Some(file) => read_whole(file, self.len, buffer),
            None => Ok(()),
        }
    }

    fn close(self: Box<Self>) -> Result<()> {
        Ok(())
    }
}
