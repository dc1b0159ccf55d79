// Containers in heaps that grow beside another object, and copies of pools: growth POOL.
#include "check.hpp"

#include <cstring>
#include <filesystem>

using texts = pmo::vector<pmo::string>;

static std::string text(long number)
{
    return "text " + std::to_string(number) + std::string(200, 'x');
}

static void whole(const texts &all, long count)
{
    CHECK(static_cast<long>(all.size()) == count);
    for (long i = 0; i < count; i++)
        CHECK(text(i) == all[i].c_str());
}

static void extend(texts &all, long count)
{
    for (long i = all.size(); i < count; i++)
        all.emplace_back(text(i).c_str());
}

template <class F> static bool refused(const std::string &original, F f)
{
    try {
        f();
    } catch (const pmo::error &error) {
        return error.code() == PMO_ERR_UNSUITABLE && std::string(error.what()).find(original) != std::string::npos;
    }
    return false;
}

static void heap_moves(const std::string &path)
{
    pmo::pool pool = pmo::pool::format(path, 32 << 20);
    {
        pmo::heap heap = pool.heap("heap", 64 << 10, PMO_HEAP_GROW);
        heap.root<texts>("texts");
        heap.psync();
        pool.create("wall", 4096);
        pmo::object wall = pool.attach("wall");
        std::memset(wall.data(), 'w', 4096);
        wall.psync();
    }
    {
        pmo::heap heap = pool.heap("heap", 64 << 10, PMO_HEAP_GROW);
        texts &all = heap.root<texts>("texts");
        extend(all, 10000);
        CHECK(pool.stat("heap").size > 10000 * 200);
        whole(all, 10000);
        heap.psync();
        extend(all, 20000);
    }
    pmo::heap heap = pool.heap("heap", 64 << 10, PMO_HEAP_GROW);
    texts &all = heap.root<texts>("texts");
    whole(all, 10000);
    CHECK(heap.check().empty());
    pmo::object wall = pool.attach_read("wall");
    CHECK(std::string(static_cast<const char *>(wall.data()), 4096) == std::string(4096, 'w'));
    std::size_t most = 0;
    try {
        for (;; most++)
            all.emplace_back(text(10000 + most).c_str());
    } catch (const std::bad_alloc &full) {
        CHECK(std::string(full.what()).find("the pool has no free piece that is large enough") != std::string::npos);
    }
    CHECK(most > 10000);
    whole(all, 10000 + most);
    heap.psync();
}

static void copies(const std::string &path)
{
    std::string original = path + ".original", copy = path + ".copy";
    {
        pmo::pool pool = pmo::pool::format(original, 16 << 20);
        pmo::heap heap = pool.heap("heap", 1 << 20);
        heap.root<long>("value") = 1;
        heap.psync();
        heap.detach();
        std::filesystem::copy_file(original, copy);
        CHECK(refused(original, [&] { pmo::pool{copy.c_str()}; }));
        CHECK(refused(original, [&] { pmo::pool::open_or_format(copy, 16 << 20); }));
        heap = pool.heap("heap", 1 << 20);
        heap.root<long>("value") = 2;
        heap.psync();
    }
    pmo::pool pool{copy.c_str()};
    CHECK(pool.heap("heap", 1 << 20).root<long>("value") == 1);
}

int main(int, char **argv)
{
    heap_moves(argv[1]);
    copies(argv[1]);
    std::cout << "done\n";
}
