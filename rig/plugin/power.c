/* A plugin for QEMU that cuts the power: it watches every store to a persistent memory, knows which lines
   were written back and fenced, and at a chosen moment leaves an image of what a real one would hold, and
   ends the machine.

   Fences are sfence and mfence. Locked instructions order lines as well, but one that is there by chance
   would hide that a fence is missing.

   Arguments: live=FILE (what the machine has as its memory), durable=FILE (a copy; becomes the image),
   report=FILE, base=ADDRESS (guest-physical), window=ADDRESS (where the kernel maps physical memory),
   seed=N, after=watch|go|promised (the mark from which events are counted, itself the first one), cut=N (0: at the end),
   fail=N (when the supply has been asked for its lines so often after the mark go, it fails; 0: never), hold=N (milliseconds from
   then until the cut, if it was not before). */
#include "cache.h"
#include "insn.h"
#include "qemu.h"
#include "supply.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

EXPORT int qemu_plugin_version = PLUGIN_API;

enum { WATCH = 1, GO, DURABLE, PROMISED, LINES = 16 };
enum { PAGE = 4096, CUT_STATUS = 77 };

static uint64_t base, window, cut, seed, events, fail, hold, durable_after;
static size_t size;
/* Adjacent stores to one line are one event, however many bytes an instruction moves. */
static size_t last_line = SIZE_MAX;
static int after = GO, reached;
static const char *live_path, *durable_path, *report_path;
static struct qemu_plugin_register *registers[17]; /* rax … r15 as instructions number them, rip */
static plugin_id self;

/* Pages of programs by virtual number and address space, learnt from stores: for write-backs, which
   access no memory, the emulator reports no place. */
struct place {
    uint64_t page, space, offset;
};
static uint64_t space;
static struct place places[1 << 17];
#define PLACES (sizeof places / sizeof *places)

static struct place *place(uint64_t page)
{
    size_t at = ((page ^ space << 20) * 0x9e3779b97f4a7c15) >> 47;
    for (size_t tries = 0; tries < PLACES; tries++, at = (at + 1) % PLACES)
        if ((places[at].page == page && places[at].space == space) || !places[at].page) return &places[at];
    fprintf(stderr, "rig: too many pages\n");
    abort();
}

#define NOWHERE UINT64_MAX

/* Tells the owner by an address of code or memory: the kernel has the upper half. */
static enum owner owner_of(uint64_t address)
{
    return address >> 63 ? KERNEL : PROGRAM;
}

static uint64_t within(uint64_t physical)
{
    return physical - base < size ? physical - base : NOWHERE;
}

/* Offset in the medium of a virtual address with an earlier store. */
static uint64_t known(uint64_t address)
{
    if (address >> 63) return within(address - window);
    struct place *found = place(address / PAGE);
    return found->page && found->offset != NOWHERE ? found->offset + address % PAGE : NOWHERE;
}

static void finish(const char *why)
{
    size_t undecided = cache_undecided(), untold = cache_cut();
    FILE *report = fopen(report_path, "w");
    if (report) {
        fprintf(report, "end=%s events=%lu undecided=%zu untold=%zu durable=%lu\n", why, (unsigned long)events, undecided,
                untold, (unsigned long)durable_after);
        fclose(report);
    }
}

static void event(void)
{
    if (reached < after || ++events != cut) return;
    finish("cut");
    _exit(CUT_STATUS);
}

static void on_store(unsigned vcpu, mem_info info, uint64_t address, void *data)
{
    enum owner owner = owner_of(address);
    size_t len = (size_t)1 << qemu_plugin_mem_size_shift(info);
    uint64_t offset;
    (void)vcpu;
    if (supply_over()) {
        finish("over");
        _exit(CUT_STATUS);
    }
    if (owner == KERNEL) {
        offset = within(address - window);
        if (offset == NOWHERE) return;
    } else {
        struct qemu_plugin_hwaddr *physical = qemu_plugin_get_hwaddr(info, address);
        offset = physical && !qemu_plugin_hwaddr_is_io(physical) ? within(qemu_plugin_hwaddr_phys_addr(physical)) : NOWHERE;
        struct place *here = place(address / PAGE);
        if (offset == NOWHERE) {
            if (here->page) here->offset = NOWHERE;
            return;
        }
        *here = (struct place){address / PAGE, space, offset - address % PAGE};
    }
    void (*tell)(size_t, size_t, enum owner) = data ? cache_stream : cache_store;
    bool another = offset / LINE != last_line;
    last_line = offset / LINE;
    size_t first = PAGE - address % PAGE;
    if (len <= first) {
        tell(offset, len, owner);
    } else {
        /* For a store across two pages the emulator reports the first place. */
        uint64_t rest = known(address + first);
        tell(offset, first, owner);
        if (rest != NOWHERE) tell(rest, len - first, owner);
    }
    if (another) event();
}

static uint64_t value(int number)
{
    static struct array *bytes;
    uint64_t out = 0;
    if (!bytes) bytes = g_byte_array_new();
    g_byte_array_set_size(bytes, 0);
    if (registers[number] && qemu_plugin_read_register(registers[number], bytes) >= 8) memcpy(&out, bytes->data, 8);
    return out;
}

struct target {
    struct operand operand;
    uint64_t next; /* address of the next instruction */
};

static void on_write_back(unsigned vcpu, void *data)
{
    const struct target *target = data;
    const struct operand *operand = &target->operand;
    uint64_t address = operand->displacement;
    (void)vcpu;
    if (operand->base == -2) address += target->next;
    else if (operand->base >= 0) address += value(operand->base);
    if (operand->index >= 0) address += value(operand->index) * operand->scale;
    uint64_t offset = known(address);
    if (offset == NOWHERE) return;
    cache_write_back(offset, owner_of(target->next));
    event();
}

