//! See `indelible_testing::hostile`.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| indelible_testing::hostile::decode::key_page(input));
