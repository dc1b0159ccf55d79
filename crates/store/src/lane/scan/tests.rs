use super::*;
use crate::format::batch::{MAGIC, kind};
use crate::medium::volatile::VolatileMedium;
use crate::medium::{Capabilities, Fatal, MediumError, ReserveError, Transfers};
use std::sync::atomic::{AtomicU64, Ordering};
use zerocopy::little_endian::{U16, U32, U64};

const SEED: u64 = 5;
const LANE: u64 = 4 << 20;

fn windows() -> Vec<usize> {
    let shipped = Transfers::SHIPPED.scan();
    if cfg!(miri) { vec![512] } else { vec![512, shipped] }
}

fn lane(lines: usize, window: usize) -> (VolatileMedium, LaneLog) {
    let run = Run { target: U64::new(0), lines: U64::new(lines as u64) };
    let section = Section { kind: U16::new(kind::PSYNC), runs: U32::new(1), ..Section::default() };
    let mut body: Vec<u8> = (0..lines * 64).map(|i| (i / 61) as u8).collect();
    body.extend_from_slice(section.as_bytes());
    body.extend_from_slice(run.as_bytes());
    let mut header = Header {
        magic: U32::new(MAGIC),
        sections: U32::new(1),
        body_sum: U64::new(checksum(SEED, &[&body])),
        generation: U64::new(1),
        len: U64::new(LINE + body.len() as u64),
        runs: U32::new(1),
        lines: U32::new(lines as u32),
        ..Header::default()
    };
    header.head_sum = U64::new(header.sum(SEED));
    let medium = VolatileMedium::with_transfers(LANE, Transfers::SHIPPED.with_scan(window));
    let log = LaneLog::at_start(0, LANE, 1);
    medium.write(log.position(), header.as_bytes()).unwrap();
    medium.write(log.position() + LINE, &body).unwrap();
    (medium, log)
}

fn redo_all(medium: &dyn Medium, log: &mut LaneLog) -> Result<Vec<u8>> {
    let mut out = Vec::new();
    scan(medium, SEED, log, &mut |batch| {
        batch.redo(0, &mut |target, bytes| {
            assert_eq!(target, out.len() as u64);
            out.extend_from_slice(bytes);
            Ok(())
        })
    })?;
    Ok(out)
}

/// From read `after` on, the byte at `at` has another value.
struct Rotting {
    under: VolatileMedium,
    at: u64,
    after: u64,
    reads: AtomicU64,
}

impl Medium for Rotting {
    fn len(&self) -> u64 {
        self.under.len()
    }
    fn read_only(&self) -> bool {
        true
    }
    fn read(&self, offset: u64, buf: &mut [u8]) -> std::result::Result<(), MediumError> {
        self.under.read(offset, buf)?;
        let rotten = self.reads.fetch_add(1, Ordering::Relaxed) >= self.after && self.at >= offset;
        if let Some(byte) = buf.get_mut(self.at.saturating_sub(offset) as usize).filter(|_| rotten) {
            *byte ^= 1;
        }
        Ok(())
    }
    fn write(&self, _: u64, _: &[u8]) -> std::result::Result<(), Fatal> {
        Err(MediumError::ReadOnly.into())
    }
    fn write_durable(&self, _: u64, _: &[u8]) -> std::result::Result<(), Fatal> {
        Err(MediumError::ReadOnly.into())
    }
    fn barrier(&self) -> std::result::Result<(), Fatal> {
        Ok(())
    }
    fn zero(&self, _: u64, _: u64) -> std::result::Result<(), Fatal> {
        Err(MediumError::ReadOnly.into())
    }
    fn reserve(&self, _: u64, _: u64) -> std::result::Result<(), ReserveError> {
        Err(MediumError::ReadOnly.into())
    }
    fn discard(&self, _: u64, _: u64) {}
    fn capabilities(&self) -> Capabilities {
        Capabilities::MEMORY
    }
    fn transfers(&self) -> Transfers {
        self.under.transfers()
    }
    fn verify(&self) -> std::result::Result<(), MediumError> {
        Ok(())
    }
}

#[test]
fn batches_of_any_length_are_shown_whole() {
    for (window, lines) in windows().into_iter().flat_map(|window| {
        let piece = window / 64;
        [0, 1, 63, piece - 1, piece, piece + 1, 3 * piece - 1, 3 * piece + 7].map(|lines| (window, lines))
    }) {
        let (medium, start) = lane(lines, window);
        let mut log = start;
        let found = redo_all(&medium, &mut log).unwrap();
        assert!(found.iter().enumerate().all(|(i, byte)| *byte == (i / 61) as u8), "{lines} lines");
        assert_eq!((found.len(), log.sequence), (lines * 64, 1), "{lines} lines");
    }
}

#[test]
fn bytes_that_change_after_verification_are_not_shown() {
    windows().into_iter().for_each(rot);
}

fn rot(window: usize) {
    let lines = 2 * window / 64 + 9;
    let (medium, start) = lane(lines, window);
    let good = redo_all(&medium, &mut { start }).unwrap();
    let mut noticed = 0;
    for at in [start.tail + 64, start.tail + 64 + window as u64, start.tail + 64 * lines as u64] {
        for after in 0..12 {
            let under = lane(lines, window).0;
            let rotting = Rotting { under, at, after, reads: AtomicU64::new(0) };
            match redo_all(&rotting, &mut { start }) {
                // Changed before verification.
                Ok(found) => assert!(found.is_empty() || found == good, "byte {at} after {after} reads"),
                Err(StoreError::Damaged { .. }) => noticed += 1,
                Err(other) => panic!("{other}"),
            }
        }
    }
    assert!(noticed >= 6, "{noticed} noticed");
}
