//! `pmo view`, and `pmo run`: signals, deaths and restarts (S2.6, S2.18).

use crate::common::{Rig, Run, run_page};
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

fn rig() -> Rig {
    let rig = Rig::new();
    for name in ["a", "b"] {
        rig.pmo(["create"], [name, "4K"]).fine();
    }
    rig.pmo(["view", "create"], ["v", "--slots", "5"]).fine();
    rig.pmo(["view", "set"], ["v", "1", "a", "rw"]).fine();
    rig
}

#[test]
fn s2_06_slots_are_set_shown_and_emptied() {
    let rig = rig();
    assert_eq!(rig.pmo(["view", "list"], ["v"]).fine().out, "1  rw  when used  object \"a\"\n");
    rig.pmo(["view", "set"], ["v", "4", "b", "r", "--at-once"]).fine();
    let slots = rig.pmo(["view", "list"], ["v", "--json"]).fine().json();
    let shown = |slot: usize| {
        (slots[slot]["slot"].clone(), slots[slot]["object"].clone(), slots[slot]["rights"].clone())
    };
    assert_eq!(shown(0), (1.into(), "a".into(), "rw".into()));
    assert_eq!(shown(1), (4.into(), "b".into(), "r".into()));
    assert_eq!(slots[1]["at_once"], true);
    rig.pmo(["rm"], ["b"]).fine();
    let listed = rig.pmo(["view", "list"], ["v"]).fine().out;
    assert!(listed.contains("which is not there"), "{listed}");
    let left = rig.pmo(["view", "clear"], ["v", "1", "--json"]).fine().json();
    assert_eq!(left.as_array().map(Vec::len), Some(1));
    rig.pmo(["view", "clear"], ["v", "1"]).fails(5, "slot 1 of object \"v\" is empty");
    rig.pmo(["view", "set"], ["v", "1", "c", "r"]).fails(5, "\"c\"");
    rig.pmo(["view", "set"], ["v", "5", "a", "r"]).fails(2, "slot 5 is not among the 5 slots");
    rig.pmo(["view", "set"], ["v", "1", "a", "x"]).fails(2, "rights are r or rw");
    rig.pmo(["view", "list"], ["a"]).fails(9, "holds no view");
    rig.pmo(["view", "create"], ["v"]).fails(7, "\"v\"");
}

#[test]
fn s2_16_contexts_are_changed_and_shown() {
    let rig = rig();
    rig.pmo(["context", "create"], ["c", "--entries", "3"]).fine();
    assert_eq!(rig.pmo(["context", "list"], ["c"]).fine().out, "default  none  every other object\n");
    rig.pmo(["context", "create"], ["group"]).fine();
    rig.pmo(["context", "default"], ["group", "rw"]).fine();
    rig.pmo(["context", "allow"], ["c", "a", "r"]).fine();
    rig.pmo(["context", "delegate"], ["c", "group", "rw"]).fine();
    let rules = rig.pmo(["context", "mask"], ["c", "b", "r", "--json"]).fine().json();
    assert_eq!(rules["default"], "none");
    let shown: Vec<_> = (0..3)
        .map(|at| ["kind", "object", "rights"].map(|key| rules["rules"][at][key].as_str().expect("text")))
        .collect();
    assert_eq!(shown, [["allow", "a", "r"], ["delegate", "group", "rw"], ["mask", "b", "r"]]);
    assert_eq!(rig.pmo(["context", "rights"], ["a", "c"]).fine().out, "rw\n");
    assert_eq!(rig.pmo(["context", "rights"], ["b", "c"]).fine().out, "r\n");
    let given = rig.pmo(["context", "rights"], ["b", "c", "group", "--json"]).fine().json();
    assert_eq!(given["rights"], "rw");
    rig.pmo(["context", "allow"], ["c", "b", "r"]).fails(2, "all 3 entries");
    rig.pmo(["context", "allow"], ["c", "x", "r"]).fails(5, "\"x\"");
    rig.pmo(["context", "allow"], ["c", "a", "x"]).fails(2, "rights are r, rw or none");
    rig.pmo(["context", "delegate"], ["c", "a", "r"]).fails(9, "no security context");
    rig.pmo(["context", "delegate"], ["group", "c", "r"]).fails(9, "circle");
    rig.pmo(["context", "list"], ["v"]).fails(9, "holds no security context");
    rig.pmo(["context", "clear"], ["c", "b"]).fine();
    rig.pmo(["context", "clear"], ["c", "b"]).fails(5, "says nothing of object \"b\"");
    rig.pmo(["rm"], ["a"]).fine();
    let listed = rig.pmo(["context", "list"], ["c"]).fine().out;
    assert!(listed.contains("which is not there") && listed.contains("delegate"), "{listed}");
}

