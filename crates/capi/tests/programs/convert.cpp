// Three versions of a program in C++, whose item changes: convert POOL VERSION MODE.
#include <pmo.hpp>

#include <csignal>
#include <cstring>
#include <iostream>
#include <stdexcept>
#include <unistd.h>

namespace v1 {
struct item {
    using allocator_type = pmo::allocator<std::byte>;
    explicit item(const allocator_type &in) : name(in) {}
    std::int32_t number = 0;
    pmo::string name;
};
} // namespace v1
PMO_DESCRIBE_WAS(v1::item, "item", PMO_MEMBER(number), PMO_MEMBER(name))

namespace v2 {
struct item {
    item(std::int64_t number, const pmo::string &name) : number(number), names(name.get_allocator())
    {
        names.push_back(pmo::string(name, name.get_allocator()));
    }
    std::int64_t number;
    pmo::vector<pmo::string> names;
};
} // namespace v2
PMO_DESCRIBE_WAS(v2::item, "item", PMO_MEMBER(number), PMO_MEMBER(names))

struct item {
    using allocator_type = pmo::allocator<std::byte>;
    explicit item(const allocator_type &in) : names(in) {}
    item(std::int64_t number, const allocator_type &in) : number(number), names(in) {}
    std::int64_t number = 0;
    pmo::map<pmo::string, int> names;
};
PMO_DESCRIBE(item, PMO_MEMBER(number), PMO_MEMBER(names))

struct other {
    double half = 0.5;
};
PMO_DESCRIBE(other, PMO_MEMBER(half))

int main(int, char **argv)
{
    const std::string version = argv[2], mode = argv[3];
    pmo::pool pool = pmo::pool::open_or_format(argv[1], 16 << 20);
    pmo::heap heap = pool.heap("object", 1 << 20);
    const auto blocks = heap.stats().blocks;
    if (version == "1" && mode == "other") {
        heap.root<other>("item");
        heap.psync();
        return 0;
    }
    if (version == "1") {
        auto &old = heap.root<v1::item>("item");
        if (mode == "write") {
            old.number = -5;
            old.name = "a name that is too long for the place of short ones";
            heap.psync();
        }
        std::cout << old.number << " " << old.name.size() << ", " << blocks << " blocks\n";
        return 0;
    }
    auto first = pmo::convert<v1::item, v2::item>([&](const v1::item &old, pmo::heap &) {
        v2::item fresh(old.number, old.name);
        if (mode == "throw")
            throw std::runtime_error("no");
        if (mode == "kill")
            kill(getpid(), SIGKILL);
        if (mode == "full")
            for (;;)
                fresh.names.push_back(pmo::string(old.name, old.name.get_allocator()));
        return fresh;
    });
    auto second = pmo::convert<v2::item, item>([&](const v2::item &old, pmo::heap &in) {
        item fresh(old.number, in.get_allocator());
        for (const auto &name : old.names)
            fresh.names.emplace(pmo::string(name, in.get_allocator<char>()), 1);
        if (mode == "throw late")
            throw 7;
        return fresh;
    });
    auto told = [](const pmo_reset &reset) {
        std::cout << "reset " << reset.root << ", a " << reset.old_type << ": " << reset.blocks << " blocks\n";
    };
    try {
        auto &now = mode == "reset" ? heap.root_from<item>("item", pmo::or_reset(told))
                                    : heap.root_from<item>("item", first, second);
        std::cout << now.number << " " << now.names.size() << "\n";
        if (heap.find<item>("item") != &now)
            return 1;
        heap.psync();
    } catch (const std::bad_alloc &error) {
        std::cout << "bad_alloc: " << error.what() << "\n";
    } catch (const std::exception &error) {
        std::cout << error.what() << "\n";
    } catch (int thrown) {
        std::cout << thrown << "\n";
    }
    if (heap.stats().blocks != blocks && mode != "open" && mode != "reset")
        return 1;
}
