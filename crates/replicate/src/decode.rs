//! Reading a segment: nothing of it is believed before its whole hash is.

use crate::encode::touched;
use crate::error::{ReplicateError, Result};
use crate::format::{
    BODY_MAX, Frame, Hash, Header, INDEX_MOST, MAGIC, ObjectBody, PageEntry, RUNS_BYTES, RUNS_MOST, RunEntry,
    StillBody, VERSION, extent, flag, hash, kind, packing,
};
use indelible_store::store::Attributes;
use std::ops::Range;
use zerocopy::{FromBytes, IntoBytes};

#[derive(Debug)]
pub(crate) struct Segment {
    pub(crate) header: Header,
    pub(crate) whole: Hash,
    /// In order.
    pub(crate) changes: Vec<Change>,
}

#[derive(Debug)]
pub(crate) enum Change {
    /// A new object, or other attributes.
    Object(Attributes),
    Gone([u8; 16]),
    Runs(Runs),
    Still(StillRecord),
}

/// The object's bytes equal this snapshot of it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StillRecord {
    pub(crate) id: [u8; 16],
    pub(crate) snapshot: [u8; 16],
    pub(crate) psyncs: u64,
    pub(crate) size: u64,
}

/// Bytes of one object; later runs win.
#[derive(Debug)]
pub(crate) struct Runs {
    pub(crate) id: [u8; 16],
    entries: Vec<RunEntry>,
    bytes: Vec<u8>,
}

impl Runs {
    /// The runs: offset in the object, bytes.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u64, &[u8])> {
        let mut rest = &self.bytes[..];
        self.entries.iter().map(move |entry| {
            let (now, later) = rest.split_at(entry.len.get() as usize);
            rest = later;
            (entry.offset.get(), now)
        })
    }
}

impl Segment {
    pub(crate) fn is_full(&self) -> bool {
        self.header.flags.get() & flag::FULL != 0
    }

    pub(crate) fn is_moment(&self) -> bool {
        self.header.flags.get() & flag::MOMENT != 0
    }

    /// Proves and reads a segment; `name` is for errors.
    ///
    /// # Errors
    /// `Damaged`, `Version`.
    pub(crate) fn read(bytes: &[u8], name: &str) -> Result<Segment> {
        Reader { bytes, at: 0, name }.segment()
    }
}

/// Reads the start of a segment, whose hash is proved.
pub(crate) fn header(bytes: &[u8], name: &str) -> Result<Header> {
    let mut reader = Reader { bytes, at: 0, name };
    Ok(reader.header()?.0)
}

struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
    name: &'a str,
}

/// A record: its place, frame, body.
type Record<'a> = (u64, Frame, &'a [u8]);

impl<'a> Reader<'a> {
    fn damaged(&self, why: impl Into<String>) -> ReplicateError {
        ReplicateError::damaged(self.name, why)
    }

