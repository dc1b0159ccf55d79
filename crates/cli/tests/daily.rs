//! Daily use: PMO_POOL, patterns, order and columns, JSON, input of unknown length.

use crate::common::{PMO, Rig, Run, skipped};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::process::{Command, Stdio};

fn with_pool(rig: &Rig, arguments: &[&str]) -> Run {
    Run::of(Command::new(PMO).current_dir(rig.dir.path()).env("PMO_POOL", &rig.pool).args(arguments), b"")
}

fn names(rig: &Rig) -> Vec<String> {
    let rows = rig.pmo(["ls", "--json"], [""; 0]).fine().json();
    rows.as_array().expect("rows").iter().map(|row| row["name"].as_str().expect("text").to_owned()).collect()
}

#[test]
fn the_pool_of_the_environment_may_be_left_out() {
    let rig = Rig::new();
    with_pool(&rig, &["create", "a", "4K"]).fine();
    assert!(with_pool(&rig, &["ls"]).fine().out.contains("4 KiB"));
    assert_eq!(with_pool(&rig, &["stat", "--json"]).fine().json()["objects"], 1);
    assert_eq!(with_pool(&rig, &["stat", "-", "a", "--json"]).fine().json()["name"], "a");
    assert_eq!(with_pool(&rig, &["--wait", "1", "cat", "a"]).fine().raw.len(), 4096);
    with_pool(&rig, &["mv", "a", "b"]).fine();
    with_pool(&rig, &["check"]).fine();
    with_pool(&rig, &["rm", "b", "b"]).fails(5, "cannot open b");
    with_pool(&rig, &["rm", "b"]).fine();
    with_pool(&rig, &["ls", "missing.pmo"]).fails(5, "missing.pmo");
    with_pool(&rig, &["format"]).fails(2, "<PATH>");
    let run = Run::of(Command::new(PMO).env_remove("PMO_POOL").args(["ls", "-"]), b"");
    run.fails(2, "PMO_POOL names, and that is not set");
    Run::of(Command::new(PMO).env_remove("PMO_POOL").arg("ls"), b"").fails(2, "<POOL>");
}

#[test]
fn rm_takes_patterns_and_says_first_what_it_would_do() {
    let rig = Rig::new();
    for name in ["logs/1", "logs/2", "log", "*"] {
        rig.pmo(["create"], [name, "4K"]).fine();
    }
    let run = rig.pmo(["rm"], ["--match", "logs/*", "--dry-run"]).fine();
    assert_eq!(run.out, "would destroy object \"logs/1\", 4 KiB\nwould destroy object \"logs/2\", 4 KiB\n");
    assert_eq!(names(&rig).len(), 4);
    let held = rig.hold("logs/2", false);
    rig.pmo(["rm"], ["-m", "logs/*", "-n"]).fails(4, "\"logs/2\" would not be destroyed");
    held.release();
    rig.pmo(["rm"], ["*"]).fine();
    assert_eq!(names(&rig), ["log", "logs/1", "logs/2"]);
    let run = rig.pmo(["rm", "--json"], ["--match", "logs/*", "--match", "*g*/1"]).fine();
    assert_eq!(
        run.json(),
        json!({"dry_run": false, "destroyed": [{"name": "logs/1", "size": 4096}, {"name": "logs/2", "size": 4096}]})
    );
    let run = rig.pmo(["rm"], ["--match", "logs/*"]);
    assert_eq!((run.code, run.err.as_str()), (Some(0), "note: no object has a name that matches\n"));
    rig.pmo(["rm"], ["log", "none"]).fails(5, "cannot destroy object \"none\"");
    rig.pmo(["rm"], ["log", "none", "--force"]).fine();
    rig.pmo(["rm"], [""; 0]).fails(2, "required");
    assert_eq!(names(&rig), [""; 0]);
}

