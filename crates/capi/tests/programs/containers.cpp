// Containers of the standard library in an object, nested in each other. containers POOL grow N
// makes steps up to N, and psyncs and prints each; containers POOL check compares all with the same
// steps in ordinary memory; containers POOL clear removes all, and nothing is left in the heap.
#include <pmo.hpp>

#include <cstring>
#include <iostream>

template <class T> using allocator = pmo::allocator<T>;
using text = std::basic_string<char, std::char_traits<char>, allocator<char>>;
using texts = std::vector<text, allocator<text>>;
using by_word = std::map<text, texts, std::less<>, allocator<std::pair<const text, texts>>>;
using numbers = std::list<long, allocator<long>>;
using by_number = std::unordered_map<int, numbers, std::hash<int>, std::equal_to<int>, allocator<std::pair<const int, numbers>>>;
using by_name = std::unordered_map<text, by_word, std::hash<text>, std::equal_to<>, allocator<std::pair<const text, by_word>>>;

struct world {
    using allocator_type = allocator<char>;
    explicit world(allocator_type in) : words(in), lists(in), maps(in), flags(in) {}
    long steps = 0;
    by_word words;
    by_number lists;
    by_name maps;
    std::vector<bool, allocator<bool>> flags;
};

template <> struct pmo::type_of<std::vector<bool, allocator<bool>>> {
    using bits = std::vector<bool, allocator<bool>>;
    static std::string name() { return "bits"; }
    static const pmo_type *get()
    {
        static const detail::made_type made(PMO_OPAQUE, "bits", sizeof(bits), alignof(bits));
        return made.get();
    }
};
PMO_DESCRIBE(world, PMO_MEMBER(steps), PMO_MEMBER(words), PMO_MEMBER(lists), PMO_MEMBER(maps), PMO_MEMBER(flags))

struct model {
    long steps = 0;
    std::map<std::string, std::vector<std::string>, std::less<>> words;
    std::unordered_map<int, std::list<long>> lists;
    std::unordered_map<std::string, std::map<std::string, std::vector<std::string>, std::less<>>> maps;
    std::vector<bool> flags;
};

static std::string word(unsigned long seed)
{
    std::string word = "w" + std::to_string(seed % 40);
    return seed % 3 == 0 ? word + " that is too long for a string to keep in itself" : word;
}

template <class World> void step(World &world)
{
    unsigned long n = static_cast<unsigned long>(world.steps), seed = n * 2654435761u >> 7;
    std::string key = word(seed), value = word(seed / 5);
    auto &list = world.words[typename decltype(world.words)::key_type(key.c_str(), world.words.get_allocator())];
    list.emplace_back(value.c_str());
    if (list.size() > 6)
        list.erase(list.begin(), list.begin() + 3);
    auto &numbers = world.lists[static_cast<int>(seed % 17)];
    numbers.push_front(static_cast<long>(n));
    if (numbers.size() > 9)
        numbers.pop_back();
    numbers.sort();
    auto name = typename decltype(world.maps)::key_type(value.c_str(), world.maps.get_allocator());
    auto &inner = world.maps[name];
    auto copy = list;
    inner.insert_or_assign(typename decltype(world.words)::key_type(key.c_str(), world.words.get_allocator()), std::move(copy));
    if (inner.size() > 5)
        inner.erase(inner.begin());
    if (n % 50 == 49) {
        world.words.erase(world.words.begin());
        world.maps.erase(name);
        world.lists.rehash(100);
    }
    if (n % 7 == 0 && world.words.size() > 1)
        world.words.begin()->second.swap(world.words.rbegin()->second);
    world.flags.push_back(seed & 1);
    world.steps++;
}

template <class A, class B> void same(const A &a, const B &b, const char *what)
{
    if (!(a == b)) {
        std::cerr << "not the same: " << what << "\n";
        std::exit(1);
    }
}

static std::string plain(const text &a) { return std::string(a.data(), a.size()); }

static void same_words(const by_word &a, const decltype(model::words) &b)
{
    same(a.size(), b.size(), "number of words");
    for (const auto &[key, list] : a) {
        const auto found = b.find(plain(key));
        same(found != b.end(), true, "a word");
        same(list.size(), found->second.size(), "a list of words");
        for (std::size_t i = 0; i < list.size(); i++)
            same(plain(list[i]), found->second[i], "a word of a list");
    }
}

static void compare(const world &a)
{
    model b;
    while (b.steps < a.steps)
        step(b);
    same_words(a.words, b.words);
    same(a.lists.size(), b.lists.size(), "number of lists");
    for (const auto &[key, list] : a.lists)
        same(std::list<long>(list.begin(), list.end()), b.lists.at(key), "a list of numbers");
    same(a.maps.size(), b.maps.size(), "number of maps");
    for (const auto &[key, inner] : a.maps)
        same_words(inner, b.maps.at(plain(key)));
    same(std::vector<bool>(a.flags.begin(), a.flags.end()), b.flags, "flags");
}

static void whole(const pmo::heap &heap)
{
    for (const std::string &line : heap.check()) {
        std::cerr << line << "\n";
        std::exit(1);
    }
}

int main(int argc, char **argv)
try {
    std::string what = argc > 2 ? argv[2] : "";
    pmo::pool pool = pmo::pool::open_or_format(argv[1], 64 << 20);
    if (what == "grow") {
        pmo::heap heap = pool.heap("containers", 1 << 20, PMO_HEAP_GROW);
        world &all = heap.root<world>("world");
        std::cout << "found " << all.steps << std::endl;
        for (long last = std::stol(argv[3]); all.steps < last;) {
            step(all);
            heap.psync();
            std::cout << "psynced " << all.steps << std::endl;
        }
    } else if (what == "check") {
        pmo::heap heap = pool.heap_read("containers");
        whole(heap);
        const world *all = heap.find<const world>("world");
        if (all)
            compare(*all);
        std::cout << (all ? all->steps : 0) << std::endl;
    } else if (what == "clear") {
        pmo::heap heap = pool.heap("containers", 1 << 20);
        heap.remove<world>("world");
        heap.psync();
        whole(heap);
        std::cout << heap.stats().blocks << " blocks" << std::endl;
    }
    return 0;
} catch (const pmo::error &error) {
    std::cerr << error.code() << ": " << error.what() << "\n";
    return 1;
}
