use super::ground::{C, CPP, Compiler, dies, disk, folder, have, installed, program, project, succeed, text};
use super::kill::kill;
use indelible::collections::RootTypes;
use indelible::retention::extendible;
use indelible::{Heap, Persist, Pool};
use indelible_testing::page::follow;
use indelible_testing::{Seeded, not_tested};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

const ROUNDS: usize = 30;

const EXTENSIONS: [&str; 3] = [
    "",
    "EXTENSION(1) { int stock; char code[8]; INIT(struct item *it) { it->stock = it->id * 10; it->code[0] = 'n'; } }",
    "EXTENSION(1) { int stock; char code[8]; INIT(struct item *it) { it->stock = it->id * 10; it->code[0] = 'n'; }\n\
     EXTENSION(2) { double gross; INIT(struct item *it) { it->gross = it->price + it->stock; } } }",
];

/// `None` without libclang.
pub fn tool() -> Option<&'static Path> {
    static TOOL: OnceLock<Option<PathBuf>> = OnceLock::new();
    let find = || {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().expect("the target folder");
        let tool = folder.join("debug/pmo");
        // Among all tests it is built already, and others are just using it.
        if std::env::var_os("INDELIBLE_PREFIX").is_none() || !tool.exists() {
            let mut command = indelible_testing::cargo();
            command.args(["build", "-q", "-p", "indelible-cli", "--bin", "pmo"]);
            succeed(command.current_dir(project()));
        }
        let tried =
            Command::new(&tool).args(["leds", "/dev/null", "-o", "/dev/null", "--", "-x", "c"]).output();
        let said = text(&tried.expect("the tool runs").stderr);
        if said.contains("libclang") {
            not_tested(format_args!("pmo leds: {said}"));
            return None;
        }
        Some(tool)
    };
    TOOL.get_or_init(find).as_deref()
}

fn build(folder: &Path, name: &str, text: &str, compiler: &Compiler) -> Option<PathBuf> {
    let (source, lowered) = (folder.join(name), folder.join(format!("lowered-{name}")));
    std::fs::write(&source, text).expect("a file");
    std::fs::copy(program("check.h"), folder.join("check.h")).expect("a file");
    let mut command = Command::new(tool()?);
    command.arg("leds").arg(&source).arg("-o").arg(&lowered).arg("--");
    succeed(command.arg("-I").arg(installed().join("include")));
    let binary = folder.join(name.replace('.', "-"));
    compiler.build(&lowered, &binary);
    Some(binary)
}

fn shops(folder: &Path) -> Option<[PathBuf; 3]> {
    let text = std::fs::read_to_string(program("leds/shop.c")).expect("the source");
    let mut all = Vec::new();
    for (version, extensions) in (1..).zip(EXTENSIONS) {
        let text = text.replace("/*EXTENSIONS*/", extensions).replace("../check.h", "check.h");
        let text = format!("#define VERSION {version}\n{text}");
        let name = format!("shop-{version}.c");
        for flags in [C.flags, &["-std=c99", "-O2", "-Wall", "-Wextra", "-Werror", "-Wshadow", "-pthread"]] {
            build(folder, &name, &text, &Compiler { command: "cc", flags })?;
        }
        all.push(folder.join(format!("shop-{version}-c")));
    }
    all.try_into().ok()
}

#[track_caller]
fn run(program: &Path, pool: &Path, command: &str) -> String {
    succeed(Command::new(program).arg(pool).arg(command))
}

