//! Journals: files in the memory of the process. A crash needs none, as an object takes itself back
//! to its last psync.

#[derive(Debug, Default)]
pub(crate) struct MemoryFile {
    bytes: Vec<u8>,
}

impl MemoryFile {
    /// Copies bytes at `offset`; zeros stand behind the end. Returns whether the file has all of
    /// them.
    pub(crate) fn read(&self, offset: u64, buffer: &mut [u8]) -> bool {
        let from = self.bytes.len().min(offset as usize);
        let there = (self.bytes.len() - from).min(buffer.len());
        let (bytes, rest) = buffer.split_at_mut(there);
        bytes.copy_from_slice(&self.bytes[from..from + there]);
        rest.fill(0);
        rest.is_empty()
    }

    pub(crate) fn write(&mut self, offset: u64, bytes: &[u8]) {
        let (from, to) = (offset as usize, offset as usize + bytes.len());
        if from == self.bytes.len() {
            self.bytes.extend_from_slice(bytes);
            return;
        }
        if self.bytes.len() < to {
            self.bytes.resize(to, 0);
        }
        self.bytes[from..to].copy_from_slice(bytes);
    }

    pub(crate) fn truncate(&mut self, len: u64) {
        self.bytes.resize(len as usize, 0);
    }

    pub(crate) fn len(&self) -> u64 {
        self.bytes.len() as u64
    }
}
