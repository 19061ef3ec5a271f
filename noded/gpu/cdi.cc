#include "noded/gpu/cdi.h"

#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <functional>
#include <set>

#include "common/codec/json_io.h"
#include "config/yaml_tree.h"
#include "noded/machine/files.h"

namespace gantry::gpu {

namespace {

constexpr std::size_t kMostSpecBytes = 4u << 20;

// Only files of root (or of the user who runs this) may decide what root does for jobs.
Result<void> check_owner(const std::string& path) {
  struct stat st {};
  if (::stat(path.c_str(), &st) != 0) return runtime::fail_errno(ErrorCode::io_error, path);
  if (st.st_uid != 0 && st.st_uid != ::geteuid())
    return fail(ErrorCode::permission_denied,
                fmt::format("{} is not root's, so it is not used", path));
  if ((st.st_mode & (S_IWGRP | S_IWOTH)) != 0)
    return fail(ErrorCode::permission_denied,
                fmt::format("{} may be written by others than root, so it is not used", path));
  return {};
}

Result<CdiSpec> read_one(const std::string& path) {
  TRY(check_owner(path));
  ASSIGN(text, runtime::read_file(path, kMostSpecBytes));
  return parse_cdi(*text, path);
}

// Adds one folder; its devices replace those of the same name from folders before it.
void add_folder(CdiRegistry& registry, const std::string& folder) {
  const auto names = runtime::list_dir(folder);
  if (names.empty()) return;
  if (auto owned = check_owner(folder); !owned)
    return registry.problems.push_back(owned.error().message);
  std::set<std::string, std::less<>> here;
  for (const std::string& name : names) {
    if (!name.ends_with(".json") && !name.ends_with(".yaml") && !name.ends_with(".yml")) continue;
    auto spec = read_one(folder + "/" + name);
    if (!spec) {
      registry.problems.push_back(spec.error().message);
      continue;
    }
    const std::size_t at = registry.specs.size();
    registry.specs.push_back(std::move(*spec));
    const CdiSpec& added = registry.specs.back();
    for (std::size_t i = 0; i < added.devices.size(); ++i) {
      const std::string device = added.kind + "=" + added.devices[i].name;
      const auto before = registry.devices.find(device);
      if (!here.insert(device).second && before != registry.devices.end())
        registry.doubled[device] = registry.specs[before->second.spec].file + " and " + added.file;
      else
        registry.doubled.erase(device);
      registry.devices[device] = {at, i};
    }
  }
}

std::string_view name_of(std::string_view assignment) {
  return assignment.substr(0, assignment.find('='));
}

void append(CdiEdits& to, const CdiEdits& from) {
  for (const std::string& one : from.env) {
    std::erase_if(to.env, [&](const auto& old) { return name_of(old) == name_of(one); });
    to.env.push_back(one);
  }
  for (const CdiNode& one : from.nodes) {
    std::erase_if(to.nodes, [&](const auto& old) { return old.path == one.path; });
    to.nodes.push_back(one);
  }
  for (const CdiMount& one : from.mounts) {
    std::erase_if(to.mounts, [&](const auto& old) { return old.container == one.container; });
    to.mounts.push_back(one);
  }
  for (const CdiHook& one : from.hooks)
    if (std::ranges::find(to.hooks, one) == to.hooks.end()) to.hooks.push_back(one);
  for (const std::uint32_t gid : from.gids)
    if (std::ranges::find(to.gids, gid) == to.gids.end()) to.gids.push_back(gid);
}

// Names a few other devices of the same kind, for an error.
std::string others_of(const CdiRegistry& registry, std::string_view name) {
  constexpr std::size_t kMost = 8;
  const std::string kind = std::string(name.substr(0, name.find('='))) + "=";
  std::string text;
  std::size_t count = 0;
  for (auto at = registry.devices.lower_bound(kind);
       at != registry.devices.end() && at->first.starts_with(kind); ++at)
    if (++count <= kMost) text += (text.empty() ? "" : ", ") + at->first.substr(kind.size());
  if (count == 0) return "there is no specification of this kind";
  return "there are " + text + (count > kMost ? ", ..." : "");
}

bool is_within(std::string_view path, std::string_view folder) {
  return path == folder || (path.starts_with(folder) && path[folder.size()] == '/');
}

using config::Yaml;

constexpr std::size_t kMostDevices = 4096;
constexpr int kMostDepth = 32;

// Turns JSON into the same tree as YAML, so that one reader handles both. The YAML parser accepts
// most JSON, but not all.
Yaml tree_of(codec::JsonNode node, int depth) {
  Yaml out;
  if (depth > kMostDepth) return out;
  if (node.is_object()) {
    out.kind = Yaml::Kind::map;
    for (std::size_t i = 0; i < node.size(); ++i)
      out.entries.push_back({std::string(node.name(i)), 0, 0, tree_of(node.member(i), depth + 1)});
  } else if (node.is_array()) {
    out.kind = Yaml::Kind::list;
    for (std::size_t i = 0; i < node.size(); ++i)
      out.items.push_back(tree_of(node.item(i), depth + 1));
  } else if (!node.is_null()) {
    out.kind = Yaml::Kind::scalar;
    if (const auto text = node.string())
      out.scalar = std::string(*text);
    else if (const auto number = node.sint())
      out.scalar = std::to_string(*number);
    else if (const auto truth = node.boolean())
      out.scalar = *truth ? "true" : "false";
    else
      out.scalar = "a number that is not whole";
  }
  return out;
}

// A version of the specification as a number: "0.6.0" -> 600.
std::optional<int> version_number(std::string_view text) {
  static constexpr std::array<std::pair<std::string_view, int>, 10> kKnown{{{"0.2.0", 200},
                                                                            {"0.3.0", 300},
                                                                            {"0.4.0", 400},
                                                                            {"0.5.0", 500},
                                                                            {"0.6.0", 600},
                                                                            {"0.7.0", 700},
                                                                            {"0.8.0", 800},
                                                                            {"0.8.1", 801},
                                                                            {"1.0.0", 1000},
                                                                            {"1.1.0", 1100}}};
  for (const auto& [name, number] : kKnown)
    if (name == text) return number;
  return std::nullopt;
}

bool is_alnum(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}
bool is_letter(char c) {
  return is_alnum(c) && !(c >= '0' && c <= '9');
}

bool is_name(std::string_view text, std::string_view others) {
  return !text.empty() && text.size() <= 256 && is_alnum(text.front()) && is_alnum(text.back()) &&
         std::ranges::all_of(
             text, [&](char c) { return is_alnum(c) || others.find(c) != std::string_view::npos; });
}

// Reads one file and keeps the first problem that it finds.
class Reader {
 public:
  explicit Reader(const std::string& file) { spec_.file = file; }

