// The errors of pmo.h as exceptions. Part of pmo.hpp.
#ifndef PMO_ERROR_HPP
#define PMO_ERROR_HPP

#include <pmo.h>

#include <exception>
#include <memory>
#include <new>
#include <string>

namespace pmo {

// The error of a function of pmo.h: code() is a PMO_ERR_*, what() the message. Thrown objects are
// also a std::exception: a failure, or a bad_alloc.
class error {
public:
    virtual ~error() = default;
    int code() const noexcept { return code_; }
    virtual const char *what() const noexcept { return message_->c_str(); }

protected:
    error(int code, const char *message) : code_(code), message_(std::make_shared<std::string>(message)) {}
    error(const error &) = default;
    error &operator=(const error &) = default;

private:
    int code_;
    std::shared_ptr<std::string> message_; // shared, as copies of exceptions must not throw
};

// Any error but those of bad_alloc.
class failure : public error, public std::exception {
public:
    failure() : failure(pmo_errno(), pmo_error_message()) {}
    failure(int code, const char *message) : error(code, message) {}
    const char *what() const noexcept override { return error::what(); }
};

// The heap, the pool or the medium has no room for an allocation.
class bad_alloc : public error, public std::bad_alloc {
public:
    bad_alloc() : error(pmo_errno(), pmo_error_message()) {}
    const char *what() const noexcept override { return error::what(); }
};

namespace detail {

inline void check(int result)
{
    if (result != 0)
        throw failure();
}

template <class P> P *check(P *result)
{
    if (result == nullptr)
        throw failure();
    return result;
}

inline void *check_block(void *block)
{
    if (block != nullptr)
        return block;
    switch (pmo_errno()) {
    case PMO_ERR_HEAP_FULL:
    case PMO_ERR_NO_SPACE:
    case PMO_ERR_NO_ROOM:
    case PMO_ERR_NO_ADDRESSES:
    case PMO_ERR_BAD_SIZE:
        throw bad_alloc();
    default:
        throw failure();
    }
}

// An extension cannot be made, in code lowered by `pmo leds`.
[[noreturn]] inline void extension_failed()
{
    check_block(nullptr);
    throw failure();
}

} // namespace detail
} // namespace pmo

#undef PMO_EXTENSION_FAILED
#define PMO_EXTENSION_FAILED(of) pmo::detail::extension_failed()

#endif
