// Turns gantry.yaml into a checked Config: it walks the tree with the option tables, and then
// checks what several options say together. The first error ends it, with its place in the file.
#include <arpa/inet.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <set>

#include "common/text/hostlist.h"
#include "config/config.h"
#include "config/gres.h"
#include "config/nearest.h"
#include "config/options.h"
#include "config/partitions.h"
#include "config/yaml_tree.h"

namespace gantry {
namespace config {
namespace {

// Remembers where each value was in the file, by its dotted path, for the checks after reading.
class Loader {
 public:
  explicit Loader(std::string file) : file_(std::move(file)) {}

  Result<Config> run(const Yaml& root) {
    Config config;
    config.path = file_;
    if (root.kind != Yaml::Kind::map)
      return error_at(
          root.line, root.column,
          fmt::format("the file must have keys such as `nodes:`, not {}", name_of(root.kind)));
    auto done = read_root(root, config);
    if (done) done = check_licenses(config);
    if (done) done = check_nodes(config);
    if (done) done = check_partitions(config);
    if (done) done = check_controller(config.controller);
    if (done) done = check_login_nodes(config);
    if (!done) return tl::unexpected(done.error());
    return config;
  }

 private:
  struct Place {
    int line = 0;
    int column = 0;
  };

  tl::unexpected<Error> error_at(int line, int column, const std::string& what) const {
    if (line <= 0) return fail(ErrorCode::invalid_argument, fmt::format("{}: {}", file_, what));
    return fail(ErrorCode::invalid_argument,
                fmt::format("{}:{}:{}: {}", file_, line, column, what));
  }
  // An error about the option `path`. Its place is the value, or the section if the value was left
  // out.
  tl::unexpected<Error> error_about(const std::string& path, const std::string& what) const {
    auto place = places_.find(path);
    if (place == places_.end()) place = places_.find(path.substr(0, path.rfind('.')));
    const std::string text = path + ": " + what;
    return place == places_.end() ? error_at(0, 0, text)
                                  : error_at(place->second.line, place->second.column, text);
  }

  Result<void> read_root(const Yaml& root, Config& config) {
    static constexpr std::array<std::string_view, 7> kKeys{
        "cluster", "licenses", "controller", "noded", "gate", "nodes", "partitions"};
    for (const Yaml::Entry& entry : root.entries) {
      remember(entry.key, entry.value);
      Result<void> done;
      const auto own = options_of(config);
      const auto option = std::find_if(own.begin(), own.end(),
                                       [&](const Option& o) { return o.name == entry.key; });
      if (option != own.end()) {
        done = read_value(entry.key, *option, entry.value);
      } else if (entry.key == "controller") {
        done = read_section(entry.key, entry.value, options_of(config.controller));
      } else if (entry.key == "noded") {
        done = read_section(entry.key, entry.value, options_of(config.noded));
      } else if (entry.key == "gate") {
        done = read_section(entry.key, entry.value, options_of(config.gate));
      } else if (entry.key == "nodes") {
        done = read_nodes(entry.value, config);
      } else if (entry.key == "partitions") {
        done = read_partitions(entry.value, config);
      } else {
        return error_at(
            entry.line, entry.column,
            fmt::format("unknown key `{}`{}", entry.key, did_you_mean(entry.key, kKeys)));
      }
      if (!done) return done;
    }
    return {};
  }

  void remember(const std::string& path, const Yaml& value) {
    places_[path] = {value.line, value.column};
  }

  Result<void> read_section(const std::string& path, const Yaml& section,
                            const std::vector<Option>& options) {
    if (section.kind == Yaml::Kind::null) return {};  // "controller:" with nothing below it
    if (section.kind != Yaml::Kind::map)
      return error_at(section.line, section.column,
                      fmt::format("{}: needs keys, not {}", path, name_of(section.kind)));
    std::vector<std::string_view> names;
    for (const Option& option : options) names.push_back(option.name);
    for (const Yaml::Entry& entry : section.entries) {
      const auto option = std::find_if(options.begin(), options.end(),
                                       [&](const Option& o) { return o.name == entry.key; });
      if (option == options.end())
        return error_at(
            entry.line, entry.column,
            fmt::format("{}: unknown key `{}`{}", path, entry.key, did_you_mean(entry.key, names)));
      const std::string full = path + "." + entry.key;
      remember(full, entry.value);
      if (auto done = read_value(full, *option, entry.value); !done) return done;
    }
    for (const Option& option : options)
      if (option.required && !places_.contains(fmt::format("{}.{}", path, option.name)))
        return error_at(
            section.line, section.column,
            fmt::format("{}: `{}` is missing ({})", path, option.name, type_of(option)));
    return {};
  }

