// Allocators: exceptions without room, the current object, containers that construct elements
// themselves: allocators POOL.
#include "check.hpp"

#include <cstring>
#include <thread>

template <class Exception, class F> static bool throws(F f)
{
    try {
        f();
    } catch (const Exception &) {
        return true;
    } catch (...) {
    }
    return false;
}

static void exhaustion(pmo::pool &pool)
{
    pmo::heap heap = pool.heap("small", 1 << 20);
    auto &numbers = heap.root<pmo::vector<long>>("numbers");
    auto fill = [&] { numbers.resize(10'000'000); };
    CHECK(throws<std::bad_alloc>(fill) && throws<std::exception>(fill) && throws<pmo::error>(fill) && throws<pmo::bad_alloc>(fill));
    CHECK(!throws<pmo::failure>(fill));
    try {
        fill();
    } catch (const std::exception &error) {
        CHECK(std::strstr(error.what(), "no room"));
    }
    auto missing = [&] { pool.attach("none"); };
    CHECK(throws<std::exception>(missing) && throws<pmo::error>(missing) && throws<pmo::failure>(missing));
    CHECK(!throws<std::bad_alloc>(missing));
    CHECK(numbers.empty() && heap.check().empty());
}

template <class T> using kept = std::vector<T, pmo::current_allocator<T>>;

static void current_object(pmo::pool &pool)
{
    pmo::heap one = pool.heap("one", 1 << 20), two = pool.heap("two", 1 << 20);
    kept<int> none;
    CHECK(none.get_allocator().base() == nullptr);
    auto store = [&] { none.push_back(1); };
    CHECK(throws<pmo::error>(store) && !throws<std::bad_alloc>(store));
    try {
        store();
    } catch (const pmo::error &error) {
        CHECK(error.code() == PMO_ERR_NOT_ATTACHED && std::strstr(error.what(), "no current object"));
    }
    {
        pmo::current in_one(one);
        kept<int> first(3, 7);
        CHECK(first.get_allocator().base() == one.data() && one.stats().blocks == 1);
        {
            pmo::current in_two(two);
            kept<int> second(3, 7);
            CHECK(second.get_allocator().base() == two.data());
            std::thread([] { CHECK(kept<int>().get_allocator().base() == nullptr); }).join();
        }
        kept<int> third(1, 1);
        CHECK(third.get_allocator().base() == one.data() && third.get_allocator() != pmo::allocator<int>(two.data()));
    }
    CHECK(one.stats().blocks == 0 && two.stats().blocks == 0 && kept<int>().get_allocator().base() == nullptr);
}

static void plain(pmo::pool &pool)
{
    pmo::heap heap = pool.heap("plain", 1 << 20);
    using allocator = pmo::plain_allocator<pmo::string>;
    using other = typename allocator::rebind<long>::other;
    static_assert(std::is_same_v<other, pmo::plain_allocator<long>> && std::is_same_v<other::reference, long &>);
    static_assert(std::is_same_v<other::const_pointer, const long *> && std::is_same_v<other::difference_type, std::ptrdiff_t>);
    allocator in = heap.get_allocator<pmo::string>();
    pmo::string *block = in.allocate(1, nullptr);
    in.construct(block, "a text that does not fit into a string itself", in);
    CHECK(in.address(*block) == block && block->get_allocator().base() == heap.data() && in.max_size() > 1000);
    in.destroy(block);
    in.deallocate(block, 1);
    auto &list = heap.root<std::vector<long, pmo::plain_allocator<long>>>("list");
    list.assign(100, 1);
    // All allocators of an object have one layout: a root can be found with another one.
    CHECK(heap.find<pmo::vector<long>>("list")->size() == 100);
    heap.remove<std::vector<long, pmo::plain_allocator<long>>>("list");
    CHECK(heap.stats().blocks == 0 && heap.check().empty());
}

struct padded {
    char a;
    double b;
    short c;
};
PMO_DESCRIBE(padded, PMO_MEMBER(a), PMO_MEMBER(b), PMO_MEMBER(c))
using entry = std::pair<const int, padded>;

static const padded &dirty(void *place, int n)
{
    std::memset(place, 0xa7, sizeof(padded));
    auto *value = static_cast<padded *>(place);
    value->a = 'a', value->b = n, value->c = 3;
    // The compiler may not know the padding.
    __asm__ volatile("" : : "r"(place) : "memory");
    return *value;
}

static bool has_bytes_of_the_process(const pmo::heap &heap)
{
    auto *at = static_cast<const unsigned char *>(heap.data());
    int run = 0;
    for (std::size_t i = 0; i < heap.size(); i++) {
        run = at[i] == 0xa7 ? run + 1 : 0;
        if (run == 4)
            return true;
    }
    return false;
}

static void padding(pmo::pool &pool)
{
    pmo::heap heap = pool.heap("padding", 4 << 20);
    alignas(padded) unsigned char place[sizeof(padded)];
    auto &list = heap.root<pmo::vector<padded>>("list");
    auto &tree = heap.root<std::map<int, padded, std::less<>, pmo::allocator<entry>>>("tree");
    std::vector<padded, pmo::plain_allocator<padded>> plain(heap.get_allocator<padded>());
    for (int n = 0; n < 300; n++) {
        list.push_back(dirty(place, n));
        tree.emplace(n, dirty(place, n));
        tree.insert(std::make_pair(1000 + n, dirty(place, n)));
        plain.push_back(dirty(place, n));
        heap.make<padded>(dirty(place, n));
    }
    CHECK(list[7].b == 7 && tree.at(8).b == 8 && plain[9].b == 9);
#ifdef PMO_CLEARS_PADDING
    CHECK(!has_bytes_of_the_process(heap));
#endif
}

int main(int, char **argv)
{
    pmo::pool pool = pmo::pool::open_or_format(argv[1], 64 << 20);
    exhaustion(pool);
    current_object(pool);
    plain(pool);
    padding(pool);
    std::cout << "done\n";
}
