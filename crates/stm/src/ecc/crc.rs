//! CRC-32C of one word, from a zero register without final inversion: linear, and zero for zero.
//!
//! # Invariants
//!
//! 1. The function that needs SSE 4.2 runs only on processors with it.

/// Reflected.
const POLYNOMIAL: u32 = 0x82f6_3b78;

const TABLE: [u32; 256] = {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        let mut register = byte as u32;
        let mut bit = 0;
        while bit < 8 {
            register = register >> 1 ^ if register & 1 == 1 { POLYNOMIAL } else { 0 };
            bit += 1;
        }
        table[byte] = register;
        byte += 1;
    }
    table
};

pub(crate) const fn portable(word: u64) -> u32 {
    let (mut register, mut rest) = (0_u32, 0);
    while rest < 8 {
        let byte = (word >> (8 * rest)) as u8;
        register = register >> 8 ^ TABLE[(register as u8 ^ byte) as usize];
        rest += 1;
    }
    register
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "sse4.2")]
fn by_instruction(word: u64) -> u32 {
    std::arch::x86_64::_mm_crc32_u64(0, word) as u32
}

#[inline]
pub(crate) fn crc(word: u64) -> u32 {
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("sse4.2") {
        // SAFETY: the processor has it (1).
        return unsafe { by_instruction(word) };
    }
    portable(word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ways_agree_with_the_published_check_value() {
        // The usual CRC-32C of "123456789", with initial ones and a final inversion, is 0xe3069283.
        // By linearity initial ones are the same as inverting the first four bytes.
        let first = u64::from_le_bytes(*b"12345678") ^ 0xffff_ffff;
        let register = portable(first);
        let last = !(register >> 8 ^ TABLE[(register as u8 ^ b'9') as usize]);
        assert_eq!(last, 0xe306_9283);
        let mut word = 1_u64;
        for _ in 0..10_000 {
            word = word.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(1);
            assert_eq!(crc(word), portable(word), "{word:#x}");
        }
    }
}