#[test]
fn s2_16_a_program_runs_in_contexts() {
    let rig = rig();
    for name in ["c", "d"] {
        rig.pmo(["context", "create"], [name]).fine();
    }
    let run = shell(&rig, &["--context", "c", "--context", "d"], "echo \"$PMO_CONTEXT\"");
    assert_eq!(run.fine().out, "c\nd\n");
    assert_eq!(shell(&rig, &[], "echo \"${PMO_CONTEXT-none}\"").fine().out, "none\n");
    shell(&rig, &["--context", "x"], "true").fails(5, "\"x\"");
    shell(&rig, &["--context", "v"], "true").fails(9, "no security context");
    let refused = run_program(&rig, &["--context", "c"], false);
    assert!(refused.code == Some(101) && refused.err.contains("Denied"), "{refused:?}");
    rig.pmo(["context", "allow"], ["d", "a", "rw"]).fine();
    let resumed = run_program(&rig, &["--context", "c", "--context", "d"], false);
    assert!(resumed.code == Some(0) && resumed.out.contains("RESUMED 1"), "{resumed:?}");
}

fn shell(rig: &Rig, options: &[&str], script: &str) -> Run {
    let mut command = rig.command(["run"]);
    Run::of(command.args(["--view", "v"]).args(options).args(["sh", "-c", script]), b"")
}

#[test]
fn s2_18_the_exit_code_is_the_programs() {
    let rig = rig();
    let run = shell(&rig, &[], "echo \"$PMO_VIEW $PMO_RESUME.\"; test \"$PMO_POOL\" = \"$(realpath t.pmo)\"");
    assert_eq!(run.fine().out, "v .\n");
    assert_eq!(shell(&rig, &[], "exit 7").code, Some(7));
    let died = shell(&rig, &["--restarts", "0"], "kill -9 $$");
    assert_eq!(died.code, Some(137));
    assert!(died.err.contains("\"sh\" died of signal 9, and is not started again"), "{died:?}");
    let mut command = rig.command(["run"]);
    Run::of(command.args(["--view", "v", "/nowhere/program"]), b"")
        .fails(5, "cannot start \"/nowhere/program\"");
    let mut command = rig.command(["run"]);
    Run::of(command.args(["--view", "w", "true"]), b"").fails(5, "\"w\"");
}

#[test]
fn s2_18_a_program_that_dies_is_started_again_so_many_times() {
    let rig = rig();
    let died = shell(&rig, &["--restarts", "3", "--pause", "0"], "echo \"$$ $PMO_RESUME\"; kill -SEGV $$");
    assert_eq!(died.code, Some(139), "{died:?}");
    let lines: Vec<Vec<&str>> = died.out.lines().map(|line| line.split(' ').collect()).collect();
    assert_eq!(lines.len(), 4, "{died:?}");
    for (restarts, pair) in lines.windows(2).enumerate() {
        assert_eq!(pair[1][1..], [(restarts + 1).to_string().as_str(), pair[0][0], "11"], "{died:?}");
    }
    assert_eq!(died.err.matches("is started again").count(), 3, "{died:?}");
    let fine = shell(&rig, &["--pause", "0"], "test -n \"$PMO_RESUME\" || kill -9 $$; exit 3");
    assert_eq!(fine.code, Some(3));
}

