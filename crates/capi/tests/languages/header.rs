use super::ground::{C, CPP, Compiler, folder, have, installed, source, succeed};
use pmo::{
    AnchorOptions, AttachWith, CODES, Collected, Converter, CreateOptions, Difference, Extension, Extensions,
    Field, HeapStats, KeySlot, ObjectInfo, Pending, PoolInfo, PoolWith, QueueOf, Reset, Root, RootOptions,
    Scrubbed, SnapshotOf, Stat, StrayPointer, Tie, Type, WordOf,
};
use std::collections::{BTreeMap, BTreeSet};
use std::mem::offset_of;
use std::process::Command;

fn header() -> String {
    std::fs::read_to_string(source().join("include/pmo.h")).unwrap()
}

fn declarations() -> String {
    let mut text = String::new();
    for (index, piece) in header().split("/*").enumerate() {
        text.push_str(if index == 0 { piece } else { piece.split_once("*/").unwrap().1 });
    }
    let mut lines = Vec::new();
    let mut directive = false;
    for line in text.lines() {
        let begins = line.starts_with('#');
        if !begins && !directive {
            lines.push(line);
        }
        directive = (begins || directive) && line.ends_with('\\');
    }
    lines.join("\n")
}

fn declared() -> BTreeMap<String, Vec<String>> {
    let mut functions = BTreeMap::new();
    for statement in declarations().split(';') {
        let line = statement.split_whitespace().collect::<Vec<_>>().join(" ");
        let line = line.rsplit(['{', '}']).next().unwrap().trim().to_owned();
        let Some((before, rest)) = line.split_once('(') else { continue };
        let (result, name) = split_name(before);
        if name.is_empty() || result.is_empty() || result == "return" {
            continue;
        }
        let mut types = vec![rust(result)];
        for argument in split_arguments(rest.strip_suffix(')').unwrap()) {
            if let Some((result, arguments)) = argument.split_once(" (*each)(") {
                let arguments = split_arguments(arguments.strip_suffix(')').unwrap());
                let arguments: Vec<_> =
                    arguments.iter().map(|argument| rust(split_name(argument).0)).collect();
                let result = if result == "void" { String::new() } else { format!("->{}", rust(result)) };
                types.push(format!("Option<extern\"C\"fn({}){result}>", arguments.join(",")));
            } else if argument != "void" {
                types.push(
                    rust(split_name(&argument.replace("[2]", "")).0)
                        .replace("u64", if argument.contains("[2]") { "*mutu64" } else { "u64" }),
                );
            }
        }
        functions.insert(name.to_owned(), types);
    }
    functions
}

fn split_name(text: &str) -> (&str, &str) {
    let at = text.rfind([' ', '*']).map_or(0, |at| at + 1);
    (text[..at].trim(), &text[at..])
}

fn split_arguments(text: &str) -> Vec<String> {
    let (mut all, mut depth) = (vec![String::new()], 0);
    for c in text.chars() {
        depth += i32::from(c == '(') - i32::from(c == ')');
        if c == ',' && depth == 0 {
            all.push(String::new());
        } else {
            all.last_mut().unwrap().push(c);
        }
    }
    all.into_iter().map(|argument| argument.trim().to_owned()).collect()
}

