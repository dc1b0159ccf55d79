//! No panic leaves the library.

use pmo::{Failure, guarded, in_c, pmo_errno, pmo_error_message};
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

/// Rule 1 of the library, read from its source.
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
            let guarded =
                ["guarded(", "status(", "opened(", "made("].iter().any(|by| statements[0].starts_with(by));
            assert!(guarded && statements.len() == 1, "{signature}\n{statements:?}");
            functions += 1;
        }
    }
    assert!(functions > 40, "only {functions} functions were looked at");
}

fn names_of_rust(advice: &str) -> Vec<&str> {
    let words = advice.split(|c: char| !c.is_alphanumeric() && !['_', ':'].contains(&c));
    words.filter(|word| word.contains("::") && !["Heap::verify", "mem::forget"].contains(word)).collect()
}

#[test]
fn advice_names_functions_of_c() {
    let mut looked_at = 0;
    for file in ["error.rs", "error/heap.rs"] {
        let source = super::ground::source().join("../indelible/src").join(file);
        let text = std::fs::read_to_string(source).unwrap();
        let of_remedies = text.split("fn remedy(").nth(1).unwrap().split("\n    }\n").next().unwrap();
        for advice in of_remedies.split('"').skip(1).step_by(2) {
            looked_at += names_of_rust(advice).len();
            assert_eq!(names_of_rust(&in_c(advice)), [""; 0], "{advice}");
        }
    }
    assert!(looked_at > 5, "only {looked_at} names were looked at");
    assert_eq!(names_of_rust("see `Heap::roots`, `pmo ls`"), ["Heap::roots"]);
}
