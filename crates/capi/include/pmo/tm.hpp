// A vector, a list and a map in the heap of a transactional object, for blocks that GCC compiles
// with -fgnu-tm. Link with libpmo-tm and libpmo. Include it beside pmo/blocks.h.
//
//     struct shelf { pmo::tm::map<long, long> prices; pmo::tm::list<long> queue; };
//     __transaction_atomic {
//         shelf->prices.insert(7, 250);
//         shelf->queue.push_back(7);
//     } // durable
//
// A container of zeros, such as a new root of pmo_tm_root, is empty. It allocates in the heap of
// its object, as a part of the block. A function that adds returns false, and adds nothing, if the
// heap is full and cannot grow. Use containers in blocks alone; they have no destructors: clear()
// frees their memory. Values are numbers, pointers into objects, and structs of such.
//
// Containers of the standard library are for blocks that cannot be undone and run alone:
//
//     std::vector<long, pmo::tm::allocator<long>> *numbers;
//     // In an object, made in place with pmo::tm::allocator<long>(object).
//     __transaction_relaxed { numbers->push_back(7); } // durable
#ifndef PMO_TM_HPP
#define PMO_TM_HPP

#include <pmo/blocks.h>

#include <cstddef>
#include <cstdint>
#include <new>
#include <type_traits>

#define PMO_TM_SAFE __attribute__((transaction_safe))

