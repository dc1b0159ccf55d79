// A lock for threads, in an object. Part of pmo.hpp.
#ifndef PMO_MUTEX_HPP
#define PMO_MUTEX_HPP

#include <pmo/types.hpp>

#include <atomic>
#include <cstdint>
#include <random>

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace pmo {
namespace detail {

// The number of this run of the program: even, and never 0 in its lower half.
inline std::uint64_t number_of_run()
{
    static const std::uint64_t number = [] {
        std::random_device random;
        return std::uint64_t{random()} << 32 | (std::uint64_t{random()} & ~std::uint64_t{3}) | 2;
    }();
    return number;
}

} // namespace detail

// As std::mutex, for threads of the process that has the object attached; std::lock_guard takes it.
// A lock held at the program's death, or at a psync, is free in the next run. No thread holds it
// when the object is detached.
class mutex {
public:
    constexpr mutex() noexcept = default;
    mutex(const mutex &) = delete;
    mutex &operator=(const mutex &) = delete;

    bool try_lock() noexcept { return take(detail::number_of_run()); }

    void lock() noexcept
    {
        const std::uint64_t run = detail::number_of_run(), awaited = run | 1;
        for (int spins = 0; spins < 100; spins++)
            if (take(run))
                return;
        while (!take(awaited)) {
            std::uint64_t held = run;
            // The unlocking thread sees that another one waits.
            if (word_.compare_exchange_strong(held, awaited) || held == awaited)
                syscall(SYS_futex, &word_, FUTEX_WAIT_PRIVATE, static_cast<std::uint32_t>(awaited), nullptr, nullptr, 0);
        }
    }

    void unlock() noexcept
    {
        if (word_.exchange(0, std::memory_order_release) & 1)
            syscall(SYS_futex, &word_, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
    }

private:
    // Takes it if no thread of this run holds it.
    bool take(std::uint64_t as) noexcept
    {
        std::uint64_t found = word_.load(std::memory_order_relaxed);
        while ((found | 1) != (as | 1))
            if (word_.compare_exchange_weak(found, as, std::memory_order_acquire, std::memory_order_relaxed))
                return true;
        return false;
    }

    // The run whose thread holds it, plus 1 if another one waits; 0, or another run: it is free.
    std::atomic<std::uint64_t> word_{0};
};
static_assert(sizeof(mutex) == 8 && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
              "waiters sleep on the lower half of the word");

template <> struct type_of<mutex> {
    static std::string name() { return "pmo::mutex"; }
    static const pmo_type *get()
    {
        static const detail::made_type made(PMO_STRUCT, name(), sizeof(mutex), alignof(mutex),
                                            {detail::part<std::uint64_t>("word", 0)});
        return made.get();
    }
};

} // namespace pmo

#endif