#[test]
fn s4_05_programs_in_c_of_all_versions_use_the_same_data() {
    let folder = folder();
    let Some([one, two, three]) = shops(folder.path()) else { return };
    let pool = folder.path().join("pool.pmo");
    run(&one, &pool, "make");
    assert_eq!(run(&one, &pool, "show"), "3 1.5\n2 1\n1 0.5\n0 0\n9 0\n4 items, 0 extensions\n");
    let initial = "3 1.5 30 n\n2 1 20 n\n1 0.5 10 n\n0 0 0 n\n9 0 90 n\n4 items, 0 extensions\n";
    assert_eq!(run(&two, &pool, "show"), initial);
    run(&two, &pool, "change");
    let changed = "3 1.5 1030 c\n2 1 20 n\n1 0.5 10 n\n0 0 0 n\n9 0 1090 c\n4 items, 2 extensions\n";
    assert_eq!(run(&two, &pool, "show"), changed);
    assert!(run(&three, &pool, "show").starts_with("3 1.5 1030 c 1031.5\n2 1 20 n 21\n"));
    run(&one, &pool, "copy");
    assert!(run(&three, &pool, "show").ends_with("5 items, 3 extensions\n"));
    run(&three, &pool, "change");
    let said = run(&three, &pool, "show");
    assert!(said.starts_with("3 1.5 2030 c -1\n3 1.5 1030 c 1031.5\n"), "{said}");
    assert!(said.ends_with("5 items, 5 extensions\n"), "{said}");
    run(&two, &pool, "copy");
    assert!(run(&one, &pool, "show").ends_with("6 items, 7 extensions\n"));
    run(&one, &pool, "drop");
    assert!(run(&one, &pool, "show").ends_with("5 items, 5 extensions\n"));
    run(&one, &pool, "clear");
}

#[test]
fn a_killed_program_leaves_each_struct_extended_whole_or_not_at_all() {
    for folder in [folder(), disk()] {
        let Some([_, two, _]) = shops(folder.path()) else { return };
        let mut rng = Seeded::new(1);
        println!("INDELIBLE_SEED={}", rng.seed());
        let (pool, mut extended, mut kills) = (folder.path().join("pool.pmo"), 0, 0);
        for _ in 0..ROUNDS {
            let (lines, spins) = (rng.usize(0..40), rng.u32(0..100_000));
            let mut command = Command::new(&two);
            command.arg(&pool).arg("grow");
            let (said, killed) = kill(&mut command, lines, spins);
            kills += usize::from(killed);
            let psynced = said.iter().filter(|line| line.contains("psynced")).count();
            let found = run(&two, &pool, "whole").trim().parse::<usize>().expect("a number");
            assert!(
                found >= extended + psynced,
                "{found} items are extended, {extended} were, {psynced} more are psynced"
            );
            extended = found;
        }
        assert!(kills == ROUNDS && extended > ROUNDS, "{kills} kills, {extended} extended");
    }
}

fn survives(name: &str, compiler: &Compiler, unit: &str) {
    let folder = folder();
    let text = std::fs::read_to_string(program(&format!("leds/{name}"))).expect("the source");
    std::fs::copy(program("leds/library.h"), folder.path().join("library.h")).expect("a file");
    let Some(binary) = build(folder.path(), name, &text, compiler) else { return };
    let mut rng = Seeded::new(2);
    println!("INDELIBLE_SEED={}", rng.seed());
    let pool = folder.path().join("pool.pmo");
    for _ in 0..ROUNDS / 2 {
        let mut command = Command::new(&binary);
        let (said, killed) = kill(command.arg(&pool).arg("run"), rng.usize(1..40), rng.u32(0..100_000));
        assert!(killed && said.iter().all(|line| line == "psynced"), "{said:?}");
        let found = run(&binary, &pool, "check");
        assert!(found.ends_with(unit), "{found}");
    }
}

#[test]
fn an_editors_rows_that_memmove_moves_keep_their_extensions() {
    survives("editor.c", &C, " rows\n");
}

#[test]
fn json_items_that_memcpy_refers_to_and_hooks_free_keep_their_extensions() {
    survives("json.c", &C, " items\n");
}

#[test]
fn a_hash_tables_entries_in_a_report_that_qsort_sorts_keep_their_extensions() {
    survives("table.c", &C, " entries\n");
}

#[test]
fn a_documents_nodes_in_cpp_that_are_sorted_keep_their_extensions() {
    if have("c++") {
        survives("document.cpp", &CPP, " nodes\n");
    }
}

#[test]
fn threads_that_store_first_make_one_extension() {
    let folder = folder();
    let Some([_, two, _]) = shops(folder.path()) else { return };
    let pool = folder.path().join("pool.pmo");
    run(&two, &pool, "race");
    assert!(run(&two, &pool, "show").ends_with("2000 items, 2000 extensions\n"));
}

#[test]
fn a_store_that_has_no_room_ends_the_program_with_a_reason() {
    let folder = folder();
    let Some([_, two, _]) = shops(folder.path()) else { return };
    let pool = folder.path().join("pool.pmo");
    run(&two, &pool, "make");
    assert_eq!(dies(Command::new(&two).arg(&pool).arg("fill")), 6);
    assert!(run(&two, &pool, "show").ends_with("4 items, 0 extensions\n"));
}

