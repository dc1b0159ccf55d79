//! Sources and their lowered form, or the refusal.

use indelible_testing::not_tested;
use std::path::{Path, PathBuf};
use std::process::Command;

const C: &str = "c";
const CPP: &str = "c++";

struct Ground {
    folder: tempfile::TempDir,
}

impl Ground {
    fn new() -> Ground {
        Ground { folder: tempfile::tempdir().expect("a folder") }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn lower(&self, text: &str, more: &[&str]) -> Option<Result<String, Vec<String>>> {
        self.lower_as(C, text, more)
    }

    fn lower_as(&self, language: &str, text: &str, more: &[&str]) -> Option<Result<String, Vec<String>>> {
        std::fs::write(self.path("in.c"), text).expect("a file");
        let include = Path::new(env!("CARGO_MANIFEST_DIR")).join("../capi/include");
        let mut command = Command::new(env!("CARGO_BIN_EXE_pmo"));
        command
            .args(["leds", "in.c", "-o", "out.c"])
            .args(more)
            .args(["--", "-x", language])
            .arg("-I")
            .arg(include);
        let output = command.current_dir(self.folder.path()).output().expect("the tool runs");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        if said.contains("cannot be loaded") {
            not_tested(format_args!("lowering: {said}"));
            return None;
        }
        if output.status.success() {
            return Some(Ok(std::fs::read_to_string(self.path("out.c")).expect("the output")));
        }
        assert!(!self.path("out.c").exists(), "there is an output in spite of {said}");
        Some(Err(said.lines().filter_map(|line| line.strip_prefix("error: ")).map(str::to_owned).collect()))
    }
}

fn with(code: &str) -> String {
    format!(
        "#include <pmo.h>\n#include <string.h>\nstruct where {{ int x, y; }};\n\
         extendible struct item {{\n    int id;\n    struct item *next;\n\
         \x20   EXTENSION(1) {{ int stock; char name[8]; INIT(struct item *it) {{ it->stock = it->id; }} }}\n\
         \x20   EXTENSION(2) {{ long more; struct where at; struct item *other; }}\n}};\n\
         struct order {{ int n; struct item items[2]; }};\n{code}\n"
    )
}

fn lowered(code: &str) -> Option<String> {
    lowered_as(C, code)
}

fn lowered_as(language: &str, code: &str) -> Option<String> {
    let text = Ground::new().lower_as(language, &with(code), &[])?;
    let text = text.unwrap_or_else(|problems| panic!("{code}: {problems:?}"));
    let begin = text.rfind("struct order {").expect("the last struct");
    let rest = &text[begin..];
    let (_, code) = rest.split_once("};\n").expect("its end");
    Some(code.split("\n#line").next().unwrap_or_default().trim().to_owned())
}

fn refused(code: &str) -> Option<Vec<String>> {
    let problems = Ground::new().lower(&with(code), &[])?;
    Some(problems.err().unwrap_or_else(|| panic!("{code} is lowered")))
}

#[test]
fn uses_of_fields_become_calls() {
    let cases = [
        (
            "void f(struct item *p) { p->stock = 1; }",
            "void f(struct item *p) { pmo_leds_item_1(p)->stock = 1; }",
        ),
        (
            "void f(struct item *p) { p->stock++; --p->more; }",
            "void f(struct item *p) { pmo_leds_item_1(p)->stock++; --pmo_leds_item_2(p)->more; }",
        ),
        (
            "int f(struct item *p) { return p->stock; }",
            "int f(struct item *p) { return pmo_leds_item_get_stock(p); }",
        ),
        (
            "int f(const struct item *p) { return p->stock + p->id; }",
            "int f(const struct item *p) { return pmo_leds_item_get_stock(p) + p->id; }",
        ),
        (
            "int *f(struct item *p) { return &p->stock; }",
            "int *f(struct item *p) { return &pmo_leds_item_1(p)->stock; }",
        ),
        (
            "int f(struct item *p) { return p->at.x; }",
            "int f(struct item *p) { return (__extension__({ struct itemExtension2 pmo_leds_1; pmo_leds_item_2_read(p, &pmo_leds_1)->at.x; })); }",
        ),
        (
            "void f(struct item *p) { p->at.x += 2; p->name[1] = 'a'; }",
            "void f(struct item *p) { pmo_leds_item_2(p)->at.x += 2; pmo_leds_item_1_there(p)->name[1] = 'a'; }",
        ),
        (
            "char f(struct item *p, int i) { return p->name[i]; }",
            "char f(struct item *p, int i) { return (__extension__({ struct itemExtension1 pmo_leds_1; pmo_leds_item_1_read(p, &pmo_leds_1)->name[i]; })); }",
        ),
        (
            "size_t f(struct item *p) { return strlen(p->name); }",
            "size_t f(struct item *p) { return strlen(pmo_leds_item_1_read(p, &(struct itemExtension1){0})->name); }",
        ),
        (
            "void f(struct item *p) { strcpy(p->name, \"a\"); }",
            "void f(struct item *p) { strcpy(pmo_leds_item_1(p)->name, \"a\"); }",
        ),
        (
            "void f(struct item *p) { p->other->other->stock = p->next->stock; }",
            "void f(struct item *p) { pmo_leds_item_1(pmo_leds_item_get_other(pmo_leds_item_get_other(p)))->stock = pmo_leds_item_get_stock(p->next); }",
        ),
        (
            "void f(struct order *o) { o->items[1].stock = o->items[0].stock; }",
            "void f(struct order *o) { pmo_leds_item_1(&(o->items[1]))->stock = pmo_leds_item_get_stock(&(o->items[0])); }",
        ),
        (
            "#define TWICE(x) ((x) + (x))\nint f(struct item *p) { return TWICE(p->stock); }",
            "#define TWICE(x) ((x) + (x))\nint f(struct item *p) { return TWICE(pmo_leds_item_get_stock(p)); }",
        ),
        (
            "unsigned long f(struct item *p) { return sizeof p->stock; }",
            "unsigned long f(struct item *p) { return sizeof pmo_leds_item_1(p)->stock; }",
        ),
        (
            "void f(struct item *p) { p->id = p->next->id; }",
            "void f(struct item *p) { p->id = p->next->id; }",
        ),
        (
            "void f(struct item *p, struct item *q) { *p = *q; }",
            "void f(struct item *p, struct item *q) { PMO_LEDS_COPY(&(*p), &(*q), pmo_type_item(), \"item\"); }",
        ),
        (
            "void f(struct order *p, struct order *q) { *p = *q; pmo_free(q); }",
            "void f(struct order *p, struct order *q) { PMO_LEDS_COPY(&(*p), &(*q), pmo_leds_type_order(), \"order\"); pmo_extended_free(q, 1, pmo_leds_type_order()); }",
        ),
        (
            "void f(struct item *p, struct item *q) { memcpy(p, q, sizeof(struct item)); }",
            "void f(struct item *p, struct item *q) { PMO_LEDS_COPIES(p, q, sizeof(struct item), pmo_type_item()); }",
        ),
        (
            "void f(struct item *p, int at, int n) { memmove(&p[at + 1], &p[at], sizeof(p[0]) * (n - at)); }",
            "void f(struct item *p, int at, int n) { PMO_LEDS_COPIES(&p[at + 1], &p[at], sizeof(p[0]) * (n - at), pmo_type_item()); }",
        ),
        (
            "void f(struct order *p, struct order *q) { memcpy((void *)p, (char *)q, sizeof *p); memcpy(p->items, q->items, sizeof p->items); }",
            "void f(struct order *p, struct order *q) { PMO_LEDS_COPIES((void *)p, (char *)q, sizeof *p, pmo_leds_type_order()); \
             PMO_LEDS_COPIES(p->items, q->items, sizeof p->items, pmo_type_item()); }",
        ),
        (
            "int f(struct item *p) { return PMO_UNEXTEND(p); }",
            "int f(struct item *p) { return pmo_leds_item_none(p); }",
        ),
        (
            "int f(struct item *p, struct item *q) { struct item t = *p; q->id = 4; int s = t.stock; *q = t; return s; }",
            "int f(struct item *p, struct item *q) { struct item t = *p; q->id = 4; int s = pmo_leds_item_get_stock(&(t)); \
             PMO_LEDS_COPY(&(*q), &(t), pmo_type_item(), \"item\"); return s; }",
        ),
        (
            "int f(struct item *p) { struct item t = *p; t.id = 4; return t.stock; }",
            "int f(struct item *p) { struct item t = *p; t.id = 4; return pmo_leds_item_get_stock(&(t)); }",
        ),
        (
            "int f(void) { struct item t, u = {1, 0}, v = {.id = 2}; struct order o; return t.id + u.id + v.id + o.n; }",
            "int f(void) { struct item t = {0}, u = {1, 0, {0}}, v = {.id = 2}; struct order o = {0}; return t.id + u.id + v.id + o.n; }",
        ),
        (
            "struct item *f(void *o) { struct item *p = pmo_malloc(o, sizeof *p); return p; }",
            "struct item *f(void *o) { struct item *p = pmo_calloc(o, 1, sizeof *p); return p; }",
        ),
        (
            "int f(struct item *p) { PMO_EXTENDED(p); return PMO_EXTEND(p->next); }",
            "int f(struct item *p) { pmo_leds_item_all(p); return pmo_leds_item_try(p->next); }",
        ),
        (
            "int f(void) { return (int)PMO_TYPEOF(item)->count; }",
            "int f(void) { return (int)PMO_TYPEOF(item)->count; }",
        ),
    ];
    // In one source; numbers of functions and scratch variables differ.
    let named = |text: &str, number: usize| {
        text.replace(" f(", &format!(" f{number}(")).replace(" *f(", &format!(" *f{number}("))
    };
    let all: Vec<_> = (0..).zip(cases).map(|(number, (code, _))| named(code, number)).collect();
    let Some(found) = lowered(&all.join("\n")) else { return };
    let found: Vec<_> = found.lines().filter(|line| !line.starts_with('#')).collect();
    for ((number, (_, expected)), found) in (0..).zip(cases).zip(found) {
        let expected = expected.lines().last().unwrap_or_default();
        let plain = |text: &str| {
            (1..9).fold(text.to_owned(), |text, n| text.replace(&format!("pmo_leds_{n}"), "pmo_leds_N"))
        };
        assert_eq!(plain(found), plain(&named(expected, number)));
    }
}

#[test]
fn a_lowered_source_is_as_it_was_before() {
    let Some(text) = Ground::new().lower(&with("int f(struct item *p) { return p->stock; }"), &[]) else {
        return;
    };
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../leds/tests/golden/item.c");
    let text = text.expect("it is lowered");
    if std::env::var_os("INDELIBLE_GOLDEN").is_some() {
        std::fs::write(&path, &text).expect("the file");
    }
    assert_eq!(text, std::fs::read_to_string(path).expect("the file"), "INDELIBLE_GOLDEN=1 writes it anew");
}

fn known_behind(language: &str, all: &[&str]) -> Option<Vec<bool>> {
    let function = |(number, before): (usize, &&str)| {
        format!(
            "void f{number}(struct item *p, struct item *q, int i)\n{{\n    (void)q; (void)i;\n    {before}\n    p->stock = 9;\n}}\n"
        )
    };
    let code: String = all.iter().enumerate().map(function).collect();
    let found = lowered_as(language, &format!("void g(struct item *);\n{code}"))?;
    let last = found.lines().filter(|line| line.contains("stock = 9"));
    Some(last.map(|line| line.contains("pmo_leds_item_1_there(p)->stock = 9")).collect())
}

#[test]
fn a_check_is_left_out_behind_one_that_dominates_it() {
    let known = [
        "p->stock = 1;",
        "p->more = 1;",
        "PMO_EXTENDED(p);",
        "p->stock = 1; q->id = 4; i++;",
        "p->name[i] = 1;",
        "int *a = &p->stock; *a = 1;",
        "if (i) p->stock = 1; else p->more = 2;",
        "p->stock = 1; if (i) q->stock = 1;",
        "p->stock = 1; while (i--) q->more++;",
        "p->stock = 1; for (i = 0; i < 3; i++) { if (i == 2) break; }",
        "if ((p->stock = 1) && i) i = 2;",
        "switch (i) { case 1: i = 2; } p->stock = 1;",
        "again: p->stock = 1; if (i--) goto again;",
        "p->stock += p->stock;",
        "{ p->stock++; }",
        "p->stock = i ? 1 : 2;",
    ];
    let unknown = [
        "",
        "i = p->stock;",
        "q->stock = 1;",
        "p->stock = 1; p = q;",
        "p->stock = 1; p++;",
        "p->stock = 1; g(q);",
        "g(p), p->stock = 1;",
        "p->stock = 1; *q = *p;",
        "struct item **r = &p; p->stock = 1; *r = q;",
        "if (i) p->stock = 1;",
        "if (i) p->stock = 1; else q->stock = 1;",
        "if (i) p->stock = 1; else { p->stock = 1; p = q; }",
        "while (i--) p->stock = 1;",
        "for (i = 0; i < 2; i++) p->stock = 1;",
        "do { if (i) break; p->stock = 1; } while (0);",
        "i && (p->stock = 1);",
        "!i && (p->stock = 1);",
        "i || p->stock++;",
        "i = i ? p->stock++ : 1;",
        "i = (int)sizeof(p->stock++);",
        "__typeof__(p->stock) n = 1; i = n;",
        "switch (i) { case 1: p->stock = 1; }",
        "switch (i) { case 1: p->stock = 1; break; default: break; }",
        "p->stock = 1; while (i--) { if (i == 3) p = q; }",
        "p->stock = 1; if (i) p = q;",
        "if (i) goto out; p->stock = 1; out:;",
        "switch (i) { case 0: p->stock = 1; while (i--) { case 1: i--; } }",
        "p->next->stock = 1;",
        "PMO_EXTENDED(q);",
        "i = PMO_EXTEND(p);",
        "p->stock = 1; __asm__ volatile(\"\" : : : \"memory\");",
        "p->stock = 1; i = (p = q) != 0;",
        "_Generic(i, int: i, long: p->stock++);",
        "i = __builtin_choose_expr(1, 2, p->stock++);",
        // The function may free the extension.
        "p->stock = (g(q), 1);",
        "memset(p->name, 0, 2);",
        "p->stock = 1, p = q;",
        "p->stock = 1; p += i;",
        // Reading an array makes nothing.
        "i = (int)strlen(p->name);",
        // A statement within an expression, and within a condition.
        "i = ({ if (i) p->stock = 1; 0; });",
        "p->stock = 1; if ((p = q))",
        // Jumps to labels within a statement skip the one before.
        "if (i > 5) goto in; p->stock = 1; switch (i) { case 1: i = 2; in: i = 3; }",
        "if (i > 5) goto in; p->stock = 1; while (i--) { in: i--; }",
        "if (i > 5) goto in; p->stock = 1; if (i) { in: i--; }",
        "if (i > 5) goto in; p->stock = 1; while (i--) { switch (i) { case 1: in: i--; } }",
    ];
    // Conditions of C++ have declarations; binding a reference is no store.
    let known_in_cpp = ["(p->stock) = 1;", "p->stock = 1; if (int n = i; n) i = 2;"];
    let unknown_in_cpp = [
        "p->stock = 1; if (int n = i; (p = n ? p : q))",
        "int &r = p->stock; r = 2;",
        "const int &r = p->stock; i = r;",
        "const long &r = p->stock; i = (int)r;",
        "if (struct item *r = q) p->stock = 1;",
        "auto h = [&] { p->stock = 1; }; (void)h;",
        "p->stock = 1; auto h = [&] { p = q; }; (void)h;",
    ];
    for (language, all, expected) in [
        (C, &known[..], true),
        (C, &unknown[..], false),
        (CPP, &known_in_cpp[..], true),
        (CPP, &unknown_in_cpp[..], false),
    ] {
        let Some(found) = known_behind(language, all) else { return };
        assert_eq!(found.len(), all.len());
        for (before, found) in all.iter().zip(found) {
            assert_eq!(found, expected, "{before}");
        }
    }
    // A fact holds after a condition if both branches make it; globals are not followed.
    let code =
        "void f(struct item *p, int i) { if (i) p->stock = 1; else p->more = 1; p->more = 2; p->stock = 3; }";
    let expected = "void f(struct item *p, int i) { if (i) pmo_leds_item_1(p)->stock = 1; else pmo_leds_item_2(p)->more = 1; \
                    pmo_leds_item_2(p)->more = 2; pmo_leds_item_1_there(p)->stock = 3; }";
    assert_eq!(lowered(code).as_deref(), Some(expected));
    let code = "struct item *top;\nvoid f(struct item **r) { top->stock = 1; *r = 0; top->stock = 2; }";
    let expected = code.replace("top->stock", "pmo_leds_item_1(top)->stock");
    assert_eq!(lowered(code), Some(expected));
    // A fact that a loop ends is unknown at its beginning; one that it makes is known within it.
    let code =
        "void f(struct item *p) { p->stock = 1; while (p) { p->stock = 2; p->stock = 3; p = p->next; } }";
    let expected = "void f(struct item *p) { pmo_leds_item_1(p)->stock = 1; while (p) { pmo_leds_item_1(p)->stock = 2; \
                    pmo_leds_item_1_there(p)->stock = 3; p = p->next; } }";
    assert_eq!(lowered(code).as_deref(), Some(expected));
    // A case within a loop is entered past the statements before.
    let code = "void f(struct item *p, int i) { switch (i) { case 0: p->stock = 1; while (i--) { case 1: i--; } p->stock = 2; } }";
    let expected = code.replace("p->stock", "pmo_leds_item_1(p)->stock");
    assert_eq!(lowered(code), Some(expected));
}

#[test]
fn arrays_that_are_printed_are_read_and_those_that_are_printed_to_are_stored_to() {
    let head = "int printf(const char *, ...);\nint snprintf(char *, unsigned long, const char *, ...);\n";
    let code =
        "void f(struct item *p) { printf(\"%s\", p->name); snprintf(p->name, 8, \"%s\", p->next->name); }";
    let Some(found) = lowered(&(head.to_owned() + code)) else { return };
    let expected = "void f(struct item *p) { printf(\"%s\", pmo_leds_item_1_read(p, &(struct itemExtension1){0})->name); \
                    snprintf(pmo_leds_item_1(p)->name, 8, \"%s\", pmo_leds_item_1_read(p->next, &(struct itemExtension1){0})->name); }";
    assert_eq!(found.lines().last(), Some(expected));
}

#[test]
fn uses_of_fields_in_cpp_become_calls() {
    let cases = [
        // A constant reference reads; another one needs the place; a temporary has the value.
        (
            "void f(item *p) { constant(p->stock); }",
            "constant(pmo_leds_item_1_passed(p, itemExtension1())->stock);",
        ),
        ("void f(item *p) { stores(p->stock); }", "stores(pmo_leds_item_1(p)->stock);"),
        ("void f(item *p) { temporary(p->stock); }", "temporary(pmo_leds_item_get_stock(p));"),
        ("void f(item *p) { text(p->name); }", "text(pmo_leds_item_1_passed(p, itemExtension1())->name);"),
        (
            "void f(item *p) { const int &r = p->stock; constant(r); }",
            "const int &r = pmo_leds_item_1(p)->stock;",
        ),
        ("void f(item *p) { int &r = p->stock; r = 2; }", "int &r = pmo_leds_item_1(p)->stock;"),
        ("void f(item *p) { whole(*p); }", "{ whole(*p); }"),
        (
            "void f(item *p) { item t = *p; temporary(t.stock); }",
            "item t = *p; temporary(pmo_leds_item_get_stock(&(t)));",
        ),
        ("void f(item *p) { letters(p->name); }", "letters(pmo_leds_item_1(p)->name);"),
        // A lambda's body runs when it is called: its definition's facts do not hold.
        (
            "void f(item *p) { p->stock = 1; auto h = [=] { p->stock = 9; }; h(); }",
            "pmo_leds_item_1(p)->stock = 1; auto h = [=] { pmo_leds_item_1(p)->stock = 9; }; h();",
        ),
    ];
    let named = |code: &str, number: usize| code.replace("void f(", &format!("void f{number}("));
    let all: Vec<_> = (0..).zip(cases).map(|(number, (code, _))| named(code, number)).collect();
    let head = "void constant(const int &);\nvoid stores(int &);\nvoid temporary(const long &);\n\
                void text(const char *);\nvoid letters(char *);\nvoid whole(const item &);\n";
    let Some(found) = lowered_as(CPP, &(head.to_owned() + &all.join("\n"))) else { return };
    let found: Vec<_> = found.lines().filter(|line| line.starts_with("void f")).collect();
    assert_eq!(found.len(), cases.len());
    for ((code, expected), found) in cases.iter().zip(found) {
        assert!(found.contains(expected), "{code}: {found}");
    }
}

#[test]
fn refusals_name_the_place_and_the_reason() {
    let cases = [
        ("int f(struct item t) { return t.id; }", "in.c:11:19: an extendible struct that is passed by value"),
        (
            "struct item f(struct item *p) { return *p; }",
            "a copy of an extendible struct would share its extensions",
        ),
        ("void f(struct item *p) { struct item t = *p; t.stock = 1; }", "allocate the struct in an object"),
        (
            "void g(struct item *);\nvoid f(struct item *p) { struct item t = *p; g(&t); }",
            "its address cannot be taken",
        ),
        (
            "#define STOCK(p) ((p)->stock)\nint f(struct item *p) { return STOCK(p); }",
            "in the body of a macro",
        ),
        ("#define FIRST(a) a[0]\nchar f(struct item *p) { return FIRST(p->name); }", "macro"),
        ("struct item t = {1, 0, 3};", "in.c:11:24: an initial value for a field of an extension"),
        ("struct item t = {.stock = 3};", "it has no offset, and no initial value"),
        ("struct item t[2] = {1, 0, 2, 0};", "write braces around each struct"),
        ("unsigned long f(void) { return offsetof(struct item, stock); }", "it has no offset"),
        (
            "void *f(struct item *p, void *o) { struct item *q = pmo_realloc(o, p, 99); return q; }",
            "take pmo_calloc",
        ),
        ("int f(void) { return g(1) +; }", "in.c:11:"),
        ("int f(struct item *p) { return p->missing; }", "no member named 'missing'"),
        ("void f(int *p) { PMO_EXTENDED(p); }", "a pointer to an extendible struct"),
        ("PMO_TYPE(item, PMO_FIELD(int, id))", "redefinition of 'pmo_type_item'"),
    ];
    expect_refused(&cases);
}

#[test]
fn extendible_structs_are_no_bytes() {
    let cases = [
        (
            "void f(struct item *rows, int at, int n) { memmove(&rows[at + 1], &rows[at], sizeof rows * (n - at)); }",
            "in.c:11:44: memmove takes an extendible struct as bytes, without its extensions (a number of bytes that is no product",
        ),
        (
            "void f(struct item *to, struct item *from) { memcpy(to, from, sizeof(struct item *)); }",
            "memcpy takes an extendible struct as bytes",
        ),
        (
            "void f(struct item *to, struct item *from) { memcpy(to, from, sizeof(struct item) - 8); }",
            "memcpy takes an extendible struct as bytes",
        ),
        (
            "void f(struct order *to, struct item *from) { memcpy(to, from, sizeof(struct item)); }",
            "memcpy takes an extendible struct as bytes",
        ),
        (
            "void f(void *to, void *from) { memcpy(to, from, sizeof(struct item)); }",
            "by a pointer that does not say so",
        ),
        (
            "int f(struct item *p) { struct item t = {0}; memcpy(&t, p, sizeof t); return t.stock; }",
            "memcpy to a variable would share its extensions: assign it",
        ),
        (
            "void *mempcpy(void *, const void *, size_t);\nvoid f(struct item *to, struct item *from) { mempcpy(to, from, sizeof *to); }",
            "mempcpy takes an extendible struct as bytes",
        ),
        (
            "int f(struct item *p, struct item *q) { return memcmp(p, q, sizeof *p); }",
            "memcmp takes an extendible struct as bytes",
        ),
        (
            "struct hooks { void (*release)(void *); } hooks;\nvoid f(struct item *p) { hooks.release(p); }",
            "in.c:12:40: release gets an extendible struct as void *",
        ),
        (
            "void qsort(void *, unsigned long, unsigned long, int (*)(const void *, const void *));\nint by(const void *, const void *);\n\
             void f(struct item *p) { qsort(p, 1, 2 * sizeof *p, by); }",
            "in.c:13:26: qsort takes an extendible struct as bytes",
        ),
        (
            "#include <stdio.h>\nvoid f(struct item *p, FILE *to) { fwrite(p, sizeof *p, 1, to); }",
            "fwrite takes an extendible struct as bytes",
        ),
        (
            "void f(struct item *to, struct item *from) { void *a = to, *b = from; memcpy(a, b, sizeof *to); }",
            "in.c:11:56: a variable gets an extendible struct as void *",
        ),
        (
            "int grow(void **start, unsigned long size);\nint f(struct item **rows, int n) { return grow((void **)rows, n * sizeof(struct item)); }",
            "in.c:12:48: a void ** leads to a pointer to an extendible struct",
        ),
        (
            "#define PUSH(stack) grow((void **)&(stack).rows)\nint grow(void **);\nstruct stack { struct item *rows; };\n\
             int f(struct stack *s) { return PUSH(*s); }",
            "a void ** leads to a pointer to an extendible struct",
        ),
        (
            "struct any { void *data; };\nvoid f(struct any *to, struct item *p) { to->data = p; }",
            "a variable gets an extendible struct as void *",
        ),
    ];
    expect_refused(&cases);
    // A cast passes an address on; so do functions that keep the memory's content.
    for code in [
        "void keep(void *);\nvoid f(struct item *p) { keep((void *)p); }",
        "void keep(void **);\nvoid f(struct item **p, int **q) { keep((void **)(void *)p); keep((void **)q); }",
        "void f(struct item *p) { pmo_psync(p); memset(p, 0, sizeof *p); }",
        "int f(struct item *p, void *q) { return p == q; }",
        "void f(char *a, struct item *p) { memcpy(a, p->name, 8); }",
        "int send(struct item *, int);\nint f(struct item *p) { return send(p, 1); }",
        "void qsort(void *, unsigned long, unsigned long, int (*)(const void *, const void *));\nint by(const void *, const void *);\n\
         void f(struct item *p) { qsort(p, 2, sizeof *p, by); }",
        "struct handle { void *next; };\nextendible struct entry { int key; struct handle hh; };\n\
         void f(struct entry *a, struct entry *b) { struct handle *h = &a->hh; a->hh.next = b; h->next = b; }",
    ] {
        if lowered(code).is_none() {
            return;
        }
    }
}

#[test]
fn a_copy_in_a_variable_is_read_only_while_its_extensions_have_not_changed() {
    // An exchange by a third variable among others.
    let cases = [
        (
            "void f(struct item *p, struct item *q) { struct item t = *p; *p = *q; *q = t; }",
            "in.c:11:76: it is read of a variable that shares",
        ),
        (
            "int f(struct item *p) { struct item t = *p; p->stock = 9; return t.stock; }",
            "stock is read of a variable that shares",
        ),
        (
            "int f(struct item *p) { struct item t; t = *p; pmo_free(p); return t.stock; }",
            "stock is read of a variable",
        ),
        (
            "int f(struct item *p) { int *a = &p->stock; struct item t = *p; *a = 9; return t.stock; }",
            "stock is read of a variable",
        ),
        (
            "int f(struct item *p) { struct where *a = &p->at; struct item t = *p; a->x = 9; return t.at.x; }",
            "at is read of a variable",
        ),
        (
            "int f(struct item *p, int i) { struct item t = *p; while (i--) { i += t.stock; p->more++; } return 0; }",
            "stock is read of a variable",
        ),
        (
            "void g(void);\nint f(struct item *p) { struct item t = *p; g(); struct item u = t; return u.id; }",
            "it is read of a variable",
        ),
    ];
    expect_refused(&cases);
}

#[test]
fn templates_that_copy_extendible_structs_are_refused() {
    let head =
        "#include <vector>\n#include <algorithm>\n#include <map>\n#include <memory>\n#include <utility>\n";
    let cases = [
        (
            "void f(item *p) { std::vector<item> v; v.resize(2); }",
            "std::vector<item> copies and destroys item",
        ),
        (
            "void f(std::vector<item *> &v, item *p) { std::pair<int, item> x(1, *p); v.push_back(&x.second); }",
            "pair",
        ),
        (
            "template <class T> void f(T &v, item *p) { v.push_back(p); }\nvoid g(item *p) { auto x = std::make_pair(1, *p); }",
            "struct pair has extendible structs in it",
        ),
        ("void f(item *p, item *q) { std::copy(p, p + 2, q); }", "copy of C++'s library copies"),
        ("void f(item *p) { std::unique_ptr<item> u(p); }", "std::unique_ptr<item> copies and destroys item"),
    ];
    for (code, why) in cases {
        let Some(result) = Ground::new().lower_as(CPP, &with(&(head.to_owned() + code)), &[]) else { return };
        let problems = result.err().unwrap_or_else(|| panic!("{code} is lowered"));
        assert!(problems.iter().any(|problem| problem.contains(why)), "{code}: {problems:?}");
    }
    let qualified = [
        (
            "namespace n { struct two { item of[2]; }; }",
            "two has extendible structs in it, and lies in a namespace",
        ),
        (
            "template <class T> struct box { T of; };\nint f(box<item> *p) { return p->of.id; }",
            "has extendible structs in it",
        ),
    ];
    for (code, why) in qualified {
        let Some(result) = Ground::new().lower_as(CPP, &with(code), &[]) else { return };
        let problems = result.err().unwrap_or_else(|| panic!("{code} is lowered"));
        assert!(problems.iter().any(|problem| problem.contains(why)), "{code}: {problems:?}");
    }
    let code = "bool by(const item &a, const item &b);\n\
        void f(item *p, std::vector<item *> &v, std::map<int, item *> &m) { v.push_back(p); m[1] = p; m.emplace(2, p);\n\
        std::sort(p, p + 2, by); std::swap(*p, p[1]); std::reverse(p, p + 2); std::sort(v.begin(), v.end());\n\
        auto x = std::make_pair(1, p); (void)x; }";
    lowered_as(CPP, &(head.to_owned() + code));
}

#[test]
fn structs_with_c_linkage_are_lowered() {
    let text = "#include <pmo.h>\nextern \"C\" {\nextendible struct a { int b; EXTENSION(1) { int c; } };\n}\n\
                int f(const a *it) { return it->c; }\n";
    let Some(result) = Ground::new().lower_as(CPP, text, &[]) else { return };
    let lowered = result.expect("a lowered source");
    assert!(lowered.contains("return pmo_leds_a_get_c(it);"), "{lowered}");
}

fn expect_refused(cases: &[(&str, &str)]) {
    for (code, why) in cases {
        let Some(problems) = refused(code) else { return };
        assert!(problems.iter().any(|problem| problem.contains(why)), "{code}: {problems:?}");
        assert!(problems.iter().all(|problem| problem.starts_with("in.c:")), "{code}: {problems:?}");
    }
}

#[test]
fn structs_that_cannot_be_lowered_are_refused() {
    let extension = |fields: &str| format!("#include <pmo.h>\nextendible struct a {{ int b; {fields} }};\n");
    let cases = [
        (extension("EXTENSION(2) { int c; }"), "in.c:2:30: extensions follow each other from 1 on"),
        (extension("EXTENSION(1) { int c; } EXTENSION(1) { int d; }"), "EXTENSION(2) comes here"),
        (extension("EXTENSION(1) { }"), "has no fields"),
        (extension("EXTENSION(1) { int c : 3; }"), "is a bit-field"),
        (extension("EXTENSION(1) { struct { int d; } c; }"), "has struct without a name"),
        (extension("int extensions;"), "call the field otherwise"),
        (extension("EXTENSION(1) { int b; }"), "duplicate member 'b'"),
        (extension("EXTENSION(1) { int c; INIT(struct a *it) { it->d = 1; } } EXTENSION(2) { int d; }"), "reads d of a later one"),
        (extension("EXTENSION(1) { int c; INIT(struct a *it) { it->b = 1; } }"), "in.c:2:77: INIT stores only to fields of its own"),
        (extension("EXTENSION(1) { int c; } EXTENSION(2) { int d; INIT(struct a *it) { it->c = 1; } }"), "INIT stores only to fields of its own"),
        (extension("EXTENSION(1) { int c; INIT(int *it) { *it = 1; } }"), "a struct a *"),
        (extension("EXTENSION(1) { int c; INIT(struct a *it) { it->c = ; } }"), "in.c:2:81: expected expression"),
        ("extendible struct a { int b; };\n".to_owned(), "in.c:1:1: struct a is extendible: include <pmo.h> before it"),
        ("#include <pmo.h>\nextendible struct a { int b; };\nextendible struct c { EXTENSION(1) { struct a d; } };".to_owned(), "an extendible struct in an extension"),
        ("#include <pmo.h>\nvoid f(void) { extendible struct a { int b; }; }".to_owned(), "declared outside of functions"),
        ("#include <pmo.h>\nint f(void) { return 1 }\n".to_owned(), "in.c:2:"),
    ];
    for (text, why) in cases {
        let Some(result) = Ground::new().lower(&text, &[]) else { return };
        let problems = result.err().unwrap_or_else(|| panic!("{text} is lowered"));
        assert!(problems.iter().any(|problem| problem.contains(why)), "{text}: {problems:?}");
    }
}

#[test]
fn the_file_of_layouts_grows_and_nothing_in_it_changes() {
    let ground = Ground::new();
    let path = ground.path("layouts.lock");
    let run = |text: &str, update: bool| {
        let _ = std::fs::remove_file(ground.path("out.c"));
        let more = if update {
            &["--lock", "layouts.lock", "--update-lock"][..]
        } else {
            &["--lock", "layouts.lock"]
        };
        ground.lower(&format!("#include <pmo.h>\n{text}"), more)
    };
    let (one, two) = ("int a; struct item *p;", "EXTENSION(1) { int b[3]; double c; }");
    let item = |parts: &[&str]| format!("extendible struct item {{ {} }};\n", parts.concat());
    let Some(missing) = run(&item(&[one]), false) else { return };
    assert!(missing.unwrap_err()[0].contains("layouts.lock: cannot be read"));
    run(&item(&[one]), true).unwrap().unwrap();
    run(&item(&[one]), false).unwrap().unwrap();
    assert!(
        run(&item(&[one, two]), false).unwrap().unwrap_err()[0]
            .contains("extension 1 of struct item is not in it yet")
    );
    run(&item(&[one, two]), true).unwrap().unwrap();
    run("extendible struct other { long l; };\n", true).unwrap().unwrap();
    let locked = std::fs::read_to_string(&path).unwrap();
    let lines: Vec<_> = locked.lines().skip(1).collect();
    let expected = [
        "item 0: item:24:8 { a@0:4 i32 p@8:8 *mut item extensions@16:8 Extensions }",
        "item 1: itemExtension1:24:8 { b@0:12 [3] i32 c@16:8 f64 }",
        "other 0: other:16:8 { l@0:8 i64 extensions@8:8 Extensions }",
    ];
    assert_eq!(lines, expected);
    for (text, why) in [
        (item(&["struct item *p; int a;", two]), "item.a here, item.p there"),
        (item(&[one]), "extension 1 is missing"),
        (item(&[one, "EXTENSION(1) { int b[4]; double c; }"]), "itemExtension1"),
        (item(&[one, "EXTENSION(1) { int b[3]; float c; }"]), "c"),
        (item(&[one, "EXTENSION(1) { int b[3]; double d; }"]), "d"),
    ] {
        let problems = run(&text, true).unwrap().unwrap_err();
        assert!(
            problems[0].contains("item is not as it was released") && problems[0].contains(why),
            "{problems:?}"
        );
        assert_eq!(std::fs::read_to_string(&path).unwrap(), locked);
    }
    std::fs::write(&path, locked.replace("@8:8 *mut item", "@8:9 *mut item")).unwrap();
    let problems = run(&item(&[one, two]), true).unwrap().unwrap_err();
    assert!(problems[0].contains("layouts.lock"), "{problems:?}");
}