  Result<void> read_value(const std::string& path, const Option& option, const Yaml& value) {
    Result<void> done;
    const Yaml* blame = &value;
    if (value.kind == Yaml::Kind::scalar) {
      done = set_option(option, value.scalar);
    } else if (value.kind == Yaml::Kind::list && takes_list(option)) {
      std::vector<std::string> items;
      for (const Yaml& item : value.items) {
        blame = &item;
        if (item.kind != Yaml::Kind::scalar) {
          done = fail(ErrorCode::invalid_argument,
                      fmt::format("needs single values, not {}", name_of(item.kind)));
          break;
        }
        items.push_back(item.scalar);
        done = set_option(option, items);
        if (!done) break;
      }
      if (value.items.empty()) done = set_option(option, items);
    } else {
      done = fail(ErrorCode::invalid_argument,
                  fmt::format("needs a value ({}), not {}", type_of(option), name_of(value.kind)));
    }
    if (!done)
      return error_at(blame->line, blame->column,
                      fmt::format("{}: {}", path, done.error().message));
    return {};
  }

  // One entry of `nodes` may stand for many nodes: its range is expanded here.
  Result<void> read_nodes(const Yaml& list, Config& config) {
    if (list.kind != Yaml::Kind::list)
      return error_at(
          list.line, list.column,
          fmt::format("nodes: needs a list, one `- name: ...` per node or range, not {}",
                      name_of(list.kind)));
    for (std::size_t i = 0; i < list.items.size(); ++i) {
      const Yaml& item = list.items[i];
      const std::string path = fmt::format("nodes[{}]", i);
      remember(path, item);
      NodeConfig node;
      if (auto done = read_section(path, item, options_of(node)); !done) return done;
      if (node.cpu_ids && node.cpu_ids->size() != node.cpus)
        return error_about(path + ".cpu_ids", fmt::format("names {} CPUs, but cpus is {}",
                                                          node.cpu_ids->size(), node.cpus));
      if (node.gpu_sharing == GpuSharing::none && node.gpu_shards > 0)
        return error_about(path + ".gpu_shards", "needs gpu_sharing: mps, or time-slicing");
      if (auto done = check_gres(path + ".gres", node); !done) return done;
      std::sort(node.features.begin(), node.features.end());
      const auto names = expand_hostlist(node.name);
      if (!names) return error_about(path + ".name", names.error().message);
      if (names->size() > 1 && !node.address.empty())
        return error_about(path + ".address", "one address cannot belong to several nodes");
      for (const std::string& name : *names) {
        const auto [other, fresh] = node_paths_.emplace(name, path);
        if (!fresh)
          return error_about(path + ".name", fmt::format("node `{}` is already declared by {}",
                                                         name, other->second));
        config.nodes.push_back(node);
        config.nodes.back().name = name;
      }
    }
    return {};
  }

  Result<void> read_partitions(const Yaml& list, Config& config) {
    if (list.kind != Yaml::Kind::list)
      return error_at(list.line, list.column,
                      fmt::format("partitions: needs a list, one `- name: ...` each, not {}",
                                  name_of(list.kind)));
    for (std::size_t i = 0; i < list.items.size(); ++i) {
      const std::string path = fmt::format("partitions[{}]", i);
      remember(path, list.items[i]);
      PartitionConfig partition;
      if (auto done = read_section(path, list.items[i], options_of(partition)); !done) return done;
      config.partitions.push_back(std::move(partition));
    }
    return {};
  }

  Result<void> check_gres(const std::string& path, const NodeConfig& node) {
    std::set<std::string> here;
    for (const std::string& text : node.gres) {
      const auto one = parse_declared_gres(text);
      if (!one) return error_about(path, one.error().message);
      if (!here.insert(one->name).second)
        return error_about(path, fmt::format("{} is given twice", one->name));
    }
    gres_.insert(here.begin(), here.end());
    if (gres_.size() > kMostGresNames)
      return error_about(path, fmt::format("more than {} different names in the cluster: {}",
                                           kMostGresNames, fmt::join(gres_, ", ")));
    return {};
  }

  Result<void> check_licenses(const Config& config) const {
    std::set<std::string> seen;
    for (const std::string& text : config.licenses) {
      const auto one = parse_declared_license(text);
      if (!one) return error_about("licenses", one.error().message);
      if (!seen.insert(one->name).second)
        return error_about("licenses", fmt::format("{} is given twice", one->name));
    }
    return {};
  }

  Result<void> check_nodes(const Config& config) const {
    if (!config.nodes.empty()) return {};
    return error_at(0, 0, "no node is declared; add `nodes:` with a `- name:` for each");
  }

