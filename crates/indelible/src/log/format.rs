use crate::error::LogError;
use indelible_store::format::checksum;

const MAGIC: u64 = u64::from_le_bytes(*b"pmo-log\0");
const VERSION: u64 = 1;
pub(super) const HEADER: usize = 64;
pub(super) const HEAD: usize = 40;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) end: usize,
    pub(super) records: u64,
    pub(super) queue: u64,
    pub(super) next: u64,
}

impl Header {
    pub(super) const EMPTY: Header = Header { end: HEADER, records: 0, queue: 0, next: 0 };

    pub(super) fn encode(&self) -> [u8; HEADER] {
        let mut bytes = [0; HEADER];
        let words = [MAGIC, VERSION, self.end as u64, self.records, self.queue, self.next];
        for (at, word) in bytes.as_chunks_mut::<8>().0.iter_mut().zip(words) {
            *at = word.to_le_bytes();
        }
        bytes
    }

    pub(super) fn decode(first: &[u8], len: usize) -> Result<Option<Header>, LogError> {
        let bytes = first.get(..HEADER).ok_or(LogError::NotALog("it is smaller than a header"))?;
        if bytes.iter().all(|byte| *byte == 0) {
            return Ok(None);
        }
        let word = |nth: usize| word(bytes, 8 * nth);
        if word(0) != MAGIC {
            return Err(LogError::NotALog("it begins with other bytes"));
        }
        if word(1) != VERSION {
            return Err(LogError::NotALog("it is of a version that this release does not know"));
        }
        let end = usize::try_from(word(2)).unwrap_or(usize::MAX);
        if !(HEADER..=len).contains(&end) || !end.is_multiple_of(8) {
            return Err(LogError::Damaged { at: 16, why: "its end lies outside the object" });
        }
        Ok(Some(Header { end, records: word(3), queue: word(4), next: word(5) }))
    }
}

fn word(bytes: &[u8], at: usize) -> u64 {
    let mut word = [0; 8];
    word.copy_from_slice(&bytes[at..at + 8]);
    u64::from_le_bytes(word)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Record<'a> {
    pub(super) number: u64,
    pub(super) queue: u64,
    pub(super) message: u64,
    pub(super) bytes: &'a [u8],
}

pub(super) fn room(len: usize) -> usize {
    HEAD + len.next_multiple_of(8)
}

impl<'a> Record<'a> {
    pub(super) fn encode(&self, into: &mut [u8]) -> Result<(), LogError> {
        let len = self.bytes.len();
        let short = u32::try_from(len).map_err(|_| LogError::TooLong { len })?;
        into.fill(0);
        let words = [u64::from(short), self.number, self.queue, self.message];
        for (at, word) in into.as_chunks_mut::<8>().0.iter_mut().zip(words) {
            *at = word.to_le_bytes();
        }
        let sum = checksum(MAGIC, &[&into[..HEAD - 8], self.bytes]);
        into[HEAD - 8..HEAD].copy_from_slice(&sum.to_le_bytes());
        into[HEAD..HEAD + len].copy_from_slice(self.bytes);
        Ok(())
    }

    pub(super) fn len(head: &[u8; HEAD]) -> Option<usize> {
        u32::try_from(word(head, 0)).ok().map(|len| room(len as usize))
    }

    pub(super) fn decode(log: &'a [u8], at: usize, number: u64) -> Result<(Record<'a>, usize), LogError> {
        let damaged = |why| LogError::Damaged { at, why };
        let head = log.first_chunk::<HEAD>().ok_or(damaged("a record begins behind the end"))?;
        let end = Self::len(head).ok_or(damaged("a record is longer than one can be"))?;
        if end > log.len() {
            return Err(damaged("a record ends behind the log"));
        }
        let bytes = &log[HEAD..HEAD + word(head, 0) as usize];
        if checksum(MAGIC, &[&head[..HEAD - 8], bytes]) != word(head, HEAD - 8) {
            return Err(damaged("the checksum of a record is another"));
        }
        if word(head, 8) != number {
            return Err(damaged("a record has the number of another"));
        }
        Ok((Record { number, queue: word(head, 16), message: word(head, 24), bytes }, end))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_are_read_back_and_damaged_ones_are_not() {
        for len in [0, 1, 7, 8, 9, 300] {
            let bytes = vec![0xa5; len];
            let record = Record { number: 3, queue: 4, message: 5, bytes: &bytes };
            let mut log = vec![0xff; HEADER + room(len)];
            record.encode(&mut log[HEADER..]).unwrap();
            assert_eq!(Record::decode(&log[HEADER..], HEADER, 3).unwrap(), (record, room(len)));
            assert!(Record::decode(&log[HEADER..], HEADER, 2).is_err());
            assert!(Record::decode(&log[HEADER..log.len() - 1], HEADER, 3).is_err());
            for bit in 8 * HEADER..8 * (HEADER + HEAD + len) {
                log[bit / 8] ^= 1 << (bit % 8);
                assert!(Record::decode(&log[HEADER..], HEADER, 3).is_err(), "bit {bit}");
                log[bit / 8] ^= 1 << (bit % 8);
            }
        }
    }

    #[test]
    fn headers_are_read_back_and_others_are_not() {
        let header = Header { end: 128, records: 2, queue: 7, next: 9 };
        let mut object = header.encode().to_vec();
        object.resize(4096, 0);
        assert_eq!(Header::decode(&object, 4096).unwrap(), Some(header));
        assert_eq!(Header::decode(&[0; 64], 64).unwrap(), None);
        assert!(Header::decode(&object, 100).is_err(), "it ends behind the object");
        assert!(Header::decode(&object[..60], 60).is_err());
        for byte in 0..16 {
            object[byte] ^= 1;
            assert!(matches!(Header::decode(&object, 4096), Err(LogError::NotALog(_))));
            object[byte] ^= 1;
        }
    }
}
