// A list through objects of two pools: far POOL OTHER make. Another run: far POOL OTHER walk.
// Errors: far POOL OTHER wrong. Both objects in one pool: far POOL walk.
#include "check.hpp"

#include <array>
#include <string>

constexpr std::uint64_t length = 200;

struct node {
    std::uint64_t number = 0;
    pmo::far<node> next;
};
PMO_DESCRIBE(node, PMO_MEMBER(number), PMO_MEMBER(next))

struct route {
    pmo::far<node> first;
    std::array<pmo::far<const std::uint64_t>, 2> numbers;
    pmo::far<void> anything;
};
PMO_DESCRIBE(route, PMO_MEMBER(first), PMO_MEMBER(numbers), PMO_MEMBER(anything))

static_assert(sizeof(pmo::far<node>) == 8 && std::is_trivially_copyable_v<pmo::far<node>> && std::is_standard_layout_v<pmo::far<node>>);

template <class F> void fails(int code, const char *words, F &&call)
{
    try {
        call();
    } catch (const pmo::failure &failure) {
        if (failure.code() == code && std::string(failure.what()).find(words) != std::string::npos)
            return;
        std::cerr << "error " << failure.code() << ", " << failure.what() << ", not " << words << "\n";
        std::exit(1);
    }
    std::cerr << "no error with " << words << "\n";
    std::exit(1);
}

static pmo::heap created(pmo::pool &pool)
{
    pmo_create_options options{};
    options.size = 1 << 20;
    options.flags = PMO_STAT_POSITION_INDEPENDENT;
    return pool.heap("list", options);
}

static void make(pmo::pool &pool, pmo::pool &other)
{
    pmo::heap heaps[] = {created(pool), created(other)};
    node *next = nullptr;
    for (std::uint64_t number = length; number-- > 0;) {
        node *made = heaps[number % 2].make<node>();
        CHECK(made->next == nullptr && !made->next && made->next.get() == nullptr);
        made->number = number;
        made->next.set(next);
        CHECK(made->next.get() == next && made->next == pmo::far<node>::to(made, next));
        if (next != nullptr) {
            CHECK(&*made->next == next && made->next->number == number + 1 && made->next.index() != 0);
            CHECK(made->next != pmo::far<node>::to(made, next, PMO_RIGHT_READ));
            CHECK(pmo::far<node>::from_word(made->next.word()) == made->next);
        }
        next = made;
    }
    auto &root = heaps[0].root<route>("list");
    root.first.set(next);
    CHECK(root.first.index() == 0 && root.first.offset() == std::uint64_t(reinterpret_cast<char *>(next) - static_cast<char *>(heaps[0].data())));
    root.numbers[0].set(heaps[0].make<std::uint64_t>());
    root.numbers[1].set(&next->next->number);
    root.anything.set(next);
    const pmo::far<node> copy = next->next;
    CHECK(copy.get_from(next) == next->next.get());
    heaps[1].psync();
    heaps[0].psync();
}

static void walk(pmo::pool &pool, pmo::pool *other)
{
    pmo::heap heap = pool.heap_read("list");
    const auto *root = heap.find<route>("list");
    pool.add_to_space();
    const node *first = root->first.get();
    if (other != nullptr) {
        fails(PMO_ERR_DANGLING, "none of the 1 pools", [&] { first->next.get(); });
        other->add_to_space();
    }
    CHECK(*root->numbers[0] == 0 && *root->numbers[1] == 1 && root->anything.get() == first);
    std::uint64_t number = 0;
    for (const node *at = first; at != nullptr; at = at->next.get())
        CHECK(at->number == number++);
    CHECK(number == length);
    if (other != nullptr)
        other->remove_from_space();
}

static void wrong(pmo::pool &pool, pmo::pool &other)
{
    pmo::heap heap = pool.heap("list", 0);
    pool.add_to_space();
    other.add_to_space();
    auto *root = heap.find<route>("list");
    node *first = root->first.get();
    node outside;
    fails(PMO_ERR_NOT_ATTACHED, "no attached object", [&] { outside.next.set(first); });
    fails(PMO_ERR_NOT_ATTACHED, "no attached object", [&] { first->next.set(&outside); });
    const pmo::far<node> kept = first->next;
    first->next = nullptr;
    fails(PMO_ERR_DANGLING, "null", [&] { (void)first->next->number; });
    first->next = kept;
    fails(PMO_ERR_DANGLING, "no entry 77", [&] { pmo::far<node>::from_word(std::uint64_t{77} << 40 | 8).get_from(first); });
    fails(PMO_ERR_DANGLING, "0x100000", [&] { pmo::far<node>::from_word((1 << 20) - 8).get_from(first); });
    fails(PMO_ERR_ARGUMENT, "the rights are 9", [&] { first->next.set(first, 9); });
    CHECK(first->next->number == 1);
    fails(PMO_ERR_ROOT_TYPE, "list", [&] { heap.find<std::array<std::uint64_t, 4>>("list"); });
}

int main(int argc, char **argv)
try {
    const std::string step = argv[argc - 1];
    auto open = [&](const char *path) { return step == "make" ? pmo::pool::format(path, 16 << 20) : pmo::pool(path); };
    pmo::pool pool = open(argv[1]);
    if (argc == 3) {
        walk(pool, nullptr);
    } else {
        pmo::pool other = open(argv[2]);
        if (step == "make")
            make(pool, other);
        else if (step == "walk")
            walk(pool, &other);
        else
            wrong(pool, other);
    }
    std::cout << "done\n";
} catch (const pmo::error &error) {
    std::cerr << error.what() << "\n";
    return 1;
}
