// Types of the standard library, templates and private members in a root: types POOL make, then
// types POOL check. types POOL layout shows the description.
#include <pmo.hpp>

#include <iostream>

template <class T, std::size_t N> struct ring {
    std::size_t next = 0;
    T items[N] = {};
};
PMO_DESCRIBE_TEMPLATE((class T, std::size_t N), ring, (T, N), PMO_MEMBER(next), PMO_MEMBER(items))

class account {
public:
    account() = default;
    void add(long cents) { cents_ += cents; }
    long cents() const { return cents_; }

private:
    PMO_FRIEND;
    char kind_ = 'a';
    long cents_ = 0;
};
PMO_DESCRIBE(account, PMO_MEMBER(kind_), PMO_MEMBER(cents_))

struct nothing {};
PMO_DESCRIBE(nothing, )

struct unseen;
struct late;
struct node {
    node *next = nullptr;
    unseen *hidden = nullptr;
};
struct chain {
    const node *first = nullptr;
    late *later = nullptr;
    long *number = nullptr;
};
PMO_DESCRIBE(chain, PMO_MEMBER(first), PMO_MEMBER(later), PMO_MEMBER(number))
PMO_DESCRIBE(node, PMO_MEMBER(next), PMO_MEMBER(hidden))
struct late {
    char letter;
};
PMO_DESCRIBE(late, PMO_MEMBER(letter))

using namespace std::chrono_literals;

struct everything {
    using allocator_type = pmo::allocator<char>;
    explicit everything(allocator_type in)
        : multimap(in), multiset(in), unordered_multimap(in), unordered_multiset(in), forward(in), stack(in), queue(in),
          priority(in), wide(in), wider(in)
    {
    }
    std::pair<long, char> long_char{1, 'b'};
    std::pair<char, long> char_long{'a', 2};
    std::pair<char, std::pair<short, char>> nested{'a', {2, 'c'}};
    std::tuple<char, long, nothing, short> tuple{'t', 3, {}, 4};
    std::optional<long> some = 5, none;
    std::variant<std::monostate, long, double> variant = 6.5;
    std::bitset<100> bits{0xdead};
    std::atomic<long> atomic{7};
    std::complex<double> complex{8, 9};
    std::chrono::milliseconds duration = 10ms;
    std::chrono::system_clock::time_point time{11s};
    long double precise = 12.25L;
    ring<int, 3> three;
    ring<double, 2> two;
    account savings;
    pmo::multimap<int, pmo::string> multimap;
    pmo::multiset<int> multiset;
    pmo::unordered_multimap<int, int> unordered_multimap;
    pmo::unordered_multiset<int> unordered_multiset;
    pmo::forward_list<int> forward;
    pmo::stack<int> stack;
    pmo::queue<int> queue;
    pmo::priority_queue<int> priority;
    pmo::wstring wide;
    pmo::u16string wider;
};
PMO_DESCRIBE(everything, PMO_MEMBER(long_char), PMO_MEMBER(char_long), PMO_MEMBER(nested), PMO_MEMBER(tuple), PMO_MEMBER(some),
             PMO_MEMBER(none), PMO_MEMBER(variant), PMO_MEMBER(bits), PMO_MEMBER(atomic), PMO_MEMBER(complex), PMO_MEMBER(duration),
             PMO_MEMBER(time), PMO_MEMBER(precise), PMO_MEMBER(three), PMO_MEMBER(two), PMO_MEMBER(savings), PMO_MEMBER(multimap),
             PMO_MEMBER(multiset), PMO_MEMBER(unordered_multimap), PMO_MEMBER(unordered_multiset), PMO_MEMBER(forward),
             PMO_MEMBER(stack), PMO_MEMBER(queue), PMO_MEMBER(priority), PMO_MEMBER(wide), PMO_MEMBER(wider))

static void fill(everything &all)
{
    all.three.items[2] = 13;
    all.two.items[1] = 14.5;
    all.savings.add(15);
    for (int i : {3, 1, 2, 1}) {
        all.multimap.emplace(i, "a text of so many letters that it has a block of its own");
        all.multiset.insert(i);
        all.unordered_multimap.emplace(i, -i);
        all.unordered_multiset.insert(i);
        all.forward.push_front(i);
        all.stack.push(i);
        all.queue.push(i);
        all.priority.push(i);
    }
    all.wide = L"as many letters as do not fit into the string itself";
    all.wider = u"as many letters as do not fit into the string itself";
}

#define SAME(condition)                                                                           \
    do {                                                                                          \
        if (!(condition)) {                                                                       \
            std::cerr << __LINE__ << ": " #condition "\n";                                        \
            return 1;                                                                             \
        }                                                                                         \
    } while (0)

static int compare(const everything &all)
{
    SAME(all.long_char == std::make_pair(1L, 'b') && all.char_long == std::make_pair('a', 2L) && all.nested.second.second == 'c');
    SAME(std::get<0>(all.tuple) == 't' && std::get<1>(all.tuple) == 3 && std::get<3>(all.tuple) == 4);
    SAME(all.some == 5L && !all.none && std::get<double>(all.variant) == 6.5 && all.bits == 0xdead && all.atomic == 7);
    SAME(all.complex == std::complex<double>(8, 9) && all.duration == 10ms && all.time.time_since_epoch() == 11s);
    SAME(all.precise == 12.25L && all.three.items[2] == 13 && all.two.items[1] == 14.5 && all.savings.cents() == 15);
    SAME(all.multimap.count(1) == 2 && all.multimap.find(3)->second.size() == 56 && all.multiset.count(1) == 2);
    SAME(all.unordered_multimap.count(1) == 2 && all.unordered_multiset.count(1) == 2 && all.forward.front() == 1);
    SAME(all.stack.top() == 1 && all.queue.front() == 3 && all.priority.top() == 3 && all.wide.size() == 52);
    SAME(all.wider.size() == 52 && all.multimap.get_allocator() == all.wide.get_allocator());
    return 0;
}

template <class T> static void show()
{
    char text[8192];
    if (pmo_type_describe(pmo::type_of<T>::get(), text, sizeof text, nullptr) != 0)
        throw pmo::failure();
    std::cout << pmo::type_of<T>::name() << "\n" << text << "\n";
}

int main(int argc, char **argv)
try {
    std::string what = argc > 2 ? argv[2] : "";
    if (what == "layout") {
        show<std::pair<long, char>>();
        show<std::tuple<char, long, nothing, short>>();
        show<ring<int, 3>>();
        show<account>();
        show<chain>();
        show<std::chrono::milliseconds>();
        show<std::bitset<100>>();
        show<std::variant<std::monostate, long>>();
        show<pmo::map<pmo::string, pmo::vector<int>>>();
        return 0;
    }
    pmo::pool pool = pmo::pool::open_or_format(argv[1], 64 << 20);
    pmo::heap heap = pool.heap("types", 1 << 20);
    if (what == "make") {
        fill(heap.root<everything>("all"));
        heap.psync();
        return 0;
    }
    if (!heap.check().empty())
        return 2;
    everything *all = heap.find<everything>("all");
    return all == nullptr ? 3 : compare(*all);
} catch (const pmo::error &error) {
    std::cerr << error.code() << ": " << error.what() << "\n";
    return 1;
}
