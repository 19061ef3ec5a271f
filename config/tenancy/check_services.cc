// Checks documents of the kind Service.
#include <fmt/core.h>

#include <algorithm>
#include <set>

#include "common/text/printable.h"
#include "common/time/time_zone.h"
#include "config/tenancy/check_references.h"
#include "config/values.h"

namespace gantry::tenancy {
namespace {

constexpr std::size_t kMostHosts = 16, kMostVersions = 8, kMostShapes = 8, kMostHours = 32;
constexpr std::size_t kMostCommand = 64 << 10, kMostText = 4096;
constexpr std::uint32_t kMostReplicas = 1000;

bool only_small(std::string_view text, std::string_view more) {
  return std::all_of(text.begin(), text.end(), [&](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || more.find(c) != std::string::npos;
  });
}

bool is_host(const std::string& name) {
  return !name.empty() && name.size() <= 253 && only_small(name, ".-") && name.front() != '.' &&
         name.front() != '-' && name.back() != '.' && name.find("..") == std::string::npos;
}

bool is_path(const std::string& path) {
  return path.starts_with('/') && path.size() <= 256 && path.find("//") == std::string::npos &&
         path.find("/../") == std::string::npos && path.find("/./") == std::string::npos &&
         std::all_of(path.begin(), path.end(), [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                  std::string_view("/-_.~").find(c) != std::string_view::npos;
         });
}

struct Length {
  std::string_view path;
  Duration value, least, most;
};

Found check_lengths(const References& documents, const Service& s) {
  const ServiceProbe &ready = s.route.ready, &live = s.route.live;
  const Length lengths[] = {
      {"promise.target", s.target, milliseconds(1), hours(1)},
      {"startup", s.startup, seconds(1), hours(24)},
      {"drain", s.drain, {}, hours(1)},
      {"wait", s.route.wait, {}, hours(1)},
      {"ready.interval", ready.interval, milliseconds(100), minutes(10)},
      {"ready.timeout", ready.timeout, milliseconds(10), minutes(10)},
      {"live.interval", live.interval, milliseconds(100), minutes(10)},
      {"live.timeout", live.timeout, milliseconds(10), minutes(10)},
      {"scale.idle", s.scale.idle, seconds(1), hours(24 * 30)},
      {"scale.down_after", s.scale.down_after, {}, hours(24)},
      {"rollout.pause", s.rollout.pause, {}, hours(24)},
  };
  for (const Length& l : lengths)
    if (l.value < l.least || l.value > l.most)
      return documents.problem(
          std::string(l.path),
          l.path == "promise.target" && l.value == Duration{}
              ? "is missing: which response time is promised? `promise: {target: 100ms}`"
              : fmt::format("is {}; {} to {} is allowed", config::show_length(l.value),
                            config::show_length(l.least), config::show_length(l.most)));
  return std::nullopt;
}

struct Number {
  std::string_view path;
  std::uint32_t value, least, most;
};

Found check_numbers(const References& documents, const Service& s) {
  const Number numbers[] = {
      {"port", s.port, 1, 65535},
      {"promise.percentile", s.percentile, 1, 99},
      {"concurrency", s.route.concurrency, 0, 100'000},
      {"queue", s.route.queue, 0, 100'000},
      {"requests", s.route.requests, 0, 1'000'000},
      {"ready.failures", s.route.ready.failures, 1, 100},
      {"live.failures", s.route.live.failures, 1, 100},
      {"scale.most", s.scale.most, 1, kMostReplicas},
      {"scale.least", s.scale.least, 0, s.scale.most},
      {"scale.concurrency", s.scale.target_concurrency, 0, 100'000},
      {"scale.rate", s.scale.target_rate, 0, 1'000'000},
      {"rollout.step", s.rollout.step, 1, 100},
      {"rollout.most_errors", s.rollout.most_errors, 0, 1000},
  };
  for (const Number& n : numbers)
    if (n.value < n.least || n.value > n.most)
      return documents.problem(std::string(n.path),
                               fmt::format("is {}; {} to {} is allowed", n.value, n.least, n.most));
  return std::nullopt;
}

// Whether a request for a host and a path could mean both of them.
bool overlap(const Service& a, const Service& b) {
  const std::string path_a = a.route.path.empty() ? "/" : a.route.path;
  const std::string path_b = b.route.path.empty() ? "/" : b.route.path;
  if (path_a != path_b) return false;  // longer paths are matched first
  const auto names_a = hosts_of(a), names_b = hosts_of(b);
  return std::any_of(names_a.begin(), names_a.end(), [&](const std::string& name) {
    return std::find(names_b.begin(), names_b.end(), name) != names_b.end();
  });
}

// A tenant could take over a part of another one's requests by a longer path below its host.
bool shares_host(const Service& a, const Service& b) {
  const auto names_a = hosts_of(a), names_b = hosts_of(b);
  return std::any_of(names_a.begin(), names_a.end(), [&](const std::string& name) {
    return std::find(names_b.begin(), names_b.end(), name) != names_b.end();
  });
}

Found check_route(const References& documents, const Service& s) {
  const ServiceRoute& r = s.route;
  if (r.hosts.size() > kMostHosts)
    return documents.problem("hosts", fmt::format("has more than {} names", kMostHosts));
  for (const std::string& host : r.hosts)
    if (!is_host(host))
      return documents.problem(
          "hosts", fmt::format("`{}` is no name of a host in small letters", printable(host)));
  for (const auto& [key, path] :
       {std::pair("path", &r.path), {"ready.path", &r.ready.path}, {"live.path", &r.live.path}})
    if (!path->empty() && !is_path(*path))
      return documents.problem(
          key, fmt::format("`{}` is no path: `/`, letters, digits and -_.~", printable(*path)));
  for (const std::string& caller : r.callers)
    if (Found found = documents.refer(Tenant::kName, caller, "callers")) return found;
  if ((r.balance == BalancePolicy::key) != !r.key_header.empty())
    return documents.problem("key_header", "goes with `balance: key`, and the one needs the other");
  if (!r.key_header.empty() && (r.key_header.size() > 64 || !config::is_word(r.key_header)))
    return documents.problem("key_header", "is no name of a header");
  for (const Document& document : documents.documents()) {
    const auto* other = std::get_if<Service>(&document);
    if (other == nullptr || other->name == s.name) continue;
    if (other->tenant != s.tenant && shares_host(s, *other))
      return documents.problem("hosts", "another service has one of these names");
    if (overlap(s, *other))
      return documents.problem("hosts",
                               fmt::format("service {} has the same host and path", other->name));
  }
  return std::nullopt;
}

Found check_shape(const References& documents, const ServiceShape& shape, const std::string& path) {
  if (shape.cpus == 0 || shape.cpus > 4096)
    return documents.problem(path + ".cpus",
                             fmt::format("is {}; 1 to 4096 is allowed", shape.cpus));
  if (shape.gpus > 64)
    return documents.problem(path + ".gpus", fmt::format("is {}; 0 to 64 is allowed", shape.gpus));
  if (shape.gpu_share > 999)
    return documents.problem(
        path + ".gpu_share",
        fmt::format("is {}; 1 to 999 thousandths are allowed", shape.gpu_share));
  if (shape.gpu_share > 0 && shape.gpus > 0)
    return documents.problem(path + ".gpu_share", "and `gpus` exclude each other");
  if (!shape.gpu_slice.empty() && shape.gpus == 0 && shape.gpu_share == 0)
    return documents.problem(path + ".gpu_slice", "needs `gpus`: how many slices?");
  if (shape.memory && *shape.memory <= 0)
    return documents.problem(path + ".memory", "is not above 0");
  return std::nullopt;
}

Found check_version(const References& documents, const Service& s, const ServiceVersion& v) {
  const std::string path = "versions." + v.name;
  if (v.weight > 1000)
    return documents.problem(path + ".weight",
                             fmt::format("is {}; 0 to 1000 is allowed", v.weight));
  if (v.command.empty() || v.command.size() > kMostCommand ||
      v.command.find('\0') != std::string::npos)
    return documents.problem(path + ".command", "is missing: what does a replica run?");
  if (!v.directory.empty() && (!v.directory.starts_with('/') || v.directory.size() > kMostText ||
                               !is_printable(v.directory)))
    return documents.problem(path + ".directory", "is no absolute path");
  if (v.image.size() > kMostText || !is_printable(v.image))
    return documents.problem(path + ".image", "is no name of an image");
  for (const auto& [key, value] : v.environment)
    if (key.empty() || key.find_first_of("=\n") != std::string::npos || !is_printable(key) ||
        value.find('\0') != std::string::npos || key == "PORT" || key.starts_with("GANTRY_") ||
        key.starts_with("SLURM_"))
      return documents.problem(path + ".environment",
                               fmt::format("`{}` is no name that may be set", printable(key)));
  if (v.shapes.empty() || v.shapes.size() > kMostShapes)
    return documents.problem(
        path + ".shapes",
        fmt::format("has {} shapes; 1 to {} are allowed: `shapes: {{small: {{cpus: 1}}}}`",
                    v.shapes.size(), kMostShapes));
  for (const ServiceShape& shape : v.shapes)
    if (Found found = check_shape(documents, shape, path + ".shapes." + shape.name)) return found;
  for (const ServiceShape& shape : v.shapes)
    if (s.sharing == DeviceSharing::alone && shape.gpu_share > 0)
      return documents.problem(
          "sharing", fmt::format("is `alone`, and shape {} of version {} is a part of a GPU",
                                 shape.name, v.name));
  for (const std::string& use : v.datasets) {
    const std::string name = use.ends_with(":rw") ? use.substr(0, use.size() - 3) : use;
    if (Found found = documents.refer(Dataset::kName, name, path + ".datasets")) return found;
  }
  return std::nullopt;
}

Found check_scale(const References& documents, const ServiceScale& s) {
  for (const std::string& by : s.by) {
    const auto names = enum_names(ScaleBy{});
    if (std::none_of(names.begin(), names.end(), [&](const auto& row) { return row.second == by; }))
      return documents.problem(
          "scale.by", fmt::format("`{}` is none of promise, concurrency, rate", printable(by)));
    if (by == "concurrency" && s.target_concurrency == 0)
      return documents.problem("scale.concurrency", "is missing, and `by` asks for it");
    if (by == "rate" && s.target_rate == 0)
      return documents.problem("scale.rate", "is missing, and `by` asks for it");
  }
  if (s.hours.size() > kMostHours)
    return documents.problem("scale.hours", fmt::format("has more than {} entries", kMostHours));
  for (const ScaleHours& h : s.hours) {
    const std::string path = "scale.hours." + h.name;
    for (const auto& [key, text] : {std::pair(".from", &h.from), {".until", &h.until}})
      if (const auto time = parse_time_of_day(*text); !time)
        return documents.problem(path + key, time.error().message);
    for (const std::string& day : h.days)
      if (std::find(kWeekdays.begin(), kWeekdays.end(), day) == kWeekdays.end())
        return documents.problem(path + ".days",
                                 fmt::format("`{}` is none of mon to sun", printable(day)));
    if (h.least > s.most)
      return documents.problem(path + ".least", fmt::format("is above scale.most, {}", s.most));
  }
  return std::nullopt;
}

}  // namespace

Found check_service(const References& documents, const Service& s) {
  if (s.tenant.empty()) return documents.problem("tenant", "is missing: whose is it?");
  if (Found found = documents.refer(Tenant::kName, s.tenant, "tenant")) return found;
  if (!s.project.empty()) {
    const auto of = std::find_if(documents.documents().begin(), documents.documents().end(),
                                 [&](const Document& d) {
                                   const auto* tenant = std::get_if<Tenant>(&d);
                                   return tenant != nullptr && tenant->name == s.tenant;
                                 });
    const auto& projects = std::get<Tenant>(*of).projects;
    if (std::none_of(projects.begin(), projects.end(),
                     [&](const Project& p) { return p.name == s.project; }))
      return documents.problem("project",
                               fmt::format("tenant {} has no project `{}`", s.tenant, s.project));
  }
  if (!s.priority_class.empty())
    if (Found found = documents.refer(PriorityClass::kName, s.priority_class, "priority_class"))
      return found;
  if (Found found = check_lengths(documents, s)) return found;
  if (Found found = check_numbers(documents, s)) return found;
  if (Found found = check_route(documents, s)) return found;
  if (s.versions.empty() || s.versions.size() > kMostVersions)
    return documents.problem("versions", fmt::format("has {} versions; 1 to {} are allowed",
                                                     s.versions.size(), kMostVersions));
  for (const ServiceVersion& v : s.versions)
    if (Found found = check_version(documents, s, v)) return found;
  if (std::none_of(s.versions.begin(), s.versions.end(),
                   [](const ServiceVersion& v) { return v.weight > 0; }))
    return documents.problem("versions", "have no weight: which gets the requests?");
  return check_scale(documents, s.scale);
}

}  // namespace gantry::tenancy
