/* The used part of QEMU's plugin interface, version 4. Debian does not package the header. */
#ifndef RIG_QEMU_H
#define RIG_QEMU_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PLUGIN_API 4
#define EXPORT __attribute__((visibility("default")))

typedef uint64_t plugin_id;
typedef uint32_t mem_info;
struct qemu_plugin_tb;
struct qemu_plugin_insn;
struct qemu_plugin_register;
struct qemu_plugin_hwaddr;

enum reg_access { REGS_NONE, REGS_READ, REGS_READ_WRITE };
enum mem_access { MEM_READ = 1, MEM_WRITE = 2 };

typedef void (*plugin_done)(plugin_id id);
typedef void (*plugin_exit)(plugin_id id, void *data);
typedef void (*translated)(plugin_id id, struct qemu_plugin_tb *tb);
typedef void (*vcpu_event)(plugin_id id, unsigned vcpu);
typedef void (*executed)(unsigned vcpu, void *data);
typedef void (*accessed)(unsigned vcpu, mem_info info, uint64_t address, void *data);

void qemu_plugin_register_vcpu_tb_trans_cb(plugin_id id, translated call);
void qemu_plugin_register_vcpu_init_cb(plugin_id id, vcpu_event call);
void qemu_plugin_register_atexit_cb(plugin_id id, plugin_exit call, void *data);
void qemu_plugin_register_vcpu_insn_exec_cb(struct qemu_plugin_insn *insn, executed call, enum reg_access regs,
                                            void *data);
void qemu_plugin_register_vcpu_mem_cb(struct qemu_plugin_insn *insn, accessed call, enum reg_access regs,
                                      enum mem_access which, void *data);
void qemu_plugin_reset(plugin_id id, plugin_done call);

size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *tb);
struct qemu_plugin_insn *qemu_plugin_tb_get_insn(const struct qemu_plugin_tb *tb, size_t index);
size_t qemu_plugin_insn_data(const struct qemu_plugin_insn *insn, void *to, size_t len);
uint64_t qemu_plugin_insn_vaddr(const struct qemu_plugin_insn *insn);
size_t qemu_plugin_insn_size(const struct qemu_plugin_insn *insn);

unsigned qemu_plugin_mem_size_shift(mem_info info);
struct qemu_plugin_hwaddr *qemu_plugin_get_hwaddr(mem_info info, uint64_t address);
bool qemu_plugin_hwaddr_is_io(const struct qemu_plugin_hwaddr *address);
uint64_t qemu_plugin_hwaddr_phys_addr(const struct qemu_plugin_hwaddr *address);

/* Arrays are GLib's, whose head is public. */
struct array {
    char *data;
    unsigned len;
};
struct register_descriptor {
    struct qemu_plugin_register *handle;
    const char *name;
    const char *feature;
};
struct array *qemu_plugin_get_registers(void);
int qemu_plugin_read_register(struct qemu_plugin_register *handle, struct array *bytes);
struct array *g_byte_array_new(void);
struct array *g_byte_array_set_size(struct array *bytes, unsigned len);

#endif