  Result<void> check_partitions(Config& config) const {
    if (config.partitions.empty()) {  // the smallest useful cluster: one queue with all nodes
      PartitionConfig& batch = config.partitions.emplace_back();
      batch.name = "batch";
      batch.nodes = {"all"};
      batch.is_default = true;
    }
    const std::vector<std::string_view> names = node_names(config);
    std::set<std::string> seen;
    std::optional<std::size_t> default_index;
    for (std::size_t i = 0; i < config.partitions.size(); ++i) {
      PartitionConfig& partition = config.partitions[i];
      const std::string path = fmt::format("partitions[{}]", i);
      if (!seen.insert(partition.name).second)
        return error_about(path + ".name", fmt::format("`{}` exists already", partition.name));
      if (partition.nodes.empty()) return error_about(path + ".nodes", "names no node");
      if (const auto fault = check_partition(partition, config, names))
        return error_about(fmt::format("{}.{}", path, fault->option), fault->what);
      if (partition.is_default) {
        if (default_index)
          return error_about(path + ".default",
                             fmt::format("`{}` is the default already; one partition can be",
                                         config.partitions[*default_index].name));
        default_index = i;
      }
    }
    if (!default_index && config.partitions.size() > 1)
      return error_about("partitions", "one of them needs `default: true`");
    if (!default_index) config.partitions[0].is_default = true;
    return {};
  }

  // Verifiers of tokens compare the issuer exactly, and add a path to it.
  Result<void> check_issuer(const ControllerConfig& c) const {
    const std::string& issuer = c.identity_issuer;
    if (issuer.empty()) return {};
    const bool plain = std::all_of(issuer.begin(), issuer.end(), [](char l) {
      return l > ' ' && l < 0x7f && l != '?' && l != '#' && l != '"' && l != '\\';
    });
    if (!issuer.starts_with("https://") || issuer.size() < 9 || issuer.ends_with('/') || !plain)
      return error_about("controller.identity_issuer",
                         "is not https://HOST or https://HOST/PATH without a slash at its end");
    if (c.metrics_port == 0)
      return error_about("controller.identity_issuer",
                         "needs metrics_port, which serves the keys to those who check tokens");
    return {};
  }

  // The ranges from which noded/network/address.h makes addresses.
  Result<void> check_job_blocks(const ControllerConfig& c) const {
    const auto part = [](const std::string& text, std::string_view bits, int family, void* out) {
      const auto slash = text.find('/');
      return slash != std::string::npos && std::string_view(text).substr(slash + 1) == bits &&
             ::inet_pton(family, text.substr(0, slash).c_str(), out) == 1;
    };
    std::array<std::uint8_t, 16> six{};
    std::array<std::uint8_t, 4> four{};
    const auto zero = [](std::uint8_t byte) { return byte == 0; };
    if (!part(c.job_network_prefix, "48", AF_INET6, six.data()) || (six[0] & 0xfe) != 0xfc ||
        !std::all_of(six.begin() + 6, six.end(), zero))
      return error_about(
          "controller.job_network_prefix",
          "is not a unique local IPv6 prefix of 48 bits, such as fd12:3456:789a::/48");
    if (!part(c.job_network_block, "10", AF_INET, four.data()) || (four[1] & 0x3f) != 0 ||
        four[2] != 0 || four[3] != 0)
      return error_about("controller.job_network_block",
                         "is not an IPv4 block of 10 bits, such as 100.64.0.0/10");
    return {};
  }

  Result<void> check_controller(const ControllerConfig& c) const {
    if (auto r = check_job_blocks(c); !r) return r;
    if (c.node_timeout < c.heartbeat * 2)
      return error_about("controller.node_timeout", "is less than twice heartbeat");
    if (!c.usage_webhook.empty() && c.usage_events.empty())
      return error_about("controller.usage_webhook", "needs usage_events, whose lines it sends");
    if (auto r = check_issuer(c); !r) return r;
    if (auto r = check_outside_issuer(c); !r) return r;
    if (c.metrics_labels.size() > 4)
      return error_about("controller.metrics_labels", "has more than 4 keys");
    if (c.report_labels.size() > 4)
      return error_about("controller.report_labels", "has more than 4 keys");
    if (c.lost_node_policy == LostNodePolicy::fence && c.fence_after <= c.node_timeout)
      return error_about("controller.fence_after", "is not longer than node_timeout");
    if (c.store_map_max < c.store_map)
      return error_about("controller.store_map_max", "is less than store_map");
    return {};
  }

