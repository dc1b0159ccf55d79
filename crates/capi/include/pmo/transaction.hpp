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

// Thrown through a function that runs again: no std::exception, so that few handlers catch it.
struct tx_conflict {};

template <class F> auto run(F &body, void *const *objects, std::size_t count) -> decltype(body(std::declval<tx &>()));

} // namespace detail

// The running transaction, in the function given to pmo::transaction and in its thread.
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
    // Stores a value, if the transaction commits.
    template <class T> void store(T *to, const T &value)
    {
        static_assert(std::is_trivially_copyable<T>::value, "a value in an object is a number, a pointer, or a struct of such");
        step(pmo_tx_write(running_, to, &value, sizeof value));
    }
    void read(const void *from, void *into, std::size_t size) { step(pmo_tx_read(running_, from, into, size)); }
    void write(void *to, const void *from, std::size_t size) { step(pmo_tx_write(running_, to, from, size)); }
    // Undefined bytes for count values of T in the heap of an object of the transaction, given by
    // any address in it, if the transaction commits. A full heap grows, and the function runs
    // again; pmo::bad_alloc if it cannot grow. PMO_ERR_NOT_A_HEAP: no root has made a heap of the
    // object, or it was attached as a T.
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
    // The root of this name and type in an object's heap; a new one is all zeros, and makes a heap
    // of a blank object.
    void *root(const void *object, const char *name, const pmo_type *type)
    {
        return got(pmo_tx_root(running_, object, name, type));
    }
    // Runs alone in its pool, from the beginning on.
    void alone() { step(pmo_tx_alone(running_)); }
    // Calls a function once the transaction is durable, in the order of these calls; it does not
    // throw.
    void on_commit(std::function<void()> action) { commit_.push_back(std::move(action)); }
    // Calls a function if this run does not commit, the last call first; it does not throw.
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

// A value in an object that transactions alone read and change.
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
            // After a conflict, the function's own exception may stem from inconsistent data.
            if (!running.conflict_)
                throw;
        }
    }
}

} // namespace detail

// An attached transactional object, or one on demand, which begins with a T. Its plain loads and
// stores are a SIGSEGV: use tx_cell, tx::load and tx::store. The destructor detaches it.
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

    // See pmo::transaction.
    template <class F> auto transaction(F &&body) const { return detail::run(body, &base_, 1); }
    // Waits until this thread's commits on demand in the pool are durable (pmo_tx_sync).
    void tx_sync() const { detail::check(pmo_tx_sync(base_)); }
    // Commits on demand that a power cut would lose (pmo_tx_pending).
    pmo_pending pending() const
    {
        pmo_pending pending;
        detail::check(pmo_tx_pending(base_, &pending));
        return pending;
    }

private:
    void *base_;
};

// A transactional object, or one on demand, with blocks and roots alone.
class transactional_heap : public transactional<std::byte> {
public:
    using transactional<std::byte>::transactional;

    // A new root is all zeros.
    template <class T> T *root(tx &in, const char *name) const
    {
        return static_cast<T *>(in.root(data(), name, type_of<T>::get()));
    }
    // Undefined bytes for count values of T: tx::alloc.
    template <class T> T *alloc(tx &in, std::size_t count = 1) const { return in.alloc<T>(data(), count); }
};

// Runs body(tx) as a transaction on these objects of one pool, and returns its result once all
// changes are durable, or, on demand, outlive the process. After a conflict it runs again: its
// other effects must be repeatable. An exception undoes it, and is rethrown.
template <class F, class... T> auto transaction(F &&body, const transactional<T> &...objects)
{
    static_assert(sizeof...(T) > 0, "a transaction needs an object at least");
    void *const all[] = {objects.data()...};
    return detail::run(body, all, sizeof...(T));
}

} // namespace pmo

#endif