fn rust(c: &str) -> String {
    match c {
        "void *const *" => return "*const*mutc_void".into(),
        "const pmo_seal_key *const *" => return "*const*constpmo_seal_key".into(),
        _ => {}
    }
    let constant = c.starts_with("const ");
    let c = c.trim_start_matches("const ");
    let Some(target) = c.strip_suffix('*') else {
        return match c {
            "int" => "c_int",
            "unsigned" => "c_uint",
            "size_t" => "usize",
            "uint32_t" => "u32",
            "uint64_t" | "pmo_ptr" => "u64",
            "int64_t" => "i64",
            other => panic!("no word for {other:?}"),
        }
        .into();
    };
    let target = match target.trim() {
        "void" => "c_void",
        "char" => "c_char",
        "char *const" => "*constc_char",
        "uint8_t" => "u8",
        "pmo_pool" => "pmo_pool",
        "pmo_seal_key" => "pmo_seal_key",
        "pmo_tx" => "pmo_tx",
        "struct pmo_key_slot" => "KeySlot",
        "struct pmo_anchor" => "AnchorOptions",
        "struct pmo_pool_info" => "PoolInfo",
        "struct pmo_pool_options" => "PoolWith",
        "struct pmo_attach_options" => "AttachWith",
        "struct pmo_stat" => "Stat",
        "struct pmo_create_options" => "CreateOptions",
        "struct pmo_object" => "ObjectInfo",
        "struct pmo_heap_stats" => "HeapStats",
        "struct pmo_pointer" => "StrayPointer",
        "struct pmo_extension" => "Extension",
        "struct pmo_extensions" => "Extensions",
        "struct pmo_type" => "Type",
        "struct pmo_root" => "Root",
        "struct pmo_root_options" => "RootOptions",
        "struct pmo_snapshot" => "SnapshotOf",
        "struct pmo_page_range" => "PageRangeOf",
        "struct pmo_collected" => "Collected",
        "struct pmo_scrubbed" => "Scrubbed",
        "struct pmo_pending" => "Pending",
        "struct pmo_difference" => "Difference",
        "struct pmo_tie" => "Tie",
        "struct pmo_tm_runtime" => "Runtime",
        "struct pmo_word" => "WordOf",
        "struct pmo_queue_options" => "QueueOf",
        "pmo_queue" => "pmo_queue",
        "uint32_t" => "u32",
        "int" => "c_int",
        other => panic!("no word for {other:?} *"),
    };
    format!("*{}{target}", if constant { "const" } else { "mut" })
}

fn exported() -> BTreeMap<String, Vec<String>> {
    let mut functions = BTreeMap::new();
    for entry in std::fs::read_dir(source().join("src")).unwrap() {
        let text = std::fs::read_to_string(entry.unwrap().path()).unwrap();
        for function in text.split("#[unsafe(no_mangle)]").skip(1) {
            let signature = function.split_once(" {\n").unwrap().0;
            let signature: String = signature.split_once("fn ").unwrap().1.split_whitespace().collect();
            let (name, rest) = signature.split_once('(').unwrap();
            let close = rest.rfind(")->").unwrap();
            let mut types = vec![rest[close + 3..].to_owned()];
            for argument in split_arguments(&rest[..close]).iter().filter(|argument| !argument.is_empty()) {
                types.push(argument.split_once(':').unwrap().1.to_owned());
            }
            functions.insert(name.to_owned(), types);
        }
    }
    functions
}

#[test]
fn the_header_declares_what_the_source_exports() {
    let (declared, exported) = (declared(), exported());
    assert!(declared.len() > 40, "{declared:?}");
    for (name, types) in &exported {
        assert_eq!(declared.get(name), Some(types), "{name}");
    }
    assert_eq!(declared.keys().collect::<Vec<_>>(), exported.keys().collect::<Vec<_>>());
}

#[test]
fn the_library_exports_them_with_a_version_and_nothing_else() {
    let listed =
        succeed(Command::new("nm").args(["-D", "--defined-only"]).arg(installed().join("lib/libpmo.so")));
    let symbols: BTreeSet<_> =
        listed.lines().filter_map(|line| line.split(" T ").nth(1)).map(str::to_owned).collect();
    let wanted: BTreeSet<_> = declared().into_keys().map(|name| format!("{name}@@PMO_0.1")).collect();
    assert_eq!(symbols, wanted);
    let data =
        listed.lines().filter(|line| !line.contains(" T ") && !line.contains(" A ")).collect::<Vec<_>>();
    assert_eq!(data, [""; 0]);
    let dynamic = succeed(Command::new("objdump").arg("-p").arg(installed().join("lib/libpmo.so")));
    assert!(dynamic.contains("libpmo.so.0\n"), "{dynamic}");
}

