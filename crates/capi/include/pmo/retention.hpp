// Roots whose types change between versions of a program: the steps of heap::root_from.
#ifndef PMO_RETENTION_HPP
#define PMO_RETENTION_HPP

#include <pmo.h>

#include <pmo/types.hpp>

#include <cstddef>
#include <exception>
#include <new>
#include <type_traits>
#include <utility>
#include <vector>

namespace pmo {

class heap;

namespace detail {

// A root that is being opened: the steps, and the first exception of one.
struct opening {
    heap &in;
    void (*construct)(heap &in, void *value);
    std::vector<pmo_converter> converters;
    pmo_root_options options = {};
    const void *told = nullptr;
    void (*tell)(const void *told, const pmo_reset &reset) = nullptr;
    std::exception_ptr failed;

    template <class Body> int caught(Body body) noexcept
    {
        try {
            body();
            return 0;
        } catch (...) {
            if (!failed)
                failed = std::current_exception();
            return 1;
        }
    }
    static int make(void *value, void *context) noexcept
    {
        auto &self = *static_cast<opening *>(context);
        return self.caught([&] { self.construct(self.in, value); });
    }
    static void on_reset(const pmo_reset *reset, void *context) noexcept
    {
        auto &self = *static_cast<opening *>(context);
        self.caught([&] { self.tell(self.told, *reset); });
    }
};

template <class Old, class New, class F> class conversion {
public:
    explicit conversion(F &&convert) : convert_(std::move(convert)) {}

    void join(opening &opening)
    {
        opening_ = &opening;
        opening.converters.push_back({type_of<Old>::get(), type_of<New>::get(), run, drop, this});
    }

private:
    static int run(const void *old_value, void *new_value, void *context) noexcept
    {
        auto &self = *static_cast<conversion *>(context);
        return self.opening_->caught([&] {
            clear_place(static_cast<New *>(new_value));
            clear_padding(::new (new_value) New(self.convert_(*static_cast<const Old *>(old_value), self.opening_->in)));
        });
    }
    static void drop(void *old_value, void *) noexcept { static_cast<Old *>(old_value)->~Old(); }

    F convert_;
    opening *opening_ = nullptr;
};

template <class F> class reset_step {
public:
    explicit reset_step(F &&told) : told_(std::move(told)) {}

    void join(opening &opening)
    {
        opening.told = &told_;
        opening.tell = [](const void *told, const pmo_reset &reset) { (*static_cast<const F *>(told))(reset); };
        opening.options.told = opening::on_reset;
    }

private:
    F told_;
};

} // namespace detail

// A step of heap::root_from: makes a New of an Old by a function of (const Old &, pmo::heap &),
// which leaves the old value unchanged.
template <class Old, class New, class F> detail::conversion<Old, New, std::decay_t<F>> convert(F &&function)
{
    static_assert(std::is_invocable_r_v<New, std::decay_t<F> &, const Old &, heap &>,
                  "a converter takes a const Old & and a pmo::heap &, and returns a New");
    return detail::conversion<Old, New, std::decay_t<F>>(std::decay_t<F>(std::forward<F>(function)));
}

// A step of heap::root_from: makes a root anew if no converter takes its type. Its blocks are freed,
// and the function is called with a const pmo_reset &.
template <class F> detail::reset_step<std::decay_t<F>> or_reset(F &&told)
{
    return detail::reset_step<std::decay_t<F>>(std::decay_t<F>(std::forward<F>(told)));
}

} // namespace pmo

#endif
