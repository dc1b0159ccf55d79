// An R-tree of Boost.Geometry in an object, unmodified: named places, and the nearest to a point.
// geometry POOL add NUMBER adds places up to this number, a psync each, and prints it; geometry
// POOL near X Y prints the three nearest places; geometry POOL check finds every place and prints
// their number.
//
// The tree takes pmo::plain_allocator, and keeps no address of the program: its nodes are
// boost::variants.
#include <pmo.hpp>

#include <boost/geometry.hpp>
#include <boost/geometry/index/rtree.hpp>
#include <boost/version.hpp>

#include <iostream>

namespace geometry = boost::geometry;
using point = geometry::model::point<double, 2, geometry::cs::cartesian>;
using place = std::pair<point, long>;
using tree = geometry::index::rtree<place, geometry::index::quadratic<16>, geometry::index::indexable<place>,
                                    geometry::index::equal_to<place>, pmo::plain_allocator<place>>;

#define LAYOUT_OF_2(version) "boost " #version " rtree"
#define LAYOUT_OF(version) LAYOUT_OF_2(version)
template <> struct pmo::type_of<tree> : pmo::opaque<tree> {
    static constexpr const char *text = LAYOUT_OF(BOOST_VERSION);
};

// No two places coincide.
static point where(long number)
{
    return point(static_cast<double>(number * 7919 % 10007), static_cast<double>(number));
}

int main(int argc, char **argv)
try {
    if (argc < 3)
        return 2;
    pmo::pool pool = pmo::pool::open_or_format(argv[1], 64 << 20);
    pmo::heap heap = pool.heap("places", 1 << 20, PMO_HEAP_GROW);
    auto &all = heap.root<tree>("tree", geometry::index::quadratic<16>(), geometry::index::indexable<place>(),
                                geometry::index::equal_to<place>());
    const std::string what = argv[2];
    if (what == "add" && argc == 4) {
        for (long last = std::stol(argv[3]), next = static_cast<long>(all.size()) + 1; next <= last; next++) {
            all.insert(place(where(next), next));
            heap.psync();
            std::cout << "added " << next << std::endl;
        }
    } else if (what == "near" && argc == 5) {
        const point at(std::stod(argv[3]), std::stod(argv[4]));
        for (auto found = all.qbegin(geometry::index::nearest(at, 3)); found != all.qend(); ++found)
            std::cout << found->second << "\n";
    } else {
        for (long number = 1; number <= static_cast<long>(all.size()); number++) {
            auto found = all.qbegin(geometry::index::nearest(where(number), 1));
            if (found == all.qend() || found->second != number)
                throw std::runtime_error("a place is not where it was put");
        }
        std::cout << all.size() << "\n";
    }
    return 0;
} catch (const std::exception &error) {
    std::cerr << error.what() << "\n";
    return 1;
}