#[test]
fn failures_are_json_where_that_was_asked_for() {
    let rig = Rig::new();
    rig.pmo(["create"], ["a", "4K"]).fine();
    let failure = |run: Run| -> Value { serde_json::from_str(&run.err).expect("one JSON object") };
    let run = rig.pmo(["rm", "--json"], ["missing"]);
    assert_eq!(run.json()["destroyed"], json!([]));
    let said = failure(run);
    assert_eq!((said["exit"].as_u64(), said["kind"].as_str()), (Some(5), Some("NotFound")));
    assert_eq!((said["object"].as_str(), said["pool"].as_str()), (Some("missing"), rig.pool.to_str()));
    assert!(
        said["error"].as_str().is_some_and(|text| text.contains("no such object"))
            && said["help"].is_string()
    );
    let said = failure(rig.pmo(["cat", "--json"], ["a", "--offset", "5K"]));
    assert_eq!((said["exit"].as_u64(), said["kind"].as_str()), (Some(2), None));
    let said = failure(rig.pmo(["ls", "--json"], ["--sort", "color"]));
    assert!(said["error"].as_str().is_some_and(|text| text.contains("possible values")), "{said}");
    assert_eq!(rig.pmo(["mv", "--json"], ["a", "b"]).fine().json()["name"], "b");
}

#[test]
fn ls_has_an_order_and_columns() {
    let rig = Rig::new();
    for (name, size) in [("middle", "8K"), ("small", "4K"), ("large", "1M")] {
        rig.pmo(["create"], [name, size]).fine();
    }
    let shown = |options: &[&str]| rig.pmo(["ls"], options).fine().out;
    assert_eq!(shown(&["--sort", "size", "-c", "name", "--no-header"]), "large\nmiddle\nsmall\n");
    assert_eq!(shown(&["-s", "size", "-r", "-c", "name", "--no-header"]), "small\nmiddle\nlarge\n");
    assert_eq!(shown(&["-c", "size,name", "s*"]), " SIZE  NAME\n4 KiB  small\n");
    let long = shown(&["--long", "s*"]);
    assert!(
        long.lines().next().is_some_and(|line| line.ends_with("ID  FLAGS") || line.contains("PSYNCS")),
        "{long}"
    );
    let rows = rig.pmo(["ls", "--json"], ["--long", "small"]).fine().json();
    assert_eq!((rows[0]["extent"].as_u64(), rows[0]["name"].as_str()), (Some(4096), Some("small")));
}

#[test]
fn quiet_verbose_and_color() {
    let rig = Rig::new();
    assert_eq!(rig.pmo(["create", "-q"], ["a", "4K"]).fine().out, "");
    let run = rig.pmo(["ls", "-q"], ["none*"]).fine();
    assert_eq!(run.out, "");
    let run = rig.pmo(["rm", "--verbose"], ["a"]);
    let said: Vec<_> = run.err.lines().collect();
    assert!(
        matches!(said[..], [opened, "note: destroyed object \"a\""] if opened.starts_with("note: opened")),
        "{run:?}"
    );
    let run = rig.pmo(["rm", "--color", "always"], ["a"]);
    assert!(run.err.starts_with("\x1b[1;31merror:\x1b[0m cannot"), "{run:?}");
    assert!(rig.pmo(["rm"], ["a"]).err.starts_with("error: cannot"), "no terminal, no color");
}

#[test]
fn sizes_that_mean_two_things_are_refused() {
    let rig = Rig::new();
    rig.pmo(["create"], ["a", "4KB"]).fails(2, "write 4K or 4KiB for 1024");
    rig.pmo(["create"], ["a", "4KiB"]).fine();
}

#[test]
fn names_that_look_the_same_are_told() {
    let rig = Rig::new();
    let (composed, decomposed) = ("caf\u{e9}", "cafe\u{301}");
    rig.pmo(["create"], [composed, "4K"]).fine();
    let run = rig.pmo(["cat"], [decomposed]).fails(5, "no such object");
    assert!(run.err.contains("looks the same, but its name has U+00E9 for U+0301"), "{run:?}");
    rig.pmo(["rm"], [decomposed]).fails(5, "looks the same");
    let run = rig.pmo(["create"], [decomposed, "4K"]);
    assert_eq!(run.code, Some(0));
    assert!(run.err.starts_with("note: two objects are now named"), "{run:?}");
    rig.pmo(["create"], ["caf\u{e8}", "4K"]).fine();
}

