use super::ground::{C, CPP, Compiler, folder, have, program, succeed};
use indelible::{Pool, ReadHeap, Space};
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

struct List {
    folder: TempDir,
    pools: [PathBuf; 2],
    binary: PathBuf,
}

impl List {
    fn made(compiler: &Compiler, source: &str) -> List {
        let folder = folder();
        let pools = ["one.pmo", "two.pmo"].map(|name| folder.path().join(name));
        let binary = folder.path().join("far");
        compiler.build(&program(source), &binary);
        let list = List { folder, pools, binary };
        for step in ["make", "walk", "wrong", "walk"] {
            assert_eq!(list.run(&list.pools, step), "done\n");
        }
        list
    }

    fn run(&self, pools: &[impl AsRef<Path>], step: &str) -> String {
        succeed(Command::new(&self.binary).args(pools.iter().map(AsRef::as_ref)).arg(step))
    }

    fn seen_by_rust(&self, root: &str, pointers: usize) {
        let opened = self.pools.each_ref().map(|path| Pool::open(path).unwrap());
        let mut space = Space::new();
        opened.iter().for_each(|pool| space.add(pool));
        let ids = [0, 1].map(|pool| opened[pool].stat("list").unwrap().id);
        assert_eq!(space.reachable(&ids[..1], true).unwrap().len(), 2);
        assert_eq!(space.dangling(&ids[0]).unwrap(), []);
        drop(space);
        let heap = ReadHeap::open(opened[0].attach_read("list").unwrap()).unwrap();
        let found = heap.far_pointers().unwrap();
        assert_eq!(found.len(), pointers, "{found:?}");
        assert!(found.iter().any(|pointer| pointer.path.starts_with(root)), "{found:?}");
        drop(heap);
        let mut space = Space::new();
        space.add(&opened[0]);
        assert!(!space.dangling(&ids[0]).unwrap().is_empty());
        drop(space);
        let third = self.folder.path().join("three.pmo");
        let pool = Pool::format(&third, 16 << 20).unwrap();
        opened[1].rename("list", "rest", b"").unwrap();
        for (from, name) in opened.iter().zip(["list", "rest"]) {
            from.move_rebased(name, b"", &pool, &mut |_, _| {}).unwrap();
        }
        drop((pool, opened));
        assert_eq!(self.run(&[third], "walk"), "done\n");
    }
}

#[test]
fn s2_12_a_list_of_c_goes_through_objects_of_two_pools() {
    let list = List::made(&C, "far.c");
    list.seen_by_rust("first.next", 1);
}

#[test]
fn s2_12_a_list_of_cpp_goes_through_objects_of_two_pools() {
    if !have("c++") {
        return;
    }
    let list = List::made(&CPP, "far.cpp");
    list.seen_by_rust("list.first", 5);
}