#[test]
fn the_codes_are_the_kinds_of_errors() {
    let kinds = std::fs::read_to_string(source().join("../indelible/src/error/kind.rs")).unwrap();
    let kinds = kinds.split_once("pub enum ErrorKind {").unwrap().1.split_once("\n}").unwrap().0;
    let number = |line: &str| -> Option<(String, i32)> {
        let (name, number) = line.trim().trim_end_matches(',').split_once(" = ")?;
        Some((name.to_owned(), number.parse().ok()?))
    };
    let snake = |name: &str| -> String {
        let upper = name
            .chars()
            .flat_map(|c| if c.is_uppercase() { vec!['_', c] } else { vec![c.to_ascii_uppercase()] });
        format!("PMO_ERR{}", upper.collect::<String>())
    };
    let kinds: BTreeMap<_, _> =
        kinds.lines().filter_map(number).map(|(name, code)| (code, snake(&name))).collect();
    let table: BTreeMap<_, _> = CODES.iter().map(|(code, name, _)| (*code, (*name).to_owned())).collect();
    let of_library: BTreeMap<_, _> = table
        .clone()
        .into_iter()
        .filter(|(code, _)| (1..1000).contains(code) || kinds.contains_key(code))
        .collect();
    assert_eq!(of_library, kinds);
    let header = header();
    let codes = header.split_once("enum pmo_error {").unwrap().1.split_once('}').unwrap().0;
    let codes: BTreeMap<_, _> = codes.lines().filter_map(number).map(|(name, code)| (code, name)).collect();
    assert_eq!(codes, table);
}

#[test]
fn structs_have_the_same_layout_on_both_sides() {
    macro_rules! layouts {
        ($($name:literal $ty:ident { $($c:literal $field:ident),* })*) => {
            vec![$(($name, size_of::<$ty>(), vec![$(($c, offset_of!($ty, $field))),*])),*]
        };
    }
    let layouts = layouts! {
        "pmo_pool_info" PoolInfo { "id" id, "length" length, "objects" objects, "free" free,
            "largest_free" largest_free, "version" version, "medium" medium }
        "pmo_pool_options" PoolWith { "flags" flags, "medium" medium, "tracking" tracking, "reserved" reserved,
            "window_start" window_start, "window_len" window_len, "ahead_limit" ahead_limit,
            "memory_limit" memory_limit, "label" label }
        "pmo_attach_options" AttachWith { "size" size, "permission" permission, "tracking" tracking,
            "wait" wait, "key" key, "key_len" key_len, "seal" seal }
        "pmo_stat" Stat { "name" name, "id" id, "size" size, "address" address, "reach" reach, "psyncs" psyncs,
            "created" created, "state" state, "holder" holder, "flags" flags, "durability" durability,
            "own" own }
        "pmo_create_options" CreateOptions { "size" size, "reach" reach, "read_key" read_key,
            "read_key_len" read_key_len, "write_key" write_key, "write_key_len" write_key_len, "flags" flags,
            "durability" durability }
        "pmo_object" ObjectInfo { "base" base, "size" size, "psyncs" psyncs, "recovered_bytes" recovered_bytes,
            "writable" writable, "tracking" tracking, "name" name }
        "pmo_snapshot" SnapshotOf { "name" name, "snapshot" snapshot }
        "pmo_difference" Difference { "pages" pages, "older_size" older_size, "newer_size" newer_size }
        "pmo_word" WordOf { "word" word, "expected" expected, "reserved" reserved }
        "pmo_queue_options" QueueOf { "slots" slots, "most" most, "one_producer" one_producer,
            "reserved" reserved }
        "pmo_tie" Tie { "name" name, "id" id, "deleted" deleted, "reserved" reserved }
        "pmo_key_slot" KeySlot { "slot" slot, "kind" kind, "created" created, "expires" expires,
            "damaged" damaged, "reserved" reserved, "label" label }
        "pmo_anchor" AnchorOptions { "file" file, "command" command, "tpm" tpm, "tpm_index" tpm_index,
            "reserved" reserved, "timeout" timeout, "interval" interval }
        "pmo_collected" Collected { "removed" removed, "copied" copied }
        "pmo_pending" Pending { "transactions" transactions, "bytes" bytes }
        "pmo_scrubbed" Scrubbed { "words" words, "repaired" repaired, "lost" lost, "first_lost" first_lost }
        "pmo_heap_stats" HeapStats { "bytes" bytes, "blocks" blocks, "block_bytes" block_bytes,
            "free_bytes" free_bytes, "largest_free" largest_free, "class_bytes" class_bytes,
            "overhead" overhead, "roots" roots }
        "pmo_pointer" StrayPointer { "offset" offset, "target" target, "place" place, "into" into }
        "pmo_field" Field { "name" name, "type" ty, "offset" offset, "size" size, "nested" nested, "target" target }
        "pmo_type" Type { "name" name, "size" size, "fields" fields, "count" count, "kind" kind, "align" align }
        "pmo_extensions" Extensions { "link" link }
        "pmo_extension" Extension { "of" of, "type" ty, "init" init, "identity" identity }
        "pmo_converter" Converter { "from" from, "to" to, "convert" convert, "drop" drop, "context" context }
        "pmo_reset" Reset { "root" root, "old_type" old_type, "new_type" new_type, "blocks" blocks, "bytes" bytes }
        "pmo_root_options" RootOptions { "converters" converters, "count" count, "make" make, "told" told,
            "context" context }
        "pmo_root" Root { "name" name, "address" address, "size" size, "type" ty, "layout" layout,
            "fingerprint" fingerprint }
    };
    let mut code = String::from("#include <pmo.h>\n#include <stddef.h>\n");
    for (name, size, fields) in &layouts {
        code += &format!("_Static_assert(sizeof(struct {name}) == {size}, \"{name}\");\n");
        for (field, offset) in fields {
            code += &format!(
                "_Static_assert(offsetof(struct {name}, {field}) == {offset}, \"{name}.{field}\");\n"
            );
        }
        let declared = declarations();
        let body = declared.split_once(&format!("struct {name} {{")).unwrap().1.split_once("};").unwrap().0;
        assert_eq!(body.matches(';').count(), fields.len(), "fields of {name}");
    }
    code += "int main(void) { return 0; }\n";
    let folder = folder();
    if have("cc") {
        assert_eq!(C.refuses(&code, folder.path()), None);
        let wrong = code.replacen("== 0,", "== 1,", 1);
        assert!(C.refuses(&wrong, folder.path()).is_some(), "a wrong offset goes unnoticed");
    }
}

