#include "tests/nvml/models.h"

namespace gantry::fake {
namespace {

// The names and memory sizes of the seven profiles of every GPU with eight memory slices.
struct Sizes {
  std::string_view one, one_media, one_double, two, three, four, seven;
  std::uint32_t mib1, mib2, mib4, mib8;
};

std::vector<ProfileModel> eight_slices(const Sizes& s) {
  const std::vector<std::uint32_t> any{0, 1, 2, 3, 4, 5, 6};
  return {{0, 19, s.one, 1, 1, s.mib1, 7, any},
          {7, 20, s.one_media, 1, 1, s.mib1, 1, any, true},
          {9, 15, s.one_double, 1, 2, s.mib2, 4, {0, 2, 4, 6}},
          {1, 14, s.two, 2, 2, s.mib2, 3, {0, 2, 4}},
          {2, 9, s.three, 3, 4, s.mib4, 2, {0, 4}},
          {3, 5, s.four, 4, 4, s.mib4, 1, {0}},
          {4, 0, s.seven, 7, 8, s.mib8, 1, {0}}};
}

std::vector<ProfileModel> a30() {
  return {{0, 14, "1g.6gb", 1, 1, 5952, 4, {0, 1, 2, 3}},
          {7, 21, "1g.6gb+me", 1, 1, 5952, 1, {0, 1, 2, 3}, true},
          {1, 5, "2g.12gb", 2, 2, 11968, 2, {0, 2}},
          {8, 6, "2g.12gb+me", 2, 2, 11968, 1, {0, 2}, true},
          {3, 0, "4g.24gb", 4, 4, 24000, 1, {0}}};
}

}  // namespace

const std::vector<Model>& models() {
  using enum Architecture;
  static const std::vector<Model> all{
      {"a100", "NVIDIA A100-SXM4-40GB", ampere, 0x20B010DE, 40960, 12, 55'000, 400'000, 7, 8,
       eight_slices({"1g.5gb", "1g.5gb+me", "1g.10gb", "2g.10gb", "3g.20gb", "4g.20gb", "7g.40gb",
                     4864, 9856, 19968, 40192})},
      {"a100-80gb", "NVIDIA A100-SXM4-80GB", ampere, 0x20B210DE, 81920, 12, 60'000, 400'000, 7, 8,
       eight_slices({"1g.10gb", "1g.10gb+me", "1g.20gb", "2g.20gb", "3g.40gb", "4g.40gb", "7g.80gb",
                     9728, 19968, 40192, 80896})},
      {"h100", "NVIDIA H100 80GB HBM3", hopper, 0x233010DE, 81559, 18, 70'000, 700'000, 7, 8,
       eight_slices({"1g.10gb", "1g.10gb+me", "1g.20gb", "2g.20gb", "3g.40gb", "4g.40gb", "7g.80gb",
                     9984, 20096, 40448, 81152})},
      {"h200", "NVIDIA H200", hopper, 0x233510DE, 143771, 18, 75'000, 700'000, 7, 8,
       eight_slices({"1g.18gb", "1g.18gb+me", "1g.35gb", "2g.35gb", "3g.71gb", "4g.71gb",
                     "7g.141gb", 16384, 33024, 71168, 143104})},
      {"b200", "NVIDIA B200", blackwell, 0x290110DE, 183359, 18, 140'000, 1'000'000, 7, 8,
       eight_slices({"1g.23gb", "1g.23gb+me", "1g.45gb", "2g.45gb", "3g.90gb", "4g.90gb",
                     "7g.180gb", 22528, 45312, 91136, 182784})},
      {"a30", "NVIDIA A30", ampere, 0x20B710DE, 24576, 4, 30'000, 165'000, 4, 4, a30()},
      {"v100", "Tesla V100-SXM2-16GB", volta, 0x1DB110DE, 16384, 6, 40'000, 300'000, 0, 0, {}},
      {"t4", "Tesla T4", turing, 0x1EB810DE, 15360, 0, 10'000, 70'000, 0, 0, {}},
  };
  return all;
}

const Model* find_model(std::string_view key) {
  for (const Model& model : models())
    if (model.key == key) return &model;
  return nullptr;
}

}  // namespace gantry::fake
