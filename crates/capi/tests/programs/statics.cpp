// Persistent variables in C++: statics.cpp POOL. Says what they hold. Blocks that transactions
// allocate, too.
#include "check.hpp"
#include <pmo/static.hpp>

#include <cstdio>
#include <thread>

struct limits {
    double low, high;
};
PMO_DESCRIBE(limits, PMO_MEMBER(low), PMO_MEMBER(high))

static const pmo::persistent<std::uint64_t> hits("hits", 1000);
static const pmo::persistent<std::array<std::int32_t, 3>> scores("scores", {7, 8, 9});
static const pmo::persistent<limits> range("range", {0.5, 2.5});
static const pmo::persistent<double> changed("hits", 0.5);

template <class F> static void fails(pmo_error error, F &&work)
{
    try {
        work();
        CHECK(!"it fails");
    } catch (const pmo::failure &failure) {
        CHECK(failure.code() == error);
    }
}

static void hit(const pmo::statics &statics, bool throws)
{
    try {
        statics.transaction([&](pmo::tx &tx) {
            hits.set(tx, statics, hits.get(tx, statics) + 1);
            if (throws)
                throw 7;
        });
        CHECK(!throws);
    } catch (int number) {
        CHECK(throws && number == 7);
    }
}

struct node {
    std::uint64_t value;
    node *next;
};
PMO_DESCRIBE(node, PMO_MEMBER(value), PMO_MEMBER(next))

static void blocks(const pmo::statics &statics)
{
    const auto top = [&](pmo::tx &tx) { return static_cast<node *>(tx.root(statics.base(), "top", pmo::type_of<node>::get())); };
    const auto push = [&](std::uint64_t value, bool throws) {
        statics.transaction([&](pmo::tx &tx) {
            node *added = tx.alloc<node>(statics.base());
            tx.store(added, node{value, tx.load(&top(tx)->next)});
            tx.store(&top(tx)->next, added);
            if (throws)
                throw value;
        });
    };
    for (std::uint64_t value = 1; value <= 3; value++)
        push(value, false);
    try {
        push(4, true);
        CHECK(false);
    } catch (std::uint64_t value) {
        CHECK(value == 4);
    }
    const auto pop = [&] {
        return statics.transaction([&](pmo::tx &tx) {
            node *first = tx.load(&top(tx)->next);
            const node taken = tx.load(first);
            tx.store(&top(tx)->next, taken.next);
            tx.free(first);
            return taken.value;
        });
    };
    CHECK(pop() == 3 && pop() == 2 && pop() == 1);
    fails(PMO_ERR_NOT_A_BLOCK, [&] { statics.transaction([&](pmo::tx &tx) { tx.free(&top(tx)->next); }); });
    bool full = false;
    try {
        statics.transaction([&](pmo::tx &tx) { tx.alloc<char>(statics.base(), std::size_t(1) << 40); });
    } catch (const std::bad_alloc &) {
        full = true;
    }
    CHECK(full);
}

int main(int, char **argv)
{
    pmo::pool pool = pmo::pool::open_or_format(argv[1], 16 << 20);
    pool.wait(60000);
    std::uint64_t seen = 0;
    std::int32_t middle = 0;
    {
        pmo::statics statics(pool);
        std::thread threads[4];
        for (auto &thread : threads)
            thread = std::thread([&] {
                for (int i = 0; i < 50; i++)
                    hit(statics, i % 10 == 9);
            });
        for (auto &thread : threads)
            thread.join();
        statics.transaction([&](pmo::tx &tx) {
            auto all = scores.get(tx, statics);
            middle = all[1];
            all[1]++;
            scores.set(tx, statics, all);
            seen = hits.get(tx, statics);
            CHECK(range.get(tx, statics).high == 2.5);
        });
        fails(PMO_ERR_ROOT_TYPE, [&] { statics.transaction([&](pmo::tx &tx) { changed.get(tx, statics); }); });
        blocks(statics);
    }
    std::printf("%llu %d\n", static_cast<unsigned long long>(seen), static_cast<int>(middle));
}
