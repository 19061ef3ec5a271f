// Reads namespaces and what limits them (ResourceQuota, LimitRange), and PriorityClass.
#include <fmt/core.h>

#include <algorithm>

#include "config/nearest.h"
#include "config/tenancy/amounts.h"
#include "config/tenancy/files/k8s_objects.h"
#include "config/tenancy/read_parts.h"

namespace gantry::tenancy {
namespace {

constexpr std::string_view kStorageLater = "there is no quota of storage";
constexpr std::string_view kNoSuchObject = "Gantry has no objects of this kind to count";

void take_least(std::optional<std::int64_t>& limit, std::int64_t amount) {
  limit = limit ? std::min(*limit, amount) : amount;
}
void take_least(std::optional<std::uint32_t>& limit, std::int64_t amount) {
  const auto most = static_cast<std::uint32_t>(std::min<std::int64_t>(amount, UINT32_MAX));
  limit = limit ? std::min(*limit, most) : most;
}

// Reads one entry of spec.hard.
Result<void> read_hard(const Value::Entry& entry, std::string_view map, const Meta& meta,
                       Translation& into) {
  NamespaceParts& parts = into.in_namespace(meta);
  std::string_view key = entry.key;
  const bool limits = key.starts_with("limits.");
  if (limits) key.remove_prefix(7);
  if (key.starts_with("requests.")) key.remove_prefix(9);
  if (const auto resource = resource_of_kubernetes(key)) {
    ASSIGN(amount, read_quantity(entry.value, *resource));
    HardLimit& hard = parts.hard[*resource];
    hard.place = entry.value.place();
    take_least(limits && *resource != Resource::gpu ? hard.limits : hard.requests, *amount);
    return {};
  }
  ASSIGN(amount, entry.value.text());
  const auto number = parse_quantity(*amount);
  if (!number) return entry.value.wrong(number.error());
  if (key == "pods" || key == "count/pods") {
    take_least(parts.counts.running_jobs, times_in(*number).value());
    parts.has_counts = true;
  } else if (key == "count/jobs.batch") {
    take_least(parts.counts.queued_jobs, times_in(*number).value());
    parts.has_counts = true;
  } else if (key.find("mig-") != std::string_view::npos) {
    into.note(meta, entry.value,
              "there is no quota of one MIG profile: slices count as their part of a GPU in the "
              "quota of GPUs");
  } else if (key == "storage" || key == "persistentvolumeclaims" ||
             key.find("storageclass.storage.k8s.io/") != std::string_view::npos) {
    into.note(meta, entry.value, std::string(kStorageLater));
  } else if (key.starts_with("hugepages-")) {
    into.note(meta, entry.value, "Gantry has no resource of this name");
  } else if (key.starts_with("count/") || key.find('/') != std::string_view::npos) {
    into.note(meta, entry.value,
              std::string(key.starts_with("count/") ? kNoSuchObject
                                                    : "Gantry has no resource of this name"));
  } else {
    static constexpr std::array<std::string_view, 7> kObjects{
        "services", "services.loadbalancers", "services.nodeports",    "configmaps",
        "secrets",  "resourcequotas",         "replicationcontrollers"};
    if (std::find(kObjects.begin(), kObjects.end(), key) == kObjects.end())
      return entry.wrong(
          map, fmt::format("there is no resource `{}` that a quota could limit", entry.key));
    into.note(meta, entry.value, std::string(kNoSuchObject));
  }
  return {};
}

// Reads the amounts in a LimitRange's default, max, ...
Result<void> read_list(const Value& map, const Meta& meta, Translation& into, Resources& out,
                       std::string_view unless_known) {
  ASSIGN(entries, map.entries());
  for (const Value::Entry& entry : *entries) {
    const auto resource = resource_of_kubernetes(entry.key);
    if (!resource) {
      ASSIGN(text, entry.value.text());
      if (const auto number = parse_quantity(*text); !number)
        return entry.value.wrong(number.error());
      if (!unless_known.empty()) into.note(meta, entry.value, std::string(unless_known));
      continue;
    }
    ASSIGN(amount, read_quantity(entry.value, *resource));
    out.row(*resource) = *amount;
  }
  return {};
}

// The amounts of a LimitRange's max. In Kubernetes 0 forbids a resource, but in Gantry it means no
// limit.
Result<void> read_most(const Value& map, const Meta& meta, Translation& into, Resources& out,
                       std::string_view unless_known) {
  if (auto done = read_list(map, meta, into, out, unless_known); !done) return done;
  const auto entries = map.entries();
  for (const Value::Entry& entry : *entries) {
    const auto resource = resource_of_kubernetes(entry.key);
    if (resource && out[*resource] == 0)
      into.note(meta, entry.value,
                "a maximum of 0 is not honoured: a quota of 0 keeps the namespace from it");
  }
  return {};
}

// Gantry's defaults are cores of a task and memory of each core.
void set_defaults(JobLimits& jobs, const Resources& amounts) {
  if (amounts[Resource::cpu] > 0)
    jobs.default_cpus = static_cast<std::uint32_t>(
        std::max<std::int64_t>(cores_for(amounts.get<Resource::cpu>()).value(), 1));
  if (amounts[Resource::memory] > 0)
    jobs.default_memory_per_cpu = amounts[Resource::memory] / jobs.default_cpus.value_or(1);
}

Result<void> read_range(const Value& item, const Meta& meta, Translation& into) {
  Resources usual;
  Resources request;
  Resources most;
  std::string type;
  ASSIGN(entries, item.entries());
  for (const Value::Entry& entry : *entries)
    if (entry.key == "type" && entry.value.is_scalar()) type = *entry.value.text();
  const bool of_jobs = type == "Container" || type == "Pod";
  const std::string_view no_such = of_jobs ? "Gantry has no resource of this name" : "";
  const auto amounts = [&](Resources& out) {
    return [&](const Value& value) { return read_list(value, meta, into, out, no_such); };
  };
  auto done =
      Keys(item, into, meta)
          .required("type",
                    [](const Value& value) -> Result<void> {
                      ASSIGN(text, value.text());
                      return {};
                    })
          .on("default", amounts(usual))
          .on("defaultRequest", amounts(request))
          .on("max",
              [&](const Value& value) { return read_most(value, meta, into, most, no_such); })
          .note("min", "jobs may ask for less; Gantry has no minima")
          .note("maxLimitRequestRatio",
                "what a job asks for is what it gets: there is no limit apart from the request")
          .run();
  if (!done) return done;
  if (!of_jobs) {
    into.note(meta, item, fmt::format("limits of a {} are not honoured: {}", type, kStorageLater));
    return {};
  }
  NamespaceParts& parts = into.in_namespace(meta);
  JobLimits& jobs = parts.jobs ? *parts.jobs : parts.jobs.emplace();
  for (const Resource r : {Resource::gpu, Resource::scratch})
    if (usual[r] > 0 || request[r] > 0)
      into.note(meta, item, "defaults are of cores and memory only; jobs ask for the rest");
  for (const Resource r : {Resource::cpu, Resource::memory}) {
    if (usual[r] > 0 && request[r] > 0 && usual[r] != request[r])
      into.note(meta, item,
                "`default` is used and `defaultRequest` is not: a job gets what it is limited to");
    if (usual[r] == 0) usual.row(r) = request[r];
  }
  set_defaults(jobs, usual);
  if (!most.is_zero()) {
    Resources& limit = jobs.max_per_node ? *jobs.max_per_node : jobs.max_per_node.emplace();
    for (const ResourceRow& row : kResourceTable)
      if (most[row.id] > 0 && (limit[row.id] == 0 || most[row.id] < limit[row.id]))
        limit.row(row.id) = most[row.id];
  }
  return {};
}

Result<void> read_value(const Value& value, PriorityClass& out) {
  ASSIGN(number, read_number(value, -kMostValue, kMostValue));
  out.value = static_cast<std::int32_t>(*number);
  return {};
}

void keep(PriorityClass&& priority_class, const Meta& meta, Translation& into) {
  ReadDocument read;
  read.document = std::move(priority_class);
  read.place = meta.place;
  read.translated = true;
  into.documents.push_back(std::move(read));
}

// Notes labels that would have an effect in Kubernetes and are only stored here.
void note_idle_labels(const Value& root, const Meta& meta, Translation& into) {
  static constexpr std::array<std::pair<std::string_view, std::string_view>, 4> kIdle{
      {{"istio-injection", "a label without effect: there are no sidecars"},
       {"istio.io/", "a label without effect: there are no sidecars"},
       {"linkerd.io/", "a label without effect: there are no sidecars"},
       {"scheduler.alpha.kubernetes.io/", "a label without effect"}}};
  for (const auto& [key, value] : meta.labels)
    for (const auto& [prefix, why] : kIdle)
      if (key.starts_with(prefix))
        into.notes.push_back(
            {root.place(), meta.shown(), "metadata.labels." + key, std::string(why)});
}

constexpr std::string_view kPodSecurity = "pod-security.kubernetes.io/";

// The labels of Pod Security become the tenant's security profile. Gantry has the same levels; the
// Kubernetes version in the labels is not kept.
Result<void> read_pod_security(const Value& root, const Meta& meta, NamespaceParts& parts,
                               Translation& into) {
  for (const auto& [key, value] : meta.labels) {
    if (!key.starts_with(kPodSecurity)) continue;
    const std::string what = key.substr(kPodSecurity.size());
    if (what.ends_with("-version")) {
      into.notes.push_back({root.place(), meta.shown(), "metadata.labels." + key,
                            "a label without effect: the profiles are those of this release"});
      continue;
    }
    std::optional<SecurityProfile>* to = what == "enforce" ? &parts.security.enforce
                                         : what == "audit" ? &parts.security.audit
                                         : what == "warn"  ? &parts.security.warn
                                                           : nullptr;
    if (to == nullptr)
      return root.wrong(
          fmt::format("metadata.labels.{}: Pod Security has enforce, audit and warn", key));
    for (const auto& [level, name] : enum_names(SecurityProfile{}))
      if (name == value) *to = level;
    if (!*to)
      return root.wrong(fmt::format(
          "metadata.labels.{} is \"{}\"; it is privileged, baseline or restricted", key, value));
  }
  return {};
}

}  // namespace

Result<void> read_namespace(const Value& root, const Meta& meta, Translation& into) {
  Meta own = meta;
  own.name_space = meta.name;
  NamespaceParts& parts = into.in_namespace(own);
  if (parts.declared) return root.wrong("this Namespace is there twice");
  parts.declared = true;
  parts.place = meta.place;
  parts.labels = meta.labels;
  note_idle_labels(root, meta, into);
  if (auto r = read_pod_security(root, meta, parts, into); !r) return r;
  return object_keys(root, into, meta).note("spec", "").run();
}

Result<void> read_resource_quota(const Value& root, const Meta& meta, Translation& into) {
  const auto spec = [&](const Value& value) -> Result<void> {
    std::optional<Value> hard;
    bool scoped = false;
    const auto scope = [&](const Value& v) -> Result<void> {
      scoped = true;
      into.note(meta, v, "a quota of some jobs only is not honoured: the whole object is left out");
      return {};
    };
    auto done = Keys(value, into, meta)
                    .required("hard",
                              [&](const Value& v) -> Result<void> {
                                hard = v;
                                return {};
                              })
                    .on("scopes", scope)
                    .on("scopeSelector", scope)
                    .run();
    if (!done || scoped || !hard) return done;
    ASSIGN(entries, hard->entries());
    for (const Value::Entry& entry : *entries)
      if (auto read = read_hard(entry, hard->path(), meta, into); !read) return read;
    return {};
  };
  return object_keys(root, into, meta).required("spec", spec).run();
}

Result<void> read_limit_range(const Value& root, const Meta& meta, Translation& into) {
  const auto limits = [&](const Value& value) -> Result<void> {
    ASSIGN(items, value.items());
    for (const Value& item : *items)
      if (auto done = read_range(item, meta, into); !done) return done;
    return {};
  };
  return object_keys(root, into, meta)
      .required("spec",
                [&](const Value& value) {
                  return Keys(value, into, meta).required("limits", limits).run();
                })
      .run();
}

Result<void> read_priority_class(const Value& root, const Meta& meta, Translation& into) {
  if (meta.name.starts_with("system-")) {  // classes of Kubernetes's own pods
    into.notes.push_back(
        {meta.place, meta.shown(), "", "classes of Kubernetes's own pods mean nothing to Gantry"});
    return {};
  }
  PriorityClass out;
  out.name = meta.name;
  out.preempts = true;  // as in Kubernetes, unless the policy is Never
  std::string policy;
  auto done = object_keys(root, into, meta)
                  .required("value", [&](const Value& value) { return read_value(value, out); })
                  .on("globalDefault",
                      [&](const Value& value) -> Result<void> {
                        std::string text;
                        if (auto read = expect_choice(
                                value, std::array<std::string_view, 2>{"true", "false"}, text);
                            !read)
                          return read;
                        out.is_default = text == "true";
                        return {};
                      })
                  .on("preemptionPolicy",
                      [&](const Value& value) {
                        return expect_choice(
                            value, std::array<std::string_view, 2>{"Never", "PreemptLowerPriority"},
                            policy);
                      })
                  .text("description", out.description)
                  .run();
  if (!done) return done;
  out.preempts = policy != "Never";
  keep(std::move(out), meta, into);
  return {};
}

Result<void> read_workload_class(const Value& root, const Meta& meta, Translation& into) {
  PriorityClass out;
  out.name = meta.name;
  auto done = object_keys(root, into, meta)
                  .required("value", [&](const Value& value) { return read_value(value, out); })
                  .text("description", out.description)
                  .run();
  if (!done) return done;
  keep(std::move(out), meta, into);
  return {};
}

}  // namespace gantry::tenancy
