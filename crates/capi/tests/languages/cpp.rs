use super::ground::{CPP, dies, disk, folder, have, program, succeed};
use super::kill::{kill, last};
use indelible_testing::Seeded;
use std::path::Path;
use std::process::Command;

const ROUNDS: usize = 40;

fn run(program: &Path, pool: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(program);
    command.arg(pool).args(arguments);
    command
}

#[test]
fn s1_03_transactions_in_cpp_are_whole_and_exceptions_undo_them() {
    if !have("c++") {
        return;
    }
    let folder = folder();
    let binary = folder.path().join("transactions");
    CPP.build(&program("transactions.cpp"), &binary);
    assert_eq!(succeed(&mut run(&binary, &folder.path().join("pool.pmo"), &[])), "done\n");
}

#[test]
fn containers_nested_in_each_other_survive_sigkill_in_memory() {
    containers(folder());
}

#[test]
fn containers_nested_in_each_other_survive_sigkill_on_disk() {
    containers(disk());
}

fn containers(folder: tempfile::TempDir) {
    if !have("c++") {
        return;
    }
    let mut rng = Seeded::new(1);
    println!("INDELIBLE_SEED={}", rng.seed());
    let (binary, pool) = (folder.path().join("containers"), folder.path().join("pool.pmo"));
    CPP.build(&program("containers.cpp"), &binary);
    let check = || succeed(&mut run(&binary, &pool, &["check"])).trim().parse::<i64>().expect("a number");
    succeed(&mut run(&binary, &pool, &["grow", "3"]));
    let (mut steps, mut kills, mut between) = (check(), 0, 0);
    assert_eq!(steps, 3);
    for _ in 0..ROUNDS {
        let (lines, spins) = (rng.usize(0..60), rng.u32(0..200_000));
        let (said, killed) = kill(&mut run(&binary, &pool, &["grow", "100000"]), lines, spins);
        kills += usize::from(killed);
        if let Some(found) = last(&said, "found") {
            assert_eq!(found, steps, "what was there after the kill before");
        }
        let psynced = last(&said, "psynced").unwrap_or(steps);
        steps = check();
        assert!(
            steps == psynced || steps == psynced + 1,
            "{psynced} steps were psynced and {steps} are there"
        );
        between += usize::from(steps > psynced);
    }
    println!("{kills} kills, {between} between a psync and its message; {steps} steps");
    assert!(kills == ROUNDS && steps > 100);
    assert_eq!(succeed(&mut run(&binary, &pool, &["clear"])), "0 blocks\n");
}

#[test]
fn errors_are_exceptions_and_change_nothing() {
    if !have("c++") {
        return;
    }
    let folder = folder();
    let (binary, pool) = (folder.path().join("errors"), folder.path().join("pool.pmo"));
    CPP.build(&program("errors.cpp"), &binary);
    assert_eq!(succeed(&mut run(&binary, &pool, &[])), "done\n");
    for (which, signal) in
        [("double free", 6), ("foreign pointer", 6), ("use after detach", 11), ("store while reading", 11)]
    {
        assert_eq!(dies(&mut run(&binary, &pool, &[which])), signal, "{which}");
    }
}

#[test]
fn types_that_cannot_be_roots_do_not_compile() {
    if !have("c++") {
        return;
    }
    let folder = folder();
    let code = |before: &str, root: &str| {
        format!(
            "#include <pmo.hpp>\nstruct plain {{ int i; }};\nPMO_DESCRIBE(plain, PMO_MEMBER(i))\n{before}\n\
             int main() {{ pmo::pool pool(\"p\"); pmo::heap heap = pool.heap(\"h\", 1);\n\
             heap.root<{root}>(\"r\"); }}\n"
        )
    };
    for good in
        ["plain", "pmo::map<pmo::string, pmo::vector<plain>>", "plain[3]", "int *", "std::pair<int, double>"]
    {
        let good = if good == "plain[3]" { "pmo::vector<std::array<plain, 3>>" } else { good };
        assert_eq!(CPP.refuses(&code("", good), folder.path()), None, "{good}");
    }
    let bad = [
        ("struct unknown { int i; };", "unknown", "makes one of a struct"),
        ("", "std::string", "take pmo::string"),
        ("", "std::vector<int>", "take pmo::string"),
        ("", "std::unique_ptr<int>", "heap.make<T>()"),
        ("", "std::shared_ptr<int>", "std::shared_ptr points to"),
        ("", "std::function<void()>", "std::function and std::any"),
        ("struct v { virtual ~v(); }; PMO_DESCRIBE(v, )", "v", "virtual functions"),
        ("", "void (*)(int)", "a function is elsewhere"),
        ("", "std::pair<int, void (*)(int)>", "a function is elsewhere"),
        ("", "std::tuple<int &>", "a reference cannot be stored anew"),
        ("struct r { int &i; }; PMO_DESCRIBE(r, PMO_MEMBER(i))", "r", "a reference cannot be stored anew"),
        ("struct f { void (*call)(); }; PMO_DESCRIBE(f, PMO_MEMBER(call))", "f", "a function is elsewhere"),
        (
            "struct m { void (plain::*call)(); }; PMO_DESCRIBE(m, PMO_MEMBER(call))",
            "m",
            "a member function is elsewhere",
        ),
        ("class p { int i; }; PMO_DESCRIBE(p, PMO_MEMBER(i))", "p", "private"),
    ];
    for (before, root, words) in bad {
        let said = CPP.refuses(&code(before, root), folder.path());
        assert!(said.as_ref().is_some_and(|said| said.contains(words)), "{root}: {said:?}");
    }
}

