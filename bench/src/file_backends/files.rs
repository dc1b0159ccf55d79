use super::{FileBackend, Place, Purpose};
use crate::Result;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

struct Files(PathBuf);

struct Open {
    file: File,
    len: u64,
}

pub fn open(place: &Place<'_>) -> Result<Box<dyn FileBackend>> {
    Ok(Box::new(Files(place.dir.to_owned())))
}

pub(super) fn open_file(path: &Path, purpose: Purpose) -> Result<File> {
    Ok(File::options().read(true).write(purpose == Purpose::Append).open(path)?)
}

pub(super) fn read_whole(file: &File, len: u64, buffer: &mut Vec<u8>) -> Result<()> {
    buffer.resize(len as usize, 0);
    Ok(file.read_exact_at(buffer, 0)?)
}

impl FileBackend for Files {
    fn folder(&self, path: &str) -> Result<()> {
        Ok(std::fs::create_dir_all(self.0.join(path))?)
    }

    fn create(&self, name: &str, _: usize, _: usize) -> Result<Box<dyn super::File + '_>> {
        let file = File::options().read(true).write(true).create_new(true).open(self.0.join(name))?;
        Ok(Box::new(Open { file, len: 0 }))
    }

    fn open(&self, name: &str, purpose: Purpose) -> Result<Box<dyn super::File + '_>> {
        let file = open_file(&self.0.join(name), purpose)?;
        let len = file.metadata()?.len();
        Ok(Box::new(Open { file, len }))
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
        self.file.write_all_at(bytes, self.len)?;
        self.len += bytes.len() as u64;
        Ok(self.file.sync_all()?)
    }

    fn read(&mut self, buffer: &mut Vec<u8>) -> Result<()> {
        read_whole(&self.file, self.len, buffer)
    }

    fn close(self: Box<Self>) -> Result<()> {
        Ok(())
    }
}
