// Keys, sizes, names, lists, tracking, media, cuts, snapshots, copies and reverts in C++: pools
// POOL.
#include "check.hpp"

#include <algorithm>
#include <cstring>

struct handler;
template <> struct pmo::type_of<pmo::vector<handler>> : pmo::opaque<pmo::vector<handler>> {
    static constexpr const char *text = "handlers";
};

template <class F> static int code(F f)
{
    try {
        f();
    } catch (const pmo::error &error) {
        return error.code();
    }
    return 0;
}

static void keys(pmo::pool &pool)
{
    pmo::heap locked = pool.heap("locked", 1 << 20, 0, "secret");
    locked.root<long>("n") = 1;
    locked.psync();
    locked.detach();
    CHECK(code([&] { pool.attach("locked"); }) == PMO_ERR_WRONG_KEY);
    CHECK(code([&] { pool.heap_read("locked"); }) == PMO_ERR_WRONG_KEY);
    CHECK(code([&] { pool.heap("locked", 1 << 20); }) == PMO_ERR_WRONG_KEY);
    CHECK(pool.heap("locked", 1 << 20, 0, "secret").root<long>("n") == 1);
    pool.heap_read("locked", "secret");
    pmo_create_options options{};
    options.size = 1 << 20;
    options.reach = 1 << 30;
    options.write_key = "w";
    options.write_key_len = 1;
    pmo::heap heap = pool.heap("reach", options);
    CHECK(pool.stat("reach").reach >= 1 << 30 && pool.stat("reach").flags == PMO_STAT_WRITE_KEY);
    heap.psync();
    heap.detach();
    pool.heap_read("reach");
    CHECK(code([&] { pool.resize("reach", 2 << 20); }) == PMO_ERR_WRONG_KEY);
    pool.resize("reach", 2 << 20, "w");
    CHECK(pool.stat("reach").size == 2 << 20);
    CHECK(code([&] { pool.rename("reach", "far"); }) == PMO_ERR_WRONG_KEY);
    pool.rename("reach", "far", "w");
    std::vector<std::string> names;
    for (const auto &stat : pool.list())
        names.push_back(stat.name);
    std::sort(names.begin(), names.end());
    CHECK((names == std::vector<std::string>{"far", "locked"}));
    pool.destroy("far", "w");
    pool.destroy("locked", "secret");
    CHECK(pool.list().empty() && pool.info().objects == 0);
    std::uint64_t length = pool.info().length;
    CHECK(code([&] { pool.grow(length / 2); }) == PMO_ERR_BAD_SIZE && pool.info().length == length);
    pool.grow(length + (8 << 20));
    CHECK(pool.info().length == length + (8 << 20));
}

static void chosen(const std::string &path)
{
    for (auto tracking : {PMO_TRACKING_MPROTECT, PMO_TRACKING_EXPLICIT}) {
        pmo_pool_options options{};
        options.tracking = tracking;
        options.medium = PMO_MEDIUM_FILE;
        pmo::pool pool = pmo::pool::open_or_format(path, 16 << 20, options);
        CHECK(pool.info().medium == PMO_MEDIUM_FILE);
        if (!pool.contains("object"))
            pool.create("object", 4096);
        pmo::object object = pool.attach("object");
        CHECK(object.tracking() == tracking && object.name() == "object");
        auto *bytes = static_cast<volatile char *>(object.data());
        char before = bytes[64];
        bytes[0] = static_cast<char>(tracking);
        bytes[64] = static_cast<char>(tracking);
        object.mark_dirty(object.data(), 1);
        object.psync();
        object.detach();
        pmo::object again = pool.attach_read("object");
        bytes = static_cast<volatile char *>(again.data());
        CHECK(again.tracking() == PMO_TRACKING_AUTO && bytes[0] == static_cast<char>(tracking));
        CHECK(bytes[64] == (tracking == PMO_TRACKING_EXPLICIT ? before : static_cast<char>(tracking)));
    }
    pmo_pool_options options{};
    options.flags = PMO_FORCE;
    options.label = "a label";
    options.window_start = std::uint64_t{0x6a0000000000};
    options.window_len = std::uint64_t{1} << 30;
    pmo::pool pool = pmo::pool::format(path, 16 << 20, options);
    pool.create("object", 4096);
    CHECK(pool.stat("object").address >= options.window_start);
    CHECK(pool.stat("object").address < options.window_start + options.window_len);
    options.flags = PMO_READ_ONLY;
    CHECK(code([&] { pmo::pool::format(path, 16 << 20, options); }) == PMO_ERR_ARGUMENT);
}

static void cuts(pmo::pool &pool)
{
    pmo::heap one = pool.heap("one", 1 << 20), two = pool.heap("two", 1 << 20);
    one.root<long>("n") = 1;
    two.root<long>("n") = 2;
    psync_all_cut(one, two);
    one.root<long>("n") = 3;
    one.detach();
    two.detach();
    CHECK(*pool.heap_read("one").find<long>("n") == 1 && *pool.heap_read("two").find<long>("n") == 2);
}