#[test]
fn the_manual_pages_are_well_formed_and_complete() {
    let pages = installed().join("share/man/man3");
    let of_parts = [
        "PMO_TX",
        "PMO_TX_LOAD",
        "PMO_STATIC",
        "PMO_TXRECORD",
        "pmo_transaction",
        "pmo_block_alloc",
        "pmo_attach_tm",
        "pmo_tm_alloc",
        "pmo_attach_statics",
        "pmo_resume",
        "pmo_refuse_another_program",
    ];
    for name in declared().keys().map(String::as_str).chain(["pmo"]).chain(of_parts) {
        let page = pages.join(format!("{name}.3"));
        let text = std::fs::read_to_string(&page).unwrap();
        for part in [".TH ", ".SH NAME\n", ".SH SYNOPSIS\n", ".SH DESCRIPTION\n"] {
            assert!(text.contains(part), "{name}.3 has no {part}");
        }
        if name == "pmo_stat" {
            assert!(text.contains("uint64_t address;"), "{text}");
        }
        if name == "pmo_tm_alloc" {
            assert!(text.contains("#include <pmo/blocks.h>"), "{text}");
        }
    }
    if have("man") {
        let rendered =
            Command::new("man").args(["--warnings=all", "-l"]).arg(pages.join("pmo_psync_flags.3")).output();
        let rendered = rendered.unwrap();
        assert!(rendered.status.success() && rendered.stderr.is_empty(), "{rendered:?}");
        assert!(String::from_utf8_lossy(&rendered.stdout).contains("consistent cut"));
    }
}

#[test]
fn the_header_stands_alone() {
    let folder = folder();
    let code = "#define PMO_NO_SHORT_NAMES\n#include <pmo.h>\nstatic int attach(int a) { return a; }\n\
                int main(void) { return attach(0) + pmo_errno(); }\n";
    assert_eq!(C.refuses(code, folder.path()), None);
    let code = "#include <pmo.h>\nstruct p { int x; char c[3]; };\n\
                PMO_TYPE(p, PMO_FIELD(int, x), PMO_FIELD(char[3], c))\n\
                int main(void) { return PMO_TYPEOF(p)->count != 2; }\n";
    for flags in [
        &["-std=c99", "-Wall", "-Wextra", "-Wpedantic", "-Werror"],
        &["-std=gnu17", "-O2", "-Wall", "-Wextra", "-Werror"],
    ] {
        assert_eq!(Compiler { command: "cc", flags }.refuses(code, folder.path()), None, "{flags:?}");
    }
    if have("c++") {
        assert_eq!(CPP.refuses(code, folder.path()), None);
    }
}
