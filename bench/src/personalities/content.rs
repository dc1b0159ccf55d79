//! Content computed from a file's key and the offset, so that all reads can be checked.

use crate::Result;
use crate::pattern::Random;

/// A prime, so that no page equals another.
const PERIOD: usize = 65_521;
/// Filebench's I/O size.
pub const PIECE: usize = 1 << 20;

pub struct Content(Vec<u8>);

impl Content {
    pub fn new() -> Self {
        let mut random = Random::new(PERIOD as u64);
        let period: Vec<u8> = (0..PERIOD).map(|_| random.next() as u8).collect();
        Content(period.iter().copied().cycle().take(PERIOD + PIECE).collect())
    }

    pub fn of(&self, key: u64, offset: usize, len: usize) -> &[u8] {
        let start = ((key % PERIOD as u64) as usize + offset) % PERIOD;
        &self.0[start..start + len]
    }

    pub fn check(&self, key: u64, bytes: &[u8]) -> Result<()> {
        for (number, piece) in bytes.chunks(PIECE).enumerate() {
            if piece != self.of(key, number * PIECE, piece.len()) {
                return Err("what was read is not what was written".into());
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_make_up_the_whole_and_other_bytes_are_noticed() {
        let content = Content::new();
        let mut whole = content.of(77, 0, 40_000).to_vec();
        whole.extend_from_slice(content.of(77, 40_000, PIECE));
        content.check(77, &whole).unwrap();
        assert!(content.check(78, &whole).is_err());
        whole[PIECE + 5] ^= 1;
        assert!(content.check(77, &whole).is_err());
    }
}
