use super::ground::{CPP, dies, folder, have, succeed, text};
use std::path::{Path, PathBuf};
use std::process::Command;

fn code(before: &str, body: &str) -> String {
    format!(
        "#include <pmo.hpp>\n#include <csignal>\n#include <iostream>\n{before}\nint main(int argc, char **argv)\ntry {{\n\
         pmo::pool pool = pmo::pool::open_or_format(argv[1], 16 << 20);\npmo::heap heap = pool.heap(\"o\", 1 << 20);\n\
         (void)argc;\n{body}\nheap.psync();\n}} catch (const pmo::error &error) {{\n\
         std::cout << error.code() << \" \" << error.what() << \"\\n\";\n}}\n"
    )
}

#[track_caller]
fn built(folder: &Path, name: &str, before: &str, body: &str) -> PathBuf {
    let (source, binary) = (folder.join(format!("{name}.cpp")), folder.join(name));
    std::fs::write(&source, code(before, body)).expect("a file");
    CPP.build(&source, &binary);
    binary
}

fn says(binary: &Path, pool: &str) -> String {
    succeed(Command::new(binary).arg(binary.with_file_name(pool)))
}

#[track_caller]
fn refused(folder: &Path, before: &str, body: &str, words: &str) {
    let said = CPP.refuses(&code(before, body), folder);
    assert!(said.as_ref().is_some_and(|said| said.contains(words)), "{before}\n{body}: {said:?}");
}

#[test]
fn orders_and_hashes_that_mean_nothing_in_the_next_run_do_not_compile() {
    if !have("c++") {
        return;
    }
    let folder = folder();
    let struct_with = "order and hash of a container are structs with an operator()";
    for root in [
        "std::map<int, int, bool (*)(int, int), pmo::allocator<std::pair<const int, int>>>",
        "pmo::set<int, std::function<bool(int, int)>>",
        "pmo::unordered_map<int, int, std::size_t (*)(int)>",
        "pmo::unordered_set<int, std::hash<int>, bool (*)(int, int)>",
        "pmo::priority_queue<int, pmo::vector<int>, bool (*)(int, int)>",
        "pmo::vector<pmo::multimap<int, int, bool (*)(int, int)>>",
    ] {
        refused(folder.path(), "", &format!("heap.root<{root}>(\"r\");"), struct_with);
    }
    let element = "pmo::list<pmo::set<int, bool (*)(int, int)>> l(heap.get_allocator()); l.emplace_back();";
    refused(folder.path(), "", element, struct_with);
    let deleted = "heap.find<std::unique_ptr<int, void (*)(int *)>>(\"r\");";
    refused(folder.path(), "", deleted, "a function is elsewhere");
    let stateful =
        "struct by { bool up; bool operator()(int a, int b) const { return up ? a < b : b < a; } };";
    refused(folder.path(), stateful, "heap.root<pmo::set<int, by>>(\"r\", by{true});", "PMO_DESCRIBE(type");
}

#[test]
fn an_order_with_members_is_a_part_of_a_container_s_type() {
    if !have("c++") {
        return;
    }
    let folder = folder();
    let version = |members: &str, order: &str| {
        format!(
            "struct by {{ {members} bool operator()(int a, int b) const {{ return up ? a < b : b < a; }} }};\n\
             PMO_DESCRIBE(by, {order})\n"
        )
    };
    let body = "auto &all = heap.root<pmo::set<int, by>>(\"r\", by{true});\n\
                all.insert(1);\nall.insert(2);\nstd::cout << all.size() << *all.begin() << \"\\n\";";
    let first = built(folder.path(), "first", &version("bool up;", "PMO_MEMBER(up)"), body);
    for _ in 0..2 {
        assert_eq!(says(&first, "pool.pmo"), "21\n");
    }
    let wider = built(folder.path(), "wider", &version("int up;", "PMO_MEMBER(up)"), body);
    let said = says(&wider, "pool.pmo");
    assert!(said.contains("another layout") || said.contains("another type"), "{said}");
}

const ORDERS: &str = "\
struct down { bool operator()(int a, int b) const { return b < a; } };
struct tail { std::size_t operator()(int a) const { return a & 7; } };
struct listed { bool operator()(int a, int b) const { return b < a; } };
PMO_DESCRIBE(listed, )
struct before { bool operator()(int a, int b) const { return b < a; } };
template <> inline constexpr bool pmo::is_unnamed<before> = true;
namespace shop { template <class T> struct by { bool operator()(T a, T b) const { return b < a; } }; }
namespace { struct own { bool operator()(int a, int b) const { return b < a; } }; }
";

