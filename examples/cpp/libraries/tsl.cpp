// Maps of tsl in an object: hopscotch_map, and ordered_map, which keeps the order of insertion. tsl
// POOL count NUMBER counts the numbers from 0 up to NUMBER, in both maps; tsl POOL show prints how
// many there are.
//
// ordered_map makes default allocators for more buckets, which allocate where pmo::current says. A
// map without a bucket points to a constant of the program, which moves: each gets a bucket before
// the first psync, and keeps it; clear() frees none.
#include <pmo.hpp>

#include <tsl/hopscotch_map.h>
#include <tsl/ordered_map.h>

#include <iostream>

// The same in every run, which std::hash does not promise.
struct mixed {
    std::size_t operator()(long number) const
    {
        auto bits = static_cast<std::size_t>(number) * 0x9e3779b97f4a7c15;
        return bits ^ bits >> 32;
    }
};
using element = std::pair<long, long>;
using hopscotch = tsl::hopscotch_map<long, long, mixed, std::equal_to<long>, pmo::plain_allocator<element>>;
using ordered = tsl::ordered_map<long, long, mixed, std::equal_to<long>, pmo::current_allocator<element>>;

// The headers do not tell their version: write it here.
template <> struct pmo::type_of<hopscotch> : pmo::opaque<hopscotch, long, long> {
    static constexpr const char *text = "tsl hopscotch_map 2";
};
template <> struct pmo::type_of<ordered> : pmo::opaque<ordered, long, long> {
    static constexpr const char *text = "tsl ordered_map 1";
};

int main(int argc, char **argv)
try {
    if (argc < 3)
        return 2;
    pmo::pool pool = pmo::pool::open_or_format(argv[1], 64 << 20);
    pmo::heap heap = pool.heap("maps", 1 << 20, PMO_HEAP_GROW);
    pmo::current in_heap(heap);
    auto &near = heap.root<hopscotch>("near", 1u, mixed(), std::equal_to<long>());
    auto &order = heap.root<ordered>("order", 1u, mixed(), std::equal_to<long>());
    if (argc == 4) {
        for (long last = std::stol(argv[3]), next = static_cast<long>(near.size()); next < last; next++) {
            near[next] = 2 * next;
            order[-next] = 3 * next;
        }
        heap.psync();
    }
    long at = 0;
    for (const auto &[number, value] : order) {
        if (number != -at || value != 3 * at || near.at(at) != 2 * at || order.at(-at) != 3 * at)
            throw std::runtime_error("a number is not there");
        at++;
    }
    std::cout << near.size() << " " << order.size() << "\n";
    return 0;
} catch (const std::exception &error) {
    std::cerr << error.what() << "\n";
    return 1;
}