    fn take(&mut self, len: usize) -> Result<&'a [u8]> {
        let found = self.bytes.get(self.at..).and_then(|rest| rest.get(..len));
        let found = found.ok_or_else(|| self.damaged(format!("it ends after {} bytes", self.bytes.len())))?;
        self.at += len;
        Ok(found)
    }

    fn header(&mut self) -> Result<(Header, Hash)> {
        let bytes = self.take(size_of::<Header>())?;
        let header = Header::read_from_bytes(bytes).map_err(|_| self.damaged("it has no header"))?;
        if header.magic != MAGIC {
            return Err(self.damaged("it is no segment"));
        }
        if header.version.get() != VERSION || header.features.get() != 0 {
            let (name, version) = (self.name.to_owned(), header.version.get());
            return Err(ReplicateError::Version { name, version });
        }
        let last = hash(&[bytes]);
        if self.take(size_of::<Hash>())? != last {
            return Err(self.damaged("its header is not the one that was put"));
        }
        Ok((header, last))
    }

    fn record(&mut self, last: &mut Hash) -> Result<Record<'a>> {
        let at = self.at as u64;
        let head = self.take(size_of::<Frame>())?;
        let frame = Frame::read_from_bytes(head).map_err(|_| self.damaged("a record has no frame"))?;
        let len = frame.len.get() as usize;
        if len > BODY_MAX {
            return Err(self.damaged(format!("the record at {at} has {len} bytes")));
        }
        let body = self.take(len)?;
        *last = hash(&[last, head, body]);
        if self.take(size_of::<Hash>())? != *last {
            return Err(self.damaged(format!("the record at {at} is not the one that was put")));
        }
        Ok((at, frame, body))
    }

    fn segment(mut self) -> Result<Segment> {
        let (header, mut last) = self.header()?;
        let (mut changes, mut objects, mut index) = (Vec::new(), Vec::<(usize, u64)>::new(), Vec::new());
        let (mut found, mut count, mut end_of_records) = (Vec::new(), 0_u64, None);
        loop {
            let (at, frame, body) = self.record(&mut last)?;
            let is_late = end_of_records.is_some();
            match frame.kind.get() {
                kind::OBJECT if !is_late => {
                    let attributes = ObjectBody::decode(body);
                    let sized = attributes.and_then(|found| Some((extent(&found)?, found)));
                    let (extent, attributes) =
                        sized.ok_or_else(|| self.damaged(format!("the object at {at} is impossible")))?;
                    objects.push((changes.len(), extent));
                    changes.push(Change::Object(attributes));
                }
                kind::GONE if !is_late => {
                    let id = body.try_into();
                    changes.push(Change::Gone(id.map_err(|_| self.damaged("an ID has 16 bytes"))?));
                }
                kind::RUNS if !is_late => {
                    let object = objects.get(frame.object.get() as usize);
                    let (which, extent) =
                        object.ok_or_else(|| self.damaged(format!("the runs at {at} are of no object")))?;
                    let Some(Change::Object(object)) = changes.get(*which) else { unreachable!() };
                    let runs = self.runs(&frame, body, object.id, *extent)?;
                    for (first, pages) in touched(&runs.entries) {
                        let pages = (pages as u32).into();
                        let (first, record) = (first.into(), at.into());
                        index.push(PageEntry { object: frame.object, pages, first, record });
                    }
                    changes.push(Change::Runs(runs));
                }
                kind::STILL if !is_late => {
                    let wrong = || self.damaged(format!("the snapshot at {at} is of no object"));
                    let (which, _) = objects.get(frame.object.get() as usize).ok_or_else(wrong)?;
                    let Some(Change::Object(object)) = changes.get(*which) else { unreachable!() };
                    let body = StillBody::read_from_bytes(body).map_err(|_| wrong())?;
                    let (psyncs, size) = (body.psyncs.get(), body.size.get());
                    let still = StillRecord { id: object.id, snapshot: body.snapshot, psyncs, size };
                    changes.push(Change::Still(still));
                }
                kind::INDEX => {
                    end_of_records.get_or_insert(at);
                    let entries = <[PageEntry]>::ref_from_bytes(body);
                    found.extend_from_slice(entries.map_err(|_| self.damaged("its index is cut"))?);
                    if body.len() > INDEX_MOST * size_of::<PageEntry>() {
                        return Err(self.damaged("its index is too long"));
                    }
                    continue;
                }
                kind::END => {
                    let ends = end_of_records.unwrap_or(at) == frame.first.get();
                    let counts = (frame.held.get(), header.objects.get() as usize) == (count, objects.len());
                    if !ends || !counts || found != index || self.at != self.bytes.len() {
                        return Err(self.damaged("its end does not fit its records"));
                    }
                    return Ok(Segment { header, whole: last, changes });
                }
                other => return Err(self.damaged(format!("the record at {at} has the kind {other}"))),
            }
            count += 1;
        }
    }

    fn runs(&self, frame: &Frame, body: &[u8], id: [u8; 16], extent: u64) -> Result<Runs> {
        let wrong = || self.damaged("its runs do not fit their object");
        let (head, rest) = body.split_at_checked(8).ok_or_else(wrong)?;
        let count = u32::from_le_bytes(head[..4].try_into().map_err(|_| wrong())?) as usize;
        let unpacked = frame.bytes.get() as usize;
        if count > RUNS_MOST || unpacked > RUNS_BYTES {
            return Err(wrong());
        }
        let table = rest.split_at_checked(count * size_of::<RunEntry>());
        let (table, packed) = table.ok_or_else(wrong)?;
        let entries = <[RunEntry]>::ref_from_bytes(table).map_err(|_| wrong())?.to_vec();
        let mut sum = 0_u64;
        for entry in &entries {
            let range: Option<Range<u64>> =
                entry.offset.get().checked_add(entry.len.get()).map(|end| entry.offset.get()..end);
            if !range.is_some_and(|range| range.end <= extent && !range.is_empty()) {
                return Err(wrong());
            }
            sum += entry.len.get().min(RUNS_BYTES as u64);
        }
        let bytes = match frame.packing.get() {
            packing::PLAIN => packed.to_vec(),
            packing::LZ4 => lz4_flex::block::decompress(packed, unpacked).map_err(|_| wrong())?,
            _ => return Err(wrong()),
        };
        if bytes.len() != unpacked || sum != unpacked as u64 {
            return Err(wrong());
        }
        debug_assert_eq!(entries.as_bytes().len(), table.len());
        Ok(Runs { id, entries, bytes })
    }
}