#[test]
fn input_of_unknown_length_makes_an_object_of_its_size() {
    let rig = Rig::new();
    let bytes: Vec<u8> = (0..3_000_000_u32).map(|i| ((i * 7) >> 3) as u8).collect();
    let run = rig.feed("put", ["big", "--create", "-v"], &bytes);
    let phases = ["opened ", "created object", "psyncing", "renamed it to object"];
    let at: Vec<_> = phases.iter().map(|phase| run.err.find(phase)).collect();
    assert!(run.code == Some(0) && at.is_sorted() && at.iter().all(Option::is_some), "{run:?}");
    assert!(rig.pmo(["cat"], ["big"]).fine().raw == bytes);
    assert_eq!(rig.pmo(["stat", "--json"], ["big"]).fine().json()["size"], 3_000_000);
    rig.feed("put", ["empty", "--create"], b"").fine();
    assert_eq!(names(&rig), ["big", "empty"]);
}

#[test]
fn put_makes_a_whole_object_or_none() {
    let rig = Rig::new();
    rig.feed("put", ["big", "--create"], &vec![1; 20 << 20]).fails(8, "no room");
    assert_eq!(names(&rig), [""; 0]);
    std::fs::create_dir(rig.path("folder")).expect("made");
    rig.pmo(["put"], ["big", "folder", "--create"]).fails(2, "cannot read folder");
    assert_eq!(names(&rig), [""; 0]);
    let mut command = rig.command(["put"]);
    let mut put = command
        .args(["big", "--create", "-v"])
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("starts");
    let mut input = put.stdin.take().expect("piped");
    input.write_all(&vec![2; 2 << 20]).expect("taken");
    put.kill().expect("killed");
    put.wait().expect("gone");
    assert_eq!(names(&rig), ["big~unfinished put"]);
    rig.pmo(["cat"], ["big"]).fails(5, "no such object");
    rig.feed("put", ["big", "--create"], b"whole").fine();
    assert_eq!(names(&rig), ["big"]);
    assert_eq!(rig.pmo(["cat"], ["big"]).fine().raw, b"whole");
}

#[test]
fn a_full_memory_file_system_is_an_error() {
    let rig = Rig::empty();
    let at = rig.path("small");
    std::fs::create_dir(&at).expect("made");
    let mount = Command::new("mount").args(["-t", "tmpfs", "-o", "size=8M", "tmpfs"]).arg(&at).status();
    if !mount.is_ok_and(|status| status.success()) {
        return skipped("a full tmpfs: this user cannot mount one");
    }
    let small = Rig { pool: at.join("p.pmo"), dir: tempfile::tempdir().expect("a folder") };
    small.pmo(["format"], ["--size", "64M"]).fine();
    small.pmo(["create"], ["thin", "32M", "--sparse"]).fine();
    let free = || rustix::fs::statvfs(&at).expect("mounted").f_bfree;
    let before = free();
    let run = small.pmo(["cat"], ["thin"]).fine();
    assert!(run.raw.len() == 32 << 20 && run.raw.iter().all(|byte| *byte == 0));
    assert!(before - free() < 64, "reading claimed {} blocks", before - free());
    std::fs::write(rig.path("in"), vec![1; 20 << 20]).expect("written");
    let input = rig.path("in");
    small.pmo(["put"], ["thin".as_ref(), input.as_os_str()]).fails(8, "no space");
    small.pmo(["put"], ["new".as_ref(), input.as_os_str(), "--create".as_ref()]).fails(8, "no space");
    assert_eq!(names(&small), ["thin"]);
    assert!(small.pmo(["cat"], ["thin"]).fine().raw.iter().all(|byte| *byte == 0));
    assert!(Command::new("umount").arg(&at).status().is_ok_and(|status| status.success()));
}

