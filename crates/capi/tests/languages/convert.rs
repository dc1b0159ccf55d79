use super::ground::{C, CPP, Compiler, dies, folder, program, succeed};
use indelible::heap::HeapAudit;
use indelible::{Pool, ReadHeap, Root};
use std::path::PathBuf;
use std::process::Command;
use tempfile::TempDir;

struct Items {
    folder: TempDir,
    binary: PathBuf,
}

impl Items {
    fn new() -> Items {
        let items = Items::none();
        assert_eq!(items.run("1", "write"), "");
        items
    }

    fn none() -> Items {
        Items::of(&C, "convert.c")
    }

    fn of(compiler: &Compiler, source: &str) -> Items {
        let folder = folder();
        let binary = folder.path().join("convert");
        compiler.build(&program(source), &binary);
        Items { folder, binary }
    }

    fn command(&self, version: &str, mode: &str) -> Command {
        let mut command = Command::new(&self.binary);
        command.arg(self.folder.path().join("pool.pmo")).args([version, mode]).env_remove("PMO_POOL");
        command
    }

    fn run(&self, version: &str, mode: &str) -> String {
        succeed(&mut self.command(version, mode))
    }

    fn refused(&self, mode: &str) -> String {
        let said = self.run("3", mode);
        assert_eq!(self.run("1", "look"), "-5 first, 2 blocks\n", "{mode}: {said}");
        said
    }
}

#[test]
fn s4_04_a_chain_of_converters_begins_at_the_version_in_the_heap() {
    let items = Items::new();
    assert_eq!(items.run("3", "open"), "-5 first 3, 2 converted, 2 dropped, 1 blocks\n");
    assert_eq!(items.run("3", "open"), "-5 first 3, 0 converted, 0 dropped, 1 blocks\n");
}

#[test]
fn a_value_that_is_freed_twice_is_an_error_and_the_new_one_stays() {
    let items = Items::new();
    assert_eq!(items.run("3", "free twice"), "");
    assert_eq!(items.run("3", "open"), "-5 first 3, 0 converted, 0 dropped, 1 blocks\n");
}

#[test]
fn a_block_that_another_root_lies_in_stays() {
    let items = Items::none();
    items.run("1", "neighbours");
    assert_eq!(items.run("3", "open"), "-5 first 3, 2 converted, 2 dropped, 2 blocks\n");
}

#[test]
fn a_conversion_is_durable_with_the_next_psync() {
    let items = Items::new();
    assert_eq!(items.run("3", "unsynced"), "-5 first 3, 2 converted, 2 dropped, 1 blocks\n");
    assert_eq!(items.run("1", "look"), "-5 first, 2 blocks\n");
    assert_eq!(dies(&mut items.command("3", "kill")), 9);
    assert_eq!(items.run("1", "look"), "-5 first, 2 blocks\n");
    assert_eq!(items.run("3", "open"), "-5 first 3, 2 converted, 2 dropped, 1 blocks\n");
}

#[test]
fn a_converter_that_fails_leaves_the_old_value_and_no_block_more() {
    let items = Items::new();
    let said = items.refused("fail");
    assert!(said.starts_with("35 after 1: root \"item\": converting struct item (fingerprint "), "{said}");
    assert!(said.contains("failed: its function returned 7\n"), "{said}");
    let said = items.refused("fail late");
    assert!(said.starts_with("35 after 2: ") && said.contains("its function returned 9"), "{said}");
    let said = items.refused("full");
    assert!(
        said.starts_with("35 after 1: ")
            && said.contains("returned 1: ")
            && said.contains("cannot allocate in object"),
        "{said}"
    );
}

#[test]
fn a_version_that_no_converter_leads_away_from_is_an_error_that_names_it() {
    let items = Items::new();
    let said = items.refused("gap");
    assert!(said.starts_with("35 after 0: "), "{said}");
    assert!(said.contains("another layout; first (here the heap, there the program)"), "{said}");
    let said = items.refused("short");
    assert!(
        said.starts_with("35 after 0: ") && said.contains("the converters end at struct item (fin"),
        "{said}"
    );
    let said = items.refused("circle");
    assert!(said.starts_with("1000 after 0: ") && said.contains("lead back to a version before"), "{said}");
}

