//! Output without a pool; a reader that stops early, a full device.

use crate::common::{self, PMO, Rig, pmo};
use std::io::Read;
use std::process::{Command, Stdio};

#[test]
fn a_reader_that_has_seen_enough_is_no_failure() {
    let rig = Rig::new();
    rig.feed("put", ["a", "/dev/null"], b"").fails(5, "no such object");
    rig.pmo(["create"], ["a", "8M"]).fine();
    for command in [["cat"], ["ls"]] {
        let mut child =
            rig.command(command).arg("a").stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("run");
        let mut byte = [0];
        child.stdout.take().expect("piped").read_exact(&mut byte).expect("a byte");
        let output = child.wait_with_output().expect("ends");
        assert_eq!((output.status.code(), output.stderr.as_slice()), (Some(0), &b""[..]));
    }
}

#[test]
fn a_full_standard_output_is_a_failure() {
    let Ok(full) = std::fs::OpenOptions::new().write(true).open("/dev/full") else {
        return common::skipped("no /dev/full");
    };
    let rig = Rig::new();
    let output = rig.command(["stat"]).stdout(full).output().expect("run");
    assert_eq!(output.status.code(), Some(8));
    assert!(String::from_utf8_lossy(&output.stderr).contains("cannot write to standard output"));
}

#[test]
fn help_teaches() {
    for command in [
        "format",
        "create",
        "ls",
        "stat",
        "put",
        "cat",
        "resize",
        "grow",
        "mv",
        "rm",
        "backup",
        "verify",
        "restore",
        "clone",
        "export",
        "import",
        "view",
        "context",
        "run",
        "cp",
        "attach-check",
        "check",
        "heap",
        "key",
        "types",
        "migrate",
        "repair",
        "scrub",
        "dump",
        "doctor",
        "guard",
        "recover",
        "completions",
        "man",
    ] {
        let run = pmo([command, "--help"]).fine();
        assert!(run.out.contains("Example"), "{command} has no example");
        assert!(run.out.lines().all(|line| line.chars().count() <= 110), "{command} has long lines");
    }
    let run = pmo(["--help"]).fine();
    for needle in ["First steps:", "Exit codes:", "  4  the object or the pool is held by a process"] {
        assert!(run.out.contains(needle), "{needle}");
    }
}

#[test]
fn manual_pages_are_made() {
    let run = pmo(["man"]).fine();
    for needle in [".TH pmo 1", "EXIT STATUS", "PMO_KEY"] {
        assert!(run.out.contains(needle), "{needle}");
    }
    let rig = Rig::empty();
    let dir = rig.path("man/man1");
    pmo(["man".as_ref(), dir.as_os_str()]).fine();
    for page in ["pmo.1", "mkpmo.1", "pmo-ls.1", "pmo-attach-check.1"] {
        assert!(std::fs::read_to_string(dir.join(page)).expect(page).contains(".SH"), "{page}");
    }
    std::fs::write(rig.path("file"), "").expect("written");
    pmo(["man".as_ref(), rig.path("file").as_os_str()]).fails(1, "cannot make the directory");
}

#[test]
fn completions_are_made() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let run = pmo(["completions", shell]).fine();
        assert!(run.out.contains("attach-check"), "{shell}");
    }
    assert_eq!(pmo(["completions", "tcsh"]).code, Some(2));
}

#[test]
fn doctor_examines() {
    let run = pmo(["doctor", "--json"]).fine().json();
    assert!(run["tracking"].is_string() && run["medium"].is_null());
    let names: Vec<_> =
        run["facilities"].as_array().expect("a list").iter().map(|f| f["name"].clone()).collect();
    assert!(names.contains(&"kernel".into()) && names.contains(&"secret memory".into()), "{names:?}");
    let keys =
        run["facilities"].as_array().and_then(|all| all.iter().find(|f| f["name"] == "protection keys"));
    let keys = keys.expect("what closes pages");
    let enabled = std::fs::read_to_string("/proc/cpuinfo").is_ok_and(|text| text.contains(" ospke"));
    let word = if keys["available"] == true { "keys are used" } else { "mprotect is used: " };
    assert!(keys["found"].as_str().is_some_and(|found| found.starts_with(word)), "{keys}");
    assert!(enabled || keys["available"] == false, "{keys}");
    let rig = Rig::new();
    let run = rig.pmo(["doctor", "--json"], [""; 0]).fine().json();
    assert!(["file", "memory", "dax"].contains(&run["medium"].as_str().expect("a word")));
    assert!(rig.pmo(["doctor"], [""; 0]).fine().out.contains("Stores will be noticed by"));
    let rig = Rig::empty();
    for path in [rig.path("new.pmo"), rig.dir.path().to_owned()] {
        let run = pmo(["doctor".as_ref(), path.as_os_str()]).fine();
        assert!(run.out.contains(&format!("a file in {} is taken for", rig.dir.path().display())), "{run:?}");
    }
    assert_eq!(std::fs::read_dir(rig.dir.path()).expect("the folder").count(), 0);
    let run = pmo(["doctor", "/nowhere/x.pmo"]);
    assert!(run.code == Some(9) && run.out.contains("No such file"), "{run:?}");
    assert!(run.out.contains("make the folder first"), "{run:?}");
    std::fs::write(rig.path("empty.pmo"), b"").expect("written");
    let run = pmo(["doctor".as_ref(), rig.path("empty.pmo").as_os_str()]);
    assert!(run.out.contains("`pmo format --force` makes a pool of it"), "{run:?}");
    let run = pmo(["doctor", "/dev/null"]);
    assert_eq!(run.code, Some(9));
    assert!(run.out.contains("character device"), "{run:?}");
}

