//! Reading a backup: no use and no large allocation precedes proof.

use crate::error::{BackupError, Result};
use crate::format::{
    BODY_MAX, CHUNK, FEATURES, Frame, Hash, Header, MAGIC, OBJECTS_MAX, ObjectBody, PAGE, PAGES_BY_HASHES,
    VERSION, hash, kind, packing, sum,
};
use crate::workers::{Buffers, in_order};
use indelible_store::store::Attributes;
use std::io::Read;
use std::path::{Path, PathBuf};
use zerocopy::{FromZeros, IntoBytes};

pub struct Chunk {
    /// Its object's number.
    pub object: usize,
    pub first: u64,
    /// Pages in `bytes`, by bit.
    pub held: u64,
    /// Pages that became zeros.
    pub gone: u64,
    pub hashes: Vec<Hash>,
    pub bytes: Vec<u8>,
}

impl Chunk {
    pub fn pages(&self, mask: u64) -> impl Iterator<Item = u64> + use<> {
        let first = self.first;
        (0..CHUNK).filter(move |bit| mask >> bit & 1 == 1).map(move |bit| first + bit)
    }
}

/// A chunk's record, with proved frame and hashes of pages, and unproved pages.
struct Record {
    frame: Frame,
    body: Vec<u8>,
    path: PathBuf,
    at: u64,
    /// Whether the frame has a checksum of the packed pages.
    is_summed: bool,
    named: String,
}

impl Record {
    /// Unpacks the pages and verifies their hashes.
    fn unpack(self, buffers: &Buffers) -> Result<Chunk> {
        let Record { frame, mut body, path, at, is_summed, named } = self;
        let wrong = |what: &str| damaged(&path, at, what.to_owned());
        let (held, gone) = (frame.held.get(), frame.gone.get());
        let count = held.count_ones() as usize;
        let start = count * size_of::<Hash>();
        let Some((hashes, packed)) = body.split_at_checked(start) else {
            return Err(wrong("a chunk's length"));
        };
        if is_summed && sum(packed) != frame.sum {
            return Err(wrong(&named));
        }
        let hashes: Vec<Hash> = hashes.as_chunks().0.to_vec();
        let len = count * PAGE as usize;
        let bytes = match frame.packing.get() {
            packing::PLAIN => {
                body.drain(..start);
                body
            }
            packing::LZ4 => {
                let mut bytes = buffers.take(len);
                let filled = lz4_flex::block::decompress_into(packed, &mut bytes).unwrap_or(0);
                bytes.truncate(filled);
                buffers.give(body);
                bytes
            }
            _ => return Err(wrong("a chunk that is packed in an unknown way")),
        };
        let own = bytes.chunks(PAGE as usize).map(|page| hash(&[page]));
        if bytes.len() != len || !own.eq(hashes.iter().copied()) {
            return Err(wrong(&named));
        }
        let (object, first) = (frame.object.get() as usize, frame.first.get());
        Ok(Chunk { object, first, held, gone, hashes, bytes })
    }
}

pub struct Decoder<R> {
    input: R,
    path: PathBuf,
    pub header: Header,
    pub objects: Vec<Attributes>,
    last: Hash,
    at: u64,
    chunks: u64,
    /// The last chunk: (object, first page).
    before: Option<(u32, u64)>,
    /// Whether the end of a damaged record is unknown.
    lost: bool,
    /// Whether a record was damaged: then the final count proves nothing.
    torn: bool,
    ended: bool,
    /// Whether its end marks an interruption.
    interrupted: bool,
}

impl<R: Read> Decoder<R> {
    pub fn open(mut input: R, path: &Path) -> Result<Self> {
        let mut header = Header::new_zeroed();
        let not = || BackupError::NotABackup(path.to_owned());
        let mut start = [0; 16];
        fill(&mut input, &mut start, path)?.then_some(()).ok_or_else(not)?;
        if start[..8] != MAGIC {
            return Err(not());
        }
        let found = u32::from_le_bytes([start[8], start[9], start[10], start[11]]);
        if found != VERSION {
            return Err(BackupError::Version { path: path.to_owned(), found, known: VERSION });
        }
        let torn = |at, what: &str| damaged(path, at, what.to_owned());
        header.as_mut_bytes()[..16].copy_from_slice(&start);
        let mut proof = [0; 32];
        let whole =
            fill(&mut input, &mut header.as_mut_bytes()[16..], path)? && fill(&mut input, &mut proof, path)?;
        if !whole || hash(&[header.as_bytes()]) != proof || header.objects.get() > OBJECTS_MAX {
            return Err(torn(0, "its header"));
        }
        if header.features.get() & !FEATURES != 0 {
            return Err(BackupError::Version { path: path.to_owned(), found: VERSION + 1, known: VERSION });
        }
        let at = (size_of::<Header>() + proof.len()) as u64;
        let mut decoder = Decoder {
            input,
            path: path.to_owned(),
            header,
            objects: Vec::new(),
            last: proof,
            at,
            chunks: 0,
            before: None,
            lost: false,
            torn: false,
            ended: false,
            interrupted: false,
        };
        for _ in 0..header.objects.get() {
            let at = decoder.at;
            let (frame, body) = decoder.record(&Buffers::default())?;
            let object = ObjectBody::decode(&body).filter(|_| frame.kind.get() == kind::OBJECT);
            decoder.objects.push(object.ok_or_else(|| torn(at, "an object's attributes"))?);
        }
        Ok(decoder)
    }