#[test]
fn names_of_orders_and_hashes_are_part_of_types_unless_they_are_the_usual_ones() {
    if !have("c++") {
        return;
    }
    let folder = folder();
    let types = [
        ("set<int>", "set<int32>"),
        ("set<int, std::less<int>>", "set<int32>"),
        ("set<int, std::less<>>", "set<int32>"),
        ("unordered_map<pmo::string, int>", "unordered_map<libstdc++11 string, int32>"),
        ("unordered_map<pmo::string, int, pmo::string_hash>", "unordered_map<libstdc++11 string, int32>"),
        ("set<int, before>", "set<int32>"),
        ("set<int, std::greater<>>", "set<int32, greater>"),
        ("map<int, int, std::greater<int>>", "map<int32, int32, greater>"),
        ("set<int, down>", "set<int32, down>"),
        ("set<int, listed>", "set<int32, listed>"),
        ("set<int, shop::by<int>>", "set<int32, shop::by<int>>"),
        ("set<int, own>", "set<int32, (anonymous namespace)::own>"),
        ("unordered_map<int, int, tail>", "unordered_map<int32, int32, tail>"),
        (
            "priority_queue<int, pmo::vector<int>, std::greater<>>",
            "priority_queue<libstdc++11 vector<int32>, greater>",
        ),
    ];
    let (mut body, mut expected) = (String::new(), String::new());
    for (number, (container, name)) in types.iter().enumerate() {
        body += &format!(
            "std::cout << pmo::type_of<pmo::{container}>::name() << \"\\n\";\n\
             heap.root<pmo::{container}>(\"root{number}\");\n"
        );
        expected += &format!("libstdc++11 {name}\n");
    }
    let named = built(folder.path(), "named", ORDERS, &body);
    assert_eq!(says(&named, "pool.pmo"), expected);
    assert_eq!(says(&named, "pool.pmo"), expected, "the roots open again");
    let lambda = "auto by = [](int a, int b) { return b < a; };\n\
                  heap.root<pmo::set<int, decltype(by)>>(\"r\", by);";
    refused(folder.path(), "", lambda, "a lambda has no name that lasts");
}

#[test]
fn another_order_or_hash_than_a_container_s_is_an_error() {
    if !have("c++") {
        return;
    }
    let folder = folder();
    for (name, first, second) in [
        ("map", "map<int, int>", "map<int, int, std::greater<>>"),
        ("own", "map<int, int, std::greater<>>", "map<int, int, down>"),
        ("hash", "unordered_map<int, int>", "unordered_map<int, int, tail>"),
        ("back", "map<int, int, down>", "map<int, int, std::less<>>"),
    ] {
        let body = |container: &str| {
            format!(
                "auto &m = heap.root<pmo::{container}>(\"r\");\n\
                 if (m.empty()) for (int i = 0; i < 100; i++) m[i] = i;\nint found = 0;\n\
                 for (int i = 0; i < 100; i++) found += m.count(i);\nstd::cout << found << \"\\n\";"
            )
        };
        let first = built(folder.path(), &format!("{name}1"), ORDERS, &body(first));
        let second = built(folder.path(), &format!("{name}2"), ORDERS, &body(second));
        let pool = format!("{name}.pmo");
        assert_eq!(says(&first, &pool), "100\n", "{name}");
        let said = says(&second, &pool);
        assert!(said.contains("another layout") || said.contains("another type"), "{name}: {said}");
        assert_eq!(says(&first, &pool), "100\n", "{name}: a refusal changes nothing");
    }
}

#[test]
fn structs_may_have_names_of_the_library() {
    if !have("c++") {
        return;
    }
    let folder = folder();
    let (mut before, mut body) = (String::new(), String::new());
    for name in [
        "list",
        "map",
        "set",
        "string",
        "vector",
        "pool",
        "heap",
        "object",
        "tx",
        "queue",
        "error",
        "far",
        "less",
        "allocator",
        "type_of",
        "opaque",
        "detail",
        "mutex",
        "convert",
        "current",
    ] {
        before += &format!(
            "struct {name} {{ int i; {name} *next; }};\nPMO_DESCRIBE({name}, PMO_MEMBER(i), PMO_MEMBER(next))\n\
             namespace of_templates {{ template <class T> struct {name} {{ T i; }}; }}\n"
        );
        body += &format!("heap.root<::{name}>(\"{name}\").i = 1;\n");
    }
    before += "template <class T> struct stack { T top; };\n\
               PMO_DESCRIBE_TEMPLATE((class T), stack, (T), PMO_MEMBER(top))\n";
    body += "heap.root<::stack<int>>(\"stack\").top++;\nstd::cout << heap.root<::stack<int>>(\"stack\").top << \"\\n\";";
    let named = built(folder.path(), "named", &before, &body);
    assert_eq!(says(&named, "pool.pmo"), "1\n");
    assert_eq!(says(&named, "pool.pmo"), "2\n");
}

