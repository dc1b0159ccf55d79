//! Writing a backup: a header, records under a chain of hashes, an end.

use crate::error::{BackupError, Result};
use crate::format::{Frame, Hash, Header, ObjectBody, hash, kind, packing, sum};
use crate::workers::Buffers;
use indelible_store::store::Attributes;
use std::io::Write;
use std::path::Path;
use zerocopy::little_endian::U64;
use zerocopy::{FromZeros, IntoBytes};

pub struct Pages<'a> {
    pub object: u32,
    pub first: u64,
    /// Pages in `bytes`, by bit.
    pub held: u64,
    /// Pages that became zeros.
    pub gone: u64,
    pub hashes: &'a [Hash],
    pub bytes: &'a [u8],
}

/// A chunk's record, without its hash.
pub struct Packed {
    frame: Frame,
    pub body: Vec<u8>,
}

impl Pages<'_> {
    pub fn pack(&self, buffers: &Buffers) -> Packed {
        let hashes = self.hashes.as_flattened();
        let room = lz4_flex::block::get_maximum_output_size(self.bytes.len());
        let mut body = buffers.take(hashes.len() + room);
        body[..hashes.len()].copy_from_slice(hashes);
        let packed = lz4_flex::block::compress_into(self.bytes, &mut body[hashes.len()..]);
        let packed = packed.ok().filter(|packed| *packed < self.bytes.len());
        body.truncate(hashes.len() + packed.unwrap_or(0));
        if packed.is_none() {
            body.extend_from_slice(self.bytes);
        }
        let frame = Frame {
            kind: kind::CHUNK.into(),
            object: self.object.into(),
            packing: if packed.is_some() { packing::LZ4 } else { packing::PLAIN }.into(),
            first: self.first.into(),
            held: self.held.into(),
            gone: self.gone.into(),
            sum: sum(&body[hashes.len()..]),
            ..Frame::new_zeroed()
        };
        Packed { frame, body }
    }
}

pub struct Encoder<'a> {
    out: &'a mut dyn Write,
    path: &'a Path,
    features: u32,
    last: Hash,
    pub len: u64,
    chunks: u64,
}

/// The end of a backup interrupted after `chunks` chunks, with the last one's hash.
pub fn end_early(last: &Hash, chunks: u64) -> Vec<u8> {
    let (kind, first, held) = (kind::END.into(), U64::from(1), chunks.into());
    let frame = Frame { kind, first, held, ..Frame::new_zeroed() };
    [frame.as_bytes(), &hash(&[last, frame.as_bytes()])].concat()
}

impl<'a> Encoder<'a> {
    pub fn new(out: &'a mut dyn Write, path: &'a Path, header: &Header) -> Result<Self> {
        let last = hash(&[header.as_bytes()]);
        let mut encoder = Encoder { out, path, features: header.features.get(), last, len: 0, chunks: 0 };
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
        let covered = &body[..frame.covered(self.features)];
        self.last = hash(&[&self.last, frame.as_bytes(), covered]);
        let last = self.last;
        self.put(frame.as_bytes())?;
        self.put(body)?;
        self.put(&last)
    }

    /// All objects precede the first chunk.
    pub fn object(&mut self, kept: &Attributes) -> Result<()> {
        let frame = Frame { kind: kind::OBJECT.into(), ..Frame::new_zeroed() };
        self.record(frame, &ObjectBody::encode(kept))
    }

    pub fn pages(&mut self, packed: &Packed) -> Result<()> {
        self.chunks += 1;
        self.record(packed.frame, &packed.body)
    }

    /// Returns the whole's hash, and the length.
    pub fn end(mut self) -> Result<(Hash, u64)> {
        let frame = Frame { kind: kind::END.into(), held: self.chunks.into(), ..Frame::new_zeroed() };
        self.record(frame, &[])?;
        self.out.flush().map_err(BackupError::file("write", self.path))?;
        Ok((self.last, self.len))
    }
}
