// Persistent variables in C++: found by name and type, with their initial value the first time.
//
//     static const pmo::persistent<std::uint64_t> hits("hits", 0);
//     ...
//     pmo::statics statics; // of the pool that PMO_POOL names
//     statics.transaction([&](pmo::tx &tx) { hits.set(tx, statics, hits.get(tx, statics) + 1); });
//
// They are those of pmo/static.h in C and of persistent! in Rust, if name and type agree.
#ifndef PMO_STATIC_HPP
#define PMO_STATIC_HPP

#include <pmo.hpp>
#include <pmo/static.h>

namespace pmo {

// The persistent variables of a pool, attached, and made if missing. One process has them at a
// time; others wait as pool::wait says.
class statics {
public:
    // Uses the pool that PMO_POOL names.
    statics() : statics(static_cast<pmo_pool *>(nullptr)) {}
    explicit statics(const pool &of) : statics(of.handle()) {}
    statics(const statics &) = delete;
    statics &operator=(const statics &) = delete;
    ~statics() { pmo_detach(base_); }

    void *base() const noexcept { return base_; }

    // See pmo::transaction.
    template <class F> auto transaction(F &&body) const { return detail::run(body, &base_, 1); }

private:
    explicit statics(pmo_pool *of) : base_(detail::check(pmo_attach_statics(of))) {}

    void *base_;
};

namespace detail {

// C's names of numbers, and of arrays of them, so that variables of both languages have one type.
// Empty for other types.
template <class T> struct name_in_c {
    static std::string text()
    {
        if constexpr (std::is_same<T, double>::value)
            return "double";
        else if constexpr (std::is_same<T, float>::value)
            return "float";
        else if constexpr (std::is_integral<T>::value && !std::is_same<T, bool>::value && !std::is_same<T, char>::value)
            return (std::is_signed<T>::value ? "int" : "uint") + std::to_string(8 * sizeof(T)) + "_t";
        else
            return {};
    }
};
template <class T, std::size_t N> struct name_in_c<std::array<T, N>> {
    static std::string text()
    {
        const std::string element = name_in_c<T>::text();
        return element.empty() ? element : element + "[" + std::to_string(N) + "]";
    }
};

} // namespace detail

// A persistent variable: a number, an array of such, a pointer into an object, or a struct that
// PMO_DESCRIBE knows.
template <class T> class persistent {
    static_assert(std::is_trivially_copyable<T>::value, "a value in an object is a number, a pointer, or a struct of such");

    struct made {
        T value;
        std::uint64_t set;
    };

public:
    persistent(const char *name, const T &initial)
        : name_(name), text_(detail::name_in_c<T>::text()),
          type_(PMO_STRUCT, std::string("static ") + name, sizeof(made), alignof(made),
                {text_.empty() ? detail::part<T>("value", offsetof(made, value))
                               : pmo_field{"value", text_.c_str(), offsetof(made, value), sizeof(T), nullptr, nullptr},
                 pmo_field{"made", "uint64_t", offsetof(made, set), sizeof(std::uint64_t), nullptr, nullptr}}),
          initial_(initial)
    {
    }
    persistent(const persistent &) = delete;
    persistent &operator=(const persistent &) = delete;

    T get(tx &in, const statics &of) const { return in.load(at(in, of)); }
    void set(tx &in, const statics &of, const T &value) const { in.store(at(in, of), value); }

    // Its address, for tx::load and tx::store. PMO_ERR_ROOT_TYPE: it exists with another type.
    T *at(tx &in, const statics &of) const
    {
        auto *root = static_cast<made *>(in.root(of.base(), name_, type_.get()));
        if (in.load(&root->set) == 0) {
            in.store(&root->value, initial_);
            in.store(&root->set, std::uint64_t(1));
        }
        return &root->value;
    }

private:
    const char *name_;
    std::string text_;
    detail::made_type type_;
    T initial_;
};

} // namespace pmo

#endif
