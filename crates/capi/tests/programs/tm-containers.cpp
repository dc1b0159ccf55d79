// The containers of pmo/tm.hpp in blocks that GCC compiles: tm-containers.cpp POOL;
// tm-containers.cpp POOL die, which is killed; tm-containers.cpp POOL look. With ON_DEMAND in the
// environment their objects are on demand.
#include "check.h"
#include <pmo/tm.hpp>

#include <algorithm>
#include <cstdlib>
#include <deque>
#include <map>
#include <random>
#include <thread>
#include <vector>

namespace {

constexpr int THREADS = 8, STEPS = 400, KEYS = 50;

struct all {
    pmo::tm::vector<long> vector;
    pmo::tm::list<long> list;
    pmo::tm::map<long, long> map;
    long steps;
};

struct shelves {
    all of[THREADS];
    all common;
    long inserted, erased;
};

struct standard {
    using numbers = std::vector<long, pmo::tm::allocator<long>>;
    using names = std::map<long, numbers, std::less<long>, pmo::tm::allocator<std::pair<const long, numbers>>>;

    explicit standard(void *object) : all(pmo::tm::allocator<long>(object)), by_key(std::less<long>(), pmo::tm::allocator<long>(object)) {}

    numbers all;
    names by_key;
};

const pmo_type TYPE = {"shelves", sizeof(shelves), nullptr, 0, PMO_OPAQUE, 0};
const pmo_type STANDARD = {"standard", sizeof(standard *), nullptr, 0, PMO_OPAQUE, 0};
const pmo_type OTHER = {"another", sizeof(shelves), nullptr, 0, PMO_OPAQUE, 0};

void *heap;

void *attached(pmo_pool *pool, const char *name, uint64_t size, uint64_t reach)
{
    pmo_create_options options{};
    options.size = size;
    options.reach = reach;
    options.durability = std::getenv("ON_DEMAND") != nullptr ? PMO_DURABILITY_ON_DEMAND : PMO_DURABILITY_TRANSACTIONAL;
    options.flags = std::getenv("CHECK_WORDS") != nullptr ? PMO_STAT_ECC : 0;
    CHECK(pmo_create_with(pool, name, &options) == 0 || pmo_errno() == PMO_ERR_EXISTS);
    void *object = pmo_attach_tm(pool, name, nullptr, 0);
    CHECK(object != nullptr);
    return object;
}

shelves *root()
{
    shelves *found;
    __transaction_atomic { found = static_cast<shelves *>(pmo_tm_root(heap, "shelves", &TYPE)); }
    CHECK(found != nullptr);
    return found;
}

standard *standard_ones()
{
    standard **root, *found;
    __transaction_atomic { root = static_cast<standard **>(pmo_tm_root(heap, "standard", &STANDARD)); }
    CHECK(root != nullptr);
    __transaction_relaxed
    {
        if (*root == nullptr)
            *root = new (pmo_tm_alloc(heap, sizeof(standard))) standard(heap);
        found = *root;
    }
    return found;
}

void standard_step(standard *in, shelves *shelves, long key, long value)
{
    __transaction_relaxed
    {
        in->all.push_back(value);
        auto at = in->by_key.find(key);
        if (at == in->by_key.end())
            at = in->by_key.emplace(key, standard::numbers(pmo::tm::allocator<long>(heap))).first;
        at->second.push_back(value);
        if (at->second.size() == 20) {
            in->all.erase(std::remove_if(in->all.begin(), in->all.end(), [&](long number) { return number % 16 == key; }), in->all.end());
            in->by_key.erase(at);
        }
        shelves->common.steps++;
    }
}

void listed_step(shelves *in, int i, long n)
{
    __transaction_atomic
    {
        in->of[i].list.push_back(n);
        in->common.list.push_back(n);
        in->common.steps++;
        if (n % 3 == 2) {
            long gone;
            in->of[i].list.pop_front(gone);
            in->common.list.pop_front(gone);
        }
    }
}

void standard_is_whole(standard *in)
{
    bool whole = true;
    __transaction_relaxed
    {
        std::size_t count = 0;
        for (auto &pair : in->by_key) {
            for (long number : pair.second)
                whole = whole && number % 16 == pair.first && std::find(in->all.begin(), in->all.end(), number) != in->all.end();
            count += pair.second.size();
        }
        whole = whole && count == in->all.size();
    }
    CHECK(whole);
}

void standard_is_gone(standard *in)
{
    __transaction_relaxed
    {
        standard **root = static_cast<standard **>(pmo_tm_root(heap, "standard", &STANDARD));
        in->~standard();
        pmo_tm_free(in);
        *root = nullptr;
    }
}

struct model {
    std::vector<long> vector;
    std::deque<long> list;
    std::map<long, long> map;
};

bool step(shelves *in, all *own, int kind, long key, long value, bool cancel, long *got, bool *had)
{
    bool done = false;
    long taken = 0;
    bool there = false;
    __transaction_atomic
    {
        switch (kind) {
        case 0: there = own->vector.push_back(value); break;
        case 1: there = own->vector.pop_back(taken); break;
        case 2: there = own->vector.swap_remove(static_cast<std::size_t>(key), taken); break;
        case 3: there = own->list.push_back(value); break;
        case 4: there = own->list.push_front(value); break;
        case 5: there = own->list.pop_front(taken); break;
        case 6: there = own->list.pop_back(taken); break;
        case 7: there = own->map.insert(key, value); break;
        case 8: there = own->map.erase(key); break;
        default:
            if (const long *found = own->map.find(key)) {
                there = true;
                taken = *found;
            }
        }
        own->steps++;
        if (kind == 7) {
            if (in->common.map.find(value) == nullptr)
                in->inserted++;
            in->common.map.insert(value, key);
        }
        if (kind == 8 && in->common.map.erase(key))
            in->erased++;
        if (cancel)
            __transaction_cancel;
        done = true;
    }
    *got = taken;
    *had = there;
    return done;
}

void compare(all *own, const model &expected)
{
    std::vector<long> vector, list, keys, values;
    long size = 0;
    __transaction_atomic { size = static_cast<long>(own->vector.size()); }
    CHECK(static_cast<std::size_t>(size) == expected.vector.size());
    for (long at = 0; at < size; at++) {
        long value;
        __transaction_atomic { value = own->vector[static_cast<std::size_t>(at)]; }
        vector.push_back(value);
    }
    CHECK(vector == expected.vector);
    pmo::tm::list<long>::node *node;
    __transaction_atomic { node = own->list.first(); }
    while (node != nullptr) {
        long value;
        pmo::tm::list<long>::node *next, *back;
        __transaction_atomic
        {
            value = node->value;
            next = node->next;
            back = next == nullptr ? own->list.last() : next->previous;
        }
        CHECK(back == node);
        list.push_back(value);
        node = next;
    }
    CHECK(std::equal(list.begin(), list.end(), expected.list.begin(), expected.list.end()));
    pmo::tm::map<long, long>::node *at;
    long key = 0, value = 0;
    __transaction_atomic { at = own->map.first(); }
    auto should = expected.map.begin();
    while (at != nullptr) {
        __transaction_atomic
        {
            key = at->key;
            value = at->value;
            at = own->map.above(key);
        }
        CHECK(should != expected.map.end() && should->first == key && should->second == value);
        ++should;
    }
    CHECK(should == expected.map.end());
}

void work(shelves *in, int thread)
{
    std::mt19937 random(7 + thread);
    all *own = &in->of[thread];
    model model;
    for (int i = 0; i < STEPS; i++) {
        const int kind = static_cast<int>(random() % 10);
        const long key = random() % KEYS, value = random() % 1000;
        const bool cancel = random() % 8 == 0;
        long got = 0;
        bool had = false;
        CHECK(step(in, own, kind, key, value, cancel, &got, &had) != cancel);
        if (cancel)
            continue;
        bool should = true;
        long expected = got;
        switch (kind) {
        case 0: model.vector.push_back(value); break;
        case 1:
            if ((should = !model.vector.empty())) {
                expected = model.vector.back();
                model.vector.pop_back();
            }
            break;
        case 2:
            if ((should = static_cast<std::size_t>(key) < model.vector.size())) {
                expected = model.vector[key];
                model.vector[key] = model.vector.back();
                model.vector.pop_back();
            }
            break;
        case 3: model.list.push_back(value); break;
        case 4: model.list.push_front(value); break;
        case 5:
            if ((should = !model.list.empty())) {
                expected = model.list.front();
                model.list.pop_front();
            }
            break;
        case 6:
            if ((should = !model.list.empty())) {
                expected = model.list.back();
                model.list.pop_back();
            }
            break;
        case 7: model.map[key] = value; break;
        case 8: should = model.map.erase(key) == 1; break;
        default:
            if ((should = model.map.count(key) == 1))
                expected = model.map[key];
        }
        CHECK(had == should && (!had || got == expected));
    }
    compare(own, model);
}

void nothing_is_lost(pmo_pool *pool, shelves *in)
{
    long count = 0, inserted = 0, erased = 0;
    __transaction_atomic
    {
        inserted = in->inserted;
        erased = in->erased;
        for (auto *at = in->common.map.first(); at != nullptr; at = in->common.map.above(at->key))
            count++;
    }
    CHECK(count == inserted - erased);
    for (int i = 0; i <= THREADS; i++) {
        all *own = i < THREADS ? &in->of[i] : &in->common;
        __transaction_atomic
        {
            own->vector.clear();
            own->list.clear();
            own->map.clear();
        }
    }
    __transaction_atomic { in->inserted = in->erased = 0; }
    CHECK(pmo_detach(heap) == 0);
    struct pmo_heap_stats stats;
    void *object = pmo_attach(pool, "heap", PMO_READ, nullptr, 0);
    CHECK(object != nullptr && pmo_heap_check(object, nullptr, nullptr) == 0 && pmo_heap_stats(object, &stats) == 0);
    CHECK(stats.blocks == 2);
    CHECK(pmo_detach(object) == 0);
}

void errors(pmo_pool *pool)
{
    void *full = attached(pool, "full", 65536, 65536);
    char *block = nullptr;
    int freed = 0, again = 0, inside = 0, nowhere = 0, code = 0;
    long here = 0, got = 0;
    void *other = nullptr;
    __transaction_atomic
    {
        other = pmo_tm_root(heap, "shelves", &OTHER);
    }
    FAILS(other == nullptr, PMO_ERR_ROOT_TYPE, "shelves");
    __transaction_atomic
    {
        block = static_cast<char *>(pmo_tm_alloc(heap, 100));
        inside = pmo_tm_free(block + 16);
        freed = pmo_tm_free(block);
        again = pmo_tm_free(block);
        nowhere = pmo_tm_free(&here);
    }
    CHECK(block != nullptr && freed == 0 && again == -1 && inside == -1 && nowhere == -1);
    FAILS(pmo_tm_alloc(heap, 100) == nullptr, PMO_ERR_ARGUMENT, "block that runs on this thread");
    __transaction_atomic { block = static_cast<char *>(pmo_tm_alloc(full, 100)); }
    FAILS(block == nullptr, PMO_ERR_NOT_A_HEAP, "make a root first (pmo_tx_root, pmo_tm_root)");
    __transaction_atomic { got = *static_cast<long *>(full); }
    CHECK(got == 0);
    __transaction_atomic { other = pmo_tm_root(full, "other", &OTHER); }
    CHECK(other != nullptr);
    void *value = attached(pool, "value", 65536, 65536);
    CHECK(pmo_tx_begin_with(value, 64) == 0);
    __transaction_atomic { block = static_cast<char *>(pmo_tm_alloc(value, 100)); }
    FAILS(block == nullptr, PMO_ERR_NOT_A_HEAP, "was attached as a value of 64 bytes");
    __transaction_atomic { other = pmo_tm_root(value, "other", &OTHER); }
    FAILS(other == nullptr, PMO_ERR_NOT_A_HEAP, "was attached as a value of 64 bytes");
    __transaction_atomic { got = *static_cast<long *>(value); }
    CHECK(got == 0 && pmo_detach(value) == 0);
    __transaction_atomic
    {
        got = 0;
        while (pmo_tm_alloc(full, 8192) != nullptr)
            got++;
    }
    code = pmo_errno();
    CHECK(got > 3 && code == PMO_ERR_HEAP_FULL && strstr(pmo_error_message(), "its address range ends there"));
    __transaction_atomic { block = static_cast<char *>(pmo_tm_alloc(heap, 300000)); }
    CHECK(block != nullptr);
    __transaction_atomic { freed = pmo_tm_free(block); }
    CHECK(freed == 0 && pmo_detach(full) == 0);
}

} // namespace

