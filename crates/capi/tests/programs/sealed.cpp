// Sealed objects in C++: sealed POOL.
#include "check.hpp"

#include <fstream>
#include <iterator>

template <class F> static int code(F f)
{
    try {
        f();
    } catch (const pmo::error &error) {
        CHECK(std::string(error.what()).find("planted") == std::string::npos);
        return error.code();
    }
    return 0;
}

int main(int, char **argv)
{
    const std::string path = argv[1];
    pmo::pool pool = pmo::pool::open_or_format(path, 16 << 20);
    pmo::seal_key key = pmo::seal_key::bytes(std::string(32, 'Z'));
    std::ofstream(path + ".key", std::ios::binary) << std::string(32, 'Z');
    const pmo::seal_key file = pmo::seal_key::file(path + ".key");
    const pmo::seal_key phrase = pmo::seal_key::passphrase("planted phrase");
    const pmo::seal_key command = pmo::seal_key::command("cat '" + path + ".key'", 20000);
    const pmo::seal_key wrong = pmo::seal_key::bytes(std::string(32, 'W'));
    CHECK(code([&] { pmo::seal_key::bytes("planted"); }) == PMO_ERR_SEALED);
    CHECK(code([&] { pmo::seal_key::file(path + ".none"); }) == PMO_ERR_IO);
    CHECK(code([&] { pmo::seal_key::command("exit 1", 20000); }) == PMO_ERR_SEALED);

    {
        pmo::heap heap = pool.heap_sealed("words", 1 << 20, key);
        auto &words = heap.root<pmo::map<pmo::string, long>>("words");
        words[heap.text("planted plaintext that is longer than a short string")] = 7;
        heap.psync();
    }
    CHECK(pool.stat("words").flags & PMO_STAT_SEALED);
    {
        std::ifstream in(path, std::ios::binary);
        const std::string bytes((std::istreambuf_iterator<char>(in)), {});
        CHECK(bytes.size() > (1 << 20) && bytes.find("planted") == std::string::npos);
    }
    {
        pmo::heap heap(pool.attach_read_sealed("words", file));
        CHECK((heap.find<pmo::map<pmo::string, long>>("words")->begin()->second == 7));
        CHECK(!heap.writable());
    }
    {
        pmo::heap heap = pool.heap_sealed("words", 1 << 20, command);
        CHECK((heap.root<pmo::map<pmo::string, long>>("words").size() == 1));
    }
    CHECK(code([&] { pool.heap("words", 1 << 20); }) == PMO_ERR_SEALED);
    CHECK(code([&] { pool.attach_sealed("words", wrong); }) == PMO_ERR_WRONG_KEY);

    pmo_create_options options{};
    options.size = 5000;
    options.write_key = options.read_key = "guard";
    options.write_key_len = options.read_key_len = 5;
    pool.create_sealed("guarded", options, key, "first");
    CHECK(code([&] { pool.attach_sealed("guarded", key); }) == PMO_ERR_WRONG_KEY);
    pool.attach_sealed("guarded", key, "guard");
    CHECK(pool.add_key("guarded", key, phrase, "second", "guard") == 1);
    auto slots = pool.key_slots("guarded", "guard");
    CHECK(slots.size() == 2 && slots[0].label == "first" && slots[0].kind == PMO_KEY_FILE && !slots[0].damaged);
    CHECK(slots[1].slot == 1 && slots[1].kind == PMO_KEY_PASSPHRASE && slots[1].created > 1000000000);
    pool.remove_key("guarded", phrase, 0, "guard");
    CHECK(code([&] { pool.remove_key("guarded", phrase, 1, "guard"); }) == PMO_ERR_SEALED);
    CHECK(code([&] { pool.attach_sealed("guarded", key, "guard"); }) == PMO_ERR_WRONG_KEY);
    CHECK(pool.change_key("guarded", phrase, key, "third", "guard") == 1 && pool.key_slots("guarded", "guard")[0].label == "third");

    pool.create_sealed("draft", 5000, key);
    CHECK(code([&] { pool.rename("draft", "final"); }) == PMO_ERR_SEALED);
    pool.rename_sealed("draft", "final", key);
    pool.snapshot("final", "kept");
    CHECK(code([&] { pool.attach_read_sealed("kept", key); }) == PMO_ERR_SEALED);
    pool.attach_read_sealed("kept", key.sealed_as("final"));
    pool.bind_name("final", key);

    pool.create_sealed("ledger", 5000, key);
    pool.resize_sealed("ledger", 9000, key);
    CHECK(pool.stat("ledger").size == 9000 && code([&] { pool.resize_sealed("ledger", 1, wrong); }) == PMO_ERR_WRONG_KEY);
    CHECK(pool.add_key("ledger", key, phrase.until(2000000000)) == 1 && pool.key_slots("ledger")[1].expires == 2000000000);
    CHECK(pool.key_slots("ledger")[0].expires == 0);
    CHECK(code([&] { pool.reencrypt("ledger", {&phrase}); }) == PMO_ERR_SEALED);
    pool.reencrypt("ledger", {&key});
    CHECK(pool.key_slots("ledger").size() == 1 && code([&] { pool.attach_sealed("ledger", phrase); }) == PMO_ERR_WRONG_KEY);
    pool.create_sealed("patient", 5000, key.erasable());
    CHECK(code([&] { phrase.erasable(); }) == PMO_ERR_SEALED);
    CHECK(code([&] { pool.add_key("patient", key, wrong); }) == PMO_ERR_SEALED);
    CHECK(code([&] { pool.renew_key("patient", key, phrase); }) == PMO_ERR_SEALED);
    pool.renew_key("patient", key, wrong);
    CHECK(code([&] { pool.attach_sealed("patient", key); }) == PMO_ERR_WRONG_KEY);
    pool.attach_sealed("patient", wrong).detach();
    const std::string record = path + ".anchor";
    pmo_anchor anchor{};
    anchor.file = record.c_str();
    const pmo::seal_key anchored = key.anchored(anchor);
    pool.set_anchor("ledger", anchored);
    CHECK(code([&] { pool.attach_sealed("ledger", key); }) == PMO_ERR_SEALED);
    pool.attach_sealed("ledger", anchored).detach();
    {
        std::ofstream(record) << "nothing";
        CHECK(code([&] { pool.attach_sealed("ledger", anchored); }) == PMO_ERR_SEALED);
    }
    pool.set_anchor("ledger", key);
    {
        const std::string writer = path + ".writer", other = path + ".other";
        std::ofstream(writer) << std::string(32, 'w');
        std::ofstream(other) << std::string(32, 'o');
        const pmo::seal_key verified = key.verified_by(pmo::seal_key::verify_key(writer));
        pool.create_sealed("signed", 5000, key.signed_by(writer));
        CHECK(code([&] { pool.attach_sealed("signed", verified); }) == PMO_ERR_SEALED);
        pool.attach_read_sealed("signed", verified).detach();
        pool.change_signer("signed", key.signed_by(writer), other);
        CHECK(code([&] { pool.attach_read_sealed("signed", verified); }) == PMO_ERR_DAMAGED);
        pool.attach_read_sealed("signed", key.verified_by(pmo::seal_key::verify_key(other))).detach();
    }
    {
        pmo::object snapshot = pool.attach_snapshot_sealed("ledger", key);
        CHECK(!snapshot.refresh());
        pmo::object elsewhere = pool.attach_snapshot_sealed("ledger", key, {}, PMO_ANYWHERE);
        CHECK(elsewhere.data() != snapshot.data() && code([&] { elsewhere.refresh(); }) == PMO_ERR_UNSUITABLE);
    }
    CHECK((pool.heap_snapshot_sealed("words", key).find<pmo::map<pmo::string, long>>("words")->size() == 1));

    pmo::seal_key moved = std::move(key);
    CHECK(key.handle() == nullptr && code([&] { pool.attach_sealed("words", key); }) == PMO_ERR_ARGUMENT);
    pool.attach_sealed("words", moved);
    std::cout << "done\n";
}
