// Allocators: what is thrown when there is no room, the current object, containers that construct elements themselves: allocators POOL.
#include "check.hpp"

#include <cstring>
#include <thread>

// The kinds of exceptions as which a call's failure can be caught.
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
            // Of this thread alone.
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
    // Nothing is handed on: the program says where.
    in.construct(block, "a text that does not fit into a string itself", in);
    CHECK(in.address(*block) == block && block->get_allocator().base() == heap.data() && in.max_size() > 1000);
    in.destroy(block);
    in.deallocate(block, 1);
    auto &list = heap.root<std::vector<long, pmo::plain_allocator<long>>>("list");
    list.assign(100, 1);
    // All allocators of an object keep the same: a root can be found with another one.
    CHECK(heap.find<pmo::vector<long>>("list")->size() == 100);
    heap.remove<std::vector<long, pmo::plain_allocator<long>>>("list");
    CHECK(heap.stats().blocks == 0 && heap.check().empty());
}

int main(int, char **argv)
{
    pmo::pool pool = pmo::pool::open_or_format(argv[1], 64 << 20);
    exhaustion(pool);
    current_object(pool);
    plain(pool);
    std::cout << "done\n";
}