#[test]
fn mistakes_are_answered_with_what_to_write() {
    if !have("c++") {
        return;
    }
    let folder = folder();
    let garden = "struct garden { pmo::string name; pmo::vector<int> plants; };\n\
                  PMO_DESCRIBE(garden, PMO_MEMBER(name), PMO_MEMBER(plants))\n";
    let without = "struct garden { using allocator_type = pmo::allocator<char>; int i; };\nPMO_DESCRIBE(garden, PMO_MEMBER(i))\n";
    for (before, body, words) in [
        ("", "heap.root<pmo::map<pmo::string, int>>(\"m\")[\"today\"]++;", "heap.text(\"key\") makes a key"),
        ("", "pmo::vector<int> all;", "heap.get_allocator() is for other containers"),
        ("", "pmo::unordered_map<int, int> all;", "heap.get_allocator() is for other containers"),
        (garden, "heap.root<garden>(\"g\");", "has a constructor that takes one"),
        (garden, "heap.root<pmo::vector<garden>>(\"g\").emplace_back();", "has a constructor that takes one"),
        (without, "heap.root<garden>(\"g\");", "give it a constructor whose last argument is"),
        ("struct lot { int i; };", "heap.root<lot>(\"l\");", "PMO_DESCRIBE(type, PMO_MEMBER(member)...)"),
        ("", "heap.root<std::pmr::vector<int>>(\"v\");", "give the container a pmo::allocator"),
    ] {
        refused(folder.path(), before, body, words);
    }
    let other = "namespace other { template <class T, class A> struct bag : std::vector<T, A> {}; }";
    let body = "heap.root<other::bag<int, pmo::allocator<int>>>(\"b\");";
    refused(folder.path(), other, body, "template <> struct pmo::type_of<C> : pmo::opaque<C, T>");
    let boost = "#include <boost/container/vector.hpp>";
    if CPP.refuses(&format!("{boost}\nint main() {{}}\n"), folder.path()).is_none() {
        let root = "heap.root<boost::container::vector<int>>(\"v\");";
        refused(folder.path(), boost, root, "give the container a pmo::allocator");
    } else {
        indelible_testing::not_tested("a container of Boost as a root: Debian has it in libboost-dev");
    }
}

const NODES: [&str; 2] = [
    "struct node { long id; double price; node *next; };\n\
     PMO_DESCRIBE(node, PMO_MEMBER(id), PMO_MEMBER(price), PMO_MEMBER(next))\n",
    "struct node { double price; long id; node *next; };\n\
     PMO_DESCRIBE(node, PMO_MEMBER(price), PMO_MEMBER(id), PMO_MEMBER(next))\n",
];
const LIST: &str = "struct list { node *first; };\nPMO_DESCRIBE(list, PMO_MEMBER(first))\n";

#[test]
fn a_layout_that_changed_behind_a_pointer_is_refused_or_converted() {
    if !have("c++") {
        return;
    }
    let folder = folder();
    let body = "auto &l = heap.root<::list>(\"l\");\n\
                if (!l.first) { l.first = heap.make<node>(); l.first->id = 42; l.first->price = 9.5; }\n\
                std::cout << l.first->id << \" \" << l.first->price << \"\\n\";";
    let versions: Vec<_> = NODES
        .iter()
        .enumerate()
        .map(|(number, node)| built(folder.path(), &format!("v{number}"), &format!("{node}{LIST}"), body))
        .collect();
    assert_eq!(says(&versions[0], "pool.pmo"), "42 9.5\n");
    let said = says(&versions[1], "pool.pmo");
    assert!(said.contains("another layout behind a pointer; first"), "{said}");
    assert!(said.contains("list.first.id here, list.first.price there"), "{said}");
    assert_eq!(says(&versions[0], "pool.pmo"), "42 9.5\n", "a refusal changes nothing");
    let silent = "struct node { long id; double price; node *next; };\n";
    let silent = built(folder.path(), "silent", &format!("{silent}{LIST}"), body);
    assert_eq!(says(&silent, "pool.pmo"), "42 9.5\n");
    let before = format!(
        "namespace v1 {{ struct node {{ long id; double price; node *next; }}; struct list {{ node *first; }}; }}\n\
         PMO_DESCRIBE_WAS(v1::node, \"node\", PMO_MEMBER(id), PMO_MEMBER(price), PMO_MEMBER(next))\n\
         PMO_DESCRIBE_WAS(v1::list, \"list\", PMO_MEMBER(first))\n{}{LIST}",
        NODES[1]
    );
    let convert = "auto &l = heap.root_from<::list>(\"l\", pmo::convert<v1::list, ::list>([](const v1::list &old, pmo::heap &in) {\n\
                   auto *made = in.make<node>();\nmade->id = old.first->id + 1;\nmade->price = old.first->price;\n\
                   return ::list{made};\n}));\nstd::cout << l.first->id << \" \" << l.first->price << \"\\n\";";
    let converting = built(folder.path(), "converting", &before, convert);
    for _ in 0..2 {
        assert_eq!(says(&converting, "pool.pmo"), "43 9.5\n", "once");
    }
    assert_eq!(says(&versions[1], "pool.pmo"), "43 9.5\n");
}

