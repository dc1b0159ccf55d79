//! The plugin's caches, power supply and decoder, without a machine.

use std::path::Path;
use std::process::Command;

#[test]
fn the_model_of_caches_is_as_it_says() {
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("plugin");
    let test = Path::new(env!("CARGO_TARGET_TMPDIR")).join("plugin-test");
    let mut cc = Command::new("cc");
    cc.args(["-O1", "-Wall", "-Wextra", "-Werror", "-o"]).arg(&test);
    cc.args(["test.c", "cache.c", "insn.c", "supply.c"].map(|name| sources.join(name)));
    let built = cc.status().expect("a C compiler, which linking Rust programs needs, too");
    assert!(built.success());
    let output = Command::new(&test).output().expect("the test, just built");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
}