static void copies(pmo::pool &pool)
{
    struct pmo_stat before = pool.stat("one");
    pool.snapshot("one", "yesterday");
    pool.snapshot_all({{"one", "today"}});
    pool.snapshot_all({{"one", "one today"}, {"two", "two today"}});
    pmo::heap one = pool.heap("one", 1 << 20);
    CHECK(!(before.flags & PMO_STAT_SHARES) && (pool.stat("one").flags & PMO_STAT_SHARES));
    one.root<long>("n") = 4;
    one.psync();
    pool.create_from("yesterday", "trial");
    pmo_create_options options{};
    options.write_key = "w";
    options.write_key_len = 1;
    pool.create_from("one", "locked", {}, options);
    one.detach();
    auto number = [&](const char *name) { return *pool.heap_read(name).find<long>("n"); };
    CHECK(number("yesterday") == 1);
    CHECK(number("locked") == 4);
    CHECK(code([&] { pool.attach("locked"); }) == PMO_ERR_WRONG_KEY);
    pmo::heap trial = pool.heap("trial", 1 << 20);
    trial.root<long>("n") = 5;
    trial.psync();
    trial.detach();
    pmo::heap read = pool.heap_snapshot("trial");
    CHECK(*read.find<long>("n") == 5 && !read.writable() && !read.refresh());
    read.detach();
    CHECK(code([&] { pool.attach_snapshot("none"); }) == PMO_ERR_NOT_FOUND);
    {
        pmo::object trial = pool.attach("trial"), first = pool.attach_snapshot("trial", {}, PMO_ANYWHERE),
                    second = pool.attach_snapshot("trial", {}, PMO_ANYWHERE);
        CHECK(first.data() != second.data() && first.data() != trial.data() && second.data() != trial.data());
        CHECK(std::memcmp(first.data(), second.data(), 1 << 20) == 0);
        CHECK(code([&] { first.refresh(); }) == PMO_ERR_UNSUITABLE);
        CHECK(code([&] { pool.attach_snapshot("trial"); }) == PMO_ERR_ADDRESS_TAKEN);
    }
    CHECK(code([&] { pool.attach_snapshot("locked", "v"); }) == 0); // it takes no key to read
    CHECK(code([&] { pool.snapshot("locked", "s", "v"); }) == PMO_ERR_WRONG_KEY);
    CHECK(code([&] { pool.snapshot_all({{"one", "s"}, {"none", "t"}}); }) == PMO_ERR_NOT_FOUND && !pool.contains("s"));
    CHECK(code([&] { pool.create_from("one", "two"); }) == PMO_ERR_EXISTS);
    CHECK(code([&] { pool.attach_read("one").refresh(); }) == PMO_ERR_ARGUMENT);
    for (const char *name : {"yesterday", "today", "one today", "two today", "trial"})
        pool.destroy(name);
    pool.destroy("locked", "w");
    struct stopped {};
    std::uint64_t calls = 0, last = 0;
    try {
        pool.collect([&](std::uint64_t done, std::uint64_t all) {
            CHECK(done <= all);
            calls++;
            throw stopped{};
        });
        CHECK(false);
    } catch (const stopped &) {
        CHECK(calls == 1);
    }
    CHECK(!(pool.stat("one").flags & PMO_STAT_SHARES) && !(pool.stat("two").flags & PMO_STAT_SHARES));
    pool.snapshot("one", "s");
    CHECK(pool.collect([&](std::uint64_t done, std::uint64_t) { last = done; }).copied == 0 && last == 1);
    pool.destroy("s");
    pool.collect();
    CHECK(!(pool.stat("one").flags & PMO_STAT_SHARES) && number("one") == 4);
}

static void backs(pmo::pool &pool)
{
    pool.snapshot("one", "before");
    pmo::heap one = pool.heap("one", 1 << 20);
    one.root<long>("n") = 9;
    one.psync();
    pmo::difference changed = pool.diff("before", "one");
    CHECK(changed.pages.size() == 1 && changed.pages[0].second == 1 && changed.older_size == changed.newer_size);
    CHECK(code([&] { pool.rollback("one", "before"); }) == PMO_ERR_HELD);
    one.detach();
    pool.rollback("one", "before");
    CHECK(*pool.heap_read("one").find<long>("n") == 4 && pool.diff("before", "one").pages.empty());
    CHECK(code([&] { pool.diff("one", "none"); }) == PMO_ERR_NOT_FOUND);
    for (const char *time : {"2020-01-01T03:00:00Z", "2020-01-01T04:00:00Z"})
        pool.snapshot("one", (std::string("one@") + time).c_str());
    CHECK((pool.thin("one", "24h:1h") == std::vector<std::string>{"one@2020-01-01T03:00:00Z"}));
    CHECK(code([&] { pool.thin("one", "often"); }) == PMO_ERR_ARGUMENT);
    pool.destroy("one@2020-01-01T04:00:00Z");
    pool.destroy("before");
    pool.tie("two", "one");
    CHECK(pool.ties("two").size() == 1 && std::string(pool.ties("two")[0].name) == "one" && pool.ties("one").empty());
    CHECK(code([&] { pool.tie("one", "two"); }) == PMO_ERR_TIE_CYCLE);
    CHECK(pool.untie("two", "one") && !pool.untie("two", "one"));
    pmo::object two = pool.attach_read("two");
    pool.delete_object("two");
    CHECK(!pool.contains("two") && two.size() == 1 << 20 && code([&] { pool.delete_object("two"); }) == PMO_ERR_NOT_FOUND);
}