#[test]
fn s4_02_a_root_is_reset_only_where_the_program_asks_for_it_and_it_is_told() {
    let items = Items::new();
    items.refused("gap");
    let said = items.refused("reset");
    assert!(
        said.starts_with("35 after 0: ") && said.contains("leads to a block that no value owns"),
        "{said}"
    );

    let items = Items::none();
    assert_eq!(items.run("1", "other"), "");
    let said = items.run("3", "strange");
    assert!(said.starts_with("35 after 0: ") && said.contains("another type"), "{said}");
    let said = items.run("3", "reset");
    let lines: Vec<&str> = said.lines().collect();
    assert_eq!(lines[0], "reset item from struct other to struct item: 1 blocks, 16 bytes");
    assert_eq!(lines[1], "0 made 0, 0 converted, 0 dropped, 1 blocks");
}

#[test]
fn a_root_that_is_missing_is_made() {
    let items = Items::none();
    let said = items.run("3", "unmade");
    assert!(said.starts_with("35 after 0: ") && said.contains("making its value failed"), "{said}");
    assert_eq!(items.run("3", "open"), "0 made 0, 0 converted, 0 dropped, 1 blocks\n");
}

#[test]
fn s4_04_in_cpp_steps_are_functions_and_exceptions_leave_the_old_value() {
    let items = Items::of(&CPP, "convert.cpp");
    let old = "-5 51, 2 blocks\n";
    assert_eq!(items.run("1", "write"), "-5 51, 0 blocks\n");
    for (mode, said) in [("throw", "no\n"), ("throw late", "7\n")] {
        assert_eq!(items.run("3", mode), said);
        assert_eq!(items.run("1", "look"), old, "{mode}");
    }
    let said = items.run("3", "full");
    assert!(said.starts_with("bad_alloc: cannot allocate in object"), "{said}");
    assert_eq!(items.run("1", "look"), old);
    assert_eq!(dies(&mut items.command("3", "kill")), 9);
    assert_eq!(items.run("1", "look"), old);
    let said = items.run("3", "reset");
    assert!(said.contains("bytes that its description does not explain"), "{said}");
    assert_eq!(items.run("3", "open"), "-5 1\n");
    assert_eq!(items.run("3", "open"), "-5 1\n");

    let items = Items::of(&CPP, "convert.cpp");
    items.run("1", "other");
    let said = items.run("3", "strange");
    assert!(said.contains("another type; first (here the heap, there the program)"), "{said}");
    assert_eq!(items.run("3", "reset"), "reset item, a other: 1 blocks\n0 0\n");
}

fn audited(items: &Items) -> (HeapAudit, Root) {
    let pool = Pool::open(items.folder.path().join("pool.pmo")).unwrap();
    let heap = ReadHeap::open(pool.attach_read("object").unwrap()).unwrap();
    let audit = heap.audit().unwrap();
    assert!(audit.roots.iter().all(|root| root.described));
    assert!(audit.findings.is_empty() && audit.leaks.is_empty());
    (audit, heap.root_any("item").unwrap())
}

#[test]
fn tools_go_through_what_c_and_cpp_made_by_its_fields() {
    let items = Items::new();
    let (audit, root) = audited(&items);
    let lines = root.lines();
    assert!(
        lines.contains("  number: int32_t at 0, size 4\n") && lines.contains(" at 8, size 8\n"),
        "{lines}"
    );
    assert_eq!((audit.blocks, audit.owned, audit.referred), (2, 1, 1));
    let pool = Pool::open(items.folder.path().join("pool.pmo")).unwrap();
    let mut object = pool.attach("object").unwrap();
    let (start, len) = (object.as_ptr().addr(), object.len());
    let at = root.address - start + 8;
    object.as_mut_slice()[at..at + 8].copy_from_slice(&(start + len + 8).to_le_bytes());
    object.psync().unwrap();
    drop((object, pool));
    let pool = Pool::open(items.folder.path().join("pool.pmo")).unwrap();
    let audit = ReadHeap::open(pool.attach_read("object").unwrap()).unwrap().audit().unwrap();
    assert_eq!((audit.pointers.len(), &*audit.pointers[0].path, audit.leaks.len()), (1, "item.name", 1));

    let items = Items::of(&CPP, "convert.cpp");
    items.run("1", "write");
    let (audit, root) = audited(&items);
    let lines = root.lines();
    assert!(lines.contains("  number: int32 at 0, size 4\n"), "{lines}");
    assert!(audit.pointers.is_empty());
}
