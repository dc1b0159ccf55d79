// Transactions on transactional objects. Part of pmo.hpp.
//
//     struct bank { pmo::tx_cell<long> accounts[64]; };
//     auto accounts = pool.attach_transactional<bank>("bank");
//     accounts.transaction([&](pmo::tx &tx) {
//         accounts->accounts[1].set(tx, accounts->accounts[1].get(tx) - 30);
//         accounts->accounts[2].set(tx, accounts->accounts[2].get(tx) + 30);
//     }); // durable
#ifndef PMO_TRANSACTION_HPP
#define PMO_TRANSACTION_HPP

#include <pmo.h>

#include <pmo/error.hpp>
#include <pmo/types.hpp>

#include <cstddef>
#include <functional>
#include <new>
#include <type_traits>
#include <utility>
#include <vector>

namespace pmo {

class tx;

namespace detail {

// Thrown through a function that is run again: no std::exception, so that few handlers take it.
struct tx_conflict {};

template <class F> auto run(F &body, void *const *objects, std::size_t count) -> decltype(body(std::declval<tx &>()));

} // namespace detail

// The transaction that runs, in the function that was given to pmo::transaction. It belongs to that
// function's thread.
class tx {
public:
    tx(const tx &) = delete;
    tx &operator=(const tx &) = delete;

    // The value at an address in an object of the transaction.
    template <class T> std::remove_const_t<T> load(T *from)
    {
        static_assert(std::is_trivially_copyable<T>::value, "a value in an object is a number, a pointer, or a struct of such");
        std::remove_const_t<T> value;
        step(pmo_tx_read(running_, from, &value, sizeof value));
        return value;
    }
    // Stores a value there, if the transaction commits.
    template <class T> void store(T *to, const T &value)
    {
        static_assert(std::is_trivially_copyable<T>::value, "a value in an object is a number, a pointer, or a struct of such");
        step(pmo_tx_write(running_, to, &value, sizeof value));
    }
    void read(const void *from, void *into, std::size_t size) { step(pmo_tx_read(running_, from, into, size)); }
    void write(void *to, const void *from, std::size_t size) { step(pmo_tx_write(running_, to, from, size)); }
    // Bytes for count values of T in the heap of an object of the transaction, given by any address
    // in it, if the transaction commits; they may be anything. A full heap grows, and the function
    // is run again; pmo::bad_alloc if it cannot grow. An object has a heap if a root made one, and
    // none if it was attached as a T: PMO_ERR_NOT_A_HEAP.
    template <class T> T *alloc(const void *object, std::size_t count = 1)
    {
        static_assert(std::is_trivially_copyable<T>::value, "a value in an object is a number, a pointer, or a struct of such");
        static_assert(alignof(T) <= 16, "blocks are aligned to 16 bytes");
        if (count > static_cast<std::size_t>(-1) / sizeof(T))
            throw std::bad_array_new_length();
        return static_cast<T *>(got(pmo_tx_alloc(running_, object, count * sizeof(T))));
    }
    // Frees a block of alloc, if the transaction commits.
    void free(void *block) { step(pmo_tx_free(running_, block)); }
    // The root of this name and type in the heap of an object of the transaction; a new one is all
    // zeros, and makes a heap of a blank object.
    void *root(const void *object, const char *name, const pmo_type *type)
    {
        return got(pmo_tx_root(running_, object, name, type));
    }
    // Runs it beside no other transaction of its pool, from its beginning on.
    void alone() { step(pmo_tx_alone(running_)); }
    // Has a function called once it is durable, in the order of these calls; the function does not
    // throw.
    void on_commit(std::function<void()> action) { commit_.push_back(std::move(action)); }
    // Has a function called if this run of it does not commit, the last call first; the function
    // does not throw.
    void on_abort(std::function<void()> action) { abort_.push_back(std::move(action)); }

private:
    template <class F>
    friend auto detail::run(F &body, void *const *objects, std::size_t count) -> decltype(body(std::declval<tx &>()));

    tx(void *const *objects, std::size_t count) : running_(detail::check(pmo_tx_begin(objects, count))) {}
    ~tx()
    {
        if (running_ != nullptr)
            pmo_tx_abort(running_);
        undone();
    }