#[test]
fn elements_that_mean_nothing_in_the_next_run_do_not_compile() {
    if !have("c++") {
        return;
    }
    let folder = folder();
    let code = |container: &str, store: &str| {
        format!(
            "#include <pmo.hpp>\nstruct v {{ virtual void f() {{}} }};\nstruct w {{ int i; }};\nint g(int i) {{ return i; }}\n\
             int main() {{ pmo::pool pool(\"p\"); pmo::heap heap = pool.heap(\"h\", 1);\n\
             {container} all(heap.get_allocator()); all.{store}; }}\n"
        )
    };
    let good = [
        ("pmo::vector<w>", "push_back(w())"),
        ("pmo::list<w *>", "push_back(nullptr)"),
        ("pmo::vector<pmo::string>", "emplace_back(\"a\")"),
    ];
    for (container, store) in good {
        assert_eq!(CPP.refuses(&code(container, store), folder.path()), None, "{container}");
    }
    let bad = [
        ("pmo::vector<v>", "push_back(v())", "virtual functions"),
        ("pmo::list<v>", "emplace_back()", "virtual functions"),
        ("pmo::unordered_map<int, v>", "try_emplace(1)", "virtual functions"),
        ("pmo::vector<int (*)(int)>", "push_back(g)", "a function is elsewhere"),
        ("pmo::map<int, int (*)(int)>", "emplace(1, g)", "a function is elsewhere"),
        ("pmo::vector<std::function<int(int)>>", "push_back(g)", "std::function and std::any"),
        ("pmo::vector<std::string>", "push_back(\"a\")", "take pmo::string"),
        ("pmo::deque<std::unique_ptr<int>>", "emplace_back()", "heap.make<T>()"),
    ];
    for (container, store, words) in bad {
        let said = CPP.refuses(&code(container, store), folder.path());
        assert!(said.as_ref().is_some_and(|said| said.contains(words)), "{container}: {said:?}");
    }
}

#[test]
fn pools_have_keys_names_lists_tracking_and_media() {
    if !have("c++") {
        return;
    }
    let folder = folder();
    let binary = folder.path().join("pools");
    CPP.build(&program("pools.cpp"), &binary);
    assert_eq!(succeed(&mut run(&binary, &folder.path().join("pool.pmo"), &[])), "done\n");
}

#[test]
fn containers_grow_beside_walls_and_copies_of_pools_are_refused() {
    if !have("c++") {
        return;
    }
    let folder = folder();
    let binary = folder.path().join("growth");
    CPP.build(&program("growth.cpp"), &binary);
    assert_eq!(succeed(&mut run(&binary, &folder.path().join("pool.pmo"), &[])), "done\n");
}

#[test]
fn sealed_objects_have_containers() {
    if !have("c++") {
        return;
    }
    let folder = folder();
    let binary = folder.path().join("sealed");
    CPP.build(&program("sealed.cpp"), &binary);
    assert_eq!(succeed(&mut run(&binary, &folder.path().join("pool.pmo"), &[])), "done\n");
}

/// The layouts of existing roots must not change.
const LAYOUTS: &str = "\
pair<int64, char>
pair<int64,_char>: size 16, alignment 8
  first: int64 at 0, size 8
  second: char at 8, size 1
tuple<char, int64, nothing, int16>
tuple<char,_int64,_nothing,_int16>: size 24, alignment 8
  3: int16 at 0, size 2
  1: int64 at 8, size 8
  0: char at 16, size 1
ring<int32, 3>
ring<int32,_3>: size 24, alignment 8
  next: uint64 at 0, size 8
  items: [int32; 3] at 8, size 12
account
account: size 16, alignment 8
  kind_: char at 0, size 1
  cents_: int64 at 8, size 8
chain
chain: size 24, alignment 8
  first: *mut void at 0, size 8
  later: *mut void at 8, size 8
  number: *mut void at 16, size 8
node: size 16, alignment 8
  next: *mut void at 0, size 8
  hidden: *mut void at 8, size 8
late: size 1, alignment 1
  letter: char at 0, size 1
duration<int64, 1/1000>
duration<int64,_1/1000>: size 8, alignment 8
  count: int64 at 0, size 8
bitset<100>
bitset<100>: size 16, alignment 8
  words: [uint64; 2] at 0, size 16
libstdc++11 variant<monostate, int64>

libstdc++11 map<libstdc++11 string, libstdc++11 vector<int32>>

";

#[test]
fn types_of_the_standard_library_templates_and_private_members_are_described() {
    if !have("c++") {
        return;
    }
    let folder = folder();
    let (binary, pool) = (folder.path().join("types"), folder.path().join("pool.pmo"));
    CPP.build(&program("types.cpp"), &binary);
    assert_eq!(succeed(&mut run(&binary, &pool, &["layout"])), LAYOUTS);
    succeed(&mut run(&binary, &pool, &["make"]));
    succeed(&mut run(&binary, &pool, &["check"]));
}

#[test]
fn allocators_throw_what_the_standard_says_and_know_the_current_object() {
    if !have("c++") {
        return;
    }
    let folder = folder();
    let binary = folder.path().join("allocators");
    CPP.build(&program("allocators.cpp"), &binary);
    assert_eq!(succeed(&mut run(&binary, &folder.path().join("pool.pmo"), &[])), "done\n");
}