#[test]
fn s2_18_signals_are_passed_on_and_end_the_restarts() {
    let rig = rig();
    for (script, code) in [
        ("trap 'exit 3' TERM; echo ready; while :; do sleep 0.05; done", 3),
        ("echo ready; exec sleep 600", 128 + 15),
    ] {
        let mut command = rig.command(["run"]);
        let mut tool = command
            .args(["--view", "v", "--pause", "0", "sh", "-c", script])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the tool starts");
        let mut line = String::new();
        BufReader::new(tool.stdout.as_mut().expect("piped")).read_line(&mut line).expect("it is ready");
        let sent = Command::new("kill").args(["-TERM", &tool.id().to_string()]).status().expect("sent");
        assert!(sent.success());
        assert_eq!(tool.wait().expect("it ends").code(), Some(code), "{script}");
    }
}

/// The next test's program: psyncs 1, stores 2, dies, and then prints its value.
#[test]
#[ignore = "a program that other tests start"]
fn program() {
    let Some((mut view, resumed)) = indelible::AttachedView::from_environment().expect("the view") else {
        return;
    };
    match resumed {
        None => {
            *view.get_mut::<u64>(1).expect("the object") = 1;
            view.psync().expect("psynced");
            *view.get_mut::<u64>(1).expect("the object") = 2;
        }
        Some(resumed) => {
            let of = &resumed.objects[0];
            let found = *view.get::<u64>(1).expect("the object");
            println!(
                "RESUMED {} {:?} {} slot {} {} after {} psyncs in use {}",
                resumed.restarts, resumed.signal, found, of.slot, of.name, of.psyncs, of.in_use
            );
            let again = std::env::var_os("TEST_DIES_AGAIN").is_some();
            if !again {
                return;
            }
        }
    }
    let own = std::process::id().to_string();
    let _ = Command::new("kill").args(["-9", &own]).status();
}

fn run_program(rig: &Rig, options: &[&str], again: bool) -> Run {
    let this = std::env::current_exe().expect("this test");
    let mut command = rig.command(["run"]);
    command.args(["--view", "v", "--pause", "0"]).args(options).arg(this);
    command.args(["--exact", "views::program", "--ignored", "--nocapture"]);
    if again {
        command.env("TEST_DIES_AGAIN", "1");
    }
    Run::of(&mut command, b"")
}

#[test]
fn s2_18_a_program_is_told_what_a_death_left() {
    let rig = rig();
    let run = run_program(&rig, &[], false);
    assert_eq!(run.code, Some(0), "{run:?}");
    assert!(run.out.contains("RESUMED 1 Some(9) 1 slot 1 a after 1 psyncs in use true"), "{run:?}");
    let died = run_program(&rig, &["--restarts", "0"], true);
    assert_eq!((died.code, died.out.contains("RESUMED")), (Some(137), false), "{died:?}");
    let later = run_program(&rig, &["--restarts", "1"], true);
    assert_eq!(later.code, Some(137), "{later:?}");
    assert!(later.out.contains("RESUMED 0 None 1 slot 1 a"), "{later:?}");
    assert!(later.out.contains("RESUMED 1 Some(9) 1 slot 1 a"), "{later:?}");
}

#[test]
fn variables_that_make_no_sense_are_errors() {
    let rig = rig();
    let this = std::env::current_exe().expect("this test");
    let run = |variables: &[(&str, &str)]| {
        let mut command = Command::new(&this);
        command.args(["--exact", "views::program", "--ignored", "--nocapture"]).env_remove("PMO_VIEW");
        Run::of(command.env_remove("PMO_POOL").envs(variables.iter().copied()), b"")
    };
    assert_eq!(run(&[]).code, Some(0));
    assert!(run(&[("PMO_VIEW", "v")]).err.contains("PMO_POOL"));
    let pool = rig.pool.to_str().expect("a path");
    let wrong = run(&[("PMO_VIEW", "v"), ("PMO_POOL", pool), ("PMO_RESUME", "1 2")]);
    assert!(wrong.err.contains("three numbers"), "{wrong:?}");
    assert!(run(&[("PMO_VIEW", "w"), ("PMO_POOL", pool)]).err.contains("NotFound"));
}

#[test]
fn the_page_of_the_cookbook_is_true() {
    assert_eq!(run_page(include_str!("../../../docs/cookbook/views.md")), 24);
}
