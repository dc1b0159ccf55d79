//! Loads and stores of compiled code in registers that Rust functions lack: vectors of 16 and 32
//! bytes, pairs of doubles, and x87 numbers of 10 bytes, passed by room on the stack.
//!
//! # Invariants
//!
//! 1. Each function has room of 40 bytes, which aligns the stack for its call, and keeps no
//!    register but the result across it. Address and number are the caller's: invariant 1 of the
//!    crate.

use crate::bytes::copy;
use std::arch::global_asm;

unsafe extern "C" fn load(from: *const u8, room: *mut u8, size: usize) {
    // SAFETY: called by the assembly below (1).
    unsafe { copy(room, from, size, true, false) };
}

unsafe extern "C" fn store(to: *mut u8, room: *const u8, size: usize) {
    // SAFETY: as for `load`.
    unsafe { copy(to, room, size, false, true) };
}

unsafe extern "C" fn store_complex(to: *mut u8, room: *const u8) {
    // SAFETY: as for `load`.
    unsafe {
        copy(to, room, 10, false, true);
        copy(to.wrapping_add(16), room.wrapping_add(16), 10, false, true);
    }
}

macro_rules! function {
    ($name:literal, $called:ident, [$($code:expr),+ $(,)?]) => {
        global_asm!(
            ".text",
            ".p2align 4",
            concat!(".globl ", $name),
            concat!(".type ", $name, ", @function"),
            concat!($name, ":"),
            ".cfi_startproc",
            "endbr64",
            $($code,)+
            ".cfi_endproc",
            concat!(".size ", $name, ", . - ", $name),
            called = sym $called,
        );
    };
}

macro_rules! functions {
    ($($name:literal)+ = $called:ident, $code:tt) => {
        $(function!($name, $called, $code);)+
    };
}

macro_rules! loads {
    ($($name:literal)+ = $size:literal, $take:literal) => {
        functions!($($name)+ = load, [
            "sub rsp, 40", ".cfi_adjust_cfa_offset 40",
            "mov rsi, rsp", concat!("mov edx, ", $size), "call {called}", $take,
            "add rsp, 40", ".cfi_adjust_cfa_offset -40", "ret"]);
    };
}

macro_rules! stores {
    ($($name:literal)+ = $size:literal, $put:literal) => {
        functions!($($name)+ = store, [
            "sub rsp, 40", ".cfi_adjust_cfa_offset 40",
            $put, "mov rsi, rsp", concat!("mov edx, ", $size), "call {called}",
            "add rsp, 40", ".cfi_adjust_cfa_offset -40", "ret"]);
    };
}

loads!("_ITM_RE" "_ITM_RaRE" "_ITM_RaWE" "_ITM_RfWE" = 10, "fld tbyte ptr [rsp]");
loads!("_ITM_RCE" "_ITM_RaRCE" "_ITM_RaWCE" "_ITM_RfWCE" = 26, "fld tbyte ptr [rsp + 16]\nfld tbyte ptr [rsp]");
loads!("_ITM_RCD" "_ITM_RaRCD" "_ITM_RaWCD" "_ITM_RfWCD" = 16, "movsd xmm0, qword ptr [rsp]\nmovsd xmm1, qword ptr [rsp + 8]");
loads!("_ITM_RM128" "_ITM_RaRM128" "_ITM_RaWM128" "_ITM_RfWM128" = 16, "movups xmm0, [rsp]");
loads!("_ITM_RM256" "_ITM_RaRM256" "_ITM_RaWM256" "_ITM_RfWM256" = 32, "vmovups ymm0, [rsp]");
stores!("_ITM_WCD" "_ITM_WaRCD" "_ITM_WaWCD" = 16, "movsd qword ptr [rsp], xmm0\nmovsd qword ptr [rsp + 8], xmm1");
stores!("_ITM_WM128" "_ITM_WaRM128" "_ITM_WaWM128" = 16, "movups [rsp], xmm0");
stores!("_ITM_WM256" "_ITM_WaRM256" "_ITM_WaWM256" = 32, "vmovups [rsp], ymm0");
// x87 numbers come on the caller's stack.
functions!("_ITM_WE" "_ITM_WaRE" "_ITM_WaWE" = store, ["lea rsi, [rsp + 8]", "mov edx, 10", "jmp {called}"]);
functions!("_ITM_WCE" "_ITM_WaRCE" "_ITM_WaWCE" = store_complex, ["lea rsi, [rsp + 8]", "jmp {called}"]);
