#include "tests/nvml/fleet.h"

#include <rapidjson/document.h>

#include <algorithm>
#include <cstdio>
#include <memory>

#include "tests/nvml/state.h"

namespace gantry::fake {
namespace {

using Value = rapidjson::Value;

tl::unexpected<Error> fail_at(const std::string& name, const std::string& what) {
  return fail(ErrorCode::malformed, name + ": " + what);
}

// Refuses names that are not in `known`, because a misspelt name would otherwise go unnoticed.
Result<void> check_names(const std::string& name, const Value& object,
                         std::initializer_list<std::string_view> known) {
  for (const auto& member : object.GetObject()) {
    const std::string_view key(member.name.GetString(), member.name.GetStringLength());
    if (std::find(known.begin(), known.end(), key) == known.end())
      return fail_at(name, "no such field: " + std::string(key));
  }
  return {};
}

std::uint32_t number(const Value& object, const char* key, std::uint32_t other) {
  const auto found = object.FindMember(key);
  return found != object.MemberEnd() && found->value.IsUint() ? found->value.GetUint() : other;
}

std::string text(const Value& object, const char* key, const std::string& other) {
  const auto found = object.FindMember(key);
  return found != object.MemberEnd() && found->value.IsString() ? found->value.GetString() : other;
}

// Returns the i-th value of a list, whose last value repeats for ever; `other` if there is no list.
std::uint32_t listed(const Value& object, const char* key, std::size_t i, std::uint32_t other) {
  const auto found = object.FindMember(key);
  if (found == object.MemberEnd() || !found->value.IsArray() || found->value.Empty()) return other;
  const auto at = static_cast<rapidjson::SizeType>(i);
  const Value& value = found->value[std::min(at, found->value.Size() - 1)];
  return value.IsUint() ? value.GetUint() : other;
}

Result<void> add_entry(Fleet& fleet, const Value& entry, const std::string& name) {
  if (!entry.IsObject()) return fail_at(name, "an entry of gpus is no object");
  if (auto known = check_names(name, entry, {"model", "count", "mig", "links", "numa", "minors"});
      !known)
    return known;
  const std::string key = text(entry, "model", "");
  const Model* model = find_model(key);
  if (model == nullptr) return fail_at(name, "no such model of GPU: \"" + key + "\"");
  const auto mig = entry.FindMember("mig");
  const bool wants_mig = mig != entry.MemberEnd() && mig->value.IsBool() && mig->value.GetBool();
  if (wants_mig && model->profiles.empty()) return fail_at(name, key + " has no MIG");
  const std::string links = text(entry, "links", "switch");
  if (links != "switch" && links != "mesh" && links != "none")
    return fail_at(name, "links must be switch, mesh or none, not " + links);
  const std::uint32_t count = number(entry, "count", 1);
  const auto first = static_cast<std::uint32_t>(fleet.gpus.size());
  if (count < 1 || first + count > kMostGpus) return fail_at(name, "too many or no GPUs");
  for (std::uint32_t i = 0; i < count; ++i) {
    FleetGpu gpu;
    gpu.model = static_cast<std::uint32_t>(model - models().data());
    gpu.mig = wants_mig;
    gpu.linked = links != "none";
    gpu.switched = links == "switch";
    gpu.numa = static_cast<std::int32_t>(listed(entry, "numa", i, i * 2 < count ? 0 : 1));
    gpu.minor = listed(entry, "minors", i, (first + i) ^ 3);
    gpu.group_first = first;
    gpu.group_size = count;
    fleet.gpus.push_back(gpu);
  }
  return {};
}

}  // namespace

Result<Fleet> parse_fleet(const std::string& json, const std::string& name) {
  rapidjson::Document document;
  document.Parse(json.c_str(), json.size());
  if (document.HasParseError() || !document.IsObject())
    return fail_at(name,
                   "not a JSON object (byte " + std::to_string(document.GetErrorOffset()) + ")");
  TRY(check_names(name, document, {"driver", "cuda", "seed", "gpus"}));
  Fleet fleet;
  fleet.driver = text(document, "driver", fleet.driver);
  fleet.cuda = static_cast<std::int32_t>(number(document, "cuda", 12040));
  fleet.seed = number(document, "seed", 1);
  const auto gpus = document.FindMember("gpus");
  if (gpus == document.MemberEnd() || !gpus->value.IsArray())
    return fail_at(name, "gpus must be a list");
  for (const auto& entry : gpus->value.GetArray()) TRY(add_entry(fleet, entry, name));
  return fleet;
}

Result<Fleet> read_fleet(const std::string& path) {
  const std::unique_ptr<FILE, int (*)(FILE*)> file(std::fopen(path.c_str(), "re"), &std::fclose);
  if (!file) return fail(ErrorCode::not_found, path + " cannot be read");
  std::string json;
  char buffer[4096];
  while (const std::size_t n = std::fread(buffer, 1, sizeof buffer, file.get()))
    json.append(buffer, n);
  return parse_fleet(json, path);
}

void fill(State& state, const Fleet& fleet) {
  state.gpu_count = static_cast<std::uint32_t>(fleet.gpus.size());
  state.cuda = fleet.cuda;
  state.instances_made = fleet.seed << 32;
  copy_text(state.driver, fleet.driver);
  for (std::uint32_t i = 0; i < state.gpu_count; ++i) {
    const FleetGpu& from = fleet.gpus[i];
    const Model& model = models()[from.model];
    GpuState& gpu = state.gpus[i];
    gpu.model = from.model;
    copy_text(gpu.uuid, make_uuid("GPU-", fleet.seed * kMostGpus * 2 + i));
    gpu.pci_domain = i / 128;
    gpu.pci_bus = 0x18 + i % 128;
    gpu.minor = from.minor;
    gpu.numa = from.numa;
    gpu.mig_now = gpu.mig_later = from.mig ? 1 : 0;
    gpu.switched = from.switched ? 1 : 0;
    gpu.links_down = from.linked ? 0 : model.links;
    gpu.group_first = from.group_first;
    gpu.group_size = from.group_size;
    gpu.power_mw = model.idle_mw;
    gpu.temperature = 34;
  }
}

}  // namespace gantry::fake
