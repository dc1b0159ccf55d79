// Google's sparse and dense hash maps in an object.
//   sparse-hash POOL count NUMBER   counts the numbers from 0 on up to NUMBER, in both maps
//   sparse-hash POOL show           prints how many there are
//
// Both maps ask the allocator for members of std::allocator_traits, which pmo::plain_allocator has.
// They keep their hash, and no address of the program.
#include <pmo.hpp>

#include <google/dense_hash_map>
#include <google/sparse_hash_map>

#include <iostream>

// The same in every run, which std::hash does not promise.
struct mixed {
    std::size_t operator()(long number) const { return static_cast<std::size_t>(number) * 0x9e3779b97f4a7c15; }
};
using allocator = pmo::plain_allocator<std::pair<const long, long>>;
using sparse = google::sparse_hash_map<long, long, mixed, std::equal_to<long>, allocator>;
using dense = google::dense_hash_map<long, long, mixed, std::equal_to<long>, allocator>;

template <> struct pmo::type_of<sparse> : pmo::opaque<sparse, long, long> {
    static constexpr const char *text = "sparsehash 2 sparse_hash_map";
};
template <> struct pmo::type_of<dense> : pmo::opaque<dense, long, long> {
    static constexpr const char *text = "sparsehash 2 dense_hash_map";
};

int main(int argc, char **argv)
try {
    if (argc < 3)
        return 2;
    pmo::pool pool = pmo::pool::open_or_format(argv[1], 64 << 20);
    pmo::heap heap = pool.heap("maps", 1 << 20, PMO_HEAP_GROW);
    auto &few = heap.root<sparse>("few", 0u, mixed(), std::equal_to<long>());
    bool made = heap.find<dense>("many") == nullptr;
    auto &many = heap.root<dense>("many", 0u, mixed(), std::equal_to<long>());
    if (made)
        many.set_empty_key(-1);
    if (argc == 4) {
        for (long last = std::stol(argv[3]), next = static_cast<long>(many.size()); next < last; next++) {
            few[next] = 2 * next;
            many[next] = 3 * next;
        }
        heap.psync();
    }
    for (long i = 0; i < static_cast<long>(many.size()); i++)
        if (few.find(i)->second != 2 * i || many.find(i)->second != 3 * i)
            throw std::runtime_error("a number is not there");
    std::cout << few.size() << " " << many.size() << "\n";
    return 0;
} catch (const std::exception &error) {
    std::cerr << error.what() << "\n";
    return 1;
}
