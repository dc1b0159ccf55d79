// Transactions in C++: transactions.cpp POOL
#include "check.hpp"
#include <array>
#include <pmo.hpp>
#include <stdexcept>
#include <thread>

struct note {
    long value;
    note *next;
};
PMO_DESCRIBE(note, PMO_MEMBER(value), PMO_MEMBER(next))

namespace {

constexpr int accounts = 32, threads = 4;

struct bank {
    pmo::tx_cell<long> balances[accounts];
    pmo::tx_cell<bank *> self;
    pmo::tx_cell<double> rate;
    pmo::tx_cell<char> letter;
    pmo::tx_cell<unsigned short> number;
    long plain;
};

pmo::transactional<bank> attached(pmo::pool &pool, const char *name)
{
    pmo_create_options options{};
    options.size = sizeof(bank);
    options.durability = PMO_DURABILITY_TRANSACTIONAL;
    pool.create(name, options);
    return pool.attach_transactional<bank>(name);
}

template <class F> int code_of(F &&call)
{
    try {
        call();
    } catch (const pmo::error &error) {
        return error.code();
    }
    return 0;
}

struct meets {
    pmo::transactional<bank> &object;
    int runs = 0;

    void operator()(pmo::tx &tx)
    {
        const long before = object->balances[5].get(tx);
        if (++runs == 1)
            std::thread([&] { object.transaction([&](pmo::tx &tx) { object->balances[5].set(tx, before + 1); }); }).join();
        object->balances[6].set(tx, object->balances[5].get(tx) + before);
    }
};

} // namespace