static void on_fence(unsigned vcpu, void *data)
{
    (void)vcpu;
    if (cache_fence((uintptr_t)data)) event();
}

static void on_space(unsigned vcpu, void *data)
{
    (void)vcpu;
    /* Without the caching bits. */
    space = value((intptr_t)data) >> 12 & 0xffffffffff;
}

static void translate(plugin_id id, struct qemu_plugin_tb *tb);

static void on_end(plugin_id id, void *data)
{
    (void)id, (void)data;
    finish("end");
}

/* At first, and again when stores are watched: unwatched code must be translated anew. */
static void watch(plugin_id id)
{
    qemu_plugin_register_vcpu_tb_trans_cb(id, translate);
    qemu_plugin_register_atexit_cb(id, on_end, NULL);
}

static void on_mark(unsigned vcpu, void *data)
{
    int number = (intptr_t)data;
    (void)vcpu;
    if (number == LINES) {
        supply_set((int)value(0));
        return;
    }
    if (number == WATCH && !reached) qemu_plugin_reset(self, watch);
    if (number <= reached) return;
    reached = number;
    if (number == GO) supply_fail(fail, hold);
    if (number == DURABLE) durable_after = supply_failed();
    event();
}

static void translate(plugin_id id, struct qemu_plugin_tb *tb)
{
    (void)id;
    for (size_t i = 0, n = qemu_plugin_tb_n_insns(tb); i < n; i++) {
        struct qemu_plugin_insn *at = qemu_plugin_tb_get_insn(tb, i);
        uint8_t bytes[16];
        struct insn insn = decode(bytes, qemu_plugin_insn_data(at, bytes, sizeof bytes));
        if (insn.kind == MARK) {
            qemu_plugin_register_vcpu_insn_exec_cb(at, on_mark, REGS_READ, (void *)(insn.operand.displacement & 0xff));
            continue;
        }
        if (!reached) continue;
        if (insn.kind == SPACE) {
            qemu_plugin_register_vcpu_insn_exec_cb(at, on_space, REGS_READ, (void *)(intptr_t)insn.operand.base);
            continue;
        }
        if (insn.kind == WRITE_BACK) {
            /* Lives as long as the translation, whose end is not reported. */
            struct target *target = malloc(sizeof *target);
            if (!target) abort();
            *target = (struct target){insn.operand, qemu_plugin_insn_vaddr(at) + qemu_plugin_insn_size(at)};
            qemu_plugin_register_vcpu_insn_exec_cb(at, on_write_back, REGS_READ, target);
        } else if (insn.kind == FENCE) {
            qemu_plugin_register_vcpu_insn_exec_cb(at, on_fence, REGS_NONE,
                                                   (void *)(uintptr_t)owner_of(qemu_plugin_insn_vaddr(at)));
        } else {
            qemu_plugin_register_vcpu_mem_cb(at, on_store, REGS_NONE, MEM_WRITE, (void *)(intptr_t)(insn.kind == STREAM));
        }
    }
}

static void find_registers(plugin_id id, unsigned vcpu)
{
    static const char *names[] = {"rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi", "r8",
                                  "r9",  "r10", "r11", "r12", "r13", "r14", "r15", "rip"};
    struct array *all = qemu_plugin_get_registers();
    (void)id, (void)vcpu;
    for (unsigned i = 0; i < all->len; i++) {
        struct register_descriptor *one = &((struct register_descriptor *)(void *)all->data)[i];
        for (size_t n = 0; n < sizeof names / sizeof *names; n++)
            if (!strcmp(one->name, names[n])) registers[n] = one->handle;
    }
}

static uint8_t *map(const char *path, int protection)
{
    struct stat stat;
    int fd = path ? open(path, O_RDWR) : -1;
    if (fd < 0 || fstat(fd, &stat)) return NULL;
    size = stat.st_size;
    void *at = mmap(NULL, size, protection, MAP_SHARED, fd, 0);
    close(fd);
    return at == MAP_FAILED ? NULL : at;
}

static int argument(const char *text)
{
    const char *value = strchr(text, '=');
    size_t len = value ? (size_t)(value - text) : 0;
#define IS(name) (len == strlen(name) && !memcmp(text, name, len))
    if (!value) return -1;
    value++;
    if (IS("live")) live_path = strdup(value);
    else if (IS("durable")) durable_path = strdup(value);
    else if (IS("report")) report_path = strdup(value);
    else if (IS("base")) base = strtoull(value, NULL, 0);
    else if (IS("window")) window = strtoull(value, NULL, 0);
    else if (IS("seed")) seed = strtoull(value, NULL, 0);
    else if (IS("cut")) cut = strtoull(value, NULL, 0);
    else if (IS("fail")) fail = strtoull(value, NULL, 0);
    else if (IS("hold")) hold = strtoull(value, NULL, 0);
    else if (IS("after")) after = !strcmp(value, "watch") ? WATCH : !strcmp(value, "go") ? GO : PROMISED;
    else return -1;
    return 0;
}

EXPORT int qemu_plugin_install(plugin_id id, const void *info, int argc, char **argv)
{
    (void)info;
    self = id;
    for (int i = 0; i < argc; i++) {
        if (argument(argv[i])) {
            fprintf(stderr, "rig: what is %s?\n", argv[i]);
            return -1;
        }
    }
    const uint8_t *live = map(live_path, PROT_READ);
    uint8_t *durable = map(durable_path, PROT_READ | PROT_WRITE);
    if (!live || !durable || !report_path) {
        fprintf(stderr, "rig: live=, durable= and report= are needed, and must exist\n");
        return -1;
    }
    cache_open(live, durable, size, seed);
    qemu_plugin_register_vcpu_init_cb(id, find_registers);
    watch(id);
    return 0;
}
