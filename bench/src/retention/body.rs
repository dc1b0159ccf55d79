//! The fields of a TPC-C tree node without its keys.

use indelible::Persist;

pub const ORDER: usize = 8;

#[derive(Persist, Clone, Copy)]
#[repr(C)]
pub struct Body {
    pub count: u32,
    pub level: u32,
    pub slots: [u64; ORDER],
}