#[test]
fn format_finds_what_others_have_on_a_device() {
    let rig = Rig::empty();
    let file = std::fs::File::create(rig.path("disk")).expect("made");
    file.set_len(80 << 20).expect("sparse");
    let made = Command::new("losetup").args(["--find", "--show"]).arg(rig.path("disk")).output();
    let Ok(made) = made.map_err(drop).and_then(|made| if made.status.success() { Ok(made) } else { Err(()) })
    else {
        return skipped("format of a device: this user cannot make a loop device");
    };
    let node = String::from_utf8_lossy(&made.stdout).trim().to_owned();
    let device = std::fs::OpenOptions::new().write(true).open(&node).expect("opened");
    for (at, bytes, owner) in [((80 << 20) - 512, &b"EFI PART"[..], "GPT"), (65_600, b"_BHRfS_M", "btrfs")] {
        device.write_all_at(bytes, at).expect("written");
        device.sync_all().expect("there");
        let run = Run::of(Command::new(PMO).args(["format", &node]), b"").fails(7, "is not blank");
        assert!(run.err.contains(owner), "{run:?}");
        device.write_all_at(&[0; 8], at).expect("cleared");
        device.sync_all().expect("gone");
    }
    drop(device);
    Run::of(Command::new(PMO).args(["format", &node]), b"").fine();
    assert!(Command::new("losetup").args(["--detach", &node]).status().is_ok_and(|status| status.success()));
}

/// Checks rules of OpenMetrics: each family in one piece, described first, no sample twice,
/// counters end in `_total`, valid labels and numbers, an end.
fn open_metrics(text: &str) {
    let (mut families, mut samples, mut family) = (BTreeSet::new(), BTreeSet::new(), (String::new(), ""));
    let mut lines = text.lines().peekable();
    while let Some(line) = lines.next() {
        assert!(lines.peek().is_some() == (line != "# EOF"), "{line}");
        if let Some((name, kind)) = line.strip_prefix("# TYPE ").and_then(|rest| rest.split_once(' ')) {
            assert!(families.insert(name), "{name} comes twice");
            assert!(["gauge", "counter"].contains(&kind) && !name.ends_with("_total"), "{line}");
            assert!(lines.next().is_some_and(|help| help.starts_with(&format!("# HELP {name} "))), "{line}");
            family = (name.to_owned(), kind);
            continue;
        }
        if line == "# EOF" {
            continue;
        }
        let (sample, value) = line.rsplit_once(' ').expect("a figure");
        let (name, labels) = sample.split_once('{').expect("labels");
        let suffix = if family.1 == "counter" { "_total" } else { "" };
        assert_eq!(name, format!("{}{suffix}", family.0));
        assert!(value.parse::<f64>().is_ok_and(f64::is_finite), "{line}");
        assert!(samples.insert(sample), "{sample} comes twice");
        let mut rest = labels.strip_suffix('}').expect("an end of the labels");
        while !rest.is_empty() {
            let (label, value) = rest.split_once("=\"").expect("a label");
            assert!(
                label.trim_start_matches(',').chars().all(|c| c.is_ascii_lowercase() || c == '_'),
                "{line}"
            );
            let mut escaped = false;
            let end = value.find(|c| {
                let ends = c == '"' && !escaped;
                escaped = c == '\\' && !escaped;
                ends
            });
            rest = &value[end.expect("an end of the value") + 1..];
        }
    }
}

#[test]
fn metrics_are_text_that_monitoring_reads() {
    let rig = Rig::new();
    rig.pmo(["create"], ["a\"b", "8K"]).fine();
    rig.feed("put", ["a\"b"], b"hello").fine();
    rig.pmo(["create"], ["other", "4K"]).fine();
    let held = rig.hold("other", true);
    let text = rig.pmo(["metrics"], [""; 0]).fine().out;
    let pool = format!("pool=\"{}\"", rig.pool.display());
    for line in [
        "# TYPE pmo_object_psyncs counter".to_owned(),
        format!("pmo_pool_objects{{{pool}}} 2"),
        format!("pmo_replica_runs{{{pool}}} 0"),
        format!("pmo_pool_length_bytes{{{pool}}} {}", 16 << 20),
        format!("pmo_object_size_bytes{{{pool},object=\"a\\\"b\"}} 8192"),
        format!("pmo_object_psyncs_total{{{pool},object=\"a\\\"b\"}} 1"),
        format!("pmo_object_state{{{pool},object=\"other\",state=\"W\",pid=\"{}\"}} 1", held.pid()),
        format!("pmo_object_state{{{pool},object=\"a\\\"b\",state=\"D\",pid=\"\"}} 1"),
    ] {
        assert!(text.lines().any(|found| found == line), "{line} is not in\n{text}");
    }
    assert!(text.ends_with("# EOF\n"));
    let families: Vec<_> =
        text.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split(' ').next()).collect();
    assert_eq!(families.len(), 21);
    open_metrics(&text);
    let only = rig.pmo(["metrics"], ["oth*"]).fine().out;
    assert!(only.contains("other") && !only.contains("a\\\"b"));
    held.release();
}

