//! Writing a backup: a header, records under a chain of hashes, an end.

use crate::error::{BackupError, Result};
use crate::format::{CHUNK, Frame, Hash, Header, ObjectBody, PAGE, hash, kind, packing};
use indelible_store::store::Attributes;
use std::io::Write;
use std::path::Path;
use zerocopy::little_endian::U64;
use zerocopy::{FromZeros, IntoBytes};

/// Pages of an object that a backup is to have.
pub struct Pages<'a> {
    /// Number of the object.
    pub object: u32,
    /// First page of the chunk.
    pub first: u64,
    /// Pages in `bytes`.
    pub held: u64,
    /// Pages that became zeros.
    pub gone: u64,
    /// The hash of each held page.
    pub hashes: &'a [Hash],
    /// The held pages.
    pub bytes: &'a [u8],
}

/// See the module.
pub struct Encoder<'a> {
    out: &'a mut dyn Write,
    path: &'a Path,
    last: Hash,
    /// Bytes written.
    pub len: u64,
    chunks: u64,
    packed: Vec<u8>,
    body: Vec<u8>,
}

/// The end of a backup that was interrupted after so many chunks, the last of them with this hash.
pub fn end_early(last: &Hash, chunks: u64) -> Vec<u8> {
    let (kind, first, held) = (kind::END.into(), U64::from(1), chunks.into());
    let frame = Frame { kind, first, held, ..Frame::new_zeroed() };
    [frame.as_bytes(), &hash(&[last, frame.as_bytes()])].concat()
}

impl<'a> Encoder<'a> {
    /// Begins; `path` is for messages.
    pub fn new(out: &'a mut dyn Write, path: &'a Path, header: &Header) -> Result<Self> {
        let room = lz4_flex::block::get_maximum_output_size((CHUNK * PAGE) as usize);
        let last = hash(&[header.as_bytes()]);
        let mut encoder =
            Encoder { out, path, last, len: 0, chunks: 0, packed: vec![0; room], body: Vec::new() };
        encoder.put(header.as_bytes())?;
        encoder.put(&last)?;
        Ok(encoder)
    }

    fn put(&mut self, bytes: &[u8]) -> Result<()> {
        self.out.write_all(bytes).map_err(BackupError::file("write", self.path))?;
        self.len += bytes.len() as u64;
        Ok(())
    }

    fn record(&mut self, mut frame: Frame, body: &[u8]) -> Result<()> {
        frame.len = (body.len() as u32).into();
        self.last = hash(&[&self.last, frame.as_bytes(), body]);
        let last = self.last;
        self.put(frame.as_bytes())?;
        self.put(body)?;
        self.put(&last)
    }

    /// Adds an object; all of them before the first chunk.
    pub fn object(&mut self, kept: &Attributes) -> Result<()> {
        let frame = Frame { kind: kind::OBJECT.into(), ..Frame::new_zeroed() };
        self.record(frame, &ObjectBody::encode(kept))
    }

    /// Adds pages.
    pub fn pages(&mut self, pages: &Pages<'_>) -> Result<()> {
        let packed = lz4_flex::block::compress_into(pages.bytes, &mut self.packed).unwrap_or(usize::MAX);
        let shorter = packed < pages.bytes.len();
        let mut body = std::mem::take(&mut self.body);
        body.clear();
        body.extend_from_slice(pages.hashes.as_flattened());
        body.extend_from_slice(if shorter { &self.packed[..packed] } else { pages.bytes });
        let frame = Frame {
            kind: kind::CHUNK.into(),
            object: pages.object.into(),
            packing: if shorter { packing::LZ4 } else { packing::PLAIN }.into(),
            first: pages.first.into(),
            held: pages.held.into(),
            gone: pages.gone.into(),
            ..Frame::new_zeroed()
        };
        self.chunks += 1;
        let done = self.record(frame, &body);
        self.body = body;
        done
    }

    /// Ends; returns the hash of the whole.
    pub fn end(mut self) -> Result<(Hash, u64)> {
        let frame = Frame { kind: kind::END.into(), held: self.chunks.into(), ..Frame::new_zeroed() };
        self.record(frame, &[])?;
        self.out.flush().map_err(BackupError::file("write", self.path))?;
        Ok((self.last, self.len))
    }
}
