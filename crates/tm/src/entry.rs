//! The beginning of a block, to which control returns for a rerun: GCC's code calls
//! `_ITM_beginTransaction` like `setjmp`.
//!
//! # Invariants
//!
//! 1. A [`Beginning`] has the callee-saved registers (System V ABI, x86-64), and the address where
//!    the block goes on. The caller's frame exists while the block runs: GCC's code leaves a block
//!    only by `_ITM_commitTransaction`.
//! 2. [`Beginning::go_on`] abandons the frames below: those of GCC's code, which need nothing else,
//!    and one of an exported function of this library, which owns nothing then.
//! 3. `pmo_tm_current` is the thread's own word, used only by [`current`] and [`set_current`].
//!
//! Rounding modes and the like are not kept: no rerunnable block changes them. The library declares
//! no support of shadow stacks.

use crate::mutant::Mutant;
use std::arch::{asm, global_asm};

/// Registers, as of the return from `_ITM_beginTransaction`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct Beginning {
    /// The stack pointer after the return: the block's frames lie below.
    pub(crate) stack: usize,
    kept: [usize; 6],
    address: usize,
}

global_asm!(
    ".text",
    ".p2align 4",
    ".globl _ITM_beginTransaction",
    ".type _ITM_beginTransaction, @function",
    "_ITM_beginTransaction:",
    ".cfi_startproc",
    "endbr64",
    "lea rax, [rsp + 8]",
    "sub rsp, 72",
    ".cfi_adjust_cfa_offset 72",
    "mov [rsp], rax",
    "mov [rsp + 8], rbx",
    "mov [rsp + 16], rbp",
    "mov [rsp + 24], r12",
    "mov [rsp + 32], r13",
    "mov [rsp + 40], r14",
    "mov [rsp + 48], r15",
    "mov rax, [rsp + 72]",
    "mov [rsp + 56], rax",
    "mov rsi, rsp",
    "call {begin}",
    "add rsp, 72",
    ".cfi_adjust_cfa_offset -72",
    "ret",
    ".cfi_endproc",
    ".size _ITM_beginTransaction, . - _ITM_beginTransaction",
    ".section .tbss, \"awT\", @nobits",
    ".p2align 3",
    ".hidden pmo_tm_current",
    ".globl pmo_tm_current",
    ".type pmo_tm_current, @object",
    "pmo_tm_current:",
    ".zero 8",
    ".size pmo_tm_current, 8",
    ".text",
    begin = sym crate::blocks::begin,
);

impl Beginning {
    /// Word by word, as `_ITM_beginTransaction` stored it, as a load of two words would stall.
    ///
    /// # Safety
    ///
    /// There is one.
    #[inline(always)]
    pub(crate) unsafe fn copy(from: *const Beginning) -> Beginning {
        let words = from.cast::<usize>();
        // SAFETY: the caller's promise; eight words.
        let word = |nth| unsafe { words.add(nth).read_volatile() };
        Beginning {
            stack: word(0),
            kept: [word(1), word(2), word(3), word(4), word(5), word(6)],
            address: word(7),
        }
    }

    /// Returns from `_ITM_beginTransaction` again, with these actions.
    ///
    /// # Safety
    ///
    /// The block runs on this thread (1), and the frames below it own nothing (2).
    pub(crate) unsafe fn go_on(mut self, actions: u32) -> ! {
        if Mutant::RegistersNotRestored.is_on() {
            self.kept = [0; 6];
        }
        // SAFETY: the registers are those of the caller's frame (1); nothing below it is needed
        // (2).
        unsafe {
            asm!(
                "mov rbx, [rdi + 8]",
                "mov rbp, [rdi + 16]",
                "mov r12, [rdi + 24]",
                "mov r13, [rdi + 32]",
                "mov r14, [rdi + 40]",
                "mov r15, [rdi + 48]",
                "mov rdx, [rdi + 56]",
                "mov rsp, [rdi]",
                "jmp rdx",
                in("rdi") &raw const self,
                in("eax") actions,
                options(noreturn),
            )
        }
    }
}

#[inline(always)]
pub(crate) fn current() -> usize {
    let word;
    // SAFETY: a load of the thread's own word (3), in its static block.
    unsafe {
        asm!(
            "mov {0}, qword ptr [rip + pmo_tm_current@GOTTPOFF]",
            "mov {0}, qword ptr fs:[{0}]",
            out(reg) word,
            options(nostack, readonly, preserves_flags),
        );
    }
    word
}

pub(crate) fn set_current(word: usize) {
    // SAFETY: a store to the thread's own word (3).
    unsafe {
        asm!(
            "mov {0}, qword ptr [rip + pmo_tm_current@GOTTPOFF]",
            "mov qword ptr fs:[{0}], {1}",
            out(reg) _,
            in(reg) word,
            options(nostack, preserves_flags),
        );
    }
}

/// The stack pointer, or an address below it: the caller's frame lies above.
#[inline(always)]
pub(crate) fn stack() -> usize {
    let stack;
    // SAFETY: a register is read.
    unsafe { asm!("mov {}, rsp", out(reg) stack, options(nomem, nostack, preserves_flags)) };
    stack
}
