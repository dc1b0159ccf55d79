//! Building a segment: records, an index of pages, an end, under a chain of hashes.

use crate::format::{
    Frame, Hash, Header, INDEX_MOST, ObjectBody, PageEntry, RUNS_BYTES, RUNS_MOST, RunEntry, StillBody, flag,
    hash, kind, packing, pages_of,
};
use indelible_store::store::Attributes;
use zerocopy::{FromZeros, IntoBytes};

const START: u64 = (size_of::<Header>() + size_of::<Hash>()) as u64;
/// Bytes of a record beside its body.
const AROUND: u64 = (size_of::<Frame>() + size_of::<Hash>()) as u64;

/// A segment's records, until [`finish`](Builder::finish).
#[derive(Default)]
pub(crate) struct Builder {
    records: Vec<(Frame, Vec<u8>)>,
    index: Vec<PageEntry>,
    objects: u32,
    /// Bytes of the records so far, packed.
    len: u64,
    open: Option<Runs>,
}

/// Runs of one object that are not yet a record.
struct Runs {
    object: u32,
    psyncs: (u64, u64),
    entries: Vec<RunEntry>,
    bytes: Vec<u8>,
}

impl Builder {
    /// Bytes so far, packed.
    pub(crate) fn len(&self) -> u64 {
        self.len + self.open.as_ref().map_or(0, |open| open.bytes.len() as u64)
    }

    fn push(&mut self, frame: Frame, body: Vec<u8>) {
        self.len += AROUND + body.len() as u64;
        let len = (body.len() as u32).into();
        self.records.push((Frame { len, ..frame }, body));
    }

    /// Adds an object's attributes; returns the number of the record.
    pub(crate) fn object(&mut self, kept: &Attributes) -> u32 {
        self.close();
        self.push(Frame { kind: kind::OBJECT.into(), ..Frame::new_zeroed() }, ObjectBody::encode(kept));
        self.objects += 1;
        self.objects - 1
    }

    /// The object of this ID is no more.
    pub(crate) fn gone(&mut self, id: &[u8; 16]) {
        self.close();
        self.push(Frame { kind: kind::GONE.into(), ..Frame::new_zeroed() }, id.to_vec());
    }

    /// States the snapshot that the object's bytes equal here.
    pub(crate) fn still(&mut self, object: u32, still: &StillBody) {
        self.close();
        let frame = Frame { kind: kind::STILL.into(), object: object.into(), ..Frame::new_zeroed() };
        self.push(frame, still.as_bytes().to_vec());
    }

    /// Adds a run of the object with that record; later runs win.
    pub(crate) fn run(&mut self, object: u32, psyncs: (u64, u64), mut offset: u64, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let other = self.open.as_ref().is_some_and(|open| {
                open.object != object || open.bytes.len() == RUNS_BYTES || open.entries.len() == RUNS_MOST
            });
            if other {
                self.close();
            }
            let open = self.open.get_or_insert_with(|| Runs {
                object,
                psyncs,
                entries: Vec::new(),
                bytes: Vec::new(),
            });
            let (now, later) = bytes.split_at(bytes.len().min(RUNS_BYTES - open.bytes.len()));
            open.bytes.extend_from_slice(now);
            match open.entries.last_mut() {
                Some(last) if last.offset.get() + last.len.get() == offset => {
                    last.len = (last.len.get() + now.len() as u64).into();
                }
                _ => open.entries.push(RunEntry { offset: offset.into(), len: (now.len() as u64).into() }),
            }
            (offset, bytes) = (offset + now.len() as u64, later);
        }
    }

    fn close(&mut self) {
        let Some(Runs { object, psyncs, entries, bytes }) = self.open.take() else { return };
        let record = START + self.len;
        for (first, pages) in touched(&entries) {
            let (object, record) = (object.into(), record.into());
            self.index.push(PageEntry { object, pages: (pages as u32).into(), first: first.into(), record });
        }
        let (mut body, head) = (Vec::new(), [(entries.len() as u32).to_le_bytes(), [0; 4]]);
        body.extend_from_slice(head.as_flattened());
        body.extend_from_slice(entries.as_bytes());
        let packed = lz4_flex::block::compress(&bytes);
        let small = packed.len() < bytes.len();
        body.extend_from_slice(if small { &packed } else { &bytes });
        let frame = Frame {
            kind: kind::RUNS.into(),
            object: object.into(),
            packing: if small { packing::LZ4 } else { packing::PLAIN }.into(),
            first: psyncs.0.into(),
            held: psyncs.1.into(),
            bytes: (bytes.len() as u64).into(),
            ..Frame::new_zeroed()
        };
        self.push(frame, body);
    }

    /// Returns the segment's bytes and whole hash.
    pub(crate) fn finish(mut self, header: Header, flags: u32) -> (Vec<u8>, Hash) {
        self.close();
        let (at, records) = (START + self.len, self.records.len() as u64);
        for entries in std::mem::take(&mut self.index).chunks(INDEX_MOST) {
            let frame = Frame { kind: kind::INDEX.into(), ..Frame::new_zeroed() };
            self.push(frame, entries.as_bytes().to_vec());
        }
        let frame =
            Frame { kind: kind::END.into(), first: at.into(), held: records.into(), ..Frame::new_zeroed() };
        self.push(frame, Vec::new());
        debug_assert_eq!(flags & !(flag::FULL | flag::MOMENT), 0);
        let header = Header { objects: self.objects.into(), flags: flags.into(), ..header };
        let mut last = hash(&[header.as_bytes()]);
        let mut bytes = Vec::with_capacity((START + self.len) as usize);
        bytes.extend_from_slice(header.as_bytes());
        bytes.extend_from_slice(&last);
        for (frame, body) in &self.records {
            last = hash(&[&last, frame.as_bytes(), body]);
            bytes.extend_from_slice(frame.as_bytes());
            bytes.extend_from_slice(body);
            bytes.extend_from_slice(&last);
        }
        (bytes, last)
    }
}

/// Ranges of pages that runs touch: first page, and count; adjacent ones are one.
pub(crate) fn touched(entries: &[RunEntry]) -> Vec<(u64, u64)> {
    let mut ranges: Vec<_> =
        entries.iter().map(|entry| pages_of(entry.offset.get(), entry.len.get())).collect();
    ranges.sort_by_key(|range| range.start);
    let mut merged: Vec<(u64, u64)> = Vec::new();
    for range in ranges {
        match merged.last_mut() {
            Some((first, pages)) if *first + *pages >= range.start => {
                *pages = (*pages).max(range.end - *first);
            }
            _ => merged.push((range.start, range.end - range.start)),
        }
    }
    merged
}
