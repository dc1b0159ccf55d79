// Containers of the standard library in blocks, in a heap that finds no room: tm-full.cpp POOL;
// tm-full.cpp POOL die, which is killed; tm-full.cpp POOL look. With ON_DEMAND in the environment
// their object is on demand, and with WALL its address range ends early; else the pool is full.
#include "check.h"
#include <pmo/tm.hpp>

#include <cstdlib>
#include <map>
#include <vector>

namespace {

struct kept {
    using numbers = std::vector<long, pmo::tm::allocator<long>>;
    using pairs = std::map<long, long, std::less<long>, pmo::tm::allocator<std::pair<const long, long>>>;

    explicit kept(void *object) : vector(pmo::tm::allocator<long>(object)), map(std::less<long>(), pmo::tm::allocator<long>(object)) {}

    numbers vector;
    pairs map;
    long steps = 0, refused = 0, dropped = 0;
};

const pmo_type TYPE = {"kept", sizeof(kept *), nullptr, 0, PMO_OPAQUE, 0};

void *heap;

kept *root()
{
    kept **root, *found;
    __transaction_atomic { root = static_cast<kept **>(pmo_tm_root(heap, "kept", &TYPE)); }
    CHECK(root != nullptr);
    __transaction_relaxed
    {
        if (*root == nullptr)
            *root = new (pmo_tm_alloc(heap, sizeof(kept))) kept(heap);
        found = *root;
    }
    return found;
}

// Adds a value. An error leaves the block, whose earlier changes stay. False: no room.
bool leaves(kept *in, long n)
{
    try {
        __transaction_relaxed
        {
            in->steps++;
            in->refused++;
            // A block's changes must fit into the log, which cannot grow either.
            if (in->vector.size() == 2048) {
                in->dropped += 2048;
                in->vector = kept::numbers(in->vector.get_allocator());
            }
            in->vector.push_back(n);
            in->refused--;
        }
    } catch (const std::bad_alloc &) {
        return false;
    }
    return true;
}

bool stays(kept *in, long n)
{
    bool done = true;
    __transaction_relaxed
    {
        in->steps++;
        try {
            in->map.emplace(n, n * 3);
        } catch (const std::bad_alloc &) {
            in->refused++;
            done = false;
        }
    }
    return done;
}

void drops(kept *in, bool all)
{
    for (bool more = true; more;) {
        __transaction_relaxed
        {
            in->dropped += static_cast<long>(in->vector.size());
            kept::numbers(in->vector.get_allocator()).swap(in->vector);
            for (int i = 0; i < 300 && !in->map.empty(); i++) {
                in->map.erase(in->map.begin());
                in->dropped++;
            }
            more = all && !in->map.empty();
        }
    }
}

void is_whole(kept *in)
{
    bool whole = true;
    __transaction_relaxed
    {
        const auto there = static_cast<long>(in->vector.size() + in->map.size());
        whole = in->steps == there + in->refused + in->dropped;
        for (const auto &pair : in->map)
            whole = whole && pair.second == 3 * pair.first;
        for (std::size_t at = 1; at < in->vector.size(); at++)
            whole = whole && in->vector[at] > in->vector[at - 1];
    }
    CHECK(whole);
}

} // namespace

int main(int argc, char **argv)
{
    CHECK(argc >= 2);
    const bool wall = std::getenv("WALL") != nullptr;
    pmo_pool *pool = pmo_open_or_format(argv[1], wall ? 16 << 20 : 2 << 20, 0);
    CHECK(pool != nullptr);
    pmo_create_options options{};
    options.size = 65536;
    options.reach = wall ? 1 << 18 : 0;
    options.durability = std::getenv("ON_DEMAND") != nullptr ? PMO_DURABILITY_ON_DEMAND : PMO_DURABILITY_TRANSACTIONAL;
    options.flags = std::getenv("CHECK_WORDS") != nullptr ? PMO_STAT_ECC : 0;
    CHECK(wall || pmo_create(pool, "filler", 800 << 10) == 0 || pmo_errno() == PMO_ERR_EXISTS);
    CHECK(pmo_create_with(pool, "heap", &options) == 0 || pmo_errno() == PMO_ERR_EXISTS);
    heap = pmo_attach_tm(pool, "heap", nullptr, 0);
    CHECK(heap != nullptr);
    kept *in = root();
    is_whole(in);
    if (argc > 2 && !strcmp(argv[2], "look")) {
        long steps = 0;
        __transaction_relaxed { steps = in->steps; }
        printf("%ld\n", steps);
        drops(in, true);
        CHECK(pmo_detach(heap) == 0);
        void *object = pmo_attach(pool, "heap", PMO_READ, nullptr, 0);
        struct pmo_heap_stats stats;
        CHECK(object != nullptr && pmo_heap_check(object, nullptr, nullptr) == 0 && pmo_heap_stats(object, &stats) == 0);
        CHECK(stats.blocks == 2);
        return 0;
    }
    const bool die = argc > 2;
    long full[2] = {};
    for (long n = 0; die || full[0] < 4 || full[1] < 4; n++) {
        const bool leaving = n / 100 % 2 == 0;
        const bool done = leaving ? leaves(in, n) : stays(in, n);
        if (die) {
            printf("step\n");
            fflush(stdout);
        }
        if (!done) {
            CHECK(die || pmo_errno() == PMO_ERR_HEAP_FULL);
            full[leaving ? 0 : 1]++;
            // After the first full step, steps alternate between no room and room.
            if ((full[0] + full[1]) % 4 == 0) {
                is_whole(in);
                drops(in, n % 3 == 0);
            }
        }
    }
    is_whole(in);
    CHECK(pmo_detach(heap) == 0 && pmo_close(pool) == 0);
    printf("%ld %ld\n", full[0], full[1]);
    return 0;
}
