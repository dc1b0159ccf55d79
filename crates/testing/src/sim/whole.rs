//! Writes that are parts of one checksummed whole.
//!
//! A durable write is a whole. So is a batch in pieces: streamed one after the other, with the
//! header in front written last. Nothing else has this shape.

use super::event::{Event, EventKind};
use super::recording::Recording;
use std::collections::BTreeMap;

/// For each event of a whole, the event that completes it.
pub(super) fn wholes(recording: &Recording) -> BTreeMap<u64, u64> {
    let mut wholes = BTreeMap::new();
    for (number, event) in (recording.first..).zip(&recording.events) {
        match event.kind {
            EventKind::WriteDurable => {
                wholes.insert(number, number);
            }
            EventKind::Write => {
                if let Some(pieces) = pieces_behind(recording, number, event) {
                    wholes.extend(pieces.into_iter().chain([number]).map(|part| (part, number)));
                }
            }
            _ => {}
        }
    }
    wholes
}

/// The pieces streamed just before `header`, if they begin at its end.
fn pieces_behind(recording: &Recording, number: u64, header: &Event) -> Option<Vec<u64>> {
    let (header_at, header_len) = header.ranges().next()?;
    let mut pieces = Vec::new();
    let mut begin = None;
    for before in (recording.first..number).rev() {
        let event = recording.event(before)?;
        if event.holder != header.holder {
            continue;
        }
        let (at, len) = event.ranges().next().filter(|_| event.kind == EventKind::Stream)?;
        if begin.is_some_and(|begin| at + len != begin) {
            return None;
        }
        pieces.push(before);
        begin = Some(at);
        if at == header_at + header_len {
            return Some(pieces);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::super::config::SimConfig;
    use super::super::medium::SimMedium;
    use super::*;
    use indelible_store::medium::Medium;

    fn found(log: impl FnOnce(&SimMedium, &SimMedium)) -> Vec<(u64, u64)> {
        let medium = SimMedium::new(1 << 16, SimConfig::default());
        log(&medium, &medium.handle());
        wholes(&medium.lock().recording).into_iter().collect()
    }

    #[test]
    fn pieces_and_the_header_in_front_of_them_are_one_thing() {
        let parts = found(|medium, other| {
            medium.stream(8192, &[9; 64]).unwrap();
            medium.stream(64, &[1; 128]).unwrap();
            other.write(4096, &[2; 64]).unwrap();
            medium.stream(192, &[3; 64]).unwrap();
            medium.write(0, &[4; 64]).unwrap();
            medium.write_durable(512, &[5; 64]).unwrap();
        });
        assert_eq!(parts, [(1, 4), (3, 4), (4, 4), (5, 5)]);
    }

    #[test]
    fn pieces_that_no_header_stands_in_front_of_are_on_their_own() {
        let gap = found(|medium, _| {
            medium.stream(64, &[1; 64]).unwrap();
            medium.stream(192, &[2; 64]).unwrap();
            medium.write(0, &[3; 64]).unwrap();
        });
        let elsewhere = found(|medium, _| {
            medium.stream(128, &[1; 64]).unwrap();
            medium.write(0, &[3; 64]).unwrap();
        });
        let others = found(|medium, other| {
            medium.stream(64, &[1; 64]).unwrap();
            other.write(0, &[3; 64]).unwrap();
        });
        assert_eq!([gap, elsewhere, others], [vec![], vec![], vec![]]);
    }
}
