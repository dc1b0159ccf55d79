//! Includes of headers that become part of a lowered source.

use indelible_testing::not_tested;
use std::path::Path;
use std::process::Command;

#[test]
fn a_header_in_the_output_includes_what_lies_beside_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name);
    let write = |name: &str, text: &str| std::fs::write(path(name), text).expect("a file");
    std::fs::create_dir(path("sub")).expect("a folder");
    write("sub/unit.h", "typedef int unit;\n");
    let header = "#include <pmo.h>\n#include \"unit.h\" // plain\n\
                  extendible struct a { unit b; EXTENSION(1) { int c; } };\n";
    write("sub/a.h", header);
    let headers = Path::new(env!("CARGO_MANIFEST_DIR")).join("../capi/include");
    for include in ["sub/a.h", "a.h"] {
        write("in.c", &format!("#include \"{include}\"\nint f(struct a *it) {{ return it->c; }}\n"));
        let mut command = Command::new(env!("CARGO_BIN_EXE_pmo"));
        command.args(["leds", "in.c", "-o", "out.c", "--", "-Isub", "-I"]).arg(&headers);
        let output = command.current_dir(folder.path()).output().expect("the tool runs");
        let said = String::from_utf8_lossy(&output.stderr);
        if said.contains("cannot be loaded") {
            return not_tested(format_args!("lowering: {said}"));
        }
        assert!(output.status.success(), "{include}: {said}");
        let text = std::fs::read_to_string(path("out.c")).expect("the output");
        let beside = std::fs::canonicalize(path("sub/unit.h")).expect("a path");
        assert!(text.contains(&format!("#include {beside:?} // plain\n")), "{include}: {text}");
    }
}
