// Compile-time refusals of types that mean nothing in the next run of a program. Part of pmo.hpp.
#ifndef PMO_PERSISTS_HPP
#define PMO_PERSISTS_HPP

#include <any>
#include <array>
#include <atomic>
#include <condition_variable>
#include <functional>
#include <memory>
#include <memory_resource>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <thread>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>

#include <pthread.h>

// The default allocator of Boost's containers.
namespace boost {
namespace container {
template <class T> class new_allocator;
}
} // namespace boost

namespace pmo {
namespace detail {

template <class> inline constexpr bool never = false;

template <class T, class... Of> inline constexpr bool is_one_of = (std::is_same_v<T, Of> || ...);

// Allocators of process memory.
template <class A> struct is_of_the_process : std::false_type {};
template <class T> struct is_of_the_process<std::allocator<T>> : std::true_type {};
template <class T> struct is_of_the_process<std::pmr::polymorphic_allocator<T>> : std::true_type {};
template <class T> struct is_of_the_process<boost::container::new_allocator<T>> : std::true_type {};

template <class T, class = void> struct allocates_in_the_process : std::false_type {};
template <class T>
struct allocates_in_the_process<T, std::void_t<typename T::allocator_type::value_type>> : is_of_the_process<typename T::allocator_type> {
};

// Locks and other state of threads of one run.
template <class T>
inline constexpr bool is_a_lock =
    is_one_of<T, std::mutex, std::timed_mutex, std::recursive_mutex, std::recursive_timed_mutex, std::shared_mutex,
              std::shared_timed_mutex, pthread_mutex_t, pthread_rwlock_t>;
template <class T>
inline constexpr bool is_of_threads =
    is_one_of<T, std::condition_variable, std::condition_variable_any, std::once_flag, std::thread, pthread_cond_t>;

template <class T> struct is_shared : std::false_type {};
template <class T> struct is_shared<std::shared_ptr<T>> : std::true_type {};
template <class T> struct is_shared<std::weak_ptr<T>> : std::true_type {};

template <class T> struct is_deleted_by_the_process : std::false_type {};
template <class T> struct is_deleted_by_the_process<std::unique_ptr<T, std::default_delete<T>>> : std::true_type {};

template <class T> struct is_erased : std::is_same<T, std::any> {};
template <class T> struct is_erased<std::function<T>> : std::true_type {};

// The refusals of a type as such.
template <class T> struct persists_itself {
    static_assert(!std::is_reference_v<T>, "a reference cannot be stored anew when its target moves: keep a pointer");
    static_assert(!(std::is_pointer_v<T> && std::is_function_v<std::remove_pointer_t<T>>),
                  "a function is elsewhere in the next run: keep a number or a name that stands for it; "
                  "order and hash of a container are structs with an operator()");
    static_assert(!std::is_member_function_pointer_v<T>,
                  "a member function is elsewhere in the next run: keep a number or a name that stands for it");
    static_assert(!std::is_polymorphic_v<T>,
                  "the table of virtual functions is elsewhere in the next run: keep a std::variant, or a number for the kind");
    static_assert(!is_erased<T>::value, "std::function and std::any point to code, which is elsewhere in the next run: "
                                        "order and hash of a container are structs with an operator()");
    static_assert(!is_shared<T>::value, "std::shared_ptr points to a table of functions, which is elsewhere in the next run");
    static_assert(!is_deleted_by_the_process<T>::value,
                  "std::unique_ptr deletes with the process's heap: keep a pointer from heap.make<T>() for heap.destroy()");
    static_assert(!allocates_in_the_process<T>::value,
                  "its allocator allocates in the process, not in the object: take pmo::string, pmo::vector and so on, or give "
                  "the container a pmo::allocator");
    static_assert(!is_a_lock<T>, "a mutex that a crash leaves locked is locked in the next run: take pmo::mutex");
    static_assert(!is_of_threads<T>,
                  "threads, locks of std and condition variables end with the run: keep them outside of the object");
    static constexpr bool value = true;
};

// Whether a template's arguments are types of its parts: containers and their adapters.
template <class T, class = void> inline constexpr bool allocates = false;
template <class T> inline constexpr bool allocates<T, std::void_t<typename T::allocator_type>> = true;
template <class T, class = void> inline constexpr bool adapts = false;
template <class T> inline constexpr bool adapts<T, std::void_t<typename T::container_type>> = true;

template <class T> struct persists;

template <class T> struct arguments_persist : std::true_type {};
template <template <class...> class C, class... T>
struct arguments_persist<C<T...>> : std::conditional_t<allocates<C<T...>> || adapts<C<T...>>, std::conjunction<persists<T>...>, std::true_type> {
};

// The functions by which a container orders or hashes, where its template also has other arguments.
template <class T, class = void> struct order_persists : std::true_type {};
template <class T> struct order_persists<T, std::void_t<typename T::key_compare>> : persists<typename T::key_compare> {};
template <class T, class = void> struct hash_persists : std::true_type {};
template <class T>
struct hash_persists<T, std::void_t<typename T::hasher, typename T::key_equal>>
    : std::conjunction<persists<typename T::hasher>, persists<typename T::key_equal>> {
};

// Refuses types that cannot be in an object, as far as the compiler can tell.
template <class T>
struct persists : std::conjunction<persists_itself<T>, arguments_persist<T>, order_persists<T>, hash_persists<T>> {
};

template <class T> struct persists<const T> : persists<T> {};
template <class T, std::size_t N> struct persists<const T[N]> : persists<T> {};
template <class T, std::size_t N> struct persists<T[N]> : persists<T> {};
template <class T, std::size_t N> struct persists<std::array<T, N>> : persists<T> {};
template <class T> struct persists<std::atomic<T>> : persists<T> {};
template <class T> struct persists<std::optional<T>> : persists<T> {};
template <class A, class B> struct persists<std::pair<A, B>> : std::conjunction<persists<A>, persists<B>> {};
template <class... T> struct persists<std::tuple<T...>> : std::conjunction<persists<T>...> {};
template <class... T> struct persists<std::variant<T...>> : std::conjunction<persists<T>...> {};
template <class T, class D>
struct persists<std::unique_ptr<T, D>> : std::conjunction<persists_itself<std::unique_ptr<T, D>>, persists<D>> {
};

} // namespace detail
} // namespace pmo

#endif