int main(int argc, char **argv)
{
    CHECK(argc >= 2);
    pmo_pool *pool = pmo_open_or_format(argv[1], 128 << 20, 0);
    CHECK(pool != nullptr);
    heap = attached(pool, "heap", 65536, 0);
    CHECK(pmo_create(pool, "behind", 65536) == 0 || pmo_errno() == PMO_ERR_EXISTS);
    shelves *in = root();
    standard *other = standard_ones();
    if (argc > 2 && !strcmp(argv[2], "die")) {
        std::vector<std::thread> threads;
        for (int i = 0; i < 4; i++)
            threads.emplace_back([in, other, i] {
                for (long n = 0;; n++) {
                    if (n % 5 == i)
                        standard_step(other, in, n % 16, n);
                    else
                        listed_step(in, i, n);
                    printf("step\n");
                    fflush(stdout);
                }
            });
        for (auto &thread : threads)
            thread.join();
    }
    if (argc > 2 && !strcmp(argv[2], "look")) {
        long steps = 0, common = 0, own = 0;
        __transaction_atomic
        {
            steps = in->common.steps;
            common = static_cast<long>(in->common.list.size());
            for (int i = 0; i < THREADS; i++)
                own += static_cast<long>(in->of[i].list.size());
        }
        CHECK(common == own);
        standard_is_whole(other);
        standard_is_gone(other);
        nothing_is_lost(pool, in);
        printf("%ld\n", steps);
        return 0;
    }
    std::vector<std::thread> threads;
    for (int i = 0; i < THREADS; i++)
        threads.emplace_back(work, in, i);
    for (int i = 0; i < 2; i++)
        threads.emplace_back([in, other, i] {
            std::mt19937 random(99 + i);
            for (long n = 0; n < 300; n++) {
                long key = static_cast<long>(random() % 16);
                standard_step(other, in, key, 16 * static_cast<long>(random() % 1000) + key);
                if (n % 50 == 0)
                    standard_is_whole(other);
            }
        });
    for (auto &thread : threads)
        thread.join();
    standard_is_whole(other);
    errors(pool);
    standard_is_gone(other);
    nothing_is_lost(pool, in);
    puts("done");
    return 0;
}
