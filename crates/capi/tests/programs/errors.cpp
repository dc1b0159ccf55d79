// Bad input from C++: errors.cpp POOL; what ends the program: errors.cpp POOL WHICH.
#include "check.hpp"

#include <cstring>

struct point {
    double x, y;
};
PMO_DESCRIBE(point, PMO_MEMBER(x), PMO_MEMBER(y))

namespace other {
struct point {
    double x, y, z;
};
} // namespace other
template <> struct pmo::type_of<other::point> {
    static std::string name() { return "point"; }
    static const pmo_type *get()
    {
        using pmo_self = other::point;
        static const pmo::detail::made_type made(PMO_STRUCT, "point", sizeof(pmo_self), alignof(pmo_self), {PMO_MEMBER(x), PMO_MEMBER(y), PMO_MEMBER(z)});
        return made.get();
    }
};

struct throwing {
    throwing() { throw 7; }
};
PMO_DESCRIBE(throwing, )

struct twice {
    int i, j;
};
PMO_DESCRIBE(twice, PMO_MEMBER(j), PMO_MEMBER(i), PMO_MEMBER(j))

template <class F> void fails(int line, int code, const char *words, F f)
{
    try {
        f();
    } catch (const pmo::error &error) {
        if (error.code() == code && std::strstr(error.what(), words))
            return;
        std::cerr << line << ": " << error.code() << ": " << error.what() << "\n";
        std::exit(1);
    }
    std::cerr << line << ": no error\n";
    std::exit(1);
}
#define FAILS(code, words, ...) fails(__LINE__, code, words, [&] { __VA_ARGS__; })

static void ends(pmo::pool &pool, const std::string &which)
{
    pmo::heap heap = pool.heap(which.c_str(), 1 << 20);
    auto &list = heap.root<pmo::list<int>>("list");
    list.push_back(1);
    heap.psync();
    auto in = heap.get_allocator<int>();
    int *block = in.allocate(4);
    if (which == "double free") {
        in.deallocate(block, 4);
        in.deallocate(block, 4);
    } else if (which == "foreign pointer") {
        in.deallocate(new int[4], 4);
    } else if (which == "use after detach") {
        heap.detach();
        list.push_back(2);
    } else if (which == "store while reading") {
        heap.detach();
        pmo::heap reading = pool.heap_read(which.c_str());
        reading.find<pmo::list<int>>("list")->front() = 2;
    }
}

