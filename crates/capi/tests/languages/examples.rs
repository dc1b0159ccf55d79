use super::ground::{C, CPP, disk, have, project, succeed};
use super::kill::{kill, last};
use indelible_testing::Seeded;
use std::collections::BTreeMap;
use std::process::Command;

const LISTING: &str = "attach(head,'w');structnode*c=head;while(c->next!=NULL&&c->data<data)c=c->next;\
    if(c->next==NULL)c->next=new_node;else{tmp=c->next;c->next=new_node;c->next->next=tmp;}\
    psync(head);detach(head);";

#[test]
fn the_list_of_the_paper_runs_as_printed_and_survives_sigkill() {
    let source = project().join("examples/c/linked-list.c");
    let code: String = std::fs::read_to_string(&source).unwrap().split_whitespace().collect();
    assert!(code.contains(LISTING), "the listing was changed");
    let mut rng = Seeded::new(1);
    println!("INDELIBLE_SEED={}", rng.seed());
    let folder = disk();
    let (binary, pool) = (folder.path().join("linked-list"), folder.path().join("pool.pmo"));
    C.build(&source, &binary);
    let list = |arguments: &[&str]| {
        let mut command = Command::new(&binary);
        command.arg(&pool).args(arguments);
        command
    };
    succeed(&mut list(&["insert", "5", "9", "7"]));
    assert_eq!(succeed(&mut list(&["show"])), "5\n9\n7\n", "as printed");
    let (mut next, mut kills) = (10, 0);
    for _ in 0..30 {
        let numbers: Vec<_> = (next..next + 60).map(|number: i64| number.to_string()).collect();
        let numbers: Vec<_> = ["insert"].into_iter().chain(numbers.iter().map(String::as_str)).collect();
        let (said, killed) = kill(&mut list(&numbers), rng.usize(0..50), rng.u32(0..20_000));
        kills += usize::from(killed);
        let durable = last(&said, "inserted").unwrap_or(next - 1);
        let shown = succeed(&mut list(&["show"]));
        let mut shown: Vec<i64> = shown.lines().map(|line| line.parse().unwrap()).collect();
        shown.sort_unstable();
        assert_eq!(shown[..3], [5, 7, 9]);
        let there = shown.len() as i64 - 3 + 10;
        assert_eq!(shown[3..], (10..there).collect::<Vec<_>>(), "nothing is missing, nothing is twice");
        assert!(there == durable + 1 || there == durable + 2, "{durable} was durable, there is {there}");
        next = there;
    }
    println!("{kills} kills, {next} numbers");
    assert!(kills > 25 && next > 100, "{kills} kills, {next}");
}

#[test]
fn the_word_count_continues_after_sigkill_and_counts_right() {
    if !have("c++") {
        return;
    }
    let mut rng = Seeded::new(2);
    println!("INDELIBLE_SEED={}", rng.seed());
    let folder = disk();
    let (binary, pool) = (folder.path().join("word-count"), folder.path().join("pool.pmo"));
    CPP.build(&project().join("examples/cpp/word-count.cpp"), &binary);
    let text = project().join("SAFETY.md");
    let run = |arguments: &[&str]| {
        let mut command = Command::new(&binary);
        command.arg(&pool).args(arguments);
        if arguments[0] == "count" {
            command.arg(&text);
        }
        command
    };
    succeed(&mut run(&["show"]));
    let (mut done, mut kills, mut ends) = (0, 0, false);
    while !ends {
        let (said, killed) = kill(&mut run(&["count"]), rng.usize(0..12), rng.u32(0..20_000));
        kills += usize::from(killed);
        if let Some(first) = said.first().and_then(|line| last(std::slice::from_ref(line), "line")) {
            assert!(first == done + 1 || first == done + 2, "{first} after {done}");
        }
        done = last(&said, "line").unwrap_or(done);
        ends = !killed;
    }
    println!("{kills} kills");
    assert!(kills > 5, "only {kills} kills");
    let text = std::fs::read_to_string(&text).unwrap();
    let mut expected: BTreeMap<String, (u64, Vec<usize>)> = BTreeMap::new();
    for (index, line) in text.lines().enumerate() {
        let words = line.as_bytes().split(|byte| !byte.is_ascii_alphabetic()).filter(|word| !word.is_empty());
        for word in words {
            let word = String::from_utf8_lossy(word).to_ascii_lowercase();
            let (count, lines) = expected.entry(word).or_default();
            *count += 1;
            if lines.last() != Some(&(index + 1)) {
                lines.push(index + 1);
            }
        }
    }
    let lines = |lines: &[usize]| lines.iter().map(|line| format!(" {line}")).collect::<String>();
    let expected: String =
        expected.iter().map(|(word, (count, at))| format!("{word} {count}:{}\n", lines(at))).collect();
    assert_eq!(succeed(&mut run(&["show"])), expected);
}