namespace pmo {
namespace tm {

// Allocates in an object's heap, for containers in it, in __transaction_relaxed blocks. A full heap
// that cannot grow is a std::bad_alloc; earlier changes of the block stay.
template <class T> class allocator {
    static_assert(alignof(T) <= 16, "blocks of a heap are at multiples of 16");

public:
    using value_type = T;

    // beside: any address in the object.
    explicit allocator(void *beside) noexcept : beside_(beside) {}
    template <class U> allocator(const allocator<U> &other) noexcept : beside_(other.beside()) {}

    T *allocate(std::size_t count)
    {
        void *block = count > static_cast<std::size_t>(-1) / sizeof(T) ? nullptr : pmo_tm_alloc(beside_, count * sizeof(T));
        if (block == nullptr)
            throw std::bad_alloc();
        return static_cast<T *>(block);
    }
    void deallocate(T *block, std::size_t) noexcept { pmo_tm_free(block); }
    void *beside() const noexcept { return beside_; }

private:
    void *beside_;
};

template <class T, class U> bool operator==(const allocator<T> &one, const allocator<U> &other) noexcept { return one.beside() == other.beside(); }
template <class T, class U> bool operator!=(const allocator<T> &one, const allocator<U> &other) noexcept { return one.beside() != other.beside(); }

template <class T> class vector {
    static_assert(std::is_trivially_copyable<T>::value && alignof(T) <= 16, "a value in an object is a number, a pointer, or a struct of such");

public:
    PMO_TM_SAFE std::size_t size() const { return size_; }
    PMO_TM_SAFE bool empty() const { return size_ == 0; }
    // For an index below size().
    PMO_TM_SAFE T &operator[](std::size_t index) { return data_[index]; }
    PMO_TM_SAFE const T &operator[](std::size_t index) const { return data_[index]; }

    PMO_TM_SAFE bool push_back(const T &value)
    {
        if (size_ == room_ && !grow())
            return false;
        data_[size_] = value;
        size_++;
        return true;
    }
    // Removes the last value. False: there is none.
    PMO_TM_SAFE bool pop_back(T &into)
    {
        if (size_ == 0)
            return false;
        size_--;
        into = data_[size_];
        return true;
    }
    // Removes a value, whose place the last one takes. False: there is none at this index.
    PMO_TM_SAFE bool swap_remove(std::size_t index, T &into)
    {
        if (index >= size_)
            return false;
        size_--;
        into = data_[index];
        data_[index] = data_[size_];
        return true;
    }
    PMO_TM_SAFE void clear()
    {
        pmo_tm_free(data_);
        data_ = nullptr;
        size_ = room_ = 0;
    }

private:
    PMO_TM_SAFE bool grow()
    {
        const std::size_t room = room_ == 0 ? 8 : 2 * room_;
        if (room > static_cast<std::size_t>(-1) / sizeof(T))
            return false;
        T *data = static_cast<T *>(pmo_tm_alloc(this, room * sizeof(T)));
        if (data == nullptr)
            return false;
        for (std::size_t at = 0; at < size_; at++)
            data[at] = data_[at];
        pmo_tm_free(data_);
        data_ = data;
        room_ = room;
        return true;
    }

    T *data_;
    std::size_t size_, room_;
};

// Values in doubly linked nodes.
template <class T> class list {
    static_assert(std::is_trivially_copyable<T>::value && alignof(T) <= 16, "a value in an object is a number, a pointer, or a struct of such");

public:
    struct node {
        node *next, *previous;
        T value;
    };

    PMO_TM_SAFE std::size_t size() const { return size_; }
    PMO_TM_SAFE bool empty() const { return first_ == nullptr; }
    // nullptr if it is empty. They link to the others.
    PMO_TM_SAFE node *first() const { return first_; }
    PMO_TM_SAFE node *last() const { return last_; }

    PMO_TM_SAFE bool push_back(const T &value) { return link(value, last_, nullptr); }
    PMO_TM_SAFE bool push_front(const T &value) { return link(value, nullptr, first_); }
    // Removes the first value. False: there is none.
    PMO_TM_SAFE bool pop_front(T &into) { return pop(first_, into); }
    PMO_TM_SAFE bool pop_back(T &into) { return pop(last_, into); }
    // Removes and frees a node of this list.
    PMO_TM_SAFE void erase(node *at)
    {
        (at->previous == nullptr ? first_ : at->previous->next) = at->next;
        (at->next == nullptr ? last_ : at->next->previous) = at->previous;
        size_--;
        pmo_tm_free(at);
    }
    PMO_TM_SAFE void clear()
    {
        while (first_ != nullptr)
            erase(first_);
    }

private:
    PMO_TM_SAFE bool link(const T &value, node *previous, node *next)
    {
        node *made = static_cast<node *>(pmo_tm_alloc(this, sizeof(node)));
        if (made == nullptr)
            return false;
        made->value = value;
        made->previous = previous;
        made->next = next;
        (previous == nullptr ? first_ : previous->next) = made;
        (next == nullptr ? last_ : next->previous) = made;
        size_++;
        return true;
    }
    PMO_TM_SAFE bool pop(node *at, T &into)
    {
        if (at == nullptr)
            return false;
        into = at->value;
        erase(at);
        return true;
    }

    node *first_, *last_;
    std::size_t size_;
};

// Values by keys, in order: a treap (Aragon, Seidel, 1989), whose priorities are hashes of the
// addresses of nodes. It keeps no count, so that blocks that change different keys seldom conflict.
template <class K, class V> class map {
    static_assert(std::is_arithmetic<K>::value || std::is_enum<K>::value || std::is_pointer<K>::value, "a key is a number or a pointer");
    static_assert(std::is_trivially_copyable<V>::value && alignof(V) <= 16, "a value in an object is a number, a pointer, or a struct of such");

public:
    struct node {
        node *left, *right;
        K key;
        V value;
    };

    PMO_TM_SAFE bool empty() const { return root_ == nullptr; }
    // The value of a key, or nullptr.
    PMO_TM_SAFE V *find(const K &key) const
    {
        node *at = root_;
        while (at != nullptr && at->key != key)
            at = key < at->key ? at->left : at->right;
        return at == nullptr ? nullptr : &at->value;
    }
    // Sets a key's value.
    PMO_TM_SAFE bool insert(const K &key, const V &value)
    {
        if (V *there = find(key)) {
            *there = value;
            return true;
        }
        node *made = static_cast<node *>(pmo_tm_alloc(this, sizeof(node)));
        if (made == nullptr)
            return false;
        made->key = key;
        made->value = value;
        node **link = &root_;
        while (*link != nullptr && before(*link, made))
            link = key < (*link)->key ? &(*link)->left : &(*link)->right;
        node *rest = *link, **left = &made->left, **right = &made->right;
        *link = made;
        while (rest != nullptr) {
            if (rest->key < key) {
                *left = rest;
                left = &rest->right;
            } else {
                *right = rest;
                right = &rest->left;
            }
            rest = rest->key < key ? rest->right : rest->left;
        }
        *left = *right = nullptr;
        return true;
    }
    // False: there is no such key.
    PMO_TM_SAFE bool erase(const K &key)
    {
        node **link = &root_;
        while (*link != nullptr && (*link)->key != key)
            link = key < (*link)->key ? &(*link)->left : &(*link)->right;
        node *gone = *link;
        if (gone == nullptr)
            return false;
        node *left = gone->left, *right = gone->right;
        while (left != nullptr && right != nullptr) {
            if (before(left, right)) {
                *link = left;
                link = &left->right;
                left = *link;
            } else {
                *link = right;
                link = &right->left;
                right = *link;
            }
        }
        *link = left != nullptr ? left : right;
        pmo_tm_free(gone);
        return true;
    }
    // The node with the least key, or nullptr.
    PMO_TM_SAFE node *first() const
    {
        node *at = root_;
        while (at != nullptr && at->left != nullptr)
            at = at->left;
        return at;
    }
    // The node with the least key above one, or nullptr.
    PMO_TM_SAFE node *above(const K &key) const
    {
        node *at = root_, *found = nullptr;
        while (at != nullptr) {
            const bool larger = key < at->key;
            if (larger)
                found = at;
            at = larger ? at->left : at->right;
        }
        return found;
    }
    PMO_TM_SAFE void clear()
    {
        for (node *at = first(); at != nullptr; at = first())
            erase(at->key);
    }

private:
    // Whether a node is above another one in the tree.
    PMO_TM_SAFE static bool before(const node *one, const node *other)
    {
        const std::uint64_t a = hash(one), b = hash(other);
        return a != b ? a > b : one < other;
    }
    PMO_TM_SAFE static std::uint64_t hash(const node *of)
    {
        std::uint64_t bits = reinterpret_cast<std::uintptr_t>(of) * 0x9e3779b97f4a7c15u;
        bits ^= bits >> 32;
        bits *= 0xd6e8feb86659fd93u;
        return bits ^ bits >> 29;
    }

    node *root_;
};

} // namespace tm
} // namespace pmo

#undef PMO_TM_SAFE

#endif