int main(int argc, char **argv)
try {
    pmo::pool pool = pmo::pool::open_or_format(argv[1], 64 << 20);
    if (argc > 2) {
        ends(pool, argv[2]);
        return 0;
    }
    FAILS(PMO_ERR_NO_POOL, "/nowhere", pmo::pool("/nowhere"));
    FAILS(PMO_ERR_NOT_FOUND, "\"none\"", pool.attach("none"));
    FAILS(PMO_ERR_NOT_ATTACHED, "0x0", pmo::allocator<int>(nullptr));
    FAILS(PMO_ERR_NOT_FOUND, "\"none\"", pool.stat("none"));
    CHECK(!pool.contains("none"));
    {
        pmo::heap heap = pool.heap("heap", 1 << 20);
        FAILS(PMO_ERR_HELD, "\"heap\"", pool.attach("heap"));
        auto &numbers = heap.root<pmo::vector<long>>("numbers");
        // heap full, overflowed size: the container is as it was
        FAILS(PMO_ERR_HEAP_FULL, "no room", while (true) numbers.push_back(static_cast<long>(numbers.size())));
        std::size_t size = numbers.size();
        FAILS(PMO_ERR_HEAP_FULL, "no room", numbers.resize(1 << 20));
        FAILS(PMO_ERR_BAD_SIZE, "", heap.get_allocator<char>().allocate(static_cast<std::size_t>(-1)));
        try {
            heap.get_allocator<long>().allocate(static_cast<std::size_t>(-1) / 2);
            CHECK(false);
        } catch (const std::bad_array_new_length &) {
        }
        CHECK(numbers.size() == size && numbers.back() == static_cast<long>(size) - 1);
        numbers.clear();
        numbers.shrink_to_fit();
        // roots
        CHECK(heap.find<point>("point") == nullptr && !heap.remove<point>("point"));
        FAILS(PMO_ERR_ROOT_TYPE, "another type", heap.find<point>("numbers"));
        FAILS(PMO_ERR_ROOT_TYPE, "int64 here, int32 there", heap.find<pmo::vector<int>>("numbers"));
        heap.root<point>("point").x = 1;
        FAILS(PMO_ERR_ROOT_TYPE, "another layout", heap.root<other::point>("point"));
        FAILS(PMO_ERR_ROOT_TYPE, "z: double at 16, size 8", heap.root<other::point>("point"));
        // what throws while it is made leaves nothing
        std::uint64_t blocks = heap.stats().blocks;
        try {
            heap.root<throwing>("throwing");
            CHECK(false);
        } catch (int) {
        }
        FAILS(PMO_ERR_BAD_NAME, "", heap.root<point>(std::string(300, 'x').c_str()));
        CHECK(heap.stats().blocks == blocks && heap.check().empty());
        FAILS(PMO_ERR_ARGUMENT, "field j of twice, which has 8 bytes, overlaps", heap.root<twice>("twice"));
        CHECK(heap.stats().blocks == blocks);
        // the value of a root is destroyed with the root alone
        blocks = heap.stats().blocks;
        heap.root<point>("kept").x = 7;
        heap.root<pmo::vector<long>>("longs") = {1, 2, 3};
        FAILS(PMO_ERR_ROOT_EXISTS, "that of root \"kept\"", heap.destroy(heap.find<point>("kept")));
        FAILS(PMO_ERR_ROOT_EXISTS, "pmo_root_remove", heap.destroy(heap.find<pmo::vector<long>>("longs")));
        CHECK(heap.find<point>("kept")->x == 7 && heap.find<pmo::vector<long>>("longs")->size() == 3);
        CHECK(pmo_can_free(heap.find<point>("kept")) == -1 && pmo_errno() == PMO_ERR_ROOT_EXISTS);
        CHECK(heap.remove<point>("kept") && heap.remove<pmo::vector<long>>("longs") && heap.check().empty());
        CHECK(heap.stats().blocks == blocks);
        FAILS(PMO_ERR_DOUBLE_FREE, "free already", [&] { point *twice = heap.make<point>(); heap.destroy(twice); heap.destroy(twice); }());
        // between objects, elements move
        pmo::heap second = pool.heap("second", 1 << 20);
        auto &here = heap.root<pmo::vector<pmo::string>>("strings"), &there = second.root<pmo::vector<pmo::string>>("strings");
        here.emplace_back("a string that does not fit into itself, to be sure");
        there = std::move(here);
        CHECK(there.get_allocator().base() == second.data() && there[0].get_allocator().base() == second.data());
        there = {};
        CHECK(heap.get_allocator<int>() == heap.get_allocator<char>() && heap.get_allocator<int>() != second.get_allocator<int>());
        psync_all(heap, second);
    }
    {
        pmo::heap reading = pool.heap_read("heap");
        auto *list = reading.find<pmo::vector<long>>("numbers");
        CHECK(list && list->empty() && !reading.writable());
        FAILS(PMO_ERR_READ_ONLY, "attached for reading", list->reserve(10));
        FAILS(PMO_ERR_READ_ONLY, "attached for reading", reading.root<point>("more"));
    }
    {
        pmo::object object = pool.attach("second");
        static_cast<std::uint32_t *>(object.data())[2] = 999;
        object.psync();
        FAILS(PMO_ERR_VERSION, "newer", pmo::heap(std::move(object)));
    }
    pool.destroy("second");
    std::cout << "done\n";
    return 0;
} catch (const pmo::error &error) {
    std::cerr << "uncaught: " << error.code() << ": " << error.what() << "\n";
    return 1;
}
