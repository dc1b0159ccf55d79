//! Digits of a number, without an allocation.

pub(crate) struct Decimal {
    text: [u8; 20],
    from: usize,
}

impl Decimal {
    pub(crate) fn new(is_negative: bool, mut magnitude: u64) -> Decimal {
        let mut decimal = Decimal { text: [0; 20], from: 20 };
        loop {
            decimal.push(b'0' + (magnitude % 10) as u8);
            magnitude /= 10;
            if magnitude == 0 {
                break;
            }
        }
        if is_negative {
            decimal.push(b'-');
        }
        decimal
    }

    fn push(&mut self, byte: u8) {
        self.from -= 1;
        self.text[self.from] = byte;
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.text[self.from..]
    }
}

impl From<i64> for Decimal {
    fn from(number: i64) -> Decimal {
        Decimal::new(number < 0, number.unsigned_abs())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_are_those_of_the_number() {
        for number in [0, 7, -7, 10, -10, 12_345, i64::MAX, i64::MIN] {
            assert_eq!(Decimal::from(number).bytes(), number.to_string().as_bytes());
        }
        assert_eq!(Decimal::new(false, u64::MAX).bytes(), u64::MAX.to_string().as_bytes());
    }
}