  Result<CdiSpec> read(const Yaml& root) {
    if (root.kind != Yaml::Kind::map) refuse("the file", "is not an object");
    each(root, "", "a CDI specification",
         {into("cdiVersion", spec_.version, &Reader::text),
          into("kind", spec_.kind, &Reader::text),
          {"annotations", [this](auto&, auto& at) { needs(600, at); }},
          {"containerEdits", [this](auto& v, auto& at) { read_edits(v, at, spec_.edits); }},
          {"devices", [this](auto& v, auto& at) {
             list(v, at, [&](auto& item, const auto& i) { read_device(item, i); });
           }}});
    check_whole();
    if (!problem_.empty())
      return fail(ErrorCode::malformed, fmt::format("{}: {}", spec_.file, problem_));
    return std::move(spec_);
  }

 private:
  void refuse(const std::string& where, const std::string& what) {
    if (problem_.empty()) problem_ = where + " " + what;
  }
  // The version is compared only at the end, because a file may have it anywhere.
  void needs(int version, const std::string& field) {
    if (version <= needed_) return;
    needed_ = version;
    needed_for_ = field;
  }

  // A field: its name, and what is done with its value, which stands at this place.
  using Field = std::pair<std::string_view, std::function<void(const Yaml&, const std::string&)>>;

