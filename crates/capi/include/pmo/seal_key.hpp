// Keys of sealed objects. Included by pmo.hpp.
#ifndef PMO_SEAL_KEY_HPP
#define PMO_SEAL_KEY_HPP

#include <pmo.h>
#include <pmo/error.hpp>

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

namespace pmo {

// A key that opens sealed objects; the destructor overwrites it (pmo_seal_key_free).
class seal_key {
public:
    // The bytes of a key file: 32 random ones or more.
    static seal_key bytes(std::string_view bytes) { return seal_key(pmo_seal_key_bytes(bytes.data(), bytes.size())); }
    static seal_key file(const std::string &path) { return seal_key(pmo_seal_key_file(path.c_str())); }
    static seal_key passphrase(const char *text) { return seal_key(pmo_seal_key_passphrase(text)); }
    // The standard output of a shell command, which is killed after so many milliseconds.
    static seal_key command(const std::string &command, std::uint64_t milliseconds)
    {
        return seal_key(pmo_seal_key_command(command.c_str(), milliseconds));
    }
    // A credential that systemd gave to this service.
    static seal_key credential(const std::string &name) { return seal_key(pmo_seal_key_credential(name.c_str())); }
    // The TPM 2.0 of this machine, or the device or socket of another one.
    static seal_key tpm(const char *path = nullptr) { return seal_key(pmo_seal_key_tpm(path)); }

    // With an anchor of the object (struct pmo_anchor).
    seal_key anchored(const pmo_anchor &anchor) const { return seal_key(pmo_seal_key_anchored(handle_, &anchor)); }
    // The same passphrase at another cost (pmo_seal_key_costing).
    seal_key costing(std::uint64_t memory, std::uint32_t passes) const
    {
        return seal_key(pmo_seal_key_costing(handle_, memory, passes));
    }
    // New slots expire then, in seconds since 1970 (pmo_seal_key_until).
    seal_key until(std::uint64_t seconds) const { return seal_key(pmo_seal_key_until(handle_, seconds)); }

    // With the key file that signs the object.
    seal_key signed_by(const std::string &path) const { return seal_key(pmo_seal_key_signed_by(handle_, path.c_str())); }
    // With the key that verifies the object's signature, 64 digits.
    seal_key verified_by(const std::string &digits) const
    {
        return seal_key(pmo_seal_key_verified_by(handle_, digits.c_str()));
    }
    // For an object sealed under this name, such as a copy or a snapshot (pmo_seal_key_sealed_as).
    seal_key sealed_as(const std::string &name) const { return seal_key(pmo_seal_key_sealed_as(handle_, name.c_str())); }
    // A key of a key file: an object created with it is erasable (pmo_seal_key_erasable).
    seal_key erasable() const { return seal_key(pmo_seal_key_erasable(handle_)); }
    // The verify key of the key file at path.
    static std::string verify_key(const std::string &path)
    {
        char digits[65];
        detail::check(pmo_verify_key(path.c_str(), digits));
        return digits;
    }

    seal_key(seal_key &&other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
    seal_key &operator=(seal_key &&other) noexcept
    {
        std::swap(handle_, other.handle_);
        return *this;
    }
    ~seal_key()
    {
        if (handle_ != nullptr)
            pmo_seal_key_free(handle_);
    }

    const pmo_seal_key *handle() const noexcept { return handle_; }

private:
    explicit seal_key(pmo_seal_key *handle) : handle_(detail::check(handle)) {}

    pmo_seal_key *handle_;
};

// A key slot of a sealed object (struct pmo_key_slot).
struct key_slot {
    unsigned slot;
    pmo_key_kind kind;
    std::uint64_t created;
    std::uint64_t expires; // 0: never
    bool damaged;
    std::string label;
};

} // namespace pmo

#endif