    void step(int done)
    {
        if (done == 0)
            return;
        if (pmo_errno() != PMO_ERR_CONFLICT)
            throw failure();
        conflict_ = true;
        throw detail::tx_conflict();
    }
    void *got(void *address)
    {
        if (address == nullptr && pmo_errno() == PMO_ERR_CONFLICT)
            step(-1);
        return detail::check_block(address);
    }
    bool commit()
    {
        if (conflict_)
            return false;
        const int committed = pmo_tx_commit(running_);
        if (committed == 1)
            return false;
        running_ = nullptr;
        detail::check(committed);
        abort_.clear();
        done(std::exchange(commit_, {}));
        return true;
    }
    void again()
    {
        conflict_ = false;
        const bool begun = pmo_tx_again(running_) == 0;
        undone();
        if (!begun) {
            running_ = nullptr;
            throw failure();
        }
    }
    void undone() noexcept
    {
        commit_.clear();
        for (; !abort_.empty(); abort_.pop_back())
            abort_.back()();
    }
    static void done(std::vector<std::function<void()>> actions) noexcept
    {
        for (auto &action : actions)
            action();
    }

    pmo_tx *running_;
    bool conflict_ = false;
    std::vector<std::function<void()>> commit_, abort_;
};

// A value that transactions alone read and change. It is where its object is, and has no value of
// its own otherwise.
template <class T> class tx_cell {
    static_assert(std::is_trivially_copyable<T>::value, "a value in an object is a number, a pointer, or a struct of such");

public:
    T get(tx &in) const { return in.load(&value_); }
    void set(tx &in, const T &value) { in.store(&value_, value); }

private:
    T value_;
};

namespace detail {

template <class F> auto run(F &body, void *const *objects, std::size_t count) -> decltype(body(std::declval<tx &>()))
{
    for (tx running(objects, count);; running.again()) {
        try {
            if constexpr (std::is_void<decltype(body(running))>::value) {
                body(running);
                if (running.commit())
                    return;
            } else {
                auto value = body(running);
                if (running.commit())
                    return value;
            }
        } catch (...) {
            // After a conflict, an exception of its own says nothing of its data.
            if (!running.conflict_)
                throw;
        }
    }
}

} // namespace detail

// An attached transactional object, or one on demand, which begins with a T. A plain load or store
// of it is a SIGSEGV: tx_cell, tx::load and tx::store take addresses in it. The destructor detaches
// it.
template <class T> class transactional {
    static_assert(std::is_trivially_copyable<T>::value, "an object has numbers, pointers, tx_cells, and structs of such");

public:
    explicit transactional(void *base) noexcept : base_(base) {}
    transactional(transactional &&other) noexcept : base_(std::exchange(other.base_, nullptr)) {}
    transactional &operator=(transactional &&other) noexcept
    {
        std::swap(base_, other.base_);
        return *this;
    }
    ~transactional()
    {
        if (base_ != nullptr)
            pmo_detach(base_);
    }

    T *data() const noexcept { return static_cast<T *>(base_); }
    T *operator->() const noexcept { return data(); }
    T &operator*() const noexcept { return *data(); }

    // Runs a transaction on this object alone: see pmo::transaction.
    template <class F> auto transaction(F &&body) const { return detail::run(body, &base_, 1); }
    // Returns when all transactions of this thread on objects on demand of the pool are durable
    // (pmo_tx_sync).
    void tx_sync() const { detail::check(pmo_tx_sync(base_)); }
    // Commits on demand that a power cut would take (pmo_tx_pending).
    pmo_pending pending() const
    {
        pmo_pending pending;
        detail::check(pmo_tx_pending(base_, &pending));
        return pending;
    }

private:
    void *base_;
};

// A transactional object, or one on demand, that is used as a heap: nothing but blocks and roots is
// in it.
class transactional_heap : public transactional<std::byte> {
public:
    using transactional<std::byte>::transactional;

    // The root of this name and type; a new one is all zeros.
    template <class T> T *root(tx &in, const char *name) const
    {
        return static_cast<T *>(in.root(data(), name, type_of<T>::get()));
    }
    // Bytes for count values of T, which may be anything: tx::alloc.
    template <class T> T *alloc(tx &in, std::size_t count = 1) const { return in.alloc<T>(data(), count); }
};

// Runs body(tx) as a transaction on these objects of one pool, and returns what it returned, once
// all that it changed is durable, or, on demand, outlives the process. It is run again if it meets
// another one, so that it does nothing that cannot be done again. An exception undoes it, and is
// rethrown.
template <class F, class... T> auto transaction(F &&body, const transactional<T> &...objects)
{
    static_assert(sizeof...(T) > 0, "a transaction needs an object at least");
    void *const all[] = {objects.data()...};
    return detail::run(body, all, sizeof...(T));
}

} // namespace pmo

#endif