const BASE: &str = "\
struct item { int id; double price; struct item *next; LINK };
int get(struct item *it, int i);
void set(struct item *it, double price);
double sum(const struct item *it);
int get(struct item *it, int i) { it->id += i; return it->id * 3; }
void set(struct item *it, double price) { while (it) { it->price = price; it = it->next; } }
double sum(const struct item *it) { return it ? it->price + (it->next ? it->next->price : 0) : 0; }
";

fn instructions(object: &Path, function: &str) -> String {
    let mut command = Command::new("objdump");
    command.args(["-d", "--no-show-raw-insn", "--no-addresses"]).arg(format!("--disassemble={function}"));
    let said = succeed(command.arg(object));
    let code = said.split_once("section .text:").map(|(_, code)| code).expect("code");
    code.split("Disassembly").next().map(str::trim_end).unwrap_or_default().to_owned()
}

#[test]
fn accesses_to_fields_of_the_struct_itself_are_those_of_a_plain_struct() {
    if !have("objdump") {
        return;
    }
    let folder = folder();
    let extended = "EXTENSION(1) { int stock; INIT(struct item *it) { it->stock = it->id; } }";
    let more = "int more(struct item *it);\nint more(struct item *it) { return it->stock; }\n";
    let text = format!("#include <pmo.h>\nextendible {}{more}", BASE.replace("LINK", extended));
    const OBJECT: Compiler =
        Compiler { command: "cc", flags: &["-std=c11", "-O2", "-Wall", "-Wextra", "-Werror", "-c"] };
    let Some(lowered) = build(folder.path(), "extended.c", &text, &OBJECT) else { return };
    let (source, plain) = (folder.path().join("plain.c"), folder.path().join("plain.o"));
    std::fs::write(&source, BASE.replace("LINK", "unsigned long link;")).unwrap();
    OBJECT.build(&source, &plain);
    for function in ["get", "set", "sum"] {
        assert_eq!(instructions(&lowered, function), instructions(&plain, function), "{function}");
    }
    assert_ne!(instructions(&lowered, "more"), instructions(&lowered, "get"));
}

const CLASSES: &str = r#"
#include <pmo.hpp>
#include "check.h"
#include <algorithm>
#include <cstring>
#include <new>

extendible struct point {
    double x, y;
    point() : x(0), y(0) {}
    EXTENSION(1) { int weight; char name[8]; INIT(point *it) { it->weight = static_cast<int>(it->x) + 1; } }
};

struct pair { point of[2]; };

template <class T> static T twice(const T &value) { return value + value; }

class path {
public:
    explicit path(point *first) : first_(first) {}
    int weight() const { return first_->weight; }
    void add(int more) { first_->weight += more; }

private:
    point *first_;
};

int main(int, char **argv)
{
    pmo_pool *pool = pmo_format(argv[1], 16 << 20, 0);
    CHECK(pool && pmo_create(pool, "o", 1 << 20) == 0);
    char *heap = static_cast<char *>(pmo_attach(pool, "o", PMO_WRITE, nullptr, 0));
    CHECK(heap && pmo_heap_format(heap, 0) == 0);
    pair *both = static_cast<pair *>(pmo_malloc(heap, sizeof(pair)));
    point &one = both->of[0], &two = both->of[1];
    one.x = 4;
    two.x = 5;
    CHECK(one.weight == 5 && twice(one.weight) == 10 && std::max(two.weight, 1) == 6 && std::strlen(two.name) == 0);
    struct pmo_heap_stats stats;
    CHECK(::pmo_heap_stats(heap, &stats) == 0 && stats.blocks == 1);
    path(&one).add(10);
    one.name[0] = 'a';
    two = one;
    two.weight++;
    CHECK(path(&one).weight() == 15 && two.weight == 16 && two.name[0] == 'a');
    CHECK(::pmo_heap_stats(heap, &stats) == 0 && stats.blocks == 3);
    // A constructor does not know the link, which is zero all the same.
    void *raw = pmo_malloc(heap, sizeof(point));
    std::memset(raw, 0xff, sizeof(point));
    point *made = new (raw) point;
    CHECK(made->x == 0 && made->weight == 1 && ++made->weight == 2 && pmo_free(made) == 0);
    auto changes = [&one] { return ++one.weight; };
    CHECK(changes() == 16 && one.weight == 16);
    while (pmo_malloc(heap, 16))
        ;
    point *last = static_cast<point *>(pmo_calloc(heap, 1, sizeof(point)));
    CHECK(last == nullptr);
    CHECK(pmo_free(both) == 0);
    last = static_cast<point *>(pmo_calloc(heap, 1, sizeof(point)));
    while (pmo_malloc(heap, 16))
        ;
    try {
        last->weight = 1;
        CHECK(false);
    } catch (const pmo::bad_alloc &error) {
        CHECK(error.code() == PMO_ERR_HEAP_FULL && last->weight == 1);
    }
    std::puts("done");
}
"#;

