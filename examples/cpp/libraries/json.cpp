// A document of nlohmann::json whose values, names and texts are in an object.
//
// The library makes default allocators, which allocate where pmo::current says. It is unchanged
// otherwise, and keeps no address of the program.
#include <pmo.hpp>

#include <nlohmann/json.hpp>

#include <iostream>

template <class T> using in_object = pmo::current_allocator<T>;
using text = std::basic_string<char, std::char_traits<char>, in_object<char>>;
template <class T, class A> using list = std::vector<T, A>;
using bytes = std::vector<std::uint8_t, in_object<std::uint8_t>>;
using json = nlohmann::basic_json<std::map, list, text, bool, std::int64_t, std::uint64_t, double, in_object,
                                  nlohmann::adl_serializer, bytes>;

// It has an allocator_type, but no constructor that takes an allocator.
template <class A> struct std::uses_allocator<json, A> : std::false_type {};

// The layout is this version's; a program with another one is refused.
#define LAYOUT_OF_2(major, minor) "nlohmann json " #major "." #minor
#define LAYOUT_OF(major, minor) LAYOUT_OF_2(major, minor)
template <> struct pmo::type_of<json> : pmo::opaque<json> {
    static constexpr const char *text = LAYOUT_OF(NLOHMANN_JSON_VERSION_MAJOR, NLOHMANN_JSON_VERSION_MINOR);
};

int main(int argc, char **argv)
try {
    if (argc < 3)
        return 2;
    pmo::pool pool = pmo::pool::open_or_format(argv[1], 16 << 20);
    pmo::heap heap = pool.heap("document", 1 << 20, PMO_HEAP_GROW);
    pmo::current in_heap(heap);
    json &document = heap.root<json>("document", json::object());
    if (argc == 5) {
        document[argv[3]] = json::parse(argv[4]);
        heap.psync();
    }
    // Temporary texts are in the object as well, and freed again.
    std::cout << document.dump().c_str() << "\n";
    return 0;
} catch (const std::exception &error) {
    std::cerr << error.what() << "\n";
    return 1;
}
