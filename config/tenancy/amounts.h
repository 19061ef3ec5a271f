// Amounts of resources as people write them, and as Kubernetes does.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "common/resources/resources.h"
#include "common/result.h"

namespace gantry::tenancy {

// The words for resources in files, and their order there.
struct ResourceKey {
  Resource resource;
  std::string_view key;
};
inline constexpr std::array<ResourceKey, kResourceCount> kResourceKeys{
    {{Resource::gpu, "gpu"},
     {Resource::cpu, "cpu"},
     {Resource::memory, "memory"},
     {Resource::scratch, "scratch"}}};

inline constexpr std::int64_t kMostAmount = std::int64_t{1} << 60;

// "64" GPUs; "200", "0.5" or "500m" cores; "800Gi", "800G" (the same) or "1536M" bytes: what is
// stored (common/resources/resources.h).
Result<std::int64_t> parse_amount(Resource resource, std::string_view text);
std::string show_amount(Resource resource, std::int64_t amount);  // parse_amount reads it again

// "10%", "12.5%" in millionths; nothing when it does not end in '%'. At most 100 %.
Result<std::optional<std::int64_t>> parse_part(std::string_view text);

// Decimal with up to three places: "1.5" -> 1500.
Result<Thousandths> parse_thousandths(std::string_view text);
std::string show_thousandths(std::int64_t thousandths);

// A quantity of Kubernetes (resource.Quantity): decimal, exponent, or one of n u m k M G T P E and
// Ki Mi Gi Ti Pi Ei; rounded up. Not negative.
Result<Thousandths> parse_quantity(std::string_view text);

// A quantity as an amount of `resource`; GPUs must be whole.
Result<std::int64_t> amount_of_quantity(Resource resource, std::string_view text);

}  // namespace gantry::tenancy
