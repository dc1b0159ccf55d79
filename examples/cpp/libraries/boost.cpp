// Boost.Container's flat_map and stable_vector in an object, unmodified. boost POOL add TEXT...
// adds words; boost POOL show prints them.
#include <pmo.hpp>

#include <boost/container/flat_map.hpp>
#include <boost/container/stable_vector.hpp>
#include <boost/version.hpp>

#include <iostream>

using entry = std::pair<pmo::string, long>;
using counts = boost::container::flat_map<pmo::string, long, pmo::less, pmo::allocator<entry>>;
using history = boost::container::stable_vector<pmo::string, pmo::allocator<pmo::string>>;

#define LAYOUT_OF_2(version, name) "boost " #version " " name
#define LAYOUT_OF(version, name) LAYOUT_OF_2(version, name)
template <> struct pmo::type_of<counts> : pmo::opaque<counts, pmo::string, long> {
    static constexpr const char *text = LAYOUT_OF(BOOST_VERSION, "flat_map");
};
template <> struct pmo::type_of<history> : pmo::opaque<history, pmo::string> {
    static constexpr const char *text = LAYOUT_OF(BOOST_VERSION, "stable_vector");
};

int main(int argc, char **argv)
try {
    if (argc < 3)
        return 2;
    pmo::pool pool = pmo::pool::open_or_format(argv[1], 64 << 20);
    pmo::heap heap = pool.heap("words", 1 << 20, PMO_HEAP_GROW);
    auto &all = heap.root<counts>("counts");
    auto &order = heap.root<history>("history");
    for (int i = 3; i < argc; i++) {
        all[heap.text(argv[i])]++;
        order.push_back(heap.text(argv[i]));
    }
    heap.psync();
    for (const auto &[word, count] : all)
        std::cout << word << " " << count << "\n";
    for (const auto &word : order)
        std::cout << word << "\n";
    return 0;
} catch (const std::exception &error) {
    std::cerr << error.what() << "\n";
    return 1;
}
