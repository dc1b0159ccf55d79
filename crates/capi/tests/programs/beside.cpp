// A map that one process changes and others follow: beside POOL write adds a step with each psync
// until it is killed; beside POOL follow refreshes and checks for each line that it reads; beside
// POOL once checks the object as it is.
#include "check.hpp"

struct steps {
    explicit steps(const pmo::allocator<std::byte> &in) : words(in) {}
    using allocator_type = pmo::allocator<std::byte>;
    long count = 0;
    pmo::map<long, pmo::vector<pmo::string>> words;
};
PMO_DESCRIBE(steps, PMO_MEMBER(count), PMO_MEMBER(words))

static std::size_t length(long step) { return static_cast<std::size_t>(step * 7919 % 3000); }

static bool stays(long step, long count) { return step % 20 == 0 || step + 7 > count; }

static void write(pmo::pool &pool)
{
    pmo::heap heap = pool.heap("steps", 64 << 10, PMO_HEAP_GROW);
    auto &all = heap.root<steps>("steps");
    heap.psync();
    for (;;) {
        long step = ++all.count;
        all.words[step].emplace_back(length(step), static_cast<char>('a' + step % 26));
        if (step > 7 && !stays(step - 7, step))
            all.words.erase(step - 7);
        heap.psync();
        std::cout << "psynced " << step << std::endl;
    }
}

static long look(const pmo::heap &heap)
{
    const auto *all = heap.find<const steps>("steps");
    CHECK(all != nullptr);
    auto next = all->words.begin();
    for (long step = 1; step <= all->count; step++) {
        if (!stays(step, all->count))
            continue;
        CHECK(next != all->words.end() && next->first == step && next->second.size() == 1);
        CHECK(next->second[0] == std::string(length(step), static_cast<char>('a' + step % 26)).c_str());
        ++next;
    }
    CHECK(next == all->words.end() && heap.check().empty());
    return all->count;
}

static void follow(pmo::pool &pool)
{
    pmo::heap heap = pool.heap_snapshot("steps");
    CHECK(!heap.writable());
    long seen = look(heap);
    std::cout << "seen " << seen << std::endl;
    for (std::string line; std::getline(std::cin, line);) {
        CHECK(look(heap) == seen);
        bool newer = heap.refresh();
        long now = look(heap);
        CHECK(newer ? now >= seen : now == seen);
        seen = now;
        std::cout << "seen " << seen << " in " << heap.size() << " bytes" << std::endl;
    }
}

int main(int, char **argv)
try {
    pmo::pool pool = pmo::pool::open_or_format(argv[1], 64 << 20);
    std::string what = argv[2];
    if (what == "write")
        write(pool);
    else if (what == "follow")
        follow(pool);
    else
        std::cout << "seen " << look(pool.heap_read("steps")) << "\n";
} catch (const pmo::error &error) {
    std::cerr << error.what() << "\n";
    return 1;
}