int main(int, char **arguments)
{
    auto pool = pmo::pool::open_or_format(arguments[1], 64 << 20);
    auto first = attached(pool, "first");
    auto second = attached(pool, "second");

    first.transaction([&](pmo::tx &tx) {
        for (auto &balance : first->balances)
            balance.set(tx, 100);
        first->self.set(tx, first.data());
        first->rate.set(tx, 0.25);
        first->letter.set(tx, 'x');
        first->number.set(tx, 65535);
        tx.store(&first->plain, 77L);
    });
    const double rate = first.transaction([&](pmo::tx &tx) { return first->self.get(tx)->rate.get(tx); });
    CHECK(rate == 0.25);
    CHECK(first.transaction([&](pmo::tx &tx) { return first->letter.get(tx) == 'x' && first->number.get(tx) == 65535; }));
    CHECK(first.transaction([&](pmo::tx &tx) { return tx.load(&first->plain); }) == 77);

    std::string said;
    try {
        pmo::transaction(
            [&](pmo::tx &tx) {
                first->balances[0].set(tx, 0);
                second->balances[0].set(tx, 1);
                tx.on_commit([&] { said += "committed"; });
                tx.on_abort([&] { said += "last;"; });
                tx.on_abort([&] { said += "first;"; });
                throw std::string("no");
            },
            first, second);
        CHECK(!"thrown");
    } catch (const std::string &thrown) {
        CHECK(thrown == "no" && said == "first;last;");
    }
    CHECK(first.transaction([&](pmo::tx &tx) { return first->balances[0].get(tx); }) == 100);
    CHECK(second.transaction([&](pmo::tx &tx) { return second->balances[0].get(tx); }) == 0);
    first.transaction([&](pmo::tx &tx) {
        tx.on_commit([&] { said = "committed"; });
        tx.on_abort([&] { said = "aborted"; });
        tx.alone();
        first->balances[0].set(tx, 99);
    });
    CHECK(said == "committed");

    meets body{first};
    first.transaction(body);
    CHECK(body.runs == 2);
    CHECK(first.transaction([&](pmo::tx &tx) { return first->balances[6].get(tx); }) == 202);
    int runs = 0;
    first.transaction([&](pmo::tx &tx) {
        try {
            runs++;
            tx.alone();
        } catch (...) {
            throw std::runtime_error("of a run that met another one");
        }
        first->balances[7].set(tx, 1);
    });
    CHECK(runs == 2);

    first.transaction([&](pmo::tx &tx) {
        CHECK(code_of([&] { first.transaction([](pmo::tx &) {}); }) == PMO_ERR_IN_TRANSACTION);
        CHECK(code_of([&] { second->balances[0].set(tx, 5); }) == PMO_ERR_NOT_ATTACHED);
        first->balances[8].set(tx, 5);
    });
    CHECK(first.transaction([&](pmo::tx &tx) { return first->balances[8].get(tx); }) == 5);
    struct larger {
        pmo::tx_cell<std::array<char, 100000>> bytes;
    };
    CHECK(code_of([&] { pool.attach_transactional<larger>("missing"); }) == PMO_ERR_NOT_FOUND);
    pool.create("small", 4096);
    pool.set_durability("small", PMO_DURABILITY_TRANSACTIONAL);
    CHECK(code_of([&] { pool.attach_transactional<larger>("small"); }) == PMO_ERR_BAD_SIZE);
    pool.set_durability("small", PMO_DURABILITY_PSYNC);
    CHECK(pool.stat("small").durability == PMO_DURABILITY_PSYNC);

    first.transaction([&](pmo::tx &tx) {
        CHECK(code_of([&] { tx.alloc<long>(first.data()); }) == PMO_ERR_NOT_A_HEAP);
        CHECK(code_of([&] { tx.root(first.data(), "note", pmo::type_of<note>::get()); }) == PMO_ERR_NOT_A_HEAP);
        CHECK(first->balances[8].get(tx) == 5 && first->balances[9].get(tx) == 100);
    });
    {
        auto heap = pool.transactional_heap("notes", 65536);
        pmo::transaction(
            [&](pmo::tx &tx) {
                auto *root = heap.root<note>(tx, "note");
                auto *next = heap.alloc<note>(tx);
                tx.store(next, note{7, tx.load(&root->next)});
                tx.store(&root->next, next);
                first->balances[8].set(tx, 6);
                CHECK(code_of([&] { tx.free(root); }) == PMO_ERR_ROOT_EXISTS);
            },
            first, heap);
    }
    auto notes = pool.transactional_heap("notes", 65536);
    CHECK(notes.transaction([&](pmo::tx &tx) { return tx.load(&tx.load(&notes.root<note>(tx, "note")->next)->value); }) == 7);
    first.transaction([&](pmo::tx &tx) { first->balances[8].set(tx, 5); });

    std::vector<std::thread> running;
    for (int me = 0; me < threads; me++)
        running.emplace_back([&, me] {
            for (int i = 0; i < 200; i++)
                pmo::transaction(
                    [&](pmo::tx &tx) {
                        auto &from = first->balances[(me + i) % accounts], &to = second->balances[i % accounts];
                        from.set(tx, from.get(tx) - 1);
                        to.set(tx, to.get(tx) + 1);
                    },
                    first, second);
        });
    for (auto &thread : running)
        thread.join();
    const auto sum = [](pmo::transactional<bank> &object) {
        return object.transaction([&](pmo::tx &tx) {
            long sum = 0;
            for (auto &balance : object->balances)
                sum += balance.get(tx);
            return sum;
        });
    };
    CHECK(sum(second) == threads * 200);
    const long left = sum(first);
    {
        auto gone = std::move(first);
    }
    auto again = pool.attach_transactional<bank>("first");
    CHECK(sum(again) == left);

    pool.set_epochs(0, 1 << 20);
    pmo_create_options options{};
    options.size = sizeof(bank);
    options.durability = PMO_DURABILITY_ON_DEMAND;
    pool.create("later", options);
    auto later = pool.attach_transactional<bank>("later");
    const auto count = [&](pmo::tx &tx) { later->balances[0].set(tx, later->balances[0].get(tx) + 1); };
    later.transaction(count);
    later.transaction(count);
    CHECK(later.pending().transactions == 2 && later.pending().bytes == 64);
    later.tx_sync();
    CHECK(later.pending().transactions == 0 && later.pending().bytes == 0 && again.pending().bytes == 0);
    options.durability = PMO_DURABILITY_TRANSACTIONAL;
    pool.create("now", options);
    auto now = pool.attach_with_on_demand<bank>("now");
    later.transaction(count);
    pmo::transaction([&](pmo::tx &tx) { now->balances[0].set(tx, later->balances[0].get(tx)); }, now, later);
    CHECK(later.pending().transactions == 0);
    CHECK(now.transaction([&](pmo::tx &tx) { return now->balances[0].get(tx); }) == 3);
    CHECK(code_of([&] { later.transaction([](pmo::tx &tx) { tx.alone(); }); }) == PMO_ERR_CLASS_MISMATCH);
    std::puts("done");
}
