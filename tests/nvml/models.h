// The GPU models that the stand-in driver can simulate. The facts come from NVIDIA's MIG user guide
// (names, ids, placements, counts) and from the output of nvidia-smi (memory). The product reads
// all of this from the driver and has no such table.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace gantry::fake {

struct ProfileModel {
  std::uint32_t index;  // NVML's profile index, which is not the profile's id
  std::uint32_t id;
  std::string_view name;
  std::uint32_t compute_slices;
  std::uint32_t memory_slices;
  std::uint32_t memory_mib;
  std::uint32_t most;  // the most instances on one GPU
  std::vector<std::uint32_t> starts;
  bool media = false;  // the profile has the GPU's only set of media engines
};

enum class Architecture : std::uint32_t {
  volta = 5,
  turing = 6,
  ampere = 7,
  hopper = 9,
  blackwell = 10
};

struct Model {
  std::string_view key;  // its name in fleet.json, "h100"
  std::string_view name;
  Architecture architecture;
  std::uint32_t pci_device;
  std::uint32_t memory_mib;
  std::uint32_t links;  // number of NVLink links
  std::uint32_t idle_mw, most_mw;
  std::uint32_t compute_slices, memory_slices;  // 0 if the model has no MIG
  std::vector<ProfileModel> profiles;
};

const std::vector<Model>& models();
const Model* find_model(std::string_view key);

}  // namespace gantry::fake