#[test]
fn doctor_names_the_file_system() {
    let rig = Rig::empty();
    let report = rig.pmo(["doctor", "--json"], [""; 0]).fine().json();
    let facilities = report["facilities"].as_array().expect("a list");
    let found = facilities.iter().find(|facility| facility["name"] == "file system");
    match report["medium"].as_str() {
        Some("file") => {
            let found = found.and_then(|found| found["found"].as_str()).expect("a file system");
            assert!(!found.is_empty() && found != "proc", "{found}");
        }
        _ => assert!(found.is_none(), "memory has none"),
    }
}

#[test]
fn bash_completes_names_of_objects() {
    if let Err(error) = Command::new("bash").args(["-c", "true"]).status() {
        return skipped(&format!("completion in bash: {error}"));
    }
    let rig = Rig::new();
    for name in ["counters", "cold store", "ledger"] {
        rig.pmo(["create"], [name, "4K"]).fine();
    }
    let tools = std::path::Path::new(PMO).parent().expect("a folder");
    let path = std::env::join_paths([tools, "/usr/bin".as_ref(), "/bin".as_ref()]).expect("a path");
    let complete = |words: &str, last: usize| {
        let script = format!(
            "source <(pmo completions bash); COMP_WORDS=({words}); COMP_CWORD={last}; \
             _pmo_objects pmo \"${{COMP_WORDS[COMP_CWORD]}}\" \"${{COMP_WORDS[COMP_CWORD-1]}}\"; printf '%s\\n' \"${{COMPREPLY[@]}}\""
        );
        let mut command = Command::new("bash");
        command.args(["--norc", "-c", &script]).env("PATH", &path).env("POOL", &rig.pool);
        Run::of(&mut command, b"").out
    };
    let found = complete("pmo cat \"$POOL\" co", 3);
    assert!(found.lines().any(|line| line == "counters") && found.contains("cold\\ store"), "{found}");
    assert!(!found.contains("ledger"), "{found}");
    let found = complete("pmo rm \"$POOL\" counters le", 4);
    assert!(found.lines().any(|line| line == "ledger"), "{found}");
    let found = complete("pmo rm \"$POOL\" --f", 3);
    assert!(found.contains("--force") && !found.contains("ledger"), "{found}");
    let names = "cold\\ store\ncounters\nledger\n";
    for (words, last) in [
        ("cp \"$POOL\"", 3),
        ("set \"$POOL\"", 3),
        ("snapshot \"$POOL\" counters", 4),
        ("rollback \"$POOL\"", 3),
        ("diff \"$POOL\" counters", 4),
        ("tie \"$POOL\" counters", 4),
        ("untie \"$POOL\" counters", 4),
        ("types \"$POOL\"", 3),
        ("migrate --plan \"$POOL\"", 4),
        ("top \"$POOL\"", 3),
        ("heap roots \"$POOL\"", 4),
        ("key list \"$POOL\"", 4),
        ("dump \"$POOL\" object", 4),
    ] {
        assert_eq!(complete(&format!("pmo {words} ''"), last), names, "{words}");
    }
    // The shell completes paths; values of options and commands are no names.
    for (words, last) in [("ls ''", 2), ("heap roots ''", 3), ("backup \"$POOL\" ''", 3)] {
        assert_eq!(complete(&format!("pmo {words}"), last).trim(), "", "{words}");
    }
    assert_eq!(
        complete("pmo set \"$POOL\" counters --class ''", 5),
        "psync\ntransactional\non-demand\nshared\n"
    );
    let found = complete("pmo key ''", 2);
    assert!(found.lines().any(|line| line == "rotate") && !found.contains("ledger"), "{found}");
}
