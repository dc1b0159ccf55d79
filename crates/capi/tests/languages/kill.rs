use super::ground::text;
use std::io::{BufRead, BufReader};
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Stdio};

/// Kills a program after so many lines and turns of an idle loop; returns its lines, and whether it
/// was killed before its end.
pub fn kill(command: &mut Command, lines: usize, spins: u32) -> (Vec<String>, bool) {
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the program runs");
    let mut said = Vec::new();
    let mut reader = BufReader::new(child.stdout.take().expect("a pipe"));
    let mut line = Vec::new();
    loop {
        if said.len() == lines {
            (0..spins).for_each(|_| std::hint::spin_loop());
            let _ = child.kill();
        }
        line.clear();
        if reader.read_until(b'\n', &mut line).unwrap_or(0) == 0 || line.last() != Some(&b'\n') {
            break;
        }
        said.push(text(&line).trim_end().to_owned());
    }
    let output = child.wait_with_output().expect("it was started");
    let killed = output.status.signal() == Some(9);
    assert!(killed || output.status.success(), "{}: {}", output.status, text(&output.stderr));
    (said, killed)
}

pub fn last(said: &[String], word: &str) -> Option<i64> {
    let number = |line: &String| line.strip_prefix(word).and_then(|rest| rest.trim().parse().ok());
    said.iter().rev().find_map(number)
}
