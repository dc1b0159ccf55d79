/* Objects thrown in a block (pointers, numbers, classes with a virtual base), out of it, and caught
   in it. */
#include <cstdio>

int five = 5;
int *where = &five;
const char *caught;
long count;

template <typename T> static void throws(const T &value, const char *name)
{
    try {
        __transaction_atomic { throw value; }
    } catch (T got) {
        std::printf("%s %s\n", name, got == value ? "ok" : "differs");
    }
}

struct Base {
    int b;
};

struct Derived : virtual Base {
    int d;
    Derived(int x)
    {
        b = x;
        d = x + 1;
    }
};

/* A handler in the undone block changes the object, freed at the handler's end. */
static void freed()
{
    long *others[64];
    for (int i = 0; i < 100; i++) {
        __transaction_atomic
        {
            try {
                throw count;
            } catch (long &got) {
                got += 5;
                count = got;
            }
            if (five)
                __transaction_cancel;
        }
        others[i % 64] = new long(i);
        if (i >= 63)
            delete others[(i + 1) % 64];
    }
    std::printf("freed %ld\n", count);
}

int main(int argc, char **)
{
    try {
        __transaction_atomic { throw "message"; }
    } catch (const char *got) {
        std::printf("%s\n", got ? got : "nothing");
    }
    try {
        __transaction_relaxed { throw where; }
    } catch (int *got) {
        std::printf("relaxed %s\n", got == where ? "ok" : "differs");
    }
    throws<long>(0, "long");
    throws<void *>(0, "null");
    throws<void *>((void *)0x1234, "pointer");
    throws<double>(1.5, "double");
    throws<long>(0, "long again");
    throws<void **>(0, "null of pointers");
    throws<int *>(&five, "int *");
    throws<float>(23.42f, "float");
    try {
        __transaction_atomic { throw Derived(five + 2); }
    } catch (Base &base) {
        std::printf("virtual base %d\n", base.b);
    }
    if (argc > 1)
        freed();
    return 0;
}
