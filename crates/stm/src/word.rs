//! Numbers of 1, 2, 4 and 8 bytes.

/// A number of 1, 2, 4 or 8 bytes.
pub trait Number: Copy + sealed::Number {}

pub(crate) mod sealed {
    pub trait Number: Sized {
        /// The number in the lowest bytes.
        fn from_bits(bits: u64) -> Self;

        /// The number in the lowest bytes of a word.
        fn to_bits(self) -> u64;
    }
}

macro_rules! numbers {
    ($($type:ty, $from:expr, $to:expr;)+) => {$(
        impl Number for $type {}

        impl sealed::Number for $type {
            #[inline]
            fn from_bits(bits: u64) -> Self {
                $from(bits)
            }

            #[inline]
            fn to_bits(self) -> u64 {
                $to(self)
            }
        }
    )+};
}

numbers! {
    u8, |bits| bits as u8, u64::from;
    u16, |bits| bits as u16, u64::from;
    u32, |bits| bits as u32, u64::from;
    u64, |bits| bits, |value| value;
    usize, |bits| bits as usize, |value| value as u64;
    i8, |bits| bits as i8, |value| u64::from(value as u8);
    i16, |bits| bits as i16, |value| u64::from(value as u16);
    i32, |bits| bits as i32, |value| u64::from(value as u32);
    i64, |bits| bits as i64, |value| value as u64;
    isize, |bits| bits as isize, |value| value as u64;
    f32, |bits| f32::from_bits(bits as u32), |value: f32| u64::from(value.to_bits());
    f64, f64::from_bits, f64::to_bits;
}

const _: () = assert!(size_of::<usize>() == 8 && cfg!(target_endian = "little"));
