//! Numbers of the interface with compiled code.

pub(crate) mod property {
    pub(crate) const INSTRUMENTED: u32 = 0x1;
    pub(crate) const UNINSTRUMENTED: u32 = 0x2;
    pub(crate) const HAS_NO_ABORT: u32 = 0x8;
    pub(crate) const GOES_IRREVOCABLE: u32 = 0x40;
}

/// Orders to the block when its beginning returns.
pub(crate) mod action {
    pub(crate) const RUN_INSTRUMENTED: u32 = 0x1;
    pub(crate) const RUN_UNINSTRUMENTED: u32 = 0x2;
    pub(crate) const SAVE: u32 = 0x4;
    pub(crate) const RESTORE: u32 = 0x8;
    pub(crate) const ABORTED: u32 = 0x10;
}

pub(crate) mod reason {
    use std::ffi::c_int;

    pub(crate) const CANCEL: c_int = 1;
    pub(crate) const RETRY: c_int = 2;
    pub(crate) const OUTER: c_int = 16;
}