  // A field whose value goes to `to`, as `how` reads it.
  template <class T, class V>
  Field into(std::string_view name, T& to, V (Reader::*how)(const Yaml&, const std::string&),
             int version = 0) {
    return {name, [this, &to, how, version](const Yaml& value, const std::string& at) {
              to = (this->*how)(value, at);
              needs(version, at);
            }};
  }

  void each(const Yaml& value, const std::string& where, std::string_view what,
            const std::vector<Field>& fields) {
    if (value.kind == Yaml::Kind::null) return;
    if (value.kind != Yaml::Kind::map) return refuse(where, "must be an object");
    for (const Yaml::Entry& entry : value.entries) {
      const std::string at = where.empty() ? entry.key : where + "." + entry.key;
      const auto field = std::ranges::find(fields, std::string_view(entry.key), &Field::first);
      if (field == fields.end())
        refuse(at, fmt::format("is no field of {}", what));
      else
        field->second(entry.value, at);
    }
  }

  template <class F>
  void list(const Yaml& value, const std::string& where, F item) {
    if (value.kind == Yaml::Kind::null) return;
    if (value.kind != Yaml::Kind::list) return refuse(where, "must be a list");
    for (std::size_t i = 0; i < value.items.size(); ++i)
      item(value.items[i], fmt::format("{}[{}]", where, i));
  }

  std::string text(const Yaml& value, const std::string& where) {
    if (value.kind == Yaml::Kind::scalar) return value.scalar;
    refuse(where, "must be a text");
    return "";
  }

  std::string path(const Yaml& value, const std::string& where) {
    std::string out = text(value, where);
    if (!out.starts_with('/') || out.find("/../") != std::string::npos || out.ends_with("/.."))
      refuse(where, "must be an absolute path without \"..\"");
    return out;
  }

  std::vector<std::string> texts(const Yaml& value, const std::string& where) {
    std::vector<std::string> out;
    list(value, where,
         [&](const Yaml& item, const std::string& at) { out.push_back(text(item, at)); });
    return out;
  }

  std::uint32_t number(const Yaml& value, const std::string& where) {
    int base = 10;
    std::uint32_t out = 0;
    std::string_view digits = value.scalar;
    if (digits.starts_with("0o")) digits.remove_prefix(2), base = 8;
    const auto [end, error] =
        std::from_chars(digits.data(), digits.data() + digits.size(), out, base);
    if (value.kind != Yaml::Kind::scalar || error != std::errc{} ||
        end != digits.data() + digits.size())
      refuse(where, "must be a whole number that is not negative");
    return out;
  }

  std::vector<std::string> environment(const Yaml& value, const std::string& where) {
    std::vector<std::string> out = texts(value, where);
    for (const std::string& one : out)
      if (const auto equals = one.find('='); equals == std::string::npos || equals == 0)
        refuse(where, fmt::format("must be NAME=VALUE, not \"{}\"", one));
    return out;
  }

  void read_device(const Yaml& value, const std::string& where) {
    if (spec_.devices.size() >= kMostDevices) return refuse(where, "is one device too many");
    CdiDevice device;
    each(value, where, "a device",
         {into("name", device.name, &Reader::text),
          {"annotations", [this](auto&, auto& at) { needs(600, at); }},
          {"containerEdits", [&](auto& v, auto& at) { read_edits(v, at, device.edits); }}});
    if (!is_name(device.name, "_.:-")) refuse(where + ".name", "is no name of a device");
    if (!device.name.empty() && !is_letter(device.name.front())) needs(500, where + ".name");
    for (const CdiDevice& other : spec_.devices)
      if (other.name == device.name)
        refuse(where + ".name", fmt::format("\"{}\" is given twice", device.name));
    if (device.edits == CdiEdits{}) refuse(where, "has no containerEdits");
    spec_.devices.push_back(std::move(device));
  }

