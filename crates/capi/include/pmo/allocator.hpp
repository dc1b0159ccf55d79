// Allocators for containers in an object. Part of pmo.hpp.
#ifndef PMO_ALLOCATOR_HPP
#define PMO_ALLOCATOR_HPP

#include <pmo/error.hpp>
#include <pmo/persists.hpp>

#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <scoped_allocator>
#include <type_traits>
#include <utility>

namespace pmo {
namespace detail {

// Allocates in the object with this base. Its only state is that address, the same in every run:
// containers that keep an allocator may lie in the object.
template <class T> class object_allocator {
public:
    using value_type = T;
    // Elements, not blocks, move between objects.
    using propagate_on_container_copy_assignment = std::false_type;
    using propagate_on_container_move_assignment = std::false_type;
    using propagate_on_container_swap = std::false_type;
    using is_always_equal = std::false_type;

    explicit object_allocator(const void *address)
    {
        struct ::pmo_object known;
        check(::pmo_object(address, &known));
        base_ = known.base;
    }
    template <class U> object_allocator(const object_allocator<U> &other) noexcept : base_(other.base()) {}

    T *allocate(std::size_t count)
    {
        static_assert(persists<T>::value);
        if (count > static_cast<std::size_t>(-1) / sizeof(T))
            throw std::bad_array_new_length();
        if (base_ == nullptr)
            throw failure(PMO_ERR_NOT_ATTACHED, "allocate: this thread has no current object: make a pmo::current of one first");
        std::size_t size = count * sizeof(T);
        void *block = alignof(T) > 16 ? pmo_aligned_alloc(base_, alignof(T), size) : pmo_malloc(base_, size);
        return static_cast<T *>(check_block(block));
    }

    // A failure means that the program frees a block twice, or no block, as with std::free.
    void deallocate(T *block, std::size_t) noexcept
    {
        if (pmo_free(block) != 0) {
            std::fprintf(stderr, "%s\n", pmo_error_message());
            std::abort();
        }
    }

    void *base() const noexcept { return base_; }

    template <class U> bool operator==(const object_allocator<U> &other) const noexcept { return base_ == other.base(); }
    template <class U> bool operator!=(const object_allocator<U> &other) const noexcept { return base_ != other.base(); }

protected:
    struct known_base {
        void *base;
    };
    explicit object_allocator(known_base known) noexcept : base_(known.base) {}

private:
    void *base_;
};

#if defined(__has_builtin)
#if __has_builtin(__builtin_clear_padding)
#define PMO_CLEARS_PADDING
#endif
#endif

// Zeros the padding of a value in an object, which a copy has filled from the stack. Compilers can
// for types copied by their bytes (GCC from 11 on); members of such types in other classes keep
// their padding, but for pairs.
template <class U> void clear_padding([[maybe_unused]] U *value) noexcept
{
#ifdef PMO_CLEARS_PADDING
    if constexpr (std::is_trivially_copyable_v<U> && !std::has_unique_object_representations_v<U>)
        __builtin_clear_padding(const_cast<std::remove_cv_t<U> *>(value));
#endif
}
template <class A, class B> void clear_padding(std::pair<A, B> *value) noexcept
{
    clear_padding(std::addressof(value->first));
    clear_padding(std::addressof(value->second));
}

// Zeros the place of a value to be constructed member by member, by stores that the compiler keeps.
template <class U> void clear_place([[maybe_unused]] U *where) noexcept
{
    if constexpr (!std::is_trivially_copyable_v<U>) {
        std::memset(const_cast<void *>(static_cast<const volatile void *>(where)), 0, sizeof(U));
        __asm__ volatile("" : : "r"(where) : "memory");
    }
}

// Whether a class with an allocator_type takes a convertible allocator, first or last.
template <class U, class A, class... Args>
inline constexpr bool takes_its_allocator =
    !std::uses_allocator_v<U, std::decay_t<A>> || std::is_constructible_v<U, std::allocator_arg_t, A, Args...> ||
    std::is_constructible_v<U, Args..., A>;

// A default-made allocator knows no object.
template <class T> constexpr void without_an_object()
{
    static_assert(never<T>, "a container, string or key in an object is made with its allocator: heap.text(\"key\") makes a key, "
                            "heap.get_allocator() is for other containers, and a struct of containers says using allocator_type = "
                            "pmo::allocator<char>; and has a constructor that takes one");
}

// The base of the thread's current object, or nullptr.
inline void *&current_base() noexcept
{
    thread_local void *base = nullptr;
    return base;
}

} // namespace detail

// Passes itself on as the allocator to the values that it constructs: strings in vectors in maps
// are in the object, too. Without room it throws pmo::bad_alloc, a std::bad_alloc.
template <class T> class allocator : public detail::object_allocator<T> {
public:
    template <class U> struct rebind {
        using other = allocator<U>;
    };

    using detail::object_allocator<T>::object_allocator;
    allocator() noexcept : detail::object_allocator<T>(typename detail::object_allocator<T>::known_base{nullptr})
    {
        detail::without_an_object<T>();
    }
    template <class U> allocator(const allocator<U> &other) noexcept : detail::object_allocator<T>(other) {}
    template <class U> allocator(const detail::object_allocator<U> &other) noexcept : detail::object_allocator<T>(other) {}

    template <class U, class... Args> void construct(U *where, Args &&...args)
    {
        static_assert(detail::persists<U>::value);
        static_assert(detail::takes_its_allocator<U, detail::object_allocator<T> &, Args...>,
                      "its allocator_type says that it takes an allocator: give it a constructor whose last argument is a "
                      "const allocator_type &, and that hands it on to its containers");
        using scoped = std::scoped_allocator_adaptor<detail::object_allocator<T>>;
        detail::clear_place(where);
        scoped(static_cast<detail::object_allocator<T> &>(*this)).construct(where, std::forward<Args>(args)...);
        detail::clear_padding(where);
    }
};

// For containers that do not nest allocators, or use members older than std::allocator_traits: the
// program gives the allocator to elements that allocate.
template <class T> class plain_allocator : public detail::object_allocator<T> {
public:
    using size_type = std::size_t;
    using difference_type = std::ptrdiff_t;
    using pointer = T *;
    using const_pointer = const T *;
    using reference = std::add_lvalue_reference_t<T>;
    using const_reference = std::add_lvalue_reference_t<const T>;
    template <class U> struct rebind {
        using other = plain_allocator<U>;
    };

    using detail::object_allocator<T>::object_allocator;
    plain_allocator() noexcept : detail::object_allocator<T>(typename detail::object_allocator<T>::known_base{nullptr})
    {
        detail::without_an_object<T>();
    }
    template <class U> plain_allocator(const detail::object_allocator<U> &other) noexcept : detail::object_allocator<T>(other) {}

    T *allocate(size_type count, const void * = nullptr) { return detail::object_allocator<T>::allocate(count); }
    size_type max_size() const noexcept { return static_cast<size_type>(-1) / 2 / sizeof(T); }
    template <class U> U *address(U &value) const noexcept { return std::addressof(value); }
    template <class U, class... Args> void construct(U *where, Args &&...args)
    {
        static_assert(detail::persists<U>::value);
        detail::clear_place(where);
        ::new (static_cast<void *>(where)) U(std::forward<Args>(args)...);
        detail::clear_padding(where);
    }
    template <class U> void destroy(U *where) { where->~U(); }
};

// As plain_allocator, with a default constructor that takes the thread's current object
// (pmo::current), for containers that make their allocators themselves.
template <class T> class current_allocator : public plain_allocator<T> {
public:
    template <class U> struct rebind {
        using other = current_allocator<U>;
    };

    current_allocator() noexcept
        : plain_allocator<T>(typename detail::object_allocator<T>::known_base{detail::current_base()})
    {
    }
    using plain_allocator<T>::plain_allocator;
    template <class U> current_allocator(const detail::object_allocator<U> &other) noexcept : plain_allocator<T>(other) {}
};

} // namespace pmo

#endif