const COUNTER: &str = "#include <thread>\nstruct counter { pmo::mutex lock; long count; };\n\
                       PMO_DESCRIBE(counter, PMO_MEMBER(lock), PMO_MEMBER(count))\n";

#[test]
fn a_mutex_that_was_locked_at_a_psync_is_free_after_a_kill() {
    if !have("c++") {
        return;
    }
    let folder = folder();
    for (ty, words) in [
        ("std::mutex", "take pmo::mutex"),
        ("std::shared_mutex", "take pmo::mutex"),
        ("pthread_mutex_t", "take pmo::mutex"),
        ("std::condition_variable", "keep them outside of the object"),
    ] {
        let described = format!("struct waits {{ {ty} at; }};\nPMO_DESCRIBE(waits, PMO_MEMBER(at))\n");
        refused(folder.path(), &described, "", words);
    }
    let body = "auto &c = heap.root<counter>(\"c\");\nstd::vector<std::thread> all;\n\
                for (int t = 0; t < 4; t++) all.emplace_back([&] {\n\
                for (int i = 0; i < 2000; i++) { std::lock_guard<pmo::mutex> hold(c.lock); c.count++; } });\n\
                for (auto &thread : all) thread.join();\nc.lock.lock();\n\
                std::cout << c.count << \" \" << c.lock.try_lock() << std::endl;\nheap.psync();\nstd::raise(SIGKILL);";
    let binary = built(folder.path(), "counter", COUNTER, body);
    for count in [8000, 16000, 24000] {
        let output = Command::new(&binary).arg(folder.path().join("pool.pmo")).output().expect("it runs");
        assert_eq!(text(&output.stdout), format!("{count} 0\n"), "{}", text(&output.stderr));
        assert!(!output.status.success(), "it was killed");
    }
}

#[test]
fn accesses_that_a_program_dies_of_are_explained() {
    if !have("c++") {
        return;
    }
    let folder = folder();
    let reading = "heap.psync();\nheap.root<long>(\"n\") = 1;\nheap.psync();\nlong *at = nullptr;\n\
                   { pmo::heap gone(std::move(heap)); at = gone.find<long>(\"n\"); }\n";
    for (name, access, about) in [
        ("detached", "std::cout << *at;", ["a load from 0x", "which was detached"]),
        ("stored", "*at = 1;", ["a store to 0x", "which was detached"]),
        (
            "reading",
            "pmo::heap again = pool.heap_read(\"o\");\n*at = 1;",
            ["a store to 0x", "attached for reading"],
        ),
    ] {
        let binary = built(folder.path(), name, "", &format!("{reading}{access}\nreturn 0;"));
        let mut command = Command::new(&binary);
        command.arg(folder.path().join(format!("{name}.pmo")));
        assert_eq!(dies(&mut command), 11, "{name}");
        let output = command.env("PMO_EXPLAIN_FAULTS", "1").output().expect("it runs");
        let said = text(&output.stderr);
        assert!(
            about.iter().all(|about| said.contains(about)) && said.contains("of object \"o\""),
            "{name}: {said}"
        );
    }
}

#[test]
fn errors_say_when_it_is_this_process_or_this_pool() {
    if !have("c++") {
        return;
    }
    let folder = folder();
    let twice = built(folder.path(), "twice", "", "heap.psync();\npool.heap(\"o\", 1 << 20);");
    let said = says(&twice, "pool.pmo");
    assert!(said.contains("held by this process") && said.contains("(detach it first"), "{said}");
    let body = "heap.psync();\n{ pmo::heap gone(std::move(heap)); }\npmo::pool only(argv[1], PMO_READ_ONLY);\n\
                only.heap(\"new\", 1 << 20);";
    let reading = built(folder.path(), "reading", "", body);
    let said = says(&reading, "reading.pmo");
    assert!(
        said.contains("open the pool for writing") && !said.contains("open the pool read-only"),
        "{said}"
    );
}