  void read_edits(const Yaml& value, const std::string& where, CdiEdits& out) {
    const auto listed = [&](void (Reader::*read)(const Yaml&, const std::string&, CdiEdits&)) {
      return [this, read, &out](const Yaml& v, const std::string& at) {
        list(v, at, [&](auto& item, const auto& i) { (this->*read)(item, i, out); });
      };
    };
    const auto unsupported = [this](auto&, auto& at) { refuse(at, "is not supported"); };
    each(value, where, "containerEdits",
         {into("env", out.env, &Reader::environment),
          {"deviceNodes", listed(&Reader::read_node)},
          {"mounts", listed(&Reader::read_mount)},
          {"hooks", listed(&Reader::read_hook)},
          {"additionalGids",
           [&](auto& v, auto& at) {
             needs(700, at);
             list(v, at, [&](auto& item, const auto& i) {
               if (const std::uint32_t gid = number(item, i); gid != 0) out.gids.push_back(gid);
             });
           }},
          {"intelRdt", unsupported},
          {"netDevices", unsupported}});
  }

  void read_node(const Yaml& value, const std::string& where, CdiEdits& out) {
    CdiNode node;
    each(value, where, "a device node",
         {into("path", node.path, &Reader::path), into("hostPath", node.host, &Reader::path, 500),
          into("type", node.type, &Reader::text), into("major", node.major, &Reader::number),
          into("minor", node.minor, &Reader::number), into("fileMode", node.mode, &Reader::number),
          into("permissions", node.permissions, &Reader::text),
          into("uid", node.uid, &Reader::number), into("gid", node.gid, &Reader::number)});
    if (node.path.empty()) refuse(where + ".path", "is missing");
    if (!node.type.empty() && node.type != "b" && node.type != "c" && node.type != "u" &&
        node.type != "p")
      refuse(where + ".type", "must be b, c, u or p");
    if (node.permissions == "none") node.permissions.clear();
    if (node.permissions.find_first_not_of("rwm") != std::string::npos)
      refuse(where + ".permissions", "must be of the letters r, w and m, or none");
    out.nodes.push_back(std::move(node));
  }

  void read_mount(const Yaml& value, const std::string& where, CdiEdits& out) {
    CdiMount mount;
    each(value, where, "a mount",
         {into("hostPath", mount.host, &Reader::text),
          into("containerPath", mount.container, &Reader::path),
          into("type", mount.type, &Reader::text, 400),
          into("options", mount.options, &Reader::texts)});
    if (mount.host.empty()) refuse(where + ".hostPath", "is missing");
    if (mount.container.empty()) refuse(where + ".containerPath", "is missing");
    out.mounts.push_back(std::move(mount));
  }

  void read_hook(const Yaml& value, const std::string& where, CdiEdits& out) {
    static constexpr std::array<std::string_view, 6> kStages{
        "prestart", "createRuntime", "createContainer", "startContainer", "poststart", "poststop"};
    CdiHook hook;
    each(value, where, "a hook",
         {into("hookName", hook.stage, &Reader::text), into("path", hook.path, &Reader::path),
          into("args", hook.args, &Reader::texts), into("env", hook.env, &Reader::environment),
          into("timeout", hook.timeout_s, &Reader::number)});
    if (hook.path.empty()) refuse(where + ".path", "is missing");
    if (std::ranges::find(kStages, hook.stage) == kStages.end())
      refuse(where + ".hookName", fmt::format("\"{}\" is no stage of a container", hook.stage));
    out.hooks.push_back(std::move(hook));
  }

