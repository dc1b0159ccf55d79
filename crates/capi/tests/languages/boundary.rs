//! No panic leaves the library.

use pmo::{Failure, guarded, pmo_errno, pmo_error_message};
use std::ffi::{CStr, c_int};

extern "C" fn panics_with_text(number: c_int) -> c_int {
    guarded(-1, || if number > 0 { panic!("the number is {number}") } else { Ok(number) })
}

extern "C" fn panics_with_something() -> c_int {
    guarded(-1, || -> Result<c_int, Failure> { std::panic::panic_any(7_u8) })
}

fn message() -> String {
    // SAFETY: a string of the library's.
    unsafe { CStr::from_ptr(pmo_error_message()) }.to_string_lossy().into_owned()
}

#[test]
fn a_panic_becomes_an_error_of_the_thread() {
    std::thread::spawn(|| {
        assert_eq!((panics_with_text(0), pmo_errno()), (0, 0));
        assert_eq!((panics_with_text(3), pmo_errno()), (-1, 1001));
        assert_eq!(message(), "a defect of this library: the number is 3");
        assert_eq!((panics_with_something(), pmo_errno()), (-1, 1001));
        let elsewhere = std::thread::spawn(|| (pmo_errno(), message())).join().unwrap();
        assert_eq!(elsewhere, (0, String::new()));
    })
    .join()
    .unwrap();
}

/// Rule 1 of the library, read off its source: what an exported function does is inside `guarded`.
#[test]
fn every_exported_function_is_guarded() {
    let mut functions = 0;
    for entry in std::fs::read_dir(super::ground::source().join("src")).unwrap() {
        let text = std::fs::read_to_string(entry.unwrap().path()).unwrap();
        for function in text.split("#[unsafe(no_mangle)]").skip(1) {
            let (signature, body) = function.split_once(" {\n").unwrap();
            let body = body.split_once("\n}\n").unwrap().0;
            let lines = body.lines().filter(|line| line.starts_with("    ") && !line.starts_with("     "));
            let statements: Vec<_> = lines
                .map(str::trim)
                .filter(|line| {
                    !line.starts_with(['/', '}']) && !line.starts_with("const ") && !line.starts_with("let ")
                })
                .collect();
            let guarded = ["guarded(", "status(", "opened("].iter().any(|by| statements[0].starts_with(by));
            assert!(guarded && statements.len() == 1, "{signature}\n{statements:?}");
            functions += 1;
        }
    }
    assert!(functions > 40, "only {functions} functions were looked at");
}
