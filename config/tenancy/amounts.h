// Reads amounts of resources as people write them, and as Kubernetes writes them.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "common/resources/resources.h"
#include "common/result.h"

namespace gantry::tenancy {

// The words for resources in files, in the order in which files list them.
struct ResourceKey {
  Resource resource;
  std::string_view key;
};
inline constexpr std::array<ResourceKey, kResourceCount> kResourceKeys{
    {{Resource::gpu, "gpu"},
     {Resource::cpu, "cpu"},
     {Resource::memory, "memory"},
     {Resource::scratch, "scratch"},
     {Resource::io, "io"},
     {Resource::net, "net"}}};

inline constexpr std::int64_t kMostAmount = std::int64_t{1} << 60;

// True for what nodes have an amount of, so that a part of the cluster can be given.
constexpr bool nodes_have(Resource resource) {
  return resource != Resource::io && resource != Resource::net;
}

// Reads "64" GPUs; "200", "0.5" or "500m" cores; "800Gi", "800G" (the same) or "1536M" bytes; "2G"
// bytes or bits per second.
// Returns the amount in the units of common/resources/resources.h.
Result<std::int64_t> parse_amount(Resource resource, std::string_view text);
std::string show_amount(Resource resource, std::int64_t amount);  // parse_amount can read it

// Reads "500M" or "10G", in powers of 1,000; `of` says what it is a rate of ("bytes").
Result<std::int64_t> parse_rate_of(std::string_view of, std::string_view text);

// Reads "10%" or "12.5%" as millionths; nullopt if the text does not end in '%'. At most 100 %.
Result<std::optional<std::int64_t>> parse_part(std::string_view text);

// Reads a decimal number with up to three decimal places: "1.5" -> 1500.
Result<Thousandths> parse_thousandths(std::string_view text);
std::string show_thousandths(std::int64_t thousandths);

// Reads a quantity of Kubernetes (resource.Quantity): decimal, with exponent, or with one of n u m
// k M G T P E and Ki Mi Gi Ti Pi Ei; rounded up. It must not be negative.
Result<Thousandths> parse_quantity(std::string_view text);

// Reads a quantity as an amount of `resource`; GPUs must be whole.
Result<std::int64_t> amount_of_quantity(Resource resource, std::string_view text);

}  // namespace gantry::tenancy
