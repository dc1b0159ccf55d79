// Pointers from object to object. Part of pmo.hpp.
#ifndef PMO_FAR_HPP
#define PMO_FAR_HPP

#include <pmo/error.hpp>
#include <pmo/types.hpp>

#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace pmo {

// A pointer to a T in the same object, or in another one in any pool (pmo_ptr): 64 bits that mean
// the same wherever the objects lie. They belong to the pointer's object; a copy in another object
// needs its own, by set() or to().
template <class T> class far {
public:
    using element_type = T;

    constexpr far() noexcept = default;
    constexpr far(std::nullptr_t) noexcept {}
    static constexpr far from_word(pmo_ptr word) noexcept
    {
        far made;
        made.word_ = word;
        return made;
    }
    // For an object that contains home: to a target in the same or another attached object
    // (pmo_store). The entry asks for these rights; a const target's are for reading alone.
    static far to(const void *home, T *target, unsigned rights = asked)
    {
        if (target == nullptr)
            return {};
        const pmo_ptr word = pmo_store(home, target, rights);
        detail::check(word == 0 ? -1 : 0);
        return from_word(word);
    }

    // The bits, the number of the entry (0: the pointer's own object), and the offset in the
    // target's object.
    constexpr pmo_ptr word() const noexcept { return word_; }
    constexpr std::uint32_t index() const noexcept { return static_cast<std::uint32_t>(word_ >> 40); }
    constexpr std::uint64_t offset() const noexcept { return word_ & ((std::uint64_t{1} << 40) - 1); }
    constexpr explicit operator bool() const noexcept { return word_ != 0; }

    // The target of a pointer in an object, or nullptr. An object reached for the first time is
    // attached for reading, and stays so until pmo_detach (pmo_lea). A dangling pointer is a
    // failure with PMO_ERR_DANGLING.
    T *get() const { return get_from(this); }
    // For a copy of a pointer: home is an address in its object.
    T *get_from(const void *home) const { return word_ == 0 ? nullptr : follow(home); }
    // A null pointer is a failure as well.
    T *operator->() const { return follow(this); }
    std::add_lvalue_reference_t<T> operator*() const { return *follow(this); }

    // Points a pointer in an object at target, or nowhere.
    void set(T *target, unsigned rights = asked) { *this = to(this, target, rights); }

    // Whether two pointers in the same object have the same bits. A target with two entries, for
    // other rights, has two.
    friend constexpr bool operator==(far one, far other) noexcept { return one.word_ == other.word_; }
    friend constexpr bool operator!=(far one, far other) noexcept { return one.word_ != other.word_; }

private:
    static constexpr unsigned asked =
        std::is_const_v<T> ? unsigned{PMO_RIGHT_READ} : unsigned{PMO_RIGHT_READ} | unsigned{PMO_RIGHT_WRITE};

    static constexpr std::size_t needed()
    {
        if constexpr (std::is_void_v<T>)
            return 1;
        else
            return sizeof(T);
    }
    T *follow(const void *home) const { return static_cast<T *>(detail::check(pmo_lea(home, word_, needed()))); }

    pmo_ptr word_ = 0;
};

namespace detail {

// A far pointer's target, if it is described; evaluated when all types are declared.
template <class T> std::vector<pmo_field> far_target()
{
    if constexpr (std::is_class_v<T> || std::is_arithmetic_v<T>) {
        if constexpr (is_described<std::remove_cv_t<T>>)
            return {pmo_field{"target", "", 0, sizeof(T), get<T>, nullptr}};
    }
    return {};
}

} // namespace detail

template <class T> struct type_of<far<T>> {
    static std::string name() { return "far pointer"; }
    static const pmo_type *get()
    {
        static const detail::made_type made(PMO_FAR, name(), sizeof(far<T>), alignof(far<T>), detail::far_target<T>());
        return made.get();
    }
};

} // namespace pmo

#endif
