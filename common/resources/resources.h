// Resources: one fixed array of int64, used for capacity, requests, usage, quota and prices.
//
// kResourceTable gives each index its meaning. Nodes have no amount of io and net: they are what a
// job may use at most, and only quota and prices count them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "common/quantity.h"

namespace gantry {

enum class Resource : std::uint8_t {
  cpu = 0,      // thousandths of a core
  memory = 1,   // bytes
  gpu = 2,      // thousandths of a GPU; a MIG slice counts as its part of one
  scratch = 3,  // bytes of node-local disk
  io = 4,       // bytes per second of the disks of a node (--io)
  net = 5,      // bits per second of a node's link (--net)
};
inline constexpr std::size_t kResourceCount = 6;
// These are for tables that show an amount as a number of cores or GPUs. Code that calculates uses
// the types of common/quantity.h.
inline constexpr std::int64_t kCoreUnit = 1000;  // of Resource::cpu
inline constexpr std::int64_t kGpuUnit = 1000;   // of Resource::gpu

template <Resource>
struct ResourceUnit;
template <>
struct ResourceUnit<Resource::cpu> {
  using type = CoreThousandths;
};
template <>
struct ResourceUnit<Resource::memory> {
  using type = ByteCount;
};
template <>
struct ResourceUnit<Resource::gpu> {
  using type = GpuThousandths;
};
template <>
struct ResourceUnit<Resource::scratch> {
  using type = ByteCount;
};
template <>
struct ResourceUnit<Resource::io> {
  using type = ByteRate;
};
template <>
struct ResourceUnit<Resource::net> {
  using type = BitRate;
};
template <Resource R>
using AmountOf = typename ResourceUnit<R>::type;

struct ResourceRow {
  Resource id;
  std::string_view name;
  std::string_view unit;
};
inline constexpr std::array<ResourceRow, kResourceCount> kResourceTable{{
    {Resource::cpu, "cpu", "thousandths of a core"},
    {Resource::memory, "mem", "bytes"},
    {Resource::gpu, "gpu", "thousandths of a GPU"},
    {Resource::scratch, "scratch", "bytes"},
    {Resource::io, "io", "bytes per second"},
    {Resource::net, "net", "bits per second"},
}};

class Resources {
 public:
  // The amount of one resource, as a quantity with its unit.
  template <Resource R>
  [[nodiscard]] constexpr AmountOf<R> get() const {
    return AmountOf<R>{v_[static_cast<std::size_t>(R)]};
  }
  template <Resource R>
  constexpr void set(AmountOf<R> amount) {
    v_[static_cast<std::size_t>(R)] = amount.value();
  }
  template <Resource R>
  constexpr void add(AmountOf<R> amount) {
    v_[static_cast<std::size_t>(R)] += amount.value();
  }
  // The amount of any resource, as a plain number: to compare, to show, or to read from a document.
  constexpr std::int64_t operator[](Resource r) const { return v_[static_cast<std::size_t>(r)]; }
  [[nodiscard]] constexpr std::int64_t& row(Resource r) { return v_[static_cast<std::size_t>(r)]; }
  friend constexpr bool operator==(const Resources&, const Resources&) = default;
  friend constexpr auto operator<=>(const Resources&, const Resources&) = default;

  // True if every component of `need` is at most this one's.
  [[nodiscard]] constexpr bool covers(const Resources& need) const {
    for (std::size_t i = 0; i < kResourceCount; ++i)
      if (need.v_[i] > v_[i]) return false;
    return true;
  }
  Resources& operator+=(const Resources& o);  // asserts on overflow
  Resources& operator-=(const Resources& o);  // asserts that no component goes negative
  friend Resources operator+(Resources a, const Resources& b) { return a += b; }
  friend Resources operator-(Resources a, const Resources& b) { return a -= b; }
  [[nodiscard]] constexpr bool is_zero() const { return *this == Resources{}; }
  [[nodiscard]] const std::array<std::int64_t, kResourceCount>& raw() const { return v_; }
  [[nodiscard]] std::array<std::int64_t, kResourceCount>& raw() { return v_; }

 private:
  std::array<std::int64_t, kResourceCount> v_{};
};

// Text like "cpu=4,mem=8G". Resources that are zero are left out; cpu is in cores ("0.5"), bytes
// are in the largest exact unit.
std::string to_string(const Resources& r);

std::string format_thousandths(std::int64_t thousandths);  // "2", "0.5"

// The rates of --io and --net that a job may name.
inline constexpr std::int64_t kLeastRate = 100'000, kMostRate = 10'000'000'000'000;

// A rate in powers of 1,000: "500M", "10G". parse_rate() accepts 1 to 1000000T and returns
// nullopt for anything else; format_rate() writes what it can read, in the largest exact unit.
std::optional<std::int64_t> parse_rate(std::string_view text);
std::string format_rate(std::int64_t rate);

// An amount in words: "4 cores", "1 GPU", "7.5 GiB", "20 GiB of scratch", "200 MB/s of io".
std::string amount_words(Resource r, std::int64_t amount);

}  // namespace gantry