#[test]
fn structs_of_cpp_are_lowered() {
    if !have("c++") {
        return;
    }
    let folder = folder();
    let Some(binary) = build(folder.path(), "classes.cpp", CLASSES, &CPP) else { return };
    assert_eq!(succeed(Command::new(binary).arg(folder.path().join("pool.pmo"))), "done\n");
}

const HEADER: &str = "#pragma once\n#include <pmo.h>\nextendible struct item {\n    int id;\n\
    EXTENSION(1) { int stock; INIT(struct item *it) { it->stock = it->id + LEVEL; } }\n};\n\
    static inline int stock(struct item *it) { return it->stock; }\n";
const USES: &str = "#include \"item.h\"\n#include \"item.h\"\n#include <stdio.h>\n\
    int main(void) { struct item it = {3}; printf(\"%d %d\\n\", stock(&it), it.stock); return 0; }\n";

fn in_project(files: &[(&str, &str)], script: &str) -> Option<String> {
    let (folder, tool) = (folder(), tool()?);
    for (name, text) in files.iter().chain(&[("item.h", HEADER), ("uses.c", USES)]) {
        std::fs::write(folder.path().join(name), text).expect("a file");
    }
    let path = format!("{}:{}", tool.parent()?.display(), std::env::var("PATH").unwrap_or_default());
    let mut command = Command::new("sh");
    command.args(["-ec", script]).current_dir(folder.path()).env("PATH", path);
    command.env("PKG_CONFIG_PATH", installed().join("lib/pkgconfig")).env("PREFIX", installed());
    command.env("LD_LIBRARY_PATH", installed().join("lib"));
    Some(succeed(&mut command))
}

#[test]
fn headers_are_lowered_with_their_sources_by_cmake() {
    if !have("cmake") || !have("make") {
        return;
    }
    let project = "cmake_minimum_required(VERSION 3.10)\nproject(uses C)\nfind_package(pmo 0.1 REQUIRED)\n\
                   add_executable(uses)\ntarget_link_libraries(uses PRIVATE pmo::pmo)\n\
                   target_compile_definitions(uses PRIVATE LEVEL=4)\npmo_leds(uses uses.c LOCK layouts.lock)\n";
    let script = "pmo leds uses.c -o /dev/null --lock layouts.lock --update-lock -- -I$PREFIX/include -DLEVEL=1\n\
                  cmake -G 'Unix Makefiles' -DCMAKE_PREFIX_PATH=$PREFIX -S . -B build >log 2>&1 || { cat log; exit 1; }\n\
                  cmake --build build >log 2>&1 || { cat log; exit 1; }\nbuild/uses\n\
                  sed -i 's/LEVEL/LEVEL * 10/' item.h\ntouch -d '1 hour' item.h\n\
                  cmake --build build >log 2>&1 || { cat log; exit 1; }\nbuild/uses\n\
                  sed -i 's/int stock/long stock/' item.h\ntouch -d '2 hours' item.h\n\
                  if cmake --build build >log 2>&1; then exit 1; fi\ngrep -c 'stock: i32 here, i64 there' log";
    let Some(said) = in_project(&[("CMakeLists.txt", project)], script) else { return };
    assert_eq!(said, "7 7\n43 43\n1\n");
}

