// Choices of a job that are one word each: what becomes of its output files, its network, and how
// its GPUs are named to it.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <utility>

namespace gantry {

enum class OpenMode : std::uint8_t { truncate = 0, append = 1 };
constexpr auto enum_names(OpenMode) {
  return std::array<std::pair<OpenMode, std::string_view>, 2>{
      {{OpenMode::truncate, "truncate"}, {OpenMode::append, "append"}}};
}

// loopback: the job reaches nothing but itself on each node. job: it has an address on each node,
// and its parts reach each other.
enum class NetworkMode : std::uint8_t { loopback = 0, host = 1, job = 2 };
constexpr auto enum_names(NetworkMode) {
  return std::array<std::pair<NetworkMode, std::string_view>, 3>{
      {{NetworkMode::loopback, "none"}, {NetworkMode::host, "host"}, {NetworkMode::job, "job"}}};
}

// What CUDA_VISIBLE_DEVICES has of whole GPUs: their UUIDs, or their numbers as the CUDA runtime of
// the job counts them, which sees no other GPUs. Slices and parts of GPUs always have UUIDs.
enum class GpuNames : std::uint8_t { uuid = 0, index = 1 };
constexpr auto enum_names(GpuNames) {
  return std::array<std::pair<GpuNames, std::string_view>, 2>{
      {{GpuNames::uuid, "uuid"}, {GpuNames::index, "index"}}};
}

}  // namespace gantry
