//! C++ functions, absent in programs without C++.

use std::arch::asm;

macro_rules! weak {
    ($($name:ident = $symbol:literal: fn($($argument:ty),*) $(-> $result:ty)?;)*) => {
        $(
            #[doc = concat!("`", $symbol, "`, if the program has it.")]
            pub(crate) fn $name() -> Option<unsafe extern "C-unwind" fn($($argument),*) $(-> $result)?> {
                let address: usize;
                // SAFETY: reads the address of a symbol from the table of offsets: 0 if the symbol
                // is undefined.
                unsafe {
                    asm!(
                        concat!(".weak ", $symbol),
                        concat!("mov {}, qword ptr [rip + ", $symbol, "@GOTPCREL]"),
                        out(reg) address,
                        options(nostack, readonly, preserves_flags),
                    );
                    // SAFETY: the function of that name has that type, by the ABI of C++; `None` is
                    // 0.
                    std::mem::transmute::<usize, Option<unsafe extern "C-unwind" fn($($argument),*) $(-> $result)?>>(address)
                }
            }
        )*
    };
}

use std::ffi::c_void;

weak! {
    new = "_Znwm": fn(usize) -> *mut c_void;
    new_array = "_Znam": fn(usize) -> *mut c_void;
    new_nothrow = "_ZnwmRKSt9nothrow_t": fn(usize, *const c_void) -> *mut c_void;
    new_array_nothrow = "_ZnamRKSt9nothrow_t": fn(usize, *const c_void) -> *mut c_void;
    delete = "_ZdlPv": fn(*mut c_void);
    delete_array = "_ZdaPv": fn(*mut c_void);
    allocate_exception = "__cxa_allocate_exception": fn(usize) -> *mut c_void;
    free_exception = "__cxa_free_exception": fn(*mut c_void);
    throw = "__cxa_throw": fn(*mut c_void, *mut c_void, *mut c_void);
    begin_catch = "__cxa_begin_catch": fn(*mut c_void) -> *mut c_void;
    end_catch = "__cxa_end_catch": fn();
    cleanup = "__cxa_tm_cleanup": fn(*mut c_void, *mut c_void, u32);
}
