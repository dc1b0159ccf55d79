// Helpers that the test programs share.
#include <pmo.hpp>

#include <cstdlib>
#include <iostream>

#define CHECK(condition)                                                                          \
    do {                                                                                          \
        if (!(condition)) {                                                                       \
            std::cerr << __LINE__ << ": " #condition ": " << pmo_error_message() << "\n";         \
            std::exit(1);                                                                         \
        }                                                                                         \
    } while (0)