    fn record(&mut self, buffers: &Buffers) -> Result<(Frame, Vec<u8>)> {
        let at = self.at;
        let mut frame = Frame::new_zeroed();
        self.lost = true;
        if !fill(&mut self.input, frame.as_mut_bytes(), &self.path)? {
            return Err(damaged(&self.path, at, "it ends in the middle".into()));
        }
        let len = frame.len.get() as usize;
        if len > BODY_MAX {
            return Err(damaged(&self.path, at, "the start of a record".into()));
        }
        let (mut body, mut proof) = (buffers.take(len), [0; 32]);
        if !fill(&mut self.input, &mut body, &self.path)? || !fill(&mut self.input, &mut proof, &self.path)? {
            return Err(damaged(&self.path, at, "it ends in the middle".into()));
        }
        self.at += (size_of::<Frame>() + len + proof.len()) as u64;
        let covered = &body[..frame.covered(self.header.features.get())];
        let good = hash(&[&self.last, frame.as_bytes(), covered]) == proof;
        self.last = proof;
        self.lost = false;
        self.torn |= !good;
        if good { Ok((frame, body)) } else { Err(damaged(&self.path, at, self.named(&frame))) }
    }

    /// The apparent kind of a damaged record.
    fn named(&self, frame: &Frame) -> String {
        match self.objects.get(frame.object.get() as usize).filter(|_| frame.kind.get() == kind::CHUNK) {
            Some(object) => {
                let offset = frame.first.get().saturating_mul(PAGE);
                format!("object {:?}, {} bytes from offset {offset}", object.name, CHUNK * PAGE)
            }
            None => "a record".into(),
        }
    }

    /// The next chunk; `None` at the proved end.
    pub fn chunk(&mut self) -> Result<Option<Chunk>> {
        let buffers = Buffers::default();
        self.chunk_record(&buffers)?.map(|record| record.unpack(&buffers)).transpose()
    }

    /// Passes each chunk, or its error, to `visit`, to the proved end, or as far as the file is
    /// readable. Several threads unpack.
    ///
    /// # Errors
    /// Those of `visit`, which end the reading.
    pub fn each(&mut self, visit: &mut dyn FnMut(Result<&Chunk>) -> Result<()>) -> Result<()> {
        let (mut lost, buffers) = (false, Buffers::default());
        let records = std::iter::from_fn(|| {
            let next = if lost { None } else { self.chunk_record(&buffers).transpose() };
            lost = matches!(next, Some(Err(_))) && !self.goes_on();
            next
        });
        in_order(
            records,
            |record| record?.unpack(&buffers),
            |chunk| match chunk {
                Ok(chunk) => visit(Ok(&chunk)).map(|()| buffers.give(chunk.bytes)),
                Err(error) => visit(Err(error)),
            },
        )
    }

    fn chunk_record(&mut self, buffers: &Buffers) -> Result<Option<Record>> {
        if self.ended {
            return Ok(None);
        }
        let at = self.at;
        let (frame, body) = self.record(buffers)?;
        let path = self.path.clone();
        let wrong = |what: &str| damaged(&path, at, what.to_owned());
        if frame.kind.get() == kind::END {
            let more = fill(&mut self.input, &mut [0], &self.path)?;
            let counted = frame.held.get() == self.chunks || self.torn;
            (self.ended, self.interrupted) = (true, frame.first.get() == 1);
            return if more || !counted || !body.is_empty() || frame.first.get() > 1 {
                Err(wrong("its end"))
            } else {
                Ok(None)
            };
        }
        let (object, first) = (frame.object.get(), frame.first.get());
        let limit = self.objects.get(object as usize).map_or(0, Attributes::pages);
        let (held, gone) = (frame.held.get(), frame.gone.get());
        // Pages removed with the object's end may be named, too.
        let within = first.is_multiple_of(CHUNK)
            && first < limit
            && (held | gone).checked_shr((limit - first).min(CHUNK) as u32).unwrap_or(0) == 0
            && held & gone == 0;
        if frame.kind.get() != kind::CHUNK || !within || self.before >= Some((object, first)) {
            return Err(wrong("a chunk that is out of place"));
        }
        self.before = Some((object, first));
        self.chunks += 1;
        let (path, named) = (self.path.clone(), self.named(&frame));
        let is_summed = self.header.features.get() & PAGES_BY_HASHES != 0;
        Ok(Some(Record { frame, body, path, at, is_summed, named }))
    }

    /// Whether a damaged record is followed by readable ones.
    fn goes_on(&self) -> bool {
        !self.lost && !self.ended
    }

    /// Interrupted backups are only bases of others.
    pub fn is_interrupted(&self) -> bool {
        self.interrupted
    }

    /// Bytes read, the last hash, and the number of chunks.
    pub fn position(&self) -> (u64, Hash, u64) {
        (self.at, self.last, self.chunks)
    }

    /// The whole's hash, after [`chunk`](Self::chunk) returned `None`.
    pub fn whole(&self) -> Option<Hash> {
        self.ended.then_some(self.last)
    }
}

fn damaged(path: &Path, at: u64, what: String) -> BackupError {
    BackupError::Damaged { path: path.to_owned(), at, what }
}

/// Fills `buf`; `false`: the input ends before.
fn fill(input: &mut impl Read, buf: &mut [u8], path: &Path) -> Result<bool> {
    let mut at = 0;
    while at < buf.len() {
        match input.read(&mut buf[at..]) {
            Ok(0) => return Ok(false),
            Ok(len) => at += len,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) => return Err(BackupError::file("read", path)(error)),
        }
    }
    Ok(true)
}
