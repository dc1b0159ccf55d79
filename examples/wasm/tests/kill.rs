use std::io::{BufRead, BufReader};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, Stdio};

const STEPS: usize = 2999;

/// Lines of a run without a death: a prime for each step, and at the end their sum.
fn expected() -> Vec<String> {
    let is_prime = |n: &u64| (2..).take_while(|d| d * d <= *n).all(|d| n % d != 0);
    let primes: Vec<u64> = (2..).filter(is_prime).take(STEPS + 1).collect();
    let steps = primes.iter().skip(1).enumerate().map(|(index, prime)| format!("{} {prime}", index + 1));
    let sum: u64 = primes.iter().sum();
    steps.chain([format!("{STEPS} {sum}")]).collect()
}

fn program(pool: &Path, module: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_durable-wasm"));
    command.arg(pool).arg(module).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn primes() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/primes.wat"))
}

/// Kills the program after so many lines and turns; returns its lines, and whether it was killed.
fn killed_after(pool: &Path, lines: usize, turns: u64) -> (Vec<String>, bool) {
    let mut child = program(pool, primes()).spawn().expect("the program runs");
    let mut reader = BufReader::new(child.stdout.take().expect("a pipe"));
    let (mut said, mut line) = (Vec::new(), String::new());
    loop {
        if said.len() == lines {
            (0..turns).for_each(|_| std::hint::spin_loop());
            let _ = child.kill();
        }
        line.clear();
        if reader.read_line(&mut line).expect("text") == 0 || !line.ends_with('\n') {
            break;
        }
        said.push(line.trim_end().to_owned());
    }
    let output = child.wait_with_output().expect("it was started");
    let killed = output.status.signal() == Some(9);
    assert!(killed || output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    (said, killed)
}

#[test]
fn a_module_goes_on_after_sigkill_in_any_step() {
    let folder = tempfile::tempdir().expect("a folder");
    let pool = folder.path().join("module.pmo");
    let expected = expected();
    let (mut done, mut kills, mut silent, mut seed) = (0, 0, 0, 0x9e37_79b9_7f4a_7c15_u64);
    loop {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let (said, killed) = killed_after(&pool, (seed >> 33) as usize % 120, (seed >> 40) % 200_000);
        for (index, line) in said.iter().enumerate() {
            let at = done + expected[done..].iter().position(|next| next == line).expect("a line ahead");
            let unsaid = if index == 0 { silent } else { 0 };
            assert!(at <= done + unsaid, "{line:?} after {done} lines and {silent} kills");
            (done, silent) = (at + 1, 0);
        }
        if !killed {
            // The last step prints two lines.
            let unsaid = if said.is_empty() && silent > 0 { 2 } else { 0 };
            assert!(expected.len() - done <= unsaid, "ended after {done} lines");
            break;
        }
        // A death between the psync of a step and its line.
        (kills, silent) = (kills + 1, silent + 1);
    }
    println!("{kills} kills, {done} lines");
    assert!(kills >= 20, "{kills} kills");
}

#[test]
fn another_module_is_refused_and_changes_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    let pool = folder.path().join("module.pmo");
    killed_after(&pool, 10, 0);
    let other = folder.path().join("other.wat");
    std::fs::write(
        &other,
        r#"(module (memory (export "memory") 1) (func (export "step") (result i32) i32.const 0))"#,
    )
    .expect("a file");
    let output = program(&pool, &other).output().expect("the program runs");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && said.contains("belongs to another module"), "{said}");
    let (said, killed) = killed_after(&pool, usize::MAX, 0);
    assert!(!killed && said.last() == expected().last(), "{:?}", said.last());
}