#[test]
fn version_and_no_colours_in_pipes() {
    let output = Command::new(PMO).arg("--version").output().expect("run");
    assert!(output.stdout.starts_with(b"pmo "));
    assert!(!pmo(["--help"]).out.contains('\u{1b}'));
}

#[test]
fn sentences_of_help_fill_the_lines_of_a_terminal() {
    let commands = pmo(["help"]).fine().out;
    let commands =
        commands.lines().skip_while(|line| *line != "Commands:").skip(1).take_while(|line| !line.is_empty());
    let names: Vec<&str> = commands
        .filter(|line| !line.starts_with("   "))
        .filter_map(|line| line.split_whitespace().next())
        .collect();
    assert!(names.len() > 30, "{names:?}");
    let mut sentences = 0;
    for (name, width) in
        names.iter().filter(|name| **name != "help").flat_map(|name| [60, 80, 100].map(|width| (name, width)))
    {
        let help =
            Command::new(PMO).args(["help", name]).env("COLUMNS", width.to_string()).output().expect("run");
        let help = String::from_utf8(help.stdout).expect("text");
        let mut lines = help.lines().skip_while(|line| !line.starts_with("Example")).skip(1).peekable();
        assert!(lines.peek().is_some(), "{name} has no example");
        let mut of_json = false;
        while let (Some(line), Some(next)) = (lines.next(), lines.peek()) {
            of_json = line.starts_with("JSON") || (of_json && line.starts_with(' '));
            let indent = |line: &str| line.len() - line.trim_start().len();
            let is_sentence = |line: &str| match (indent(line), of_json) {
                (0, _) => !line.is_empty(),
                (2, true) => line.trim_start().starts_with(char::is_alphabetic),
                _ => false,
            };
            if !is_sentence(line)
                || !is_sentence(next)
                || indent(line) != indent(next)
                || line.ends_with([':', '.'])
            {
                continue;
            }
            sentences += 1;
            let word = next.split_whitespace().next().unwrap_or_default();
            let room = line.chars().count() + 1 + word.chars().count();
            assert!(room > width, "{name}, {width} columns: there is room for {word:?} in {line:?}");
        }
    }
    assert!(sentences > 50, "{sentences}");
}

#[test]
fn wrong_arguments_are_told_in_words_that_help() {
    let rig = Rig::new();
    rig.pmo(["create"], ["a", "4K"]).fine();
    let new = rig.path("new.pmo");
    let new = new.to_str().expect("text");
    for size in ["0", "1", "1023K", "33T"] {
        pmo(["format", new, "--size", size]).fails(2, "between 1 MiB and 32 TiB");
        assert!(!rig.path("new.pmo").exists());
        pmo(["format", rig.pool.to_str().expect("text"), "--force", "--size", size])
            .fails(2, "between 1 MiB and 32 TiB");
    }
    rig.pmo(["stat"], ["a"]).fine();
    pmo(["format", new, "--size", "-1"]).fails(2, "a size is a number");
    rig.pmo(["create"], ["b", "-1"]).fails(2, "a size is a number");
    rig.pmo(["cat"], ["a", "--offset", "-5"]).fails(2, "a size is a number");
    rig.pmo(["top"], ["--interval", "-1"]).fails(2, "an interval has");
    rig.pmo(["ls"], ["--wait", "-1"]).fails(2, "from 0 to 315360000 seconds");
    rig.pmo(["ls"], ["--wait", "1e19"]).fails(2, "ten years");
    let pause = ["--view", "v", "--pause", "1e19", "true"];
    rig.pmo(["run"], pause).fails(2, "ten years");
    let no_folder = rig.path("none").join("p.pmo");
    pmo(["format", no_folder.to_str().expect("text")]).fails(5, "make the folder first");
    let run = pmo(["ls", new]);
    assert!(run.err.starts_with(&format!("error: cannot open {new}: ")), "{run:?}");
    run.fails(5, "check the path, or make a pool there with `pmo format`");
    let folder = rig.path("");
    rig.pmo(["put"], ["a", folder.to_str().expect("text")]).fails(2, "Is a directory");
    for command in [vec!["heap", "roots"], vec!["types"]] {
        let run = rig.pmo(command, ["a"]);
        assert!(!run.err.contains("Heap::"), "{run:?}");
        run.fails(9, "the object holds no heap");
    }
}