  Result<void> check_outside_issuer(const ControllerConfig& c) const {
    const std::pair<std::string_view, const std::string*> needed[] = {
        {"oidc_issuer", &c.oidc_issuer},
        {"oidc_audience", &c.oidc_audience},
        {"oidc_keys", &c.oidc_keys}};
    const auto missing = [](const auto& row) { return row.second->empty(); };
    if (std::all_of(std::begin(needed), std::end(needed), missing)) return {};
    for (const auto& row : needed)
      if (missing(row))
        return error_about(fmt::format("controller.{}", row.first),
                           "is missing: oidc_issuer, oidc_audience and oidc_keys belong together");
    if (c.oidc_issuer == c.identity_issuer)
      return error_about("controller.oidc_issuer",
                         "is the same as identity_issuer, whose tokens are those of jobs");
    return {};
  }

  Result<void> check_login_nodes(const Config& config) const {
    for (const std::string& name : config.controller.login_nodes) {
      const auto node = std::find_if(config.nodes.begin(), config.nodes.end(),
                                     [&](const NodeConfig& n) { return n.name == name; });
      if (node == config.nodes.end())
        return error_about("controller.login_nodes", fmt::format("there is no node `{}`", name));
      if (node->address.empty())
        return error_about("controller.login_nodes",
                           fmt::format("node `{}` has no address: it is needed to know the machine "
                                       "from others that show its key",
                                       name));
    }
    return {};
  }

  std::string file_;
  std::map<std::string, Place> places_;
  std::map<std::string, std::string> node_paths_;  // node name -> "nodes[2]"
  std::set<std::string> gres_;                     // names of resources
};

Result<std::string> read_file(const std::string& path) {
  const auto bad = [&](int error) {
    return fail(error == ENOENT ? ErrorCode::not_found : ErrorCode::io_error,
                fmt::format("cannot read {}: {}", path, std::strerror(error)));
  };
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "re"),
                                                             std::fclose);
  if (!file) return bad(errno);
  std::string text;
  std::array<char, 65536> buffer;
  while (const std::size_t n = std::fread(buffer.data(), 1, buffer.size(), file.get())) {
    text.append(buffer.data(), n);
    if (text.size() > kMaxConfigBytes) break;  // parse_yaml refuses it
  }
  if (std::ferror(file.get()) != 0) return bad(errno);
  return text;
}

template <class Section>
void describe_section(const std::string& prefix, Section section,
                      std::map<std::string, std::string>& out) {
  for (const Option& option : options_of(section))
    out[prefix + std::string(option.name)] = show_option(option);
}

}  // namespace
}  // namespace config

Result<Config> parse_config(const std::string& text, const std::string& name_for_errors) {
  ASSIGN(tree, config::parse_yaml(text, name_for_errors));
  return config::Loader(name_for_errors).run(*tree);
}

Result<Config> load_config(const std::string& path) {
  ASSIGN(text, config::read_file(path));
  return parse_config(*text, path);
}

std::string default_config_path() {
  const auto is_directory = [](const std::string& path) {
    struct stat info {};
    return ::stat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode);
  };
  if (const char* named = std::getenv("GANTRY_CONF"); named != nullptr && *named != '\0')
    return is_directory(named) ? std::string(named) + "/gantry.yaml" : named;
  if (const char* home = std::getenv("HOME"); home != nullptr && *home != '\0') {
    const std::string own = std::string(home) + "/.config/gantry/gantry.yaml";
    struct stat info {};
    if (::stat(own.c_str(), &info) == 0) return own;
  }
  return "/etc/gantry/gantry.yaml";
}

std::map<std::string, std::string> describe(const Config& config) {
  Config copy = config;
  std::map<std::string, std::string> out;
  config::describe_section("", copy, out);
  config::describe_section("controller.", copy.controller, out);
  config::describe_section("noded.", copy.noded, out);
  config::describe_section("gate.", copy.gate, out);
  for (const NodeConfig& node : copy.nodes)
    config::describe_section("nodes." + node.name + ".", node, out);
  for (const PartitionConfig& partition : copy.partitions)
    config::describe_section("partitions." + partition.name + ".", partition, out);
  return out;
}

std::map<std::string, std::string> config::describe_for_users(const Config& config) {
  Config copy = config;
  std::map<std::string, std::string> out;
  const auto add = [&](const std::string& prefix, auto& section) {
    for (const Option& option : options_of(section))
      if (for_users(option)) out[prefix + std::string(option.name)] = show_option(option);
  };
  add("", copy);
  add("controller.", copy.controller);
  add("noded.", copy.noded);
  return out;
}

GANTRY_DEFINE_SPECIAL_MEMBERS(Config)

}  // namespace gantry
