// Refusals, when they are compiled, of types that mean nothing in the next run of a program. Part of pmo.hpp.
#ifndef PMO_PERSISTS_HPP
#define PMO_PERSISTS_HPP

#include <any>
#include <array>
#include <functional>
#include <memory>
#include <optional>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>

namespace pmo {
namespace detail {

// Whether a container takes its memory from the process.
template <class T, class = void> struct allocates_in_the_process : std::false_type {};
template <class T>
struct allocates_in_the_process<T, std::void_t<typename T::allocator_type::value_type>>
    : std::is_same<typename T::allocator_type, std::allocator<typename T::allocator_type::value_type>> {
};

template <class T> struct is_shared : std::false_type {};
template <class T> struct is_shared<std::shared_ptr<T>> : std::true_type {};
template <class T> struct is_shared<std::weak_ptr<T>> : std::true_type {};

template <class T> struct is_deleted_by_the_process : std::false_type {};
template <class T> struct is_deleted_by_the_process<std::unique_ptr<T, std::default_delete<T>>> : std::true_type {};

template <class T> struct is_erased : std::is_same<T, std::any> {};
template <class T> struct is_erased<std::function<T>> : std::true_type {};

// Does not compile for types that cannot be in an object, as far as that can be seen from outside.
template <class T> struct persists {
    static_assert(!std::is_reference_v<T>, "a reference cannot be stored anew when its target moves: keep a pointer");
    static_assert(!(std::is_pointer_v<T> && std::is_function_v<std::remove_pointer_t<T>>),
                  "a function is elsewhere in the next run: keep a number or a name that stands for it");
    static_assert(!std::is_member_function_pointer_v<T>,
                  "a member function is elsewhere in the next run: keep a number or a name that stands for it");
    static_assert(!std::is_polymorphic_v<T>,
                  "the table of virtual functions is elsewhere in the next run: keep a std::variant, or a number for the kind");
    static_assert(!is_erased<T>::value, "std::function and std::any point to code, which is elsewhere in the next run");
    static_assert(!is_shared<T>::value, "std::shared_ptr points to a table of functions, which is elsewhere in the next run");
    static_assert(!is_deleted_by_the_process<T>::value,
                  "std::unique_ptr deletes with the process's heap: keep a pointer from heap.make<T>() for heap.destroy()");
    static_assert(!allocates_in_the_process<T>::value,
                  "std::allocator allocates in the process, not in the object: take pmo::string, pmo::vector and so on");
    static constexpr bool value = true;
};

template <class T> struct persists<const T> : persists<T> {};
template <class T, std::size_t N> struct persists<const T[N]> : persists<T> {};
template <class T, std::size_t N> struct persists<T[N]> : persists<T> {};
template <class T, std::size_t N> struct persists<std::array<T, N>> : persists<T> {};
template <class T> struct persists<std::optional<T>> : persists<T> {};
template <class A, class B> struct persists<std::pair<A, B>> : std::conjunction<persists<A>, persists<B>> {};
template <class... T> struct persists<std::tuple<T...>> : std::conjunction<persists<T>...> {};
template <class... T> struct persists<std::variant<T...>> : std::conjunction<persists<T>...> {};

} // namespace detail
} // namespace pmo

#endif