static void reverts(pmo::pool &pool)
{
    pmo::heap heap = pool.heap("reverted", 1 << 20, PMO_HEAP_GROW);
    auto &words = heap.root<pmo::vector<pmo::string>>("words");
    words.emplace_back("a text that is so long that it has a block of its own");
    heap.psync();
    std::uint64_t blocks = heap.stats().blocks;
    words[0] = "another text that is so long that it has a block of its own";
    for (int i = 0; i < 1000; i++)
        words.emplace_back("a text of a step that fails, and is given up altogether");
    heap.root<long>("new") = 1;
    CHECK(code([&] { heap.root<long>("words"); }) == PMO_ERR_ROOT_TYPE);
    heap.revert();
    CHECK(heap.find<long>("new") == nullptr && heap.stats().blocks == blocks && heap.check().empty());
    auto &again = heap.root<pmo::vector<pmo::string>>("words");
    CHECK(again.size() == 1 && again[0] == "a text that is so long that it has a block of its own");
    again.emplace_back("two");
    heap.psync();
    heap.revert();
    heap.detach();
    CHECK(pool.heap_read("reverted").find<pmo::vector<pmo::string>>("words")->size() == 2);
    pmo::object bytes = pool.attach("two");
    auto *first = static_cast<char *>(bytes.data());
    char before = first[1000];
    first[1000] = static_cast<char>(before + 1);
    bytes.revert();
    CHECK(first[1000] == before);
    bytes.detach();
    CHECK(code([&] { bytes.revert(); }) == PMO_ERR_NOT_ATTACHED);
    pool.destroy("reverted");
}

struct handler {
    int number;
    int (*call)(int);
};

static void audits(pmo::pool &pool)
{
    pmo::heap heap = pool.heap("audited", 1 << 20, PMO_AUDIT | PMO_HEAP_GROW);
    auto &handlers = heap.root<pmo::vector<handler>>("handlers");
    handlers.push_back({1, nullptr});
    heap.psync();
    CHECK(heap.audit().empty());
    handlers.push_back({2, +[](int i) { return i; }});
    CHECK(code([&] { heap.psync(); }) == PMO_ERR_STRAY_POINTER);
    std::vector<std::string> found = heap.audit();
    CHECK(found.size() == 1 && found[0].find("leads into the program") != std::string::npos);
    handlers[1].call = nullptr;
    heap.psync();
}

static void other_addresses(pmo::pool &pool, const std::string &path)
{
    pmo::pool other = pmo::pool::format(path, 16 << 20);
    pool.create("raw", 8192);
    pmo::object raw = pool.attach("raw");
    std::strcpy(static_cast<char *>(raw.data()), "bytes");
    raw.psync();
    CHECK(code([&] { pool.copy_to("raw", pool, "beside", true); }) == PMO_ERR_UNSUITABLE);
    CHECK(code([&] { pool.set_position_independent("raw"); }) == PMO_ERR_HELD);
    raw.detach();
    pool.set_position_independent("raw");
    raw = pool.attach("raw");
    pool.copy_to("raw", pool, "beside", true);
    pool.copy_to("raw", other, "there");
    pool.move_to("beside", other, true);
    pmo::object beside = other.attach_read("beside");
    CHECK(beside.data() != raw.data() && !std::strcmp(static_cast<const char *>(beside.data()), "bytes"));
    CHECK(code([&] { pool.stat("beside"); }) == PMO_ERR_NOT_FOUND);
    CHECK(other.stat("there").address == pool.stat("raw").address);
    raw.detach();
    pool.set_position_independent("raw", false);
    CHECK((pool.stat("raw").flags & PMO_STAT_POSITION_INDEPENDENT) == 0);
    pool.destroy("raw");
}

int main(int, char **argv)
{
    std::string path = argv[1];
    pmo::pool pool = pmo::pool::open_or_format(path, 64 << 20);
    keys(pool);
    cuts(pool);
    copies(pool);
    reverts(pool);
    backs(pool);
    audits(pool);
    chosen(path + ".chosen");
    other_addresses(pool, path + ".other");
    std::cout << "done\n";
}
