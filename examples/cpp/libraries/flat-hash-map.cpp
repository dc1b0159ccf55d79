// Abseil's flat_hash_map in an object.
//   flat-hash-map POOL count NUMBER   counts the numbers from 0 on up to NUMBER
//   flat-hash-map POOL show           prints how many there are
//
// The program provides two things. absl::Hash is seeded with an address: the map has its own hash.
// A map without capacity points to a constant of the program, which moves: it gets capacity before
// the first psync, and keeps it; clear() of a large map would not.
#include <pmo.hpp>

#include <absl/base/config.h>
#include <absl/container/flat_hash_map.h>

#include <iostream>

struct mixed {
    std::size_t operator()(long number) const
    {
        auto bits = static_cast<std::size_t>(number) * 0x9e3779b97f4a7c15;
        return bits ^ bits >> 32;
    }
};
using table = absl::flat_hash_map<long, long, mixed, std::equal_to<long>, pmo::plain_allocator<std::pair<const long, long>>>;

#define LAYOUT_OF_2(release) "absl " #release " flat_hash_map"
#define LAYOUT_OF(release) LAYOUT_OF_2(release)
template <> struct pmo::type_of<table> : pmo::opaque<table, long, long> {
    static constexpr const char *text = LAYOUT_OF(ABSL_LTS_RELEASE_VERSION);
};

int main(int argc, char **argv)
try {
    if (argc < 3)
        return 2;
    pmo::pool pool = pmo::pool::open_or_format(argv[1], 64 << 20);
    pmo::heap heap = pool.heap("map", 1 << 20, PMO_HEAP_GROW);
    auto &numbers = heap.root<table>("numbers", 1u, mixed(), std::equal_to<long>());
    if (argc == 4) {
        for (long last = std::stol(argv[3]), next = static_cast<long>(numbers.size()); next < last; next++)
            numbers[next] = 2 * next;
        heap.psync();
    }
    for (long i = 0; i < static_cast<long>(numbers.size()); i++)
        if (numbers.at(i) != 2 * i)
            throw std::runtime_error("a number is not there");
    std::cout << numbers.size() << "\n";
    return 0;
} catch (const std::exception &error) {
    std::cerr << error.what() << "\n";
    return 1;
}