  void check_whole() {
    const auto slash = spec_.kind.find('/');
    const std::string_view vendor = std::string_view(spec_.kind).substr(0, slash);
    const std::string_view type =
        slash == std::string::npos ? "" : std::string_view(spec_.kind).substr(slash + 1);
    if (!is_name(vendor, "_.-") || !is_letter(vendor.front()) || !is_name(type, "_.-") ||
        !is_letter(type.front()))
      refuse("kind", fmt::format("must be VENDOR/CLASS, not \"{}\"", spec_.kind));
    if (type.find('.') != std::string_view::npos) needs(600, "kind");
    if (spec_.devices.empty()) refuse("devices", "is empty");
    const auto version = version_number(spec_.version);
    if (!version)
      refuse("cdiVersion",
             fmt::format("\"{}\" is not known; versions up to 1.1.0 are", spec_.version));
    else if (*version < needed_)
      refuse("cdiVersion", fmt::format("{} is too old for {}", spec_.version, needed_for_));
  }

  CdiSpec spec_;
  std::string problem_;
  int needed_ = 0;
  std::string needed_for_;
};

}  // namespace

CdiRegistry read_cdi(std::span<const std::string> folders) {
  CdiRegistry out;
  for (const std::string& folder : folders) add_folder(out, folder);
  return out;
}

Result<CdiEdits> merge_cdi(const CdiRegistry& registry, std::span<const std::string> names) {
  CdiEdits out;
  std::set<std::size_t> used;
  for (const std::string& name : names) {
    const auto found = registry.devices.find(name);
    if (found == registry.devices.end())
      return fail(ErrorCode::not_found,
                  fmt::format("no CDI device {}: {}", name, others_of(registry, name)));
    if (const auto twice = registry.doubled.find(name); twice != registry.doubled.end())
      return fail(ErrorCode::invalid_argument,
                  fmt::format("CDI device {} is in {}", name, twice->second));
    const CdiSpec& spec = registry.specs[found->second.spec];
    if (used.insert(found->second.spec).second) append(out, spec.edits);
    append(out, spec.devices[found->second.device].edits);
  }
  const auto depth = [](const CdiMount& mount) { return std::ranges::count(mount.container, '/'); };
  std::ranges::stable_sort(out.mounts, [&](auto& a, auto& b) { return depth(a) < depth(b); });
  return out;
}

CdiEdits fit_for_job(CdiEdits edits, CdiNodes nodes) {
  static constexpr std::array<std::string_view, 6> kShared{
      "/tmp/nvidia-mps",           "/run/nvidia-mps",
      "/run/nvidia-persistenced",  "/var/run/nvidia-persistenced",
      "/run/nvidia-fabricmanager", "/var/run/nvidia-fabricmanager"};
  static constexpr std::array<std::string_view, 3> kChoosing{
      "NVIDIA_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES", "CUDA_MPS_PIPE_DIRECTORY"};
  std::erase_if(edits.mounts, [](const CdiMount& mount) {
    return std::ranges::any_of(kShared, [&](std::string_view folder) {
      return is_within(mount.host, folder) || is_within(mount.container, folder);
    });
  });
  std::erase_if(edits.env, [](const std::string& one) {
    return std::ranges::find(kChoosing, name_of(one)) != kChoosing.end();
  });
  if (nodes == CdiNodes::dropped) edits.nodes.clear();
  return edits;
}

Result<CdiSpec> parse_cdi(const std::string& text, const std::string& file) {
  if (!file.ends_with(".json")) {
    const auto tree = config::parse_yaml(text, file);
    return tree ? Reader(file).read(*tree) : tl::unexpected(tree.error());
  }
  const auto document = codec::JsonDocument::parse(text);
  if (!document)
    return fail(document.error().code, fmt::format("{}: {}", file, document.error().message));
  return Reader(file).read(tree_of(document->root(), 0));
}

}  // namespace gantry::gpu
