// An index of hnswlib in an object, unmodified: vectors and the graph of neighbours. hnsw POOL add
// NUMBER adds vectors up to this number, a psync each, and prints it; hnsw POOL check prints their
// number, and how many find themselves as the nearest.
//
// The library allocates by malloc and new, in the object while it is called, and keeps pointers to
// functions and virtual tables: it is linked with -no-pie, and pmo/same_program.h refuses an index
// of another build.
#include <pmo.hpp>
#include <pmo/same_program.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <list>
#include <memory>
#include <mutex>
#include <new>
#include <queue>
#include <random>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include <string.h>

namespace {

// The object where this thread allocates; nullptr: in the process.
thread_local void *inside = nullptr;
std::uintptr_t first = 0, behind = 0;

struct in_object {
    explicit in_object(const pmo::heap &heap) : before(inside)
    {
        first = reinterpret_cast<std::uintptr_t>(heap.data());
        behind = first + heap.size();
        inside = heap.data();
    }
    ~in_object() { inside = before; }
    void *before;
};

void *allocate(std::size_t size) { return inside != nullptr ? pmo_malloc(inside, size) : std::malloc(size); }

void release(void *block) noexcept
{
    const auto at = reinterpret_cast<std::uintptr_t>(block);
    if (at < first || at >= behind)
        std::free(block);
    else if (pmo_free(block) != 0)
        std::abort();
}

} // namespace

void *operator new(std::size_t size)
{
    if (void *block = allocate(size))
        return block;
    throw std::bad_alloc();
}
void *operator new[](std::size_t size) { return operator new(size); }
void operator delete(void *block) noexcept { release(block); }
void operator delete(void *block, std::size_t) noexcept { release(block); }
void operator delete[](void *block) noexcept { release(block); }
void operator delete[](void *block, std::size_t) noexcept { release(block); }

#define malloc(size) allocate(size)
#define free(block) release(block)
#include <hnswlib/hnswlib.h>
#undef malloc
#undef free

constexpr std::size_t DIMENSIONS = 8, MOST = 5000;
using graph = hnswlib::HierarchicalNSW<float>;

// The root: pointers to classes of the library, undescribed.
struct kept {
    hnswlib::L2Space *space;
    graph *all;
};
PMO_DESCRIBE(kept, PMO_MEMBER(space), PMO_MEMBER(all))

static std::vector<float> vector_of(std::size_t number)
{
    std::vector<float> vector;
    for (std::size_t i = 0; i < DIMENSIONS; i++)
        vector.push_back(static_cast<float>(number * (2 * i + 1) * 7919 % 10007) / 10007);
    return vector;
}

int main(int argc, char **argv)
try {
    if (argc < 3)
        return 2;
    pmo::pool pool = pmo::pool::open_or_format(argv[1], 64 << 20);
    pmo::heap heap = pool.heap("index", 32 << 20);
    if (const char *refused = pmo_refuse_another_program(heap.data())) {
        std::cerr << refused << "\n";
        return 1;
    }
    kept &index = heap.root<kept>("index");
    if (index.all == nullptr) {
        in_object allocating(heap);
        index.space = new hnswlib::L2Space(DIMENSIONS);
        index.all = new graph(index.space, MOST);
    }
    heap.psync();
    const std::string what = argv[2];
    if (what == "add" && argc == 4) {
        const std::size_t last = std::min<std::size_t>(std::stoul(argv[3]), MOST);
        for (std::size_t next = index.all->cur_element_count + 1; next <= last; next++) {
            const std::vector<float> vector = vector_of(next);
            {
                in_object allocating(heap);
                index.all->addPoint(vector.data(), next);
            }
            heap.psync();
            std::cout << "added " << next << std::endl;
        }
    } else {
        std::size_t found = 0;
        const std::size_t count = index.all->cur_element_count;
        for (std::size_t number = 1; number <= count; number++) {
            const std::vector<float> vector = vector_of(number);
            in_object allocating(heap);
            found += index.all->searchKnn(vector.data(), 1).top().second == number;
        }
        std::cout << count << " " << found << "\n";
    }
    return 0;
} catch (const std::exception &error) {
    std::cerr << error.what() << "\n";
    return 1;
}