#[test]
fn sources_are_lowered_by_make() {
    if !have("make") || !have("pkg-config") {
        return;
    }
    let rules = "include $(shell pkg-config --variable=leds pmo)\nCPPFLAGS = $(shell pkg-config --cflags pmo) -DLEVEL=2\n\
                 uses: uses.leds.o\n\t$(CC) -o $@ $^ $(shell pkg-config --libs pmo)\n";
    let script = "make -s >log 2>&1 || { cat log; exit 1; }\n./uses\n\
                  sed -i 's/LEVEL/LEVEL * 10/' item.h\ntouch -d '1 hour' item.h\nmake -s >log 2>&1\n./uses";
    let Some(said) = in_project(&[("Makefile", rules)], script) else { return };
    assert_eq!(said, "5 5\n23 23\n");
}

#[test]
fn the_page_for_structs_that_grow_is_true() {
    if !have("pkg-config") {
        return;
    }
    let Some(tool) = tool() else { return };
    let page = std::fs::read_to_string(project().join("docs/cookbook/leds.md")).unwrap();
    let (page, _) = page.split_once("## With make and CMake").expect("the commands end there");
    let folder = disk();
    let compared = follow(page, folder.path(), &["c"], &|block| {
        let commands = "cargo xtask install --prefix \"$HOME/.local\" --only libpmo\ncargo install --path crates/cli --root \"$HOME/.local\"\n";
        assert_eq!(block, commands);
        let local = folder.path().join(".local");
        std::fs::create_dir_all(local.join("bin")).unwrap();
        std::os::unix::fs::symlink(tool, local.join("bin/pmo")).unwrap();
        for part in ["include", "lib", "share"] {
            std::os::unix::fs::symlink(installed().join(part), local.join(part)).unwrap();
        }
    });
    assert_eq!(compared, 5);
}

#[extendible]
#[derive(Persist)]
#[repr(C)]
struct Item<'h> {
    count: i32,
    price: f64,
    words: [u16; 4],
    #[extension(1, init = |item| i64::from(item.count) * 2)]
    stock: i64,
    #[extension(1)]
    code: [u8; 5],
}

const SAME: &str = r#"
#include <pmo.h>
#include "check.h"
extendible struct Item {
    int count; double price; unsigned short words[4];
    EXTENSION(1) { long stock; unsigned char code[5]; INIT(struct Item *it) { it->stock = it->count * 2L; } }
};
int main(int argc, char **argv)
{
    pmo_pool *pool = pmo_open_or_format(argv[1], 16 << 20, 0);
    if (argc > 2) {
        void *heap = pmo_attach(pool, "o", PMO_READ, NULL, 0);
        struct Item *it = pmo_root(heap, "item", PMO_TYPEOF(Item));
        CHECK(it && it->stock == 77 && it->code[4] == 9 && it->count == 5);
        return 0;
    }
    CHECK(pool && pmo_create(pool, "o", 1 << 20) == 0);
    void *heap = pmo_attach(pool, "o", PMO_WRITE, NULL, 0);
    CHECK(heap && pmo_heap_format(heap, 0) == 0);
    struct Item *it = pmo_malloc(heap, sizeof *it);
    it->count = 4;
    it->words[3] = 8;
    it->code[4] = 9;
    CHECK(pmo_root_create(heap, "item", it, sizeof *it, PMO_TYPEOF(Item)) == 0 && pmo_psync(heap) == 0);
    return pmo_detach(heap);
}
"#;

#[test]
fn rust_and_c_have_the_same_types() {
    let folder = folder();
    let Some(binary) = build(folder.path(), "same.c", SAME, &C) else { return };
    let path = folder.path().join("pool.pmo");
    succeed(Command::new(&binary).arg(&path));
    let pool = Pool::open(&path).unwrap();
    let mut heap = Heap::open(pool.attach("o").unwrap()).unwrap();
    heap.verify(&RootTypes::new().root::<Item<'_>>("item")).unwrap();
    let item = heap.root_mut::<Item<'_>>("item").unwrap();
    assert_eq!((item.count, item.stock(), item.code(), item.words), (4, 8, [0, 0, 0, 0, 9], [0, 0, 0, 8]));
    item.count += 1;
    *item.stock_mut() = 77;
    heap.psync().unwrap();
    assert_eq!(heap.audit().unwrap().leaks, []);
    drop((heap, pool));
    succeed(Command::new(&binary).arg(&path).arg("look"));
}
